"""``attainment-v1``: the share of slices of the period that meet their own target (OpenSLO ``Timeslices``; latency
attainment of OpenAI and Google; the rule that P95 may not be missed in three rolling windows in a row).

Slices may roll: then each starts a step after the one before. A slice without enough valid requests is not judged and
ends a run. With ``consecutive`` a slice is bad only in a run of so many that miss; with ``only_with`` only where the
other objective's slice misses as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from ledger.domain.methods.series import Counts, Series, runs
from ledger.domain.terms.objective import Objective, SliceRule


def slices_met(objective: Objective, series: Series, base_seconds: int, missed_with: Sequence[bool] | None) -> Counts:
    """Slices good and bad, of those that are judged."""
    rule = _rule(objective)
    judged = _slices(rule, series, base_seconds)
    least = max(1, rule.minimum_valid)
    count = sum(good + bad >= least for good, bad in zip(judged.good, judged.bad, strict=True))
    bad = sum(len(run) for run in _broken(rule, judged, missed_with))
    return Counts(count - bad, bad)


def slices_missed(
    objective: Objective, series: Series, base_seconds: int, missed_with: Sequence[bool] | None
) -> Sequence[range]:
    """Runs of windows that bad slices cover; where slices overlap or touch they are one."""
    rule = _rule(objective)
    judged = _slices(rule, series, base_seconds)
    windows, step = rule.window_seconds // base_seconds, rule.step_seconds // base_seconds
    found: list[range] = []
    for run in _broken(rule, judged, missed_with):
        start, stop = run.start * step, (run.stop - 1) * step + windows
        if found and start <= found[-1].stop:
            found[-1] = range(found[-1].start, stop)
        else:
            found.append(range(start, stop))
    return found


def missed_slices(objective: Objective, series: Series, base_seconds: int) -> list[bool]:
    """Of every slice, whether it misses its own target."""
    rule = _rule(objective)
    return _slices(rule, series, base_seconds).misses(rule.target_ppb, rule.minimum_valid)


def bad_slices(objective: Objective, judged: Series, missed_with: Sequence[bool] | None) -> list[bool]:
    """Of every slice of ``judged``, whether it counts as bad."""
    bad = [False] * len(judged)
    for run in _broken(_rule(objective), judged, missed_with):
        bad[run.start : run.stop] = [True] * len(run)
    return bad


def _broken(rule: SliceRule, judged: Series, missed_with: Sequence[bool] | None) -> list[range]:
    missed = judged.misses(rule.target_ppb, rule.minimum_valid)
    if missed_with is not None:
        missed = [ours and theirs for ours, theirs in zip(missed, missed_with, strict=True)]
    return [run for run in runs(missed) if len(run) >= rule.consecutive]


def _slices(rule: SliceRule, series: Series, base_seconds: int) -> Series:
    return series.rolling(rule.window_seconds // base_seconds, rule.step_seconds // base_seconds)


def _rule(objective: Objective) -> SliceRule:
    assert objective.slices is not None  # noqa: S101 (read_objectives sets it for this method)
    return objective.slices
