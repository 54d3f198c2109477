"""Violations: where the windows of a period broke an objective, run by run.

A violation is a maximal run of windows that break one objective's promise by its method (``ledger.domain.methods``):
windows that miss the target by their own counts, minutes or intervals that are down, slices that miss where they
overlap. It is the incident of the compensation rules: what is idle, excluded or without data ends it, unless it lies in
an interval or a slice that counts as bad. A pure function of the judged windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from ledger.domain.methods.registry import METHODS, Measuring
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.indicators import INDICATORS
from ledger.domain.terms.objective import Objective
from ledger.domain.terms.objective_sources import Source
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.time.interval import Interval
from ledger.domain.windows.window import Window, WindowState
from ledger.domain.windows.window_columns import CellColumn, WindowColumns


class EndedBy(StrEnum):
    """What stands after the last window of a violation. ``met``: a window that keeps the objective; ``idle``: one
    without valid requests for it; ``period_end``: nothing, the period is over."""

    MET = "met"
    IDLE = "idle"
    EXCLUDED = "excluded"
    NO_DATA = "no_data"
    PERIOD_END = "period_end"


@dataclass(frozen=True, slots=True)
class WorstWindow:
    """The window of a violation with the smallest share of good requests: the busiest and first of equals."""

    index: int
    good: int
    valid: int


@dataclass(frozen=True, slots=True)
class Violation:
    """One run of windows in breach of one objective.

    ``first_window`` counts from 0 in the period; ``good`` and ``valid`` are sums over the run, in which what is
    undecided counts as good; ``open``: nothing was judged after it (only windows without data follow, or none), so that
    later facts may still make it longer.
    """

    objective: Objective
    first_window: int
    windows: int
    interval: Interval
    good: int
    valid: int
    worst: WorstWindow
    open: bool
    ended_by: EndedBy

    @property
    def bad(self) -> int:
        return self.valid - self.good


def violations(agreement: Agreement, windows: Sequence[Window]) -> tuple[Violation, ...]:
    """The violations in the judged windows of a period: by first window, then in the order of the objectives."""
    columns = WindowColumns.of(windows, agreement.window_seconds * SECOND_NS, len(agreement.objectives))
    judged = max((at + 1 for at, state in enumerate(columns.states) if state is not WindowState.NO_DATA), default=0)
    measuring = Measuring(agreement.objectives, columns, agreement.window_seconds)
    found = [
        _violation(objective, columns.cells[index], columns, run, judged)
        for index, objective in enumerate(agreement.objectives)
        for run in measuring.breaches(index)
    ]
    return tuple(sorted(found, key=lambda violation: violation.first_window))


def clause_of(agreement: Agreement, objective: Objective) -> str:
    """The clause that a miss of an objective breaks: as the contract names it, else the member of the agreement."""
    return objective.clause or f"objectives[{agreement.objectives.index(objective)}]"


def unit_of_counts(method: str, indicator: str, source: str | None = None) -> str:
    """What the counts of a window are: the unit of the indicator or of a ``source`` of its own, or the method's where
    it weighs each request."""
    weighed = METHODS[method].unit if method == "graded_score-v1" else None
    return weighed or (source and Source(source).unit) or INDICATORS[indicator].unit


def _violation(objective: Objective, cells: CellColumn, windows: WindowColumns, run: range, judged: int) -> Violation:
    # What is undecided breaks nothing, so it counts with what is good here.
    valid = [cells.valid(at) for at in run]
    counted = [(at, whole) for at, whole in zip(run, valid, strict=True) if whole]
    worst, worst_valid = max(counted, key=lambda pair: (Fraction(cells.bad[pair[0]], pair[1]), pair[1]))
    return Violation(
        objective=objective,
        first_window=run.start,
        windows=len(run),
        interval=windows.interval(run.start, run.stop),
        good=sum(valid) - sum(cells.bad[run.start : run.stop]),
        valid=sum(valid),
        worst=WorstWindow(worst, worst_valid - cells.bad[worst], worst_valid),
        open=run.stop >= judged,
        ended_by=_ended_by(cells, windows, run.stop),
    )


def _ended_by(cells: CellColumn, windows: WindowColumns, following: int) -> EndedBy:
    if following == len(windows):
        return EndedBy.PERIOD_END
    state = windows.states[following]
    if state is not WindowState.OBSERVED:
        return EndedBy.EXCLUDED if state is WindowState.EXCLUDED else EndedBy.NO_DATA
    return EndedBy.MET if cells.valid(following) else EndedBy.IDLE
