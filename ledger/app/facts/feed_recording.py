"""Recording the facts of a feed (``ledger.domain.facts.feeds``): verdicts against all that its source said before,
and the periods whose figures they may change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ledger.app.agreements.registering import RegisteredAgreement
from ledger.app.facts.earlier_batches import EarlierBatches, Place, declared_by, format_by
from ledger.app.facts.telling_apart import tell_apart
from ledger.app.periods.closing import closing_of
from ledger.app.ports.store import Transaction
from ledger.domain.facts.fact_kinds import BOOKS
from ledger.domain.facts.feeds import FactKind, FactRow, Facts
from ledger.domain.facts.samples import Refused
from ledger.domain.rows.observation import (
    Reason,
    RowRejection,
    Verdict,
    VerdictCounts,
)
from ledger.domain.terms.lifecycle import Timeline
from ledger.domain.time.calendar import Period
from ledger.domain.time.interval import Interval, clip, union

_LIFTED_BY_OTHER_TERMS = (Reason.NOT_PROMISED, Reason.OUTSIDE_PERIOD)


def feed_of(
    tx: Transaction,
    registered: RegisteredAgreement,
    timeline: Timeline,
    earlier: EarlierBatches,
    batch_format: str,
    read_rows: Callable[[bytes], Facts],
) -> Feed | None:
    """What records the facts of a feed, given all batches before; None for all other logs."""
    if batch_format not in BOOKS:
        return None

    def known_rows() -> Iterator[tuple[FactRow | RowRejection, Sequence[Interval]]]:
        declared: dict[str, list[Interval | None]] = {}
        for event in earlier.events():
            if format_by(event) == batch_format:
                declared.setdefault(event.payload["digest"], []).append(declared_by(event))
        for digest, said in sorted(declared.items(), key=lambda of_digest: of_digest[0]):
            spans = [span for span in said if span is not None]
            # A batch that was once handed in without a declaration has no outside.
            within = () if len(spans) < len(said) else tuple(spans)
            for row in read_rows(tx.batches.get(digest)):
                yield cast(FactRow | RowRejection, row), within

    return Feed(tx, registered, timeline, BOOKS[batch_format].kind, earlier, known_rows)


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed of one agreement. ``known_rows`` reads the batches of this kind that were recorded before, each row with
    the spans that its batch was declared complete for."""

    tx: Transaction
    registered: RegisteredAgreement
    timeline: Timeline
    kind: FactKind[Any]
    earlier: EarlierBatches
    known_rows: Callable[[], Iterable[tuple[FactRow | RowRejection, Sequence[Interval]]]]

    def classify(
        self, rows: Facts, declared: Interval | None, refused: list[RowRejection], *, now_ns: int
    ) -> tuple[VerdictCounts, Interval | None, set[Period]]:
        """Verdicts by the rule of the kind's ``FactBook``, the time that the accepted rows are about, and the periods
        that new ones may change; ``refused`` gathers rows that could be read and not used."""
        counts = VerdictCounts()
        usable, waiting = self._usable(rows, declared, counts, refused)
        scope = (self.registered.sla_id, self.registered.agreement.source)
        ids, bodies = [self.kind.identity(row) for row in usable], [row.body_digest for row in usable]
        verdicts = tell_apart(self.tx, *scope, self.kind.scope, ids, bodies, counts)
        new = [row for row, verdict in zip(usable, verdicts, strict=True) if verdict is not Verdict.DUPLICATE]
        accepted = [row for row, verdict in zip(usable, verdicts, strict=True) if verdict is Verdict.ACCEPTED]
        touched = self.touched(new, now_ns=now_ns) if new else set()
        if self.kind.touched is None:
            self.earlier.add_places(self.kind.name, self._places([*new, *waiting]))
        return counts, self._span(accepted), touched

    def touched(self, rows: Facts, *, now_ns: int) -> set[Period]:
        """The closed periods whose figures these rows may change, beside those known before; open ones may be among
        them."""
        usable = [row for row in rows if isinstance(row, self.kind.row)]
        if self.kind.touched is None:
            names = sorted({self.kind.place(row)[0] for row in usable})
            said_before = self._places(
                row for row, why in self._known() if why is None or why.reason in _LIFTED_BY_OTHER_TERMS
            )
            spoken_of = self.earlier.when(self.kind.name, names, said_before)
            where = [*(span for _, span in self._places(usable)), *spoken_of]
        elif self._nothing_closed_since(usable, now_ns):
            # Nobody has to know how far they reach.
            where = []
        else:
            # Only those that count: a reading of another service is no end of a step.
            where = self.kind.touched(usable, (row for row, why in self._known() if why is None))
        return {period for span in union(where) for period in self.timeline.touching(span)}

    def _known(self) -> Iterator[tuple[FactRow, Refused | None]]:
        """The rows of all batches before, and why one counts nowhere."""
        for row, within in self.known_rows():
            if isinstance(row, self.kind.row):
                fact = cast(FactRow, row)
                yield fact, self._refused(fact, within)

    def _places(self, rows: Iterable[FactRow]) -> Iterator[Place]:
        for row in rows:
            about = self.kind.about(row)
            if about is not None:
                yield self.kind.place(row)[0], about

    def _usable(
        self, rows: Facts, declared: Interval | None, counts: VerdictCounts, refused: list[RowRejection]
    ) -> tuple[list[FactRow], list[FactRow]]:
        """The rows that count, and those that may once the terms are other ones."""
        found: list[FactRow] = []
        waiting: list[FactRow] = []
        spans = () if declared is None else (declared,)
        for row in rows:
            if isinstance(row, RowRejection):
                counts.reject(row.reason)
                continue
            fact = cast(FactRow, row)
            why = self._refused(fact, spans)
            if why is None:
                found.append(fact)
            else:
                counts.reject(why.reason)
                refused.append(RowRejection(fact.line, *why))
                if why.reason in _LIFTED_BY_OTHER_TERMS:
                    waiting.append(fact)
        return found, waiting

    def _refused(self, row: FactRow, spans: Sequence[Interval]) -> Refused | None:
        """A fact may reach into the times of several terms: it is for nobody only where it is for none of them."""
        answers = [self.kind.judged(terms, row, spans) for terms in reversed(self.timeline.documents)]
        refused = [answer for answer in answers if answer is not None]
        if len(refused) == len(answers):
            # What blocks a period of some terms is no row for nobody.
            return next((each for each in refused if each.reason is Reason.IMPLAUSIBLE), refused[0])
        where = self.kind.counts_in(row)
        whole = Interval(self.timeline.documents[0].starts_ns, self.timeline.newest.ends_ns)
        if where is not None and clip(where, whole) is None:
            return Refused(Reason.OUTSIDE_PERIOD, self.kind.dated_by, "lies outside every period of the agreement")
        return None

    def _nothing_closed_since(self, rows: Sequence[FactRow], now_ns: int) -> bool:
        """Whether no period is closed from the time on that rows are about, so that nobody has to know how far they
        reach."""
        span = self._span(rows)
        if span is None:
            return False
        since = Interval(span.start_ns, max(now_ns, span.end_ns))
        return all(
            closing_of(self.tx, self.registered.sla_id, period) is None for period in self.timeline.touching(since)
        )

    def _span(self, rows: Sequence[FactRow]) -> Interval | None:
        found = [about for row in rows if (about := self.kind.about(row)) is not None]
        if not found:
            return None
        return Interval(min(each.start_ns for each in found), max(each.end_ns for each in found))
