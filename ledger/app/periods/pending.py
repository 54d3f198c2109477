"""Periods that began and are not closed: how far their source has got, and what each waits for."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from ledger.app.agreements.registering import timeline_of
from ledger.app.paging import Row
from ledger.app.periods.closing import closing_of
from ledger.app.periods.watermarks import declared_by
from ledger.app.ports.store import Transaction
from ledger.domain.facts.watermark import closes_by_ns, closes_from_ns, grace_over_ns
from ledger.domain.record.naming import agreement_stream
from ledger.domain.terms.lifecycle import Terms, Timeline
from ledger.domain.time.calendar import Period

MAX_PERIODS = 100
"""The newest periods of an agreement that are looked at."""


class WaitsFor(StrEnum):
    """What has to come before a period is closed."""

    END = "end"
    GRACE = "grace"
    WATERMARK = "watermark"
    """Its source, which has not got past its end; at the latest the time that the terms give it."""
    SCHEDULE = "schedule"
    """The next look of the schedule: it is due."""
    REQUEST = "request"
    """Somebody who asks: it had ended when its agreement was registered."""


def read_pending(tx: Transaction, sla_id: str, *, now_ns: int) -> tuple[Row, ...]:
    """Of the newest periods of an agreement those that began and are not closed, oldest first.

    Each is {period, start_ns, end_ns, terms_version, watermark_ns, waits_for, until_ns}. ``watermark_ns`` is up to
    where the source declared its facts complete, None where it never did; ``until_ns`` when what is waited for comes at
    the latest, None where that is up to the schedule or a person. Raises ``NotFound``.
    """
    timeline = timeline_of(tx, sla_id)
    registered_ns = next(iter(tx.events.stream(agreement_stream(sla_id)))).occurred_at_ns
    declared = declared_by(tx, sla_id, timeline.newest.source)
    found = []
    for terms, period in _begun(timeline, now_ns):
        if closing_of(tx, sla_id, period) is None:
            watermark_ns = declared.watermark_ns(terms.agreement)
            asked = period.interval.end_ns <= registered_ns
            waits_for, until_ns = (WaitsFor.REQUEST, None) if asked else _waits_for(terms, period, watermark_ns, now_ns)
            found.append(
                {
                    "period": str(period),
                    "start_ns": period.interval.start_ns,
                    "end_ns": period.interval.end_ns,
                    "terms_version": terms.version,
                    "watermark_ns": watermark_ns,
                    "waits_for": str(waits_for),
                    "until_ns": until_ns,
                }
            )
    return tuple(found[::-1])


def _begun(timeline: Timeline, now_ns: int) -> Iterator[tuple[Terms, Period]]:
    """The newest periods that began, the newest first."""
    coming = timeline.ending_after(now_ns)
    if coming is None:
        last = timeline.terms[-1] if timeline.terms else None
        ends = () if last is None else last.agreement.periods.ends
        coming = None if last is None or not ends else (last, ends[-1])
    # Rolling periods overlap: later ones than the first to end may have begun.
    while coming is not None and (later := timeline.after(coming[1])) and later[1].interval.start_ns <= now_ns:
        coming = later
    for _ in range(MAX_PERIODS):
        if coming is None:
            return
        if coming[1].interval.start_ns <= now_ns:
            yield coming
        coming = timeline.before(coming[1])


def _waits_for(terms: Terms, period: Period, watermark_ns: int | None, now_ns: int) -> tuple[WaitsFor, int | None]:
    agreement, end_ns = terms.agreement, period.interval.end_ns
    if now_ns < end_ns:
        return WaitsFor.END, end_ns
    if now_ns < grace_over_ns(agreement, period):
        return WaitsFor.GRACE, grace_over_ns(agreement, period)
    if now_ns < closes_from_ns(agreement, period, watermark_ns):
        return WaitsFor.WATERMARK, closes_by_ns(agreement, period)
    return WaitsFor.SCHEDULE, None
