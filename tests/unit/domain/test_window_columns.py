"""Windows as columns: the same sequence of windows, and as strict."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.time.interval import Interval
from ledger.domain.windows.window import MAX_COUNT, Cell, Window, WindowState
from ledger.domain.windows.window_columns import CellColumn, WindowColumns
from ledger.errors import ImplausibleCounts

STEP_NS, START_NS = 300 * 10**9, 1_700_000_100 * 10**9
OBSERVED, EXCLUDED, NO_DATA = WindowState.OBSERVED, WindowState.EXCLUDED, WindowState.NO_DATA
COUNT = st.integers(0, 3) | st.integers(0, MAX_COUNT)
CELL = st.builds(Cell, COUNT, COUNT, st.just(0) | COUNT)


@st.composite
def judged(draw: st.DrawFn) -> list[Window]:
    cells = draw(st.integers(0, 3))
    found = []
    for at in range(draw(st.integers(0, 12))):
        state = draw(st.sampled_from(WindowState))
        counts = [draw(CELL) if state is OBSERVED else Cell(0, 0) for _ in range(cells)]
        found.append(Window(Interval(START_NS + at * STEP_NS, START_NS + (at + 1) * STEP_NS), state, tuple(counts)))
    return found


@given(judged())
def test_they_are_the_windows_they_were_made_of(windows: list[Window]) -> None:
    width = len(windows[0].cells) if windows else 2
    columns = WindowColumns.of(windows, STEP_NS, width)
    assert len(columns.cells) == width
    assert list(columns) == windows
    assert len(columns) == len(windows)
    assert columns.idle == sum(window.idle for window in windows)
    assert [columns.count(state) for state in WindowState] == [
        sum(window.state is state for window in windows) for state in WindowState
    ]
    assert columns[1:3] == windows[1:3]
    for at, column in enumerate(columns.cells):
        assert [column.valid(each) for each in range(len(windows))] == [window.cells[at].valid for window in windows]
        sums = column.sums(range(1, len(windows)))
        assert sums.good == sum(window.cells[at].good for window in windows[1:])
        assert sums.valid == sum(window.cells[at].valid for window in windows[1:])
        undecided = any(window.cells[at].undecided for window in windows)
        assert (column.undecided is None) is not undecided
    assert WindowColumns.of(columns, STEP_NS, width) is columns


def test_the_last_window_may_be_asked_for_from_the_end() -> None:
    columns = WindowColumns(START_NS, STEP_NS, [OBSERVED] * 2, [CellColumn([1, 2], [0, 5])])
    assert columns[-1] == Window(Interval(START_NS + STEP_NS, START_NS + 2 * STEP_NS), OBSERVED, (Cell(2, 5),))
    with pytest.raises(IndexError):
        columns[2]


@pytest.mark.parametrize(
    ("states", "cells", "says"),
    [
        ([OBSERVED], [CellColumn([1, 2], [0])], "2 counts for 1 windows"),
        ([OBSERVED], [CellColumn([1], [])], "0 counts for 1 windows"),
        ([OBSERVED], [CellColumn([1], [0], [0, 0])], "2 counts for 1 windows"),
        ([OBSERVED], [CellColumn([-1], [0])], "from -1 to -1"),
        ([OBSERVED] * 2, [CellColumn([-1, 1], [0, 0])], "from -1 to 1"),
        ([OBSERVED] * 2, [CellColumn([0, MAX_COUNT + 1], [0, 0])], f"from 0 to {MAX_COUNT + 1}:"),
        ([OBSERVED], [CellColumn([0], [MAX_COUNT + 1])], f"each must be from 0 to {MAX_COUNT}"),
        ([OBSERVED, NO_DATA], [CellColumn([1, 1], [0, 0])], "only observed windows count"),
        ([OBSERVED, EXCLUDED], [CellColumn([1, 0], [0, 0], [0, 1])], "only observed windows count"),
    ],
)
def test_implausible_counts_are_refused(states: list[WindowState], cells: list[CellColumn], says: str) -> None:
    with pytest.raises(ImplausibleCounts, match=says):
        WindowColumns(START_NS, STEP_NS, states, cells)


def test_the_largest_count_is_taken() -> None:
    columns = WindowColumns(START_NS, STEP_NS, [OBSERVED], [CellColumn([MAX_COUNT], [MAX_COUNT], [MAX_COUNT])])
    assert columns[0].cells == (Cell(MAX_COUNT, MAX_COUNT, MAX_COUNT),)


def test_a_count_takes_four_bytes_and_what_is_packed_is_not_copied() -> None:
    columns = WindowColumns(START_NS, STEP_NS, [OBSERVED] * 2, [CellColumn([1, 2], [0, 5])])
    (column,) = columns.cells
    assert [memoryview(counts).nbytes for counts in column.counts] == [8, 8]  # type: ignore[arg-type]
    (same,) = WindowColumns(START_NS, STEP_NS, [OBSERVED] * 2, [column]).cells
    assert same.good is column.good


def _moved(window: Window, start_ns: int, end_ns: int) -> Window:
    return Window(Interval(window.interval.start_ns + start_ns, window.interval.end_ns + end_ns), window.state, ())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda w: w[::-1],
        lambda w: [w[0], w[2]],
        lambda w: [w[0], w[0]],
        lambda w: [w[0], _moved(w[1], 1, 1)],
        lambda w: [w[0], _moved(w[1], 0, 1)],
        lambda w: [_moved(w[0], -1, 0), w[1]],
    ],
    ids=["reversed", "a gap", "twice", "moved", "too long", "starts early"],
)
def test_windows_follow_each_other(spoil: Any) -> None:
    plain = [Window(Interval(START_NS + at * STEP_NS, START_NS + (at + 1) * STEP_NS), OBSERVED, ()) for at in range(3)]
    assert len(WindowColumns.of(plain, STEP_NS, 0)) == 3
    with pytest.raises(ImplausibleCounts, match="do not follow each other"):
        WindowColumns.of(spoil(plain), STEP_NS, 0)


@pytest.mark.parametrize(
    ("width", "says"),
    [
        (0, "window 0 has 1 cells for 0"),
        (1, "window 1 has 2 cells for 1"),
        (2, "window 0 has 1 cells for 2"),
        (3, "window 0 has 1 cells for 3"),
    ],
)
def test_windows_have_a_cell_for_each_objective(width: int, says: str) -> None:
    first = Window(Interval(START_NS, START_NS + STEP_NS), OBSERVED, (Cell(1, 0),))
    second = Window(Interval(START_NS + STEP_NS, START_NS + 2 * STEP_NS), OBSERVED, (Cell(1, 0), Cell(1, 0)))
    with pytest.raises(ImplausibleCounts, match=says):
        WindowColumns.of([first, second], STEP_NS, width)


def test_columns_are_those_of_the_objectives() -> None:
    columns = WindowColumns(START_NS, STEP_NS, [OBSERVED], [CellColumn([1], [0])])
    with pytest.raises(ImplausibleCounts, match="1 cells for 2"):
        WindowColumns.of(columns, STEP_NS, 2)
    with pytest.raises(ImplausibleCounts, match="follow each other"):
        WindowColumns.of(columns, STEP_NS + 1, 1)
