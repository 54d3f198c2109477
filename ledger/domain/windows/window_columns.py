"""The judged windows of a period column by column: what settling reads, at a fraction of the objects' time.

A month of 5-minute windows with four objectives is 45,000 objects as windows and cells, and a dozen lists here. It is
a sequence of windows all the same: each is made when it is asked for.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from ledger.domain.time.interval import Interval
from ledger.domain.windows.window import MAX_COUNT, Cell, Window, WindowState
from ledger.errors import ImplausibleCounts

# An array holds a count in 4 bytes, where a list points to an object of its own for each.
_COUNT = "I"


@dataclass(frozen=True, slots=True)
class CellSums:
    """Sums of cells; unlike a cell they have no upper bound."""

    good: int
    valid: int


@dataclass(frozen=True, slots=True)
class CellColumn:
    """The cells of one objective. ``undecided`` is None where nothing is."""

    good: Sequence[int]
    bad: Sequence[int]
    undecided: Sequence[int] | None = None

    def cell(self, at: int) -> Cell:
        return Cell(self.good[at], self.bad[at], 0 if self.undecided is None else self.undecided[at])

    def valid(self, at: int) -> int:
        return self.good[at] + self.bad[at] + (0 if self.undecided is None else self.undecided[at])

    def sums(self, run: range) -> CellSums:
        """What was counted in a run of windows."""
        good, bad = sum(self.good[run.start : run.stop]), sum(self.bad[run.start : run.stop])
        undecided = 0 if self.undecided is None else sum(self.undecided[run.start : run.stop])
        return CellSums(good, good + bad + undecided)

    @property
    def counts(self) -> tuple[Sequence[int], ...]:
        return (self.good, self.bad) if self.undecided is None else (self.good, self.bad, self.undecided)


class WindowColumns(Sequence[Window]):
    """Windows of equal length that follow each other from ``start_ns``, each ``step_ns`` long.

    Raises ``ImplausibleCounts`` for what ``Cell`` and ``Window`` refuse, and for columns of different lengths.
    """

    __slots__ = ("cells", "start_ns", "states", "step_ns")

    def __init__(self, start_ns: int, step_ns: int, states: Sequence[WindowState], cells: Sequence[CellColumn]) -> None:
        self.start_ns = start_ns
        self.step_ns = step_ns
        self.states = states
        for number, column in enumerate(cells):
            self._check(number, column)
        self.cells = tuple(_packed(column) for column in cells)

    @classmethod
    def of(cls, windows: Sequence[Window], step_ns: int, width: int) -> WindowColumns:
        """The same windows as columns. Raises ``ImplausibleCounts`` where they do not follow each other, or have not
        ``width`` cells each."""
        if isinstance(windows, WindowColumns) and windows.step_ns == step_ns and len(windows.cells) == width:
            return windows
        starts, ends, states, rows = [], [], [], []
        good, bad, undecided = array(_COUNT), array(_COUNT), array(_COUNT)
        # One pass, because the objects of a long period do not fit the processor's caches.
        for window in windows:
            interval, cells = window.interval, window.cells
            starts.append(interval.start_ns)
            ends.append(interval.end_ns)
            states.append(window.state)
            rows.append(len(cells))
            for cell in cells:
                good.append(cell.good)
                bad.append(cell.bad)
                undecided.append(cell.undecided)
        start_ns = next(iter(starts), 0)
        due = range(start_ns, start_ns + (len(starts) + 1) * step_ns, step_ns)
        if starts != list(due[:-1]) or ends != list(due[1:]):
            raise ImplausibleCounts("the windows given do not follow each other in order", windows=len(starts))
        if rows and not min(rows) == width == max(rows):
            found = min(rows) if min(rows) != width else max(rows)
            raise ImplausibleCounts(
                f"window {rows.index(found)} has {found} cells for {width} objectives", window=rows.index(found)
            )
        # Cells and windows were plausible when they were made.
        columns = object.__new__(cls)
        columns.start_ns, columns.step_ns, columns.states = start_ns, step_ns, states
        columns.cells = tuple(
            _packed(CellColumn(good[at::width], bad[at::width], undecided[at::width])) for at in range(width)
        )
        return columns

    def __len__(self) -> int:
        return len(self.states)

    @overload
    def __getitem__(self, at: int) -> Window: ...
    @overload
    def __getitem__(self, at: slice) -> list[Window]: ...
    def __getitem__(self, at: int | slice) -> Window | list[Window]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        at = range(len(self))[at]
        return Window(self.interval(at, at + 1), self.states[at], tuple(column.cell(at) for column in self.cells))

    def interval(self, first: int, stop: int) -> Interval:
        """From the start of window ``first`` to that of window ``stop``."""
        return Interval(self.start_ns + first * self.step_ns, self.start_ns + stop * self.step_ns)

    def count(self, state: object) -> int:
        """How many windows are in a state."""
        return self.states.count(state)

    @property
    def idle(self) -> int:
        """How many observed windows have no counts. Those that were not observed never have any."""
        counts = [column for each in self.cells for column in each.counts]
        return self.count(WindowState.OBSERVED) - sum(map(any, zip(*counts, strict=True)))

    def _check(self, number: int, column: CellColumn) -> None:
        unseen = [at for at, state in enumerate(self.states) if state is not WindowState.OBSERVED]
        for counts in column.counts:
            if len(counts) != len(self.states):
                raise ImplausibleCounts(
                    f"cell {number} has {len(counts)} counts for {len(self.states)} windows", cell=number
                )
            if counts and not 0 <= min(counts) <= max(counts) <= MAX_COUNT:
                raise ImplausibleCounts(
                    f"cell {number} has counts from {min(counts)} to {max(counts)}: each must be from 0 to "
                    f"{MAX_COUNT}; correct the source first",
                    cell=number,
                )
            if any(counts[at] for at in unseen):
                raise ImplausibleCounts(
                    f"cell {number} has counts in a window that was not observed; only observed windows count",
                    cell=number,
                )


def _packed(column: CellColumn) -> CellColumn:
    """The column in the least memory."""
    undecided = column.undecided
    open_ = undecided is not None and any(undecided)
    return CellColumn(_array(column.good), _array(column.bad), _array(undecided) if undecided and open_ else None)


def _array(counts: Sequence[int]) -> array[int]:
    return counts if isinstance(counts, array) else array(_COUNT, counts)
