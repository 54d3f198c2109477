"""Error budgets: how much may be bad, how much of that is left, how fast it goes, and when it will be gone.

All in the unit of the objective's method and exact. Of a target T the budget of a period is (1 - T) of what the method
divides by. Where that is time (minutes, intervals) the whole period's budget is known from its first instant; where it
is requests or slices, only that of what was counted so far. Nothing before the period counts, so each begins whole
(pyrra#1576). The burn rate over a window w is (failed / valid in w) / (1 - T): 1 uses up a budget exactly at the end of
its period. A budget is exhausted once more than all of it is gone, which is when the result lies below the target; one
of 0 (a target of 100 %) by any failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from ledger.domain.methods.registry import METHODS, Measured, Measuring, grid_of
from ledger.domain.money import PARTS_PER_BILLION
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.objective import Objective
from ledger.domain.time.interval import Interval
from ledger.domain.windows.window import Window, WindowState

ASSUMPTION = "what failed and what was valid go on as they did in this window"


class Exhaustion(StrEnum):
    """``exhausted``: more than the budget is gone; ``expected``: it will be before the period ends; ``never``: not in
    this period."""

    EXHAUSTED = "exhausted"
    EXPECTED = "expected"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of one objective over the judged part of a period.

    ``bad`` and ``counted`` are what was counted so far, ``valid`` what the whole budget is reckoned by: as ``counted``,
    with the rest of the period where the method divides by time. ``undecided`` counts as good.
    """

    objective: Objective
    counted: int
    bad: int
    valid: int
    undecided: int

    @property
    def allowed(self) -> Fraction:
        """How much may be bad."""
        return allowed_bad(self.valid, self.objective.target_ppb)

    @property
    def remaining(self) -> Fraction:
        """What is left; below 0 where more than all is gone."""
        return self.allowed - self.bad

    @property
    def burnt(self) -> Fraction | None:
        """The share of the budget that is gone, 1 for all of it; None where the budget is 0 and something failed."""
        if self.bad == 0:
            return Fraction(0)
        return None if self.allowed == 0 else self.bad / self.allowed  # exact: a Fraction

    @property
    def exhausted(self) -> bool:
        return self.bad > self.allowed


@dataclass(frozen=True, slots=True)
class Burn:
    """How fast a budget went over the last windows of a period.

    ``interval`` is what was looked at (whole intervals or slices of the method, none before the period; None where
    nothing was judged yet). ``rate`` is None where the budget is 0 and something failed: no number is large enough.
    ``exhausted_at_ns`` is the first instant at which all will be gone, where that is ``expected``.
    """

    seconds: int
    interval: Interval | None
    bad: int
    valid: int
    rate: Fraction | None
    exhaustion: Exhaustion
    exhausted_at_ns: int | None


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """An objective's budget and its burn over several windows, as of ``judged_to_ns``: the end of the last window
    with data."""

    budget: Budget
    judged_to_ns: int | None
    burns: tuple[Burn, ...]


def allowed_bad(valid: int, target_ppb: int) -> Fraction:
    """How much of ``valid`` may be bad: 43,200 minutes at 99.95 % allow 21.6."""
    return Fraction(valid * (PARTS_PER_BILLION - target_ppb), PARTS_PER_BILLION)


def burn_rate(bad: int, valid: int, target_ppb: int) -> Fraction | None:
    """(bad / valid) / (1 - target): 0 where nothing failed, idle windows among them; None where nothing may fail and
    something did."""
    if bad == 0:
        return Fraction(0)
    allowed = allowed_bad(valid, target_ppb)
    return None if allowed == 0 else bad / allowed  # exact: a Fraction


def budget_reports(
    agreement: Agreement, windows: Sequence[Window], over_seconds: Sequence[int]
) -> tuple[BudgetReport, ...]:
    """The budgets of all objectives in the windows of one period, in the agreement's order.

    ``windows`` are all of the period's; those after the last one with data are to come. A pure function.
    """
    judged = max((at + 1 for at, window in enumerate(windows) if window.state is not WindowState.NO_DATA), default=0)
    whole = _as_if_over(windows, judged)
    so_far = Measuring(agreement.objectives, windows[:judged], agreement.window_seconds)
    at_end = Measuring(agreement.objectives, whole, agreement.window_seconds)
    reports = []
    for index, objective in enumerate(agreement.objectives):
        found = so_far.measure(index)
        valid = at_end.measure(index).valid if METHODS[objective.method].of_time else found.valid
        budget = Budget(objective, found.valid, found.bad, valid, found.undecided)
        burns = tuple(_burn(agreement, index, windows[:judged], windows, budget, seconds) for seconds in over_seconds)
        judged_to_ns = windows[judged - 1].interval.end_ns if judged else None
        reports.append(BudgetReport(budget, judged_to_ns, burns))
    return tuple(reports)


def _as_if_over(windows: Sequence[Window], judged: int) -> list[Window]:
    """The period as it will be if nothing happens any more; windows without data have no counts."""
    return [
        *windows[:judged],
        *(replace(window, state=WindowState.OBSERVED) for window in windows[judged:]),
    ]


def _burn(
    agreement: Agreement,
    index: int,
    judged: Sequence[Window],
    windows: Sequence[Window],
    budget: Budget,
    seconds: int,
) -> Burn:
    objective = agreement.objectives[index]
    looked_at = _last(judged, objective, seconds, agreement.window_seconds)
    found = Measuring(agreement.objectives, looked_at, agreement.window_seconds).measure(index)
    interval = Interval(looked_at[0].interval.start_ns, looked_at[-1].interval.end_ns) if looked_at else None
    kind, at_ns = _forecast(budget, found, interval, judged, windows)
    rate = burn_rate(found.bad, found.valid, objective.target_ppb)
    return Burn(seconds, interval, found.bad, found.valid, rate, kind, at_ns)


def _last(judged: Sequence[Window], objective: Objective, seconds: int, base_seconds: int) -> Sequence[Window]:
    """The last ``seconds`` of what was judged, in whole steps of the method from the period's start, at least one."""
    least, step = grid_of(objective, base_seconds)
    stop = len(judged) // step * step
    wanted = max(-(-seconds // base_seconds), least)
    start = max(0, stop - -(-wanted // step) * step)
    return judged[start:stop]


def _forecast(
    budget: Budget, found: Measured, interval: Interval | None, judged: Sequence[Window], windows: Sequence[Window]
) -> tuple[Exhaustion, int | None]:
    """When all of the budget is gone if failures and volume go on as in ``interval`` (``ASSUMPTION``).

    What may fail grows with what is valid, except where the period's time is the measure.
    """
    if budget.exhausted:
        return Exhaustion.EXHAUSTED, None
    growth = Fraction(0)
    if not METHODS[budget.objective.method].of_time:
        growth = allowed_bad(found.valid, budget.objective.target_ppb)
    lost = found.bad - growth
    if interval is None or lost <= 0:
        return Exhaustion.NEVER, None
    waits = budget.remaining * interval.duration_ns / lost  # exact: Fractions
    at_ns = judged[-1].interval.end_ns - (-waits.numerator // waits.denominator)
    if at_ns > windows[-1].interval.end_ns:
        return Exhaustion.NEVER, None
    return Exhaustion.EXPECTED, at_ns
