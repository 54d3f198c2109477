"""Claims: until when a credit may be asked for, and until when late facts may still change a period."""

from __future__ import annotations

from datetime import date, timedelta

from ledger.domain.agreement import Agreement
from ledger.domain.calendar import Period, add_months, day_start_ns, load_zone, local_moment


def deadline_ns(agreement: Agreement, period: Period, incident_end_ns: int) -> int:
    """The first instant at which a claim for an incident of a period is too late.

    It is the start of a local day of the agreement's zone. Billing cycles are the agreement's periods: with 2 of them
    a claim for January may be filed until March ends.
    """
    deadline = agreement.settlement.deadline
    if deadline.kind == "billing_cycles":
        day = agreement.periods.cycles_after(period, deadline.count)
    elif deadline.kind == "months_after_period":
        day = add_months(_local_date(agreement, period.interval.end_ns), deadline.count)
    elif deadline.kind == "days_after_period":
        day = _local_date(agreement, period.interval.end_ns) + timedelta(days=deadline.count)
    else:
        # The day on which it ended does not count.
        day = _local_date(agreement, incident_end_ns - 1) + timedelta(days=deadline.count + 1)
    return day_start_ns(day, load_zone(period.zone), agreement.day_start_s)


def accepts_until_ns(agreement: Agreement, period: Period) -> int:
    """The first instant at which facts about a period are too late: nobody can claim anything of it any more.

    An agreement that names no deadline accepts them for 30 days after the period's end.
    """
    return deadline_ns(agreement, period, period.interval.end_ns)


def _local_date(agreement: Agreement, instant_ns: int) -> date:
    """The local day of an instant; days begin when the agreement's do."""
    moment = local_moment(instant_ns, agreement.timezone)
    return (moment.replace(tzinfo=None) - timedelta(seconds=agreement.day_start_s)).date()
