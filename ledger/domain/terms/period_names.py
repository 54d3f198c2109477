"""Names of periods, such as ``2023-12-19/P1D``: the first local date and the length."""

from __future__ import annotations

from datetime import date

from ledger.domain.schema import fail
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period, PeriodLength, parse_date, parse_period_length
from ledger.errors import CalendarInvalid


def parse_period_name(text: str) -> tuple[date, PeriodLength]:
    """The first local date and the length of ``2023-12-19/P1D``; raises ``CalendarInvalid``."""
    first, separator, length = text.partition("/")
    if not separator:
        raise CalendarInvalid(
            f"{text[:40]!r} is not a period; write its first date and length, such as 2023-12-19/P1D", text=text[:40]
        )
    return parse_date(first), parse_period_length(length)


def period_named(agreement: Agreement, text: str) -> Period:
    """The agreement's period called ``2023-12-19/P1D``; raises ``DocumentInvalid`` or ``CalendarInvalid``."""
    first, length = parse_period_name(text)
    period = agreement.period_starting(first)
    if length != period.length:
        raise fail("period", f"{text} asks for {length}, but this agreement's period from {first} is {period}")
    return period
