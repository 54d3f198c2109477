"""Agreements of a day in small windows, and its windows from runs: ``[(10, bad_minute), (1, IDLE), ...]``."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

from ledger.domain.credits.settlement import Settlement, settle
from ledger.domain.methods.registry import Measured, Measuring
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.violations.violation import Violation, violations
from ledger.domain.windows.window import WindowState
from ledger.domain.windows.window_columns import CellColumn, WindowColumns
from tests.unit.domain.samples import agreement, put

FIRST = date(2023, 1, 1)
IDLE = (0, 0)
NO_DATA, EXCLUDED = WindowState.NO_DATA, WindowState.EXCLUDED

# A run of windows: how many, then a state, or good and bad (and what is undecided), once or for each objective.
Run = tuple[Any, ...]


def terms(*objectives: dict[str, Any], window: str = "PT1M", period: str = "P1D", **paths: Any) -> Agreement:
    """An agreement with these objectives: each has an id, an indicator and a target of its own if it names none.

    ``paths`` are other members, with ``__`` for a dot.
    """

    def change(plain: dict[str, Any]) -> None:
        plain |= {"window": window, "period": period, "coverage_floor": "0"}
        plain["objectives"] = [
            {"id": f"objective-{at}" if at else "objective", "indicator": "availability", "target": "99.9", **each}
            for at, each in enumerate(objectives)
        ]
        first = plain["objectives"][0]
        tier = {"below": first["target"], "credit_percent": "10"}
        plain["compensation"]["rules"] = [
            {"kind": "tiered", "method": "tiered-v1", "tiers": {first["id"]: [tier]}},
        ]
        for path, value in paths.items():
            put(plain, path.replace("__", "."), value)

    return agreement(change)


def timeline(of: Agreement, runs: Iterable[Run]) -> tuple[Period, WindowColumns]:
    """The windows of the first period: the runs one after the other, then idle ones."""
    period = of.period_starting(FIRST)
    width, count = len(of.objectives), of.window_count(period)
    states: list[WindowState] = []
    rows: list[tuple[tuple[int, ...], ...]] = []
    for number, *said in runs:
        state = said[0] if isinstance(said[0], WindowState) else WindowState.OBSERVED
        cells = (IDLE,) if isinstance(said[0], WindowState) else said
        states += [state] * number
        rows += [tuple(cells) if len(cells) == width else tuple(cells) * width] * number
    assert len(states) <= count
    rows += [(IDLE,) * width] * (count - len(states))
    states += [WindowState.OBSERVED] * (count - len(states))
    columns = [
        CellColumn(
            [row[at][0] for row in rows],
            [row[at][1] for row in rows],
            [row[at][2] if len(row[at]) > 2 else 0 for row in rows],
        )
        for at in range(width)
    ]
    return period, WindowColumns(period.interval.start_ns, of.window_seconds * SECOND_NS, states, columns)


def measured(of: Agreement, runs: Iterable[Run], index: int = 0) -> Measured:
    return Measuring(of.objectives, timeline(of, runs)[1], of.window_seconds).measure(index)


def counts(of: Agreement, runs: Iterable[Run], index: int = 0) -> tuple[int, int]:
    """Good and bad of one objective, nothing undecided."""
    found = measured(of, runs, index)
    assert found.undecided == 0
    return found.good, found.bad


def breaches(of: Agreement, runs: Iterable[Run], index: int = 0) -> list[tuple[int, int]]:
    """First window and number of windows of every run that breaks an objective."""
    found = Measuring(of.objectives, timeline(of, runs)[1], of.window_seconds).breaches(index)
    return [(run.start, len(run)) for run in found]


def settled(of: Agreement, runs: Iterable[Run]) -> Settlement:
    period, windows = timeline(of, runs)
    return settle(of, period, windows)


def broken(of: Agreement, runs: Iterable[Run]) -> tuple[Violation, ...]:
    return violations(of, timeline(of, runs)[1])
