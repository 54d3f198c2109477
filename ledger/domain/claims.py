"""Claims: until when a credit may be asked for, and until when late facts may still change a period."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta

from ledger.domain.agreement import Agreement
from ledger.domain.calendar import Period, day_start_ns, load_zone
from ledger.domain.instant import SECOND_NS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def deadline_ns(agreement: Agreement, period: Period, incident_end_ns: int) -> int:
    """The first instant at which a claim for an incident of a period is too late.

    It is the start of a local day of the agreement's zone. Billing cycles are the agreement's periods: with 2 of them
    a claim for January may be filed until March ends.
    """
    deadline = agreement.settlement.deadline
    if deadline.kind == "billing_cycles":
        day = period.first
        for _ in range(deadline.count + 1):
            day = period.length.after(day)
    elif deadline.kind == "months_after_period":
        day = _months_later(_local_date(period.interval.end_ns, period.zone), deadline.count)
    elif deadline.kind == "days_after_period":
        day = _local_date(period.interval.end_ns, period.zone) + timedelta(days=deadline.count)
    else:
        # The day on which it ended does not count.
        day = _local_date(incident_end_ns - 1, period.zone) + timedelta(days=deadline.count + 1)
    return day_start_ns(day, load_zone(period.zone))


def accepts_until_ns(agreement: Agreement, period: Period) -> int:
    """The first instant at which facts about a period are too late: nobody can claim anything of it any more.

    An agreement that names no deadline accepts them for 30 days after the period's end.
    """
    return deadline_ns(agreement, period, period.interval.end_ns)


def _local_date(instant_ns: int, zone: str) -> date:
    moment = _EPOCH + timedelta(seconds=instant_ns // SECOND_NS)
    return moment.astimezone(load_zone(zone)).date()


def _months_later(day: date, count: int) -> date:
    """The same day of a later month, or its last where it is shorter."""
    months = day.year * 12 + day.month - 1 + count
    year, month = months // 12, months % 12 + 1
    return date(year, month, min(day.day, monthrange(year, month)[1]))
