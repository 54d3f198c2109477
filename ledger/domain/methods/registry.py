"""Which methods there are, and how one is applied to the windows of a period."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from ledger.domain.methods import attainment, downtime, interval_mean, ratio
from ledger.domain.methods.series import Counts, Series
from ledger.domain.terms.objective import Objective
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.windows.window import Window
from ledger.domain.windows.window_columns import WindowColumns


@dataclass(frozen=True, slots=True)
class Method:
    """One published way to measure. ``unit`` is what it counts (None: the indicator's); ``not_attestable`` says why
    the circuits cannot follow it (None: they can, because it is a sum over the sealed counts).

    ``looks_at`` is what it judges one by one; ``of_time``: it divides by time, of which a period has as much as it has.
    """

    name: str
    version: int
    unit: str | None
    not_attestable: str | None
    count: Callable[..., Counts]
    breaches: Callable[..., Sequence[range]]
    looks_at: str = "window"
    of_time: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """What a method counted in a period. ``undecided`` may be good or bad: the data cannot say. ``volume`` is what
    was valid in the indicator's unit, whatever the method makes of it."""

    good: int
    bad: int
    undecided: int
    volume: int

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
            looks_at="interval",
            of_time=True,
        ),
        Method(
            "downtime_minutes-v1",
            1,
            "minutes",
            f"whether a minute is down {_NOT_A_SUM}",
            downtime.time_up,
            downtime.times_down,
            looks_at="minute",
            of_time=True,
        ),
        Method(
            "interval_threshold-v1",
            1,
            "intervals",
            f"whether an interval is down {_NOT_A_SUM}",
            downtime.time_up,
            downtime.times_down,
            looks_at="interval",
            of_time=True,
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
            looks_at="slice",
        ),
    )
}


def unit_of(objective: Objective) -> str:
    """What the counts of an objective's result are."""
    return METHODS[objective.method].unit or objective.unit


def grid_of(objective: Objective, base_seconds: int) -> tuple[int, int]:
    """Windows in each thing that the method looks at, and from the start of one to that of the next."""
    if objective.slices is not None:
        return objective.slices.window_seconds // base_seconds, objective.slices.step_seconds // base_seconds
    if objective.down is not None:
        windows = objective.down.interval_seconds // base_seconds
        return windows, windows
    return 1, 1


class Measuring:
    """Applies the methods of several objectives to the windows of one period."""

    def __init__(self, objectives: Sequence[Objective], windows: Sequence[Window], base_seconds: int) -> None:
        """``windows`` have one cell for each objective and follow each other; each lasts ``base_seconds``. Raises
        ``ImplausibleCounts`` where they do not."""
        self._objectives = objectives
        self._columns = WindowColumns.of(windows, base_seconds * SECOND_NS, len(objectives))
        self._base_seconds = base_seconds
        self._index = {objective.id: index for index, objective in enumerate(objectives)}
        self._best: Callable[[int], Series] = cache(partial(Series.of, self._columns))
        self._worst: Callable[[int], Series | None] = cache(partial(Series.at_worst, self._columns))

    def measure(self, index: int) -> Measured:
        """What the objective's method counts."""
        best = self._best(index)
        volume = sum(best.good) + sum(best.bad)
        found = self._count(index, best, self._best)
        if not any(self._worst(each) for each in (index, *self._companion(index))):
            return Measured(found.good, found.bad, 0, volume)
        least = self._count(index, self._worst_or_best(index), self._worst_or_best)
        return Measured(least.good, found.bad, found.good - least.good, volume)

    def breaches(self, index: int) -> Sequence[range]:
        """The runs of windows that break the promise, in order and apart; what is undecided breaks nothing."""
        objective, series = self._objectives[index], self._best(index)
        method = METHODS[objective.method]
        if objective.slices is None:
            return method.breaches(objective, series, self._base_seconds)
        return method.breaches(objective, series, self._base_seconds, self._missed_with(index, self._best))

    def columns(self, index: int) -> tuple[Series, Series | None]:
        """The objective's counts with what is undecided as good, and as bad (None: nothing is undecided)."""
        return self._best(index), self._worst(index)

    def missed_with(self, index: int) -> Sequence[bool] | None:
        """Of every slice, whether the companion's misses as well; None where the objective has no companion."""
        return self._missed_with(index, self._best)

    def _count(self, index: int, series: Series, other: Callable[[int], Series]) -> Counts:
        """``other`` gives the counts of the objective that this one only breaks together with."""
        objective = self._objectives[index]
        method = METHODS[objective.method]
        if objective.slices is None:
            return method.count(objective, series, self._base_seconds)
        return method.count(objective, series, self._base_seconds, self._missed_with(index, other))

    def _missed_with(self, index: int, series_of: Callable[[int], Series]) -> Sequence[bool] | None:
        for other in self._companion(index):
            return attainment.missed_slices(self._objectives[other], series_of(other), self._base_seconds)
        return None

    def _companion(self, index: int) -> tuple[int, ...]:
        rule = self._objectives[index].slices
        return () if rule is None or rule.only_with is None else (self._index[rule.only_with],)

    def _worst_or_best(self, index: int) -> Series:
        return self._worst(index) or self._best(index)
