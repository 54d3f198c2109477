"""``total_ratio``, ``exact_quantile`` and ``graded_score-v1``: what was good in the period, of all that was valid.

A quantile is the same question: P95 <= T holds exactly where 95 % of the requests are at or under T (nearest rank).
A graded score counts thousandths of a request. The windows of a violation miss the target by their own counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from ledger.domain.methods.series import Counts, Series, runs, widened
from ledger.domain.terms.objective import Objective


def count_all(objective: Objective, series: Series, base_seconds: int) -> Counts:
    return Counts(sum(series.good), sum(series.bad))


def missing_windows(objective: Objective, series: Series, base_seconds: int) -> Sequence[range]:
    """Runs of windows, each of the objective's length, that miss its target; one without anything valid ends a run."""
    windows = (objective.window_seconds or base_seconds) // base_seconds
    missed = series.every(windows).misses(objective.target_ppb, objective.minimum_valid)
    return widened(runs(missed), windows)
