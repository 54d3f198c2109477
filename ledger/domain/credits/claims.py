"""Claims: until when a credit may be asked for, and until when late facts may still change a period."""

from __future__ import annotations

from ledger.domain.terms import settlement_terms
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period


def deadline_ns(agreement: Agreement, period: Period, incident_end_ns: int) -> int:
    """The first instant at which a claim for an incident of a period is too late, by the agreement's deadline."""
    return settlement_terms.deadline_ns(agreement.settlement.deadline, agreement.periods, period, incident_end_ns)


def accepts_until_ns(agreement: Agreement, period: Period) -> int:
    """The first instant at which facts about a period are too late: nobody can claim anything of it any more.

    An agreement that names no deadline accepts them for 30 days after the period's end.
    """
    return deadline_ns(agreement, period, period.interval.end_ns)
