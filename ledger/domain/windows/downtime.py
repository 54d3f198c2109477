"""Downtime from outages: their union without what is excluded, clipped to a period, in whole minutes.

Minutes are those of the period's own grid, from its first instant. One is down where outages cover it whole, and none
of it is excluded: partial minutes do not count. Two denominators are in use: the full period (Google, CoreWeave) and
scheduled time, which leaves excluded minutes out (Cloudflare).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ledger.domain.time.instant import MINUTE_NS
from ledger.domain.time.interval import Interval, clipped, covered, minus, union
from ledger.domain.windows.window import Cell, Window, WindowState


@dataclass(frozen=True, slots=True)
class Downtime:
    """Whole minutes of a period: all, those down, and those excluded (never down)."""

    minutes: int
    down: int
    excluded: int

    @property
    def full(self) -> tuple[int, int]:
        """Minutes up of the whole period; an excluded one is up."""
        return self.minutes - self.down, self.minutes

    @property
    def scheduled(self) -> tuple[int, int]:
        """Minutes up of those that were not excluded."""
        scheduled = self.minutes - self.excluded
        return scheduled - self.down, scheduled


def downtime(period: Interval, outages: Iterable[Interval], excluded: Iterable[Interval] = ()) -> Downtime:
    """What outages and exclusions, in any order and overlapping or not, come to in a period."""
    windows = minute_windows(period, outages, excluded)
    taken_out = sum(window.state is WindowState.EXCLUDED for window in windows)
    return Downtime(len(windows), sum(window.cells[0].bad for window in windows), taken_out)


def minute_windows(
    period: Interval, outages: Iterable[Interval], excluded: Iterable[Interval] = ()
) -> tuple[Window, ...]:
    """The minutes of a period as windows of one cell: each counts itself, as up or down, or is excluded whole.

    Methods of the downtime family (``ledger.domain.methods``) settle them under an agreement with the window PT1M. A
    list of outages says all: no window is without data.
    """
    without = clipped(union(excluded), period)
    down = minus(clipped(union(outages), period), without)
    return tuple(_window(interval, down, without) for interval in _minutes(period))


def _window(interval: Interval, down: Sequence[Interval], without: Sequence[Interval]) -> Window:
    if covered(interval, without):
        return Window(interval, WindowState.EXCLUDED, (Cell(0, 0),))
    bad = int(covered(interval, down))
    return Window(interval, WindowState.OBSERVED, (Cell(1 - bad, bad),))


def _minutes(period: Interval) -> tuple[Interval, ...]:
    """The whole minutes of a period, from its start; what is left over at its end is none."""
    return tuple(
        Interval(start_ns, start_ns + MINUTE_NS)
        for start_ns in range(period.start_ns, period.end_ns, MINUTE_NS)
        if start_ns + MINUTE_NS <= period.end_ns
    )
