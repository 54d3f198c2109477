"""Cells, windows, names of periods and the coverage floor."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import parse_instant_ns
from ledger.domain.time.interval import Interval
from ledger.domain.windows.window import MAX_COUNT, Cell, Window, WindowState, counting, coverage_ok
from ledger.errors import CalendarInvalid, DocumentInvalid, ImplausibleCounts
from tests.unit.domain.samples import agreement

HOUR = Interval(0, 3600 * 10**9)


def test_states_are_spelt_as_statements_spell_them() -> None:
    assert [str(state) for state in WindowState] == ["observed", "excluded", "no_data"]


def test_a_count_is_what_a_circuit_word_holds() -> None:
    assert MAX_COUNT == 2**28 - 1
    assert Cell(MAX_COUNT, MAX_COUNT, MAX_COUNT).valid == 3 * MAX_COUNT
    assert Cell(0, 0).undecided == 0


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("count", [-1, MAX_COUNT + 1])
def test_a_count_that_no_source_could_have_is_refused_with_its_value(at: int, count: int) -> None:
    counts = [5, 6, 7]
    counts[at] = count
    with pytest.raises(ImplausibleCounts, match="correct the source first") as caught:
        Cell(*counts)
    assert caught.value.data == {"good": counts[0], "bad": counts[1], "undecided": counts[2]}


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (Cell(3, 1), {"good": 3, "bad": 1}),
        (Cell(3, 1, 2), {"good": 3, "bad": 1, "undecided": 2}),
        (Cell(0, 0), {"good": 0, "bad": 0}),
    ],
)
def test_a_cell_is_what_its_document_says(cell: Cell, said: dict[str, int]) -> None:
    assert cell.as_document() == said
    assert Cell.from_document(said) == cell
    assert Cell.from_document(None) == Cell(0, 0)


def test_counts_that_cannot_be_are_told_with_objective_and_window() -> None:
    with pytest.raises(ImplausibleCounts) as caught, counting("uptime", HOUR):
        Cell(-1, 6, 7)
    start = "1970-01-01T00:00:00Z"
    assert caught.value.data == {"good": -1, "bad": 6, "undecided": 7, "objective": "uptime", "window": start}
    assert caught.value.message.startswith(f"objective uptime, the window from {start}: good -1, bad 6, undecided 7: ")


@pytest.mark.parametrize("cell", [Cell(1, 0), Cell(0, 1), Cell(0, 0, 1)])
@pytest.mark.parametrize("state", [WindowState.EXCLUDED, WindowState.NO_DATA])
def test_only_observed_windows_count(cell: Cell, state: WindowState) -> None:
    seen = Window(HOUR, WindowState.OBSERVED, (Cell(0, 0), cell))
    assert (seen.empty, seen.idle) == (False, False)
    with pytest.raises(ImplausibleCounts, match=f"a window in state {state} has counts") as caught:
        Window(HOUR, state, (Cell(0, 0), cell))
    assert caught.value.data == {"state": str(state)}


def test_idle_is_not_the_same_as_missing() -> None:
    idle, missing, out = (Window(HOUR, state, (Cell(0, 0),)) for state in WindowState)
    assert [(window.empty, window.idle) for window in (idle, missing, out)] == [
        (True, True),
        (True, False),
        (True, False),
    ]


def test_a_period_is_named_by_its_first_date_and_its_length() -> None:
    day = period_named(agreement(), "2023-06-14/P1D")
    assert (str(day), day.first) == ("2023-06-14/P1D", date(2023, 6, 14))
    assert agreement().periods.at(parse_instant_ns("2023-06-14T23:59:59Z")) == day


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("2023-06-14", CalendarInvalid, "write its first date and length, such as 2023-12-19/P1D"),
        ("2023-06-14/", CalendarInvalid, "is not a period"),
        ("/P1D", CalendarInvalid, "is not a date"),
        (
            "2023-06-14/P7D",
            DocumentInvalid,
            "asks for P7D, but this agreement's period from 2023-06-14 is 2023-06-14/P1D",
        ),
        ("2022-12-31/P1D", DocumentInvalid, "no period of this agreement starts on 2022-12-31"),
    ],
)
def test_a_name_of_no_period_is_refused(text: str, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        period_named(agreement(), text)


@pytest.mark.parametrize(
    ("observed", "windows", "excluded", "floor_bps", "fine"),
    [
        (99, 100, 0, 9_900, True),
        (98, 100, 0, 9_900, False),
        (99, 100, 0, 9_901, False),
        (89, 100, 10, 9_900, False),
        (90, 100, 10, 10_000, True),
        (19_999, 20_000, 0, 10_000, False),
        (89, 100, 10, 9_888, True),
        (0, 100, 100, 9_900, True),
        (0, 1, 0, 0, True),
    ],
)
def test_coverage_is_what_was_observed_of_what_was_not_excluded(
    observed: int, windows: int, excluded: int, floor_bps: int, fine: bool
) -> None:
    assert coverage_ok(observed, windows, excluded, floor_bps) is fine
