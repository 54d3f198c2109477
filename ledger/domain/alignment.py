"""Where the intervals of an objective begin, and what becomes of one that the end of a period cuts: terms that can be
stated, and are held to.

The engine has one grid: intervals follow each other from the start of the period, and what is left over at its end is
dropped, as the published definitions with minutes and intervals have it. ``aligned: day`` and ``utc``, and ``partial:
none``, are for contracts that say more. They are honoured where that grid is what they say in every period; where it is
not the document is refused, with the first such period. So nobody signs a rule that is not followed.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from ledger.domain.calendar import Period
from ledger.domain.instant import DAY_NS, SECOND_NS, format_instant_ns
from ledger.domain.schema import OneOf, fail

if TYPE_CHECKING:
    from ledger.domain.agreement import Agreement

ALIGNMENT = {"aligned": OneOf(("period", "day", "utc")), "partial": OneOf(("drop", "none"))}
"""Optional members of an objective that is judged by intervals or minutes; without them ``period`` and ``drop``."""


def check_alignment(agreement: Agreement) -> None:
    """Raises ``DocumentInvalid`` naming clause, value and period where the grid is not what the terms say of it."""
    for index, objective in enumerate(agreement.objectives):
        said = agreement.document["objectives"][index]
        aligned, at = said.get("aligned", "period"), f"objectives[{index}]"
        if objective.down is None or (aligned == "period" and said.get("partial", "drop") == "drop"):
            continue
        seconds = objective.down.interval_seconds
        if aligned == "utc" and DAY_NS % (seconds * SECOND_NS):
            raise fail(f"{at}.aligned", f"utc: intervals of {seconds} s do not fill a day; take one that does")
        for period in agreement.periods.all():
            if said.get("partial") == "none" and (rest_ns := period.interval.duration_ns % (seconds * SECOND_NS)):
                raise fail(
                    f"{at}.partial",
                    f"none: {rest_ns // SECOND_NS} s of the period {period} are left over after whole intervals of "
                    f"{seconds} s; write drop, or another interval",
                )
            _check_starts(agreement, period, f"{at}.aligned", aligned, seconds)


def _check_starts(agreement: Agreement, period: Period, at: str, aligned: str, seconds: int) -> None:
    start_ns, end_ns, step_ns = period.interval.start_ns, period.interval.end_ns, seconds * SECOND_NS
    if aligned == "utc" and start_ns % step_ns:
        raise fail(
            at,
            f"utc: the period {period} starts at {format_instant_ns(start_ns)}, which is no multiple of {seconds} s of "
            "UTC; write period, or another timezone",
        )
    day, day_ns = period.first, start_ns
    while aligned == "day" and day_ns < end_ns:
        if (day_ns - start_ns) % step_ns:
            raise fail(
                at,
                f"day: intervals of {seconds} s from the start of the period {period} do not begin with the day of "
                f"{day}; write period, or an interval that fills every day",
            )
        day += timedelta(days=1)
        day_ns = agreement.day_ns(day)
