"""Heartbeats as facts: what becomes of each when it is handed in, and what time of a period they cover when it is
judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from ledger.app.agreements.registering import RegisteredAgreement
from ledger.app.facts.telling_apart import tell_apart
from ledger.app.ports.store import Transaction
from ledger.domain.facts.heartbeats import HeartbeatBook, refused
from ledger.domain.record.events import StoredEvent
from ledger.domain.rows.observation import (
    AnyRows,
    HeartbeatRow,
    HeartbeatRows,
    Reason,
    RowRejection,
    Verdict,
    VerdictCounts,
)
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.lifecycle import Timeline
from ledger.domain.terms.log_kinds import HEARTBEATS
from ledger.domain.time.calendar import Period
from ledger.domain.time.interval import Interval, clip

MAX_REFUSED = 20


def classify_heartbeats(
    tx: Transaction,
    registered: RegisteredAgreement,
    timeline: Timeline,
    rows: AnyRows,
    handed_in_ns: int,
    refused_rows: list[RowRejection],
) -> tuple[VerdictCounts, Interval | None, set[Period]]:
    """Verdicts of heartbeats against all that this source handed in before, the span that the accepted ones reach over,
    and the periods of which they say something new; ``refused_rows`` gathers the first that the terms do not take.

    The rule is that of ``HeartbeatBook``, for every period that one reaches into. Ids are told apart over all periods
    of the source, since a heartbeat may lie in two.
    """
    counts, changed, accepted = VerdictCounts(), set[Period](), list[Interval]()
    usable = list(_usable(timeline, cast(HeartbeatRows, rows), handed_in_ns, counts, refused_rows))
    scope = (registered.sla_id, registered.agreement.source)
    ids, bodies = [row.heartbeat_id for row, _ in usable], [row.body_digest for row, _ in usable]
    for verdict, (row, periods) in zip(tell_apart(tx, *scope, HEARTBEATS, ids, bodies, counts), usable, strict=True):
        if verdict is not Verdict.DUPLICATE:
            changed.update(periods)
        if verdict is Verdict.ACCEPTED:
            accepted.append(row.interval)
    span = Interval(min(accepted).start_ns, max(each.end_ns for each in accepted)) if accepted else None
    return counts, span, changed


def touched_by_heartbeats(timeline: Timeline, rows: AnyRows) -> set[Period]:
    """The periods that heartbeats reach into."""
    touching = _Touching(timeline)
    return {period for row in rows if isinstance(row, HeartbeatRow) for _, period in touching.of(row.interval)}


def take_heartbeats(
    tx: Transaction,
    book: HeartbeatBook,
    period: Period,
    batches: Iterable[StoredEvent],
    read_rows: Callable[[bytes], object],
) -> None:
    """Put the heartbeats that reach into a period into its book; ``batches`` are the events that recorded them."""
    for event in batches:
        payload = event.payload
        # Another body of an id may reach further than what was accepted beside it.
        if payload["rows"]["conflict"] or _reaches_into(event, period):
            rows = cast(HeartbeatRows, read_rows(tx.batches.get(payload["digest"])))
            for _ in book.add_all(rows, handed_in_ns=event.occurred_at_ns, batch=payload["digest"]):
                pass


def _reaches_into(event: StoredEvent, period: Period) -> bool:
    span = event.payload["span"]
    return span is not None and clip(Interval(int(span["from_ns"]), int(span["to_ns"])), period.interval) is not None


def _usable(
    timeline: Timeline,
    rows: HeartbeatRows,
    handed_in_ns: int,
    counts: VerdictCounts,
    refused_rows: list[RowRejection],
) -> Iterable[tuple[HeartbeatRow, Sequence[Period]]]:
    """Each heartbeat that counts in some period, with those periods; the others are counted as rejected."""
    touching = _Touching(timeline)
    for row in rows:
        if isinstance(row, RowRejection):
            counts.reject(row.reason)
            continue
        why, periods = RowRejection(row.line, Reason.OUTSIDE_PERIOD, "at", "lies in no period of the agreement"), []
        for agreement, period in touching.of(row.interval):
            said = refused(agreement, row, handed_in_ns)
            if said is None:
                periods.append(period)
            else:
                why = said
        if periods:
            yield row, periods
            continue
        counts.reject(why.reason)
        if len(refused_rows) < MAX_REFUSED:
            refused_rows.append(why)


class _Touching:
    """The periods that an interval reaches into, and their terms; a log is mostly in order, so the last answer is
    nearly always the next one, too."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._last: tuple[tuple[Agreement, Period], ...] = ()

    def of(self, interval: Interval) -> tuple[tuple[Agreement, Period], ...]:
        if len(self._last) == 1 and not self._last[0][0].periods.rolling:
            ((_, period),) = self._last
            if period.interval.covers(interval):
                return self._last
        self._last = tuple(
            (self._timeline.starting(period.first)[0].agreement, period) for period in self._timeline.touching(interval)
        )
        return self._last
