"""Counts of one objective, window by window, as plain columns: what every method works on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ledger.domain.money import PARTS_PER_BILLION
from ledger.domain.windows.window import WindowState
from ledger.domain.windows.window_columns import WindowColumns


@dataclass(frozen=True, slots=True)
class Counts:
    """How much was good and how much was bad, in a method's unit."""

    good: int
    bad: int


@dataclass(frozen=True, slots=True)
class Series:
    """Column by column the windows of a period: counts of one objective, and each window's state."""

    good: Sequence[int]
    bad: Sequence[int]
    states: Sequence[WindowState]

    @classmethod
    def of(cls, windows: WindowColumns, index: int) -> Series:
        """The counts of the objective at ``index``; what is undecided is on the objective's side."""
        column = windows.cells[index]
        good = column.good
        if column.undecided is not None:
            good = [sure + open_ for sure, open_ in zip(good, column.undecided, strict=True)]
        return cls(good, column.bad, windows.states)

    @classmethod
    def at_worst(cls, windows: WindowColumns, index: int) -> Series | None:
        """The same where all that is undecided is bad; None where nothing is undecided."""
        column = windows.cells[index]
        if column.undecided is None:
            return None
        bad = [sure + open_ for sure, open_ in zip(column.bad, column.undecided, strict=True)]
        return cls(column.good, bad, windows.states)

    def __len__(self) -> int:
        return len(self.good)

    def every(self, windows: int) -> Series:
        """Whole runs of this many windows as one each, from the period's start; what is left over at its end is
        dropped.

        One is excluded where all its windows are, observed where any is, and without data otherwise.
        """
        return self if windows == 1 else self.rolling(windows, windows)

    def rolling(self, windows: int, step: int) -> Series:
        """Every run of ``windows`` windows that starts a multiple of ``step`` into the period and ends in it."""
        starts = range(0, len(self) - windows + 1, step)

        def summed(column: Sequence[int]) -> list[int]:
            before = list(accumulate(column, initial=0))
            return [before[at + windows] - before[at] for at in starts]

        # By sums, too: slices that roll on by one window each would look at every window many thousand times.
        observed = summed([state is WindowState.OBSERVED for state in self.states])
        missing = summed([state is WindowState.NO_DATA for state in self.states])
        states = [_together(*each) for each in zip(observed, missing, strict=True)]
        return Series(summed(self.good), summed(self.bad), states)

    def misses(self, target_ppb: int, least: int = 0) -> list[bool]:
        """Of every window, whether less than the target is good of what is valid, and at least ``least`` are."""
        lacking = PARTS_PER_BILLION - target_ppb
        return [
            bad * PARTS_PER_BILLION > (good + bad) * lacking and good + bad >= least
            for good, bad in zip(self.good, self.bad, strict=True)
        ]


def runs(flags: Sequence[bool]) -> Iterator[range]:
    """The maximal runs of what is true, in order."""
    marks = bytes(flags) + b"\0"
    start = marks.find(1)
    while start >= 0:
        stop = marks.find(0, start)
        yield range(start, stop)
        start = marks.find(1, stop)


def widened(found: Iterator[range], windows: int) -> list[range]:
    """Runs of runs of ``windows`` windows as runs of windows."""
    return [range(run.start * windows, run.stop * windows) for run in found]


def _together(observed: int, missing: int) -> WindowState:
    """The state of windows of which so many are observed and so many without data; the others are excluded."""
    if observed:
        return WindowState.OBSERVED
    return WindowState.NO_DATA if missing else WindowState.EXCLUDED
