"""``downtime_minutes-v1``, ``interval_threshold-v1`` and ``deployment_minutes-v1``: how long it was up.

* ``downtime_minutes-v1``: a minute is down when its error rate is above a bound (Google: strictly above 10 %) or at it
  (GitLab: 5 % or more), with enough valid requests, in a long enough run of such minutes. Partial minutes do not count.
* ``interval_threshold-v1``: the same by intervals from the period's start (Alibaba Cloud, DigitalOcean: 5 minutes).
* ``deployment_minutes-v1``: minutes of all deployments together; each window counts how many were up and down.

An interval with heartbeat and without requests is up. One without data is in neither count; an excluded one is up where
the agreement keeps the full period as denominator, and in neither count where it takes scheduled time.
"""

from __future__ import annotations

from collections.abc import Sequence

from ledger.domain.methods.series import Counts, Series, runs, widened
from ledger.domain.money import PARTS_PER_BILLION
from ledger.domain.terms.objective import DownRule, Objective
from ledger.domain.windows.window import WindowState


def time_up(objective: Objective, series: Series, base_seconds: int) -> Counts:
    """Intervals up and down."""
    rule = _rule(objective)
    judged = series.every(rule.interval_seconds // base_seconds)
    down = sum(len(run) for run in _down(rule, judged))
    counted = judged.states.count(WindowState.OBSERVED)
    if not rule.scheduled:
        counted += judged.states.count(WindowState.EXCLUDED)
    return Counts(counted - down, down)


def times_down(objective: Objective, series: Series, base_seconds: int) -> Sequence[range]:
    """Runs of intervals that count as down."""
    rule = _rule(objective)
    windows = rule.interval_seconds // base_seconds
    return widened(iter(_down(rule, series.every(windows))), windows)


def deployments_up(objective: Objective, series: Series, base_seconds: int) -> Counts:
    """Deployment windows up and down, of all deployments."""
    counted = with_excluded_up(objective, series)
    return Counts(sum(counted.good), sum(counted.bad))


def with_excluded_up(objective: Objective, series: Series) -> Series:
    """The counts of deployments. An excluded window has none; where the full period is the denominator, all
    deployments are taken as up in it, as many as there were at most."""
    if _rule(objective).scheduled:
        return series
    of_all = map(sum, zip(series.good, series.bad, strict=True))
    most = max(of_all, default=0)
    up = [
        most if state is WindowState.EXCLUDED else good for good, state in zip(series.good, series.states, strict=True)
    ]
    return Series(up, series.bad, series.states)


def deployments_down(objective: Objective, series: Series, base_seconds: int) -> Sequence[range]:
    """Runs of windows in which any deployment was down."""
    return list(runs([bad > 0 for bad in series.bad]))


def _down(rule: DownRule, judged: Series) -> list[range]:
    error_ppb, least = rule.error_ppb, max(1, rule.minimum_valid)
    if rule.closed:
        down = [
            good + bad >= least and bad * PARTS_PER_BILLION >= (good + bad) * error_ppb
            for good, bad in zip(judged.good, judged.bad, strict=True)
        ]
    else:
        down = [
            good + bad >= least and bad * PARTS_PER_BILLION > (good + bad) * error_ppb
            for good, bad in zip(judged.good, judged.bad, strict=True)
        ]
    return [run for run in runs(down) if len(run) >= rule.minimum_run]


def _rule(objective: Objective) -> DownRule:
    assert objective.down is not None  # noqa: S101 (read_objectives sets it for these methods)
    return objective.down
