"""The facts of one period, taken in batch by batch, and the windows they come to.

What was taken once is not read again: a period that is looked at while it runs costs each look what came in since. A
look that starts anew comes to the same, because nothing depends on the order in which batches come.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, cast

from ledger.app.agreements.registering import RegisteredAgreement
from ledger.app.facts.heartbeats import take_heartbeats
from ledger.app.facts.observations import ReadRows
from ledger.app.ports.store import Transaction
from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.facts.fact_kinds import BOOKS
from ledger.domain.facts.heartbeats import HeartbeatBook
from ledger.domain.facts.joined_logs import Book, joined
from ledger.domain.facts.outcome import LeftOut
from ledger.domain.facts.samples import SampleBook
from ledger.domain.record.events import StoredEvent
from ledger.domain.record.naming import observations_stream, windows_stream
from ledger.domain.rows.observation import IdRepeated, Rows
from ledger.domain.terms.log_kinds import FORMATS, HEARTBEATS, REQUESTS, SAMPLES
from ledger.domain.time.calendar import Period
from ledger.domain.time.interval import Interval, clip
from ledger.domain.violations.own_recovery import with_own_recoveries
from ledger.domain.windows.exclusions import Excluded
from ledger.domain.windows.window import Window
from ledger.domain.windows.window_inputs import Batch, window_inputs

MAX_KEPT = 1_000_000
"""What is kept of all periods together, in rows of about 200 bytes; a judged window weighs ten."""


@dataclass(slots=True)
class _Followed:
    """How far a stream was read."""

    stream: str
    length: int = 0
    last_id: str = ""

    def following(self, tx: Transaction) -> list[StoredEvent] | None:
        """What came since; None where it is not the stream that was read before, as after a restore."""
        events = list(tx.events.stream(self.stream, start=max(self.length - 1, 0)))
        if self.length:
            if not events or events[0].id != self.last_id:
                return None
            del events[0]
        if events:
            self.length, self.last_id = events[-1].version + 1, events[-1].id
        return events


@dataclass(slots=True)
class Judgements:
    """The newest ``window_evaluated`` payload of each window of a period, by index; ``length`` is that of their
    stream."""

    _followed: _Followed
    last: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, tx: Transaction, sla_id: str, period: Period, kept: Judgements | None) -> Judgements:
        """All of them; of ``kept`` ones only what was appended since."""
        for found in (kept, cls(_Followed(windows_stream(sla_id, period.first)))):
            events = None if found is None else found._followed.following(tx)
            if found is not None and events is not None:
                found.last |= {event.payload["index"]: event.payload for event in events}
                return found
        raise AssertionError("a stream that was never read before has no other beginning")

    @property
    def length(self) -> int:
        return self._followed.length


@dataclass(slots=True)
class _Batches:
    """The batches of one format. One counts where it was declared complete; where it was also recorded without a
    declaration, everywhere."""

    declared: defaultdict[str, list[Interval]] = field(default_factory=lambda: defaultdict(list))
    undeclared: set[str] = field(default_factory=set)
    repeats: int = 0

    def take(self, payload: Mapping[str, Any]) -> None:
        digest, span = payload["digest"], payload["declared_complete"]
        self.repeats += payload["rows"]["duplicate"] + payload["rows"]["conflict"]
        if span is None:
            self.undeclared.add(digest)
        else:
            self.declared[digest].append(Interval(int(span["from_ns"]), int(span["to_ns"])))

    def digests(self, period: Interval | None) -> list[str]:
        """Those that may say something of a period: where a batch is declared for other times alone, it has no row that
        counts in it. None: all."""
        declared = (
            each for each, spans in self.declared.items() if period is None or any(clip(span, period) for span in spans)
        )
        return sorted({*declared, *self.undeclared})

    @property
    def spans(self) -> list[Interval]:
        return [span for of_batch in self.declared.values() for span in of_batch]

    def within(self, digest: str) -> tuple[Interval, ...]:
        return () if digest in self.undeclared else tuple(self.declared[digest])


@dataclass(slots=True)
class _Taken:
    """The batches that a book took, in order, each with the spans it was taken within."""

    within: dict[str, tuple[Interval, ...]] = field(default_factory=dict)

    def fits(self, batches: _Batches) -> bool:
        """Whether each still counts where it was taken to count: a batch may be declared complete for more."""
        return all(batches.within(digest) == within for digest, within in self.within.items())

    def reaching(self, batches: _Batches, reaches: Sequence[set[int]]) -> list[Batch]:
        """The batches with the windows that stand on them."""
        return [
            Batch(digest, windows, batches.declared.get(digest, ()))
            for digest, windows in zip(self.within, reaches, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class JudgedWindows:
    """The windows of a period, what left both sides in each, and the digests of the batches behind each."""

    windows: tuple[Window, ...]
    left_out: Sequence[LeftOut]
    inputs: Sequence[set[str]]


class PeriodFacts:
    """What the facts recorded so far come to in one period under some terms and exclusions."""

    def __init__(self, registered: RegisteredAgreement, period: Period, excluded: Excluded) -> None:
        self._registered, self._period, self._excluded = registered, period, excluded
        self._followed = _Followed(observations_stream(registered.sla_id, registered.agreement.source))
        self._batches = {each: _Batches() for each in FORMATS}
        self._heartbeats = HeartbeatBook(registered.agreement, period)
        self._new_heartbeats: list[StoredEvent] = []
        self._evaluator: Evaluator | None = None
        self._taken = _Taken()
        self._books: dict[str, tuple[_Taken, Book]] = {}

    @classmethod
    def read(
        cls,
        tx: Transaction,
        registered: RegisteredAgreement,
        period: Period,
        excluded: Excluded,
        kept: PeriodFacts | None = None,
    ) -> PeriodFacts:
        """What was recorded until now; of ``kept`` facts that are about the same only what came since."""
        if kept is not None and kept._is_of(registered, period, excluded) and kept._follow(tx):
            return kept
        fresh = cls(registered, period, excluded)
        fresh._follow(tx)
        return fresh

    @property
    def rows(self) -> int:
        """Rows that are held in memory."""
        books = [book for _, book in self._books.values()]
        held = [each.counts.accepted for each in (self._evaluator, *books) if each is not None]
        return sum(held) + len(self._heartbeats)

    def judge(self, tx: Transaction, read_rows: ReadRows) -> JudgedWindows:
        """The judged windows.

        A window is observed where the log of each kind that the agreement counts is declared complete: a request log
        says nothing of samples, and without their log nobody knows that there were none. A heartbeat speaks for all
        logs of its source.
        """
        agreement = self._registered.agreement
        if agreement.heartbeat_longest_s is not None:
            take_heartbeats(tx, self._heartbeats, self._period, self._new_heartbeats, read_rows)
            self._new_heartbeats.clear()
        alive, alive_batches = self._heartbeats.spans, self._heartbeats.batches()
        counted = [each for each in FORMATS if each in {objective.source.kind for objective in agreement.objectives}]
        spans = [*self._batches[counted[0]].spans, *alive]
        requests = self._batches[REQUESTS]
        # What was counted when it came in says which way is the shorter one, and nothing more.
        try:
            evaluator = self._take_requests(tx, read_rows, distinct=not requests.repeats)
        except IdRepeated:
            self._evaluator = None
            evaluator = self._take_requests(tx, read_rows, distinct=False)
        evaluator.declare(spans)
        books: list[tuple[_Batches, _Taken, Book]] = []
        for each in counted:
            if each == REQUESTS:
                continue
            of_kind = self._batches[each]
            taken, book = self._take(each, tx, read_rows)
            book.declare([*of_kind.spans, *alive])
            books.append((of_kind, taken, book))
        windows = joined(evaluator, [book for _, _, book in books])
        kinds = [self._taken.reaching(requests, evaluator.reaches())] if REQUESTS in counted else []
        kinds += [taken.reaching(of_kind, book.reaches()) for of_kind, taken, book in books]
        inputs = [set[str]() for _ in windows]
        for batches_of in kinds:
            for of_window, behind in zip(inputs, window_inputs(windows, [*batches_of, *alive_batches]), strict=True):
                of_window.update(behind)
        judged = with_own_recoveries(agreement, windows)
        return JudgedWindows(judged, evaluator.left_out(), inputs)

    def _is_of(self, registered: RegisteredAgreement, period: Period, excluded: Excluded) -> bool:
        mine, other = self._registered.agreement, registered.agreement
        same = (mine.doc_sha256, mine.ended_on) == (other.doc_sha256, other.ended_on)
        return same and (self._period, self._excluded) == (period, excluded)

    def _follow(self, tx: Transaction) -> bool:
        events = self._followed.following(tx)
        for event in events or ():
            found = event.payload.get("format", REQUESTS)
            if found == HEARTBEATS:
                self._new_heartbeats.append(event)
            else:
                self._batches[found].take(event.payload)
        return events is not None

    def _take_requests(self, tx: Transaction, read_rows: ReadRows, *, distinct: bool) -> Evaluator:
        requests = self._batches[REQUESTS]
        if self._evaluator is None or not self._taken.fits(requests):
            self._taken = _Taken()
            self._evaluator = Evaluator(
                self._registered.agreement,
                self._period,
                tenant=self._registered.sla_id,
                excluded=self._excluded,
                distinct=distinct,
            )
        for digest in requests.digests(self._period.interval):
            if digest not in self._taken.within:
                within = self._taken.within[digest] = requests.within(digest)
                self._evaluator.add_all(cast(Rows, read_rows(tx.batches.get(digest))), within=within)
        return self._evaluator

    def _take(self, kind: str, tx: Transaction, read_rows: ReadRows) -> tuple[_Taken, Book]:
        """The book of a kind of facts that are no requests, with all batches of it."""
        batches = self._batches[kind]
        taken, book = self._books.get(kind, (None, None))
        if taken is None or book is None or not taken.fits(batches):
            make = SampleBook if kind == SAMPLES else BOOKS[kind]
            agreement, tenant = self._registered.agreement, self._registered.sla_id
            taken, book = _Taken(), make(agreement, self._period, tenant=tenant, excluded=self._excluded)
            self._books[kind] = taken, book
        # What a row of a feed says may reach beyond the time that it is declared for.
        for digest in batches.digests(self._period.interval if kind == SAMPLES else None):
            if digest not in taken.within:
                within = taken.within[digest] = batches.within(digest)
                book.add_all(cast(Any, read_rows(tx.batches.get(digest))), within=within)
        return taken, book


class KeptPeriods:
    """Facts and judgements of periods between two looks at them, the last ones looked at within ``limit``.

    Who looks takes a period out and puts it back when all went well, so that nothing half done is kept.
    """

    def __init__(self, limit: int = MAX_KEPT) -> None:
        self._limit = limit
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, Period], tuple[PeriodFacts, Judgements]] = OrderedDict()

    def take(self, sla_id: str, period: Period) -> tuple[PeriodFacts | None, Judgements | None]:
        with self._lock:
            return self._kept.pop((sla_id, period), (None, None))

    def put(self, sla_id: str, period: Period, facts: PeriodFacts, judgements: Judgements) -> None:
        with self._lock:
            self._kept[sla_id, period] = facts, judgements
            held = sum(map(_weight, self._kept.values()))
            while held > self._limit:
                held -= _weight(self._kept.popitem(last=False)[1])


def _weight(kept: tuple[PeriodFacts, Judgements]) -> int:
    facts, judgements = kept
    return facts.rows + 10 * len(judgements.last)
