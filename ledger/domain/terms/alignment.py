"""Where the intervals of an objective begin, and what becomes of one that the end of a period cuts: terms that can be
stated, and are held to.

The engine has one grid: intervals follow each other from the start of the period, and what is left over at its end is
dropped, as the published definitions with minutes and intervals have it. ``aligned: day`` and ``utc``, and ``partial:
none``, are for contracts that say more. They are honoured where that grid is what they say in every period; where it is
not the document is refused, with the first such period. So nobody signs a rule that is not followed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from ledger.domain.schema import fail
from ledger.domain.terms.objective import Objective
from ledger.domain.terms.periods import PeriodGrid
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import DAY_NS, SECOND_NS, format_instant_ns


def check_alignment(
    document: Sequence[Mapping[str, Any]],
    objectives: Sequence[Objective],
    periods: PeriodGrid,
    day_ns: Callable[[date], int],
) -> None:
    """Raises ``DocumentInvalid`` naming clause, value and period where the grid is not what the terms say of it.

    ``document`` is the member ``objectives`` of the terms, and ``day_ns`` gives the first instant of a local day.
    """
    for index, (said, objective) in enumerate(zip(document, objectives, strict=True)):
        aligned, at = said.get("aligned", "period"), f"objectives[{index}]"
        if objective.down is None or (aligned == "period" and said.get("partial", "drop") == "drop"):
            continue
        seconds = objective.down.interval_seconds
        if aligned == "utc" and DAY_NS % (seconds * SECOND_NS):
            raise fail(f"{at}.aligned", f"utc: intervals of {seconds} s do not fill a day; take one that does")
        for period in periods.all():
            if said.get("partial") == "none" and (rest_ns := period.interval.duration_ns % (seconds * SECOND_NS)):
                raise fail(
                    f"{at}.partial",
                    f"none: {rest_ns // SECOND_NS} s of the period {period} are left over after whole intervals of "
                    f"{seconds} s; write drop, or another interval",
                )
            _check_starts(day_ns, period, f"{at}.aligned", aligned, seconds)


def _check_starts(day_ns: Callable[[date], int], period: Period, at: str, aligned: str, seconds: int) -> None:
    start_ns, end_ns, step_ns = period.interval.start_ns, period.interval.end_ns, seconds * SECOND_NS
    if aligned == "utc" and start_ns % step_ns:
        raise fail(
            at,
            f"utc: the period {period} starts at {format_instant_ns(start_ns)}, which is no multiple of {seconds} s of "
            "UTC; write period, or another timezone",
        )
    day, begins_ns = period.first, start_ns
    while aligned == "day" and begins_ns < end_ns:
        if (begins_ns - start_ns) % step_ns:
            raise fail(
                at,
                f"day: intervals of {seconds} s from the start of the period {period} do not begin with the day of "
                f"{day}; write period, or an interval that fills every day",
            )
        day += timedelta(days=1)
        begins_ns = day_ns(day)
