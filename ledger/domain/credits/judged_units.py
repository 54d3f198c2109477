"""What a method looked at one by one: the windows, minutes, intervals or slices that its result is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.domain.methods import attainment, downtime
from ledger.domain.methods.registry import METHODS, Measuring, grid_of
from ledger.domain.methods.series import Series
from ledger.domain.terms.objective import Objective
from ledger.domain.windows.window import Window, WindowState


@dataclass(frozen=True, slots=True)
class Unit:
    """One of them: ``windows`` windows from ``first_window`` on. ``lost``: the method counts it as bad, or some of
    it. ``counted``: it stands in the denominator."""

    first_window: int
    windows: int
    state: WindowState
    good: int
    bad: int
    undecided: int
    counted: bool
    lost: bool


def units_of(
    objectives: Sequence[Objective], windows: Sequence[Window], index: int, base_seconds: int
) -> tuple[str, list[Unit]]:
    """What a unit is called, and all units of the objective at ``index``, in order."""
    objective = objectives[index]
    measuring = Measuring(objectives, windows, base_seconds)
    best, worst = measuring.columns(index)
    length, step = grid_of(objective, base_seconds)
    judged = best.rolling(length, step) if (length, step) != (1, 1) else best
    open_ = [0] * len(judged)
    if worst is not None:
        at_worst = worst.rolling(length, step) if (length, step) != (1, 1) else worst
        open_ = [bad - sure for bad, sure in zip(at_worst.bad, judged.bad, strict=True)]
    lost = _lost(objective, judged, measuring, index, length)
    counted = _counted(objective, judged)
    if objective.method == "deployment_minutes-v1":
        judged = downtime.with_excluded_up(objective, judged)
    found = [
        Unit(
            at * step,
            length,
            judged.states[at],
            judged.good[at] - open_[at],
            judged.bad[at],
            open_[at],
            counted[at],
            lost[at],
        )
        for at in range(len(judged))
    ]
    return METHODS[objective.method].looks_at, found


def _lost(objective: Objective, judged: Series, measuring: Measuring, index: int, length: int) -> list[bool]:
    if objective.slices is not None:
        return attainment.bad_slices(objective, judged, measuring.missed_with(index))
    if objective.method in ("downtime_minutes-v1", "interval_threshold-v1"):
        down = {at // length for run in measuring.breaches(index) for at in run}
        return [at in down for at in range(len(judged))]
    return [bad > 0 for bad in judged.bad]


def _counted(objective: Objective, judged: Series) -> list[bool]:
    if objective.slices is not None:
        least = max(1, objective.slices.minimum_valid)
        return [good + bad >= least for good, bad in zip(judged.good, judged.bad, strict=True)]
    full = objective.down is not None and not objective.down.scheduled
    return [state is WindowState.OBSERVED or (full and state is WindowState.EXCLUDED) for state in judged.states]
