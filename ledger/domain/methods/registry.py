"""Which methods there are, and how one is applied to the windows of a period."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ledger.domain.methods import attainment, downtime, interval_mean, ratio
from ledger.domain.methods.series import Counts, Series
from ledger.domain.objective import Objective
from ledger.domain.window import Window


@dataclass(frozen=True, slots=True)
class Method:
    """One published way to measure. ``unit`` is what it counts (None: the indicator's); ``not_attestable`` says why
    the circuits cannot follow it (None: they can, because it is a sum over the sealed counts)."""

    name: str
    version: int
    unit: str | None
    not_attestable: str | None
    count: Callable[..., Counts]
    breaches: Callable[..., Sequence[range]]


@dataclass(frozen=True, slots=True)
class Measured:
    """What a method counted in a period. ``undecided`` may be good or bad: the data cannot say."""

    good: int
    bad: int
    undecided: int

    @property
    def valid(self) -> int:
        return self.good + self.bad + self.undecided


_NOT_A_SUM = "is no sum over sealed counts, which is all that the circuits add up"

METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        Method("total_ratio", 1, None, None, ratio.count_all, ratio.missing_windows),
        Method("exact_quantile", 1, None, None, ratio.count_all, ratio.missing_windows),
        Method("graded_score-v1", 1, "thousandths of a request", None, ratio.count_all, ratio.missing_windows),
        Method(
            "interval_mean-v1",
            1,
            "billionths of an interval",
            f"a mean of ratios {_NOT_A_SUM}",
            interval_mean.mean_of_intervals,
            interval_mean.bad_intervals,
        ),
        Method(
            "downtime_minutes-v1",
            1,
            "minutes",
            f"whether a minute is down {_NOT_A_SUM}",
            downtime.time_up,
            downtime.times_down,
        ),
        Method(
            "interval_threshold-v1",
            1,
            "intervals",
            f"whether an interval is down {_NOT_A_SUM}",
            downtime.time_up,
            downtime.times_down,
        ),
        Method(
            "deployment_minutes-v1", 1, "deployment windows", None, downtime.deployments_up, downtime.deployments_down
        ),
        Method(
            "attainment-v1",
            1,
            "slices",
            f"whether a slice meets its target {_NOT_A_SUM}",
            attainment.slices_met,
            attainment.slices_missed,
        ),
    )
}


def unit_of(objective: Objective, indicator_unit: str) -> str:
    """What the counts of an objective's result are."""
    return METHODS[objective.method].unit or indicator_unit


class Measuring:
    """Applies the methods of several objectives to the windows of one period, reading each column once."""

    def __init__(self, objectives: Sequence[Objective], windows: Sequence[Window], base_seconds: int) -> None:
        """``windows`` have one cell for each objective, in order; each lasts ``base_seconds``."""
        self._objectives = objectives
        self._windows = windows
        self._base_seconds = base_seconds
        self._index = {objective.id: index for index, objective in enumerate(objectives)}
        self._series: dict[int, Series] = {}

    def measure(self, index: int) -> Measured:
        """What the objective's method counts."""
        best = self._count(index, self._of(index))
        worst = Series.at_worst(self._windows, index)
        if worst is None:
            return Measured(best.good, best.bad, 0)
        least = self._count(index, worst)
        return Measured(least.good, best.bad, best.good - least.good)

    def breaches(self, index: int) -> Sequence[range]:
        """The runs of windows that break the promise, in order and apart; what is undecided breaks nothing."""
        objective = self._objectives[index]
        method = METHODS[objective.method]
        if objective.slices is None:
            return method.breaches(objective, self._of(index), self._base_seconds)
        return method.breaches(objective, self._of(index), self._base_seconds, self._missed_with(objective))

    def _count(self, index: int, series: Series) -> Counts:
        objective = self._objectives[index]
        method = METHODS[objective.method]
        if objective.slices is None:
            return method.count(objective, series, self._base_seconds)
        return method.count(objective, series, self._base_seconds, self._missed_with(objective))

    def _missed_with(self, objective: Objective) -> Sequence[bool] | None:
        if objective.slices is None or objective.slices.only_with is None:
            return None
        other = self._index[objective.slices.only_with]
        return attainment.missed_slices(self._objectives[other], self._of(other), self._base_seconds)

    def _of(self, index: int) -> Series:
        if index not in self._series:
            self._series[index] = Series.of(self._windows, index)
        return self._series[index]
