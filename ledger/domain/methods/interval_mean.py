"""``interval_mean-v1``: 100 * (1 - mean of errors / requests over all intervals); an interval without requests has no
error (Amazon S3, Stedi: 5 minutes; Cloudflare: 30 fixed days; Oracle: hours).

The sum of the intervals' error rates is a fraction with thousands of digits. All that is asked of it is whether
mean availability < T / 10^9, that is (intervals - errors) * 10^9 < intervals * T. With a whole number on the right the
ceiling of errors * 10^9 decides as well as the sum itself. So the result is in billionths of an interval, and no
comparison is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ledger.domain.methods.series import Counts, Series, runs, widened
from ledger.domain.money import PARTS_PER_BILLION
from ledger.domain.terms.objective import Objective
from ledger.domain.windows.window import WindowState

# Any power of ten above 10^9 gives the same results; this one nearly always at once.
_SCALE = 10**30


def mean_of_intervals(objective: Objective, series: Series, base_seconds: int) -> Counts:
    """Billionths of an interval, of the observed ones."""
    judged = series.every(_windows(objective, base_seconds))
    errors = [(bad, good + bad) for good, bad in zip(judged.good, judged.bad, strict=True) if bad]
    observed = judged.states.count(WindowState.OBSERVED)
    lost = _billionths_rounded_up(errors)
    return Counts(observed * PARTS_PER_BILLION - lost, lost)


def bad_intervals(objective: Objective, series: Series, base_seconds: int) -> Sequence[range]:
    """Runs of intervals that miss the target by their own counts."""
    windows = _windows(objective, base_seconds)
    return widened(runs(series.every(windows).misses(objective.target_ppb)), windows)


def _billionths_rounded_up(errors: Sequence[tuple[int, int]]) -> int:
    """The sum of the fractions times 10^9, rounded up.

    The sum of floors bounds it from below, and one more for each fraction from above. Where both round up to the same
    number that is it; only where they do not, the fractions themselves are added up.
    """
    low = sum(bad * _SCALE // valid for bad, valid in errors)
    rounded, at_most = (_rounded_up(scaled, _SCALE // PARTS_PER_BILLION) for scaled in (low, low + len(errors)))
    if rounded == at_most:
        return rounded
    exact = sum((Fraction(bad, valid) for bad, valid in errors), Fraction(0)) * PARTS_PER_BILLION
    return _rounded_up(exact.numerator, exact.denominator)


def _rounded_up(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def _windows(objective: Objective, base_seconds: int) -> int:
    """Windows in an interval."""
    assert objective.down is not None  # noqa: S101 (read_objectives sets it for this method)
    return objective.down.interval_seconds // base_seconds
