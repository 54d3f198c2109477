"""Recording facts: one raw batch, one verdict for each row, one ``observations_recorded`` event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ledger.app.agreements.registering import RegisteredAgreement, timeline_of
from ledger.app.facts.earlier_batches import EarlierBatches
from ledger.app.facts.feed_recording import Feed, feed_of
from ledger.app.facts.heartbeats import classify_heartbeats, touched_by_heartbeats
from ledger.app.facts.quality_reports import report_implausible
from ledger.app.facts.telling_apart import tell_apart
from ledger.app.periods.late_facts import facts_changed
from ledger.app.ports.store import Receipt, Transaction
from ledger.domain.facts.feeds import Facts
from ledger.domain.facts.samples import Refused, SampleRule, scope_of
from ledger.domain.facts.watermark import vouched
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.domain.record.naming import closing_stream
from ledger.domain.rows.observation import (
    AnyRows,
    Reason,
    RequestColumns,
    RequestRow,
    RowRejection,
    SampleRow,
    Verdict,
    VerdictCounts,
)
from ledger.domain.terms.lifecycle import Timeline
from ledger.domain.terms.log_kinds import HEARTBEATS, format_of
from ledger.domain.terms.where import Selection
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.errors import RequestLogUnusable

ReadRows = Callable[[bytes], Facts]
"""Reads the rows of a raw batch, of the format that ``format_of`` tells; raises ``BadInput`` where the batch cannot be
used at all."""

MAX_REFUSED = 20


@dataclass(frozen=True, slots=True)
class RecordedBatch:
    """What became of a batch. ``receipt`` is the first one where the same batch had been recorded before.

    ``declared_complete`` is what of the declaration counts: none of it is ahead of its handing in.
    ``refused`` are the first of the rows that could be read and have a member that this agreement cannot use.
    ``judged_anew`` names the closed periods of which it says something new: where that gives other figures, the next
    version of their statement follows.
    """

    digest: str
    counts: VerdictCounts
    receipt: Receipt
    declared_complete: Interval | None
    refused: tuple[RowRejection, ...] = ()
    judged_anew: tuple[str, ...] = ()

    @property
    def complete_until(self) -> str | None:
        """The end of ``declared_complete``, RFC 3339."""
        return None if self.declared_complete is None else format_instant_ns(self.declared_complete.end_ns)


def record_observations(
    tx: Transaction,
    registered: RegisteredAgreement,
    data: bytes,
    *,
    read_rows: ReadRows,
    declared_complete: Interval | None,
    now_ns: int,
) -> RecordedBatch:
    """Keep a raw batch by its digest and append what its rows came to.

    ``declared_complete`` is the span for which the collector declares its log complete; it is what makes a window
    without rows idle instead of missing. A row of the batch outside that span is rejected, because the collector does
    not stand by it. Nobody vouches for time that has not come: what is declared ahead of it ends with the handing in,
    and what a clock may be ahead. The same batch with the same declaration is recorded once for an agreement: it is
    looked up, and others of the source wait. Of the closed periods those that it says something new of are judged anew.
    Raises ``VersionConflict`` where another fact of a closed period was recorded meanwhile, ``ClaimDeadlinePassed``
    where it says something new of one too late, ``RequestLogUnusable`` for heartbeats with a span and for a declaration
    of time that has not come.
    """
    sla_id, source = registered.sla_id, registered.agreement.source
    tx.identities.reserve(sla_id, source)
    declared_complete = vouched(declared_complete, now_ns)
    digest, earlier = tx.batches.put(data), EarlierBatches(tx, sla_id, source)
    batch_format, rows = format_of(data), read_rows(data)
    timeline, refused = timeline_of(tx, sla_id), list[RowRejection]()
    feed = feed_of(tx, registered, timeline, earlier, batch_format, read_rows)
    before = earlier.same(digest, declared_complete)
    if before is not None:
        anew = _judged_anew(tx, before, _periods_of(timeline, feed, before, rows, declared_complete, now_ns))
        known, receipt = _counts_of(before.payload), Receipt.of(before)
        return RecordedBatch(digest, known, receipt, declared_complete, judged_anew=anew)
    if feed is not None:
        counts, span, changed = feed.classify(rows, declared_complete, refused, now_ns=now_ns)
    elif batch_format == HEARTBEATS:
        _require_no_span(declared_complete)
        counts, span, changed = classify_heartbeats(tx, registered, timeline, cast(AnyRows, rows), now_ns, refused)
    else:
        counts, span, changed = _classify(tx, registered, timeline, rows, declared_complete, refused)
    payload: dict[str, Any] = {"sla_id": sla_id, "source": source, "digest": digest, "format": batch_format}
    payload |= {"bytes": len(data), **_counted(counts, span, declared_complete)}
    fact = NewEvent("observations_recorded", payload, occurred_at_ns=now_ns)
    (receipt,) = tx.events.append(earlier.stream, [fact], expected_version=None)
    earlier.add(digest, declared_complete, receipt.version)
    if Reason.IMPLAUSIBLE in counts.rejected:
        report_implausible(tx, timeline, payload, read_rows(data), declared_complete, now_ns)
    changed |= earlier.newly_complete(timeline, declared_complete, receipt.version, batch_format)
    reason = f"the batch {digest[:16]} of {source} came after the period was closed"
    anew = _have_judged_anew(tx, registered, timeline, changed, reason=reason, fact=receipt.event_id, now_ns=now_ns)
    return RecordedBatch(digest, counts, receipt, declared_complete, tuple(refused[:MAX_REFUSED]), anew)


def _have_judged_anew(
    tx: Transaction,
    registered: RegisteredAgreement,
    timeline: Timeline,
    changed: Collection[Period],
    *,
    reason: str,
    fact: str,
    now_ns: int,
) -> tuple[str, ...]:
    """Have those of the periods that are closed judged anew, each by its own terms, from the earliest on: which."""
    closed = []
    for period in sorted(changed, key=lambda period: period.interval.start_ns):
        of_period = replace(registered, agreement=timeline.starting(period.first)[0].agreement)
        if facts_changed(tx, of_period, period, cause="observations", reason=reason, fact=fact, now_ns=now_ns):
            closed.append(str(period))
    return tuple(closed)


def _counted(counts: VerdictCounts, span: Interval | None, declared: Interval | None) -> dict[str, Any]:
    """What became of the rows, as the event has it; ``_counts_of`` reads it again."""
    return {
        "rows": {
            "accepted": counts.accepted,
            "duplicate": counts.duplicates,
            "conflict": counts.conflicts,
            "rejected": counts.rejected_total,
        },
        "rejected_reasons": {str(reason): count for reason, count in sorted(counts.rejected.items())},
        "span": _span(span),
        "declared_complete": _span(declared),
    }


def _periods_of(
    timeline: Timeline, feed: Feed | None, recorded: StoredEvent, rows: Facts, declared: Interval | None, now_ns: int
) -> set[Period]:
    """The periods that a batch may say something of."""
    periods = set(() if declared is None else timeline.touching(declared))
    if feed is not None:
        return periods | feed.touched(rows, now_ns=now_ns)
    if recorded.payload.get("format") == HEARTBEATS:
        return periods | touched_by_heartbeats(timeline, cast(AnyRows, rows))
    for period, _, _ in _by_period(timeline, cast(AnyRows, rows), declared, VerdictCounts(), []):
        periods |= set(timeline.touching(period.interval))
    return periods


def _judged_anew(tx: Transaction, recorded: StoredEvent, periods: Collection[Period]) -> tuple[str, ...]:
    """Those of these periods that were closed and judged anew because of the batch that an event recorded before."""

    def followed(period: Period) -> bool:
        events = tx.events.stream(closing_stream(recorded.payload["sla_id"], period.first))
        return any(event.payload.get("fact") == recorded.id for event in events)

    return tuple(map(str, sorted(filter(followed, periods), key=lambda period: period.interval.start_ns)))


def _require_no_span(declared_complete: Interval | None) -> None:
    if declared_complete is not None:
        raise RequestLogUnusable(
            "each heartbeat says itself what it covers (covers_s); hand heartbeats in without a span or period",
            field="covers_s",
        )


@dataclass(slots=True)
class _PeriodRows:
    """What is needed of a period's requests or samples, as plain columns: a million row objects would keep the garbage
    collector busy for as long as all else takes."""

    request_ids: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    starts_ns: list[int] = field(default_factory=list)


def _classify(
    tx: Transaction,
    registered: RegisteredAgreement,
    timeline: Timeline,
    facts: Facts,
    declared_complete: Interval | None,
    refused: list[RowRejection],
) -> tuple[VerdictCounts, Interval | None, set[Period]]:
    """Verdicts of the rows against everything this source reported before, the span of the accepted ones, and the
    periods of which they say something new; ``refused`` gathers what ``RecordedBatch`` has.

    The rule is the ``Evaluator``'s and the ``SampleBook``'s, for every period of the agreement at once.
    """
    # By the terms in force when each request started: a log may reach over a change of the terms.
    counts, accepted_ns, changed = VerdictCounts(), list[int](), set[Period]()
    rows = cast(AnyRows, facts)
    scope = (registered.sla_id, registered.agreement.source)
    for period, name, of_period in _by_period(timeline, rows, declared_complete, counts, refused):
        verdicts = tell_apart(tx, *scope, name, of_period.request_ids, of_period.bodies, counts)
        accepted, starts_ns = verdicts.count(Verdict.ACCEPTED), of_period.starts_ns
        if verdicts.count(Verdict.DUPLICATE) < len(verdicts):
            changed |= set(timeline.touching(period.interval))
        if accepted < len(verdicts):
            starts_ns = [at for at, verdict in zip(starts_ns, verdicts, strict=True) if verdict is Verdict.ACCEPTED]
        accepted_ns += (min(starts_ns), max(starts_ns)) if accepted else ()
    return counts, Interval(min(accepted_ns), max(accepted_ns) + 1) if accepted_ns else None, changed


def _by_period(
    timeline: Timeline,
    rows: AnyRows,
    declared_complete: Interval | None,
    counts: VerdictCounts,
    refused: list[RowRejection],
) -> list[tuple[Period, str, _PeriodRows]]:
    """The usable rows by their period, with what stands for it in ``identity_scope``; the others are counted as
    rejected."""
    sorting = _Sorting(timeline, declared_complete, counts, refused)
    for each in rows:
        if type(each) is SampleRow:
            sorting.take_sample(each)
        elif type(each) is not RequestColumns:
            sorting.take(each)  # type: ignore[arg-type]
        elif not sorting.take_columns(each):
            for row in each.rows():
                sorting.take(row)
    return [
        *((period, str(period), rows_of) for period, rows_of in sorting.usable.items()),
        *((period, scope_of(str(period)), rows_of) for period, rows_of in sorting.samples.items()),
    ]


class _Sorting:
    """Puts usable rows to their periods."""

    def __init__(
        self,
        timeline: Timeline,
        declared_complete: Interval | None,
        counts: VerdictCounts,
        refused: list[RowRejection],
    ) -> None:
        self.usable: defaultdict[Period, _PeriodRows] = defaultdict(_PeriodRows)
        self.samples: defaultdict[Period, _PeriodRows] = defaultdict(_PeriodRows)
        self._timeline = timeline
        self._service = timeline.newest.service
        self._declared = declared_complete
        self._counts = counts
        self._refused = refused
        self._found: Period | None = None
        self._period: Interval | None = None
        self._rows: _PeriodRows | None = None
        self._rules = [
            (
                each.agreement.periods,
                (Selection(objective.where for objective in each.agreement.objectives), SampleRule(each.agreement)),
            )
            for each in reversed(timeline.terms)
        ]
        self._selection, self._sample_rule = Selection(()), SampleRule(timeline.newest)

    def take(self, row: RequestRow | RowRejection) -> None:
        if isinstance(row, RowRejection):
            self._counts.reject(row.reason)
            return
        start_ns = row.started_at_ns
        if row.service != self._service:
            self._counts.reject(Reason.OTHER_SERVICE)
        elif not self._find(start_ns):
            self._counts.reject(Reason.OUTSIDE_PERIOD)
        elif self._declared is not None and start_ns not in self._declared:
            self._counts.reject(Reason.OUTSIDE_SPAN)
        elif isinstance(said := self._selection.of_row(row), RowRejection):
            self._counts.reject(said.reason)
            if len(self._refused) < MAX_REFUSED:
                self._refused.append(said)
        else:
            self._usable.request_ids.append(row.request_id)
            self._usable.bodies.append(row.body_digest)
            self._usable.starts_ns.append(start_ns)

    def take_sample(self, row: SampleRow) -> None:
        if row.service != self._service:
            self._counts.reject(Reason.OTHER_SERVICE)
            return
        if not self._find(row.at_ns) or self._found is None:
            self._counts.reject(Reason.OUTSIDE_PERIOD)
            return
        if self._declared is not None and row.at_ns not in self._declared:
            self._counts.reject(Reason.OUTSIDE_SPAN)
            return
        counted = self._sample_rule.counted(row)
        if isinstance(counted, Refused):
            self._counts.reject(counted.reason)
            return
        usable = self.samples[self._found]
        usable.request_ids.append(row.sample_id)
        usable.bodies.append(row.body_digest)
        usable.starts_ns.append(row.at_ns)

    def take_columns(self, columns: RequestColumns) -> bool:
        """Take rows that all lie in one period and are all usable; False where they are not, and nothing is taken."""
        if not self._find(columns.starts_ns[0]) or self._period is None:
            return False
        within, declared = self._period, self._declared or self._period
        start_ns, end_ns = max(within.start_ns, declared.start_ns), min(within.end_ns, declared.end_ns)
        if not columns.all_of(self._service, start_ns, end_ns) or self._selection.of_columns(columns) is None:
            return False
        self._usable.request_ids += columns.request_ids
        self._usable.bodies += columns.body_digests()
        self._usable.starts_ns += columns.starts_ns
        return True

    def _find(self, start_ns: int) -> bool:
        """Whether a period holds this instant; a log is mostly in order, so it is nearly always that of the last."""
        if self._period is None or start_ns not in self._period:
            self._found = self._timeline.at(start_ns)
            self._period = None if self._found is None else self._found.interval
            self._rows = None
            # Asked of the row's own terms, too: an amendment may add a selector or another evaluator, or take it back.
            in_force = (found for periods, found in self._rules if periods.at(start_ns) is not None)
            self._selection, self._sample_rule = next(in_force, (self._selection, self._sample_rule))
        return self._period is not None

    @property
    def _usable(self) -> _PeriodRows:
        if self._rows is None and self._found is not None:
            self._rows = self.usable[self._found]
        return self._rows  # type: ignore[return-value]


def _span(interval: Interval | None) -> dict[str, str] | None:
    return None if interval is None else {"from_ns": str(interval.start_ns), "to_ns": str(interval.end_ns)}


def _counts_of(payload: Mapping[str, Any]) -> VerdictCounts:
    rows = payload["rows"]
    rejected = {Reason(name): count for name, count in payload["rejected_reasons"].items()}
    return VerdictCounts(rows["accepted"], rows["duplicate"], rows["conflict"], rejected)
