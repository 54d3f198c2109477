"""Violations: where the windows of a period broke an objective, run by run.

A violation is a maximal run of observed windows that each miss one objective's target by their own counts
(good * 10^9 < valid * target), which is the incident of the compensation rules: an idle, excluded or missing window
ends it, and so does one without valid requests for the objective. A pure function of the judged windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from ledger.domain.agreement import Agreement
from ledger.domain.interval import Interval
from ledger.domain.methods.registry import Measuring
from ledger.domain.objective import Objective
from ledger.domain.window import Cell, Window, WindowState


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

    ``first_window`` counts from 0 in the period; ``good`` and ``valid`` are sums over the run; ``open``: nothing was
    judged after it (only windows without data follow, or none), so that later facts may still make it longer.
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
    judged = max((at + 1 for at, window in enumerate(windows) if window.state is not WindowState.NO_DATA), default=0)
    measuring = Measuring(agreement.objectives, windows, agreement.window_seconds)
    found = [
        _violation(objective, [window.cells[index] for window in windows], windows, run, judged)
        for index, objective in enumerate(agreement.objectives)
        for run in measuring.breaches(index)
    ]
    return tuple(sorted(found, key=lambda violation: violation.first_window))


def _violation(
    objective: Objective, cells: Sequence[Cell], windows: Sequence[Window], run: range, judged: int
) -> Violation:
    counted = [at for at in run if cells[at].valid]
    worst = max(counted, key=lambda at: (Fraction(cells[at].bad, cells[at].valid), cells[at].valid))
    return Violation(
        objective=objective,
        first_window=run.start,
        windows=len(run),
        interval=Interval(windows[run.start].interval.start_ns, windows[run.stop - 1].interval.end_ns),
        good=sum(cells[at].good for at in run),
        valid=sum(cells[at].valid for at in run),
        worst=WorstWindow(worst, cells[worst].good, cells[worst].valid),
        open=run.stop >= judged,
        ended_by=_ended_by(cells, windows, run.stop),
    )


def _ended_by(cells: Sequence[Cell], windows: Sequence[Window], following: int) -> EndedBy:
    if following == len(windows):
        return EndedBy.PERIOD_END
    state = windows[following].state
    if state is not WindowState.OBSERVED:
        return EndedBy.EXCLUDED if state is WindowState.EXCLUDED else EndedBy.NO_DATA
    return EndedBy.MET if cells[following].valid else EndedBy.IDLE
