"""Windows put together: every so many of them, rolling ones, those that miss a target, and runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.methods.series import Series, runs, widened
from ledger.domain.windows.window import WindowState

SEEN, OUT, MISSING = WindowState.OBSERVED, WindowState.EXCLUDED, WindowState.NO_DATA
SEVEN = Series([1, 2, 3, 4, 5, 6, 7], [0, 10, 0, 30, 0, 50, 0], [SEEN] * 7)


@pytest.mark.parametrize(
    ("windows", "good", "bad"),
    [
        (1, [1, 2, 3, 4, 5, 6, 7], [0, 10, 0, 30, 0, 50, 0]),
        (2, [3, 7, 11], [10, 30, 50]),
        (3, [6, 15], [10, 80]),
        (7, [28], [90]),
        (8, [], []),
    ],
)
def test_every_so_many_windows_are_one_and_what_is_left_over_is_dropped(
    windows: int, good: list[int], bad: list[int]
) -> None:
    found = SEVEN.every(windows)
    assert (list(found.good), list(found.bad), list(found.states)) == (good, bad, [SEEN] * len(good))


@pytest.mark.parametrize(
    ("windows", "step", "good"),
    [(2, 1, [3, 5, 7, 9, 11, 13]), (3, 2, [6, 12, 18]), (1, 3, [1, 4, 7]), (7, 1, [28])],
)
def test_slices_start_a_step_apart_and_end_in_the_period(windows: int, step: int, good: list[int]) -> None:
    assert SEVEN.rolling(windows, step).good == good


@pytest.mark.parametrize(
    ("states", "together"),
    [
        ([SEEN, OUT], SEEN),
        ([MISSING, SEEN], SEEN),
        ([MISSING, OUT], MISSING),
        ([MISSING, MISSING], MISSING),
        ([OUT, OUT], OUT),
    ],
)
def test_windows_together_are_observed_where_one_is_and_excluded_where_all_are(
    states: list[WindowState], together: WindowState
) -> None:
    assert Series([0, 0], [0, 0], states).every(2).states == [together]


@pytest.mark.parametrize(
    ("good", "bad", "missed"),
    [
        (999, 1, False),
        (998, 1, True),
        (0, 1, True),
        (0, 0, False),
        (1_998, 2, False),
        (1_998, 3, True),
    ],
)
def test_a_window_misses_999_of_1000_only_below_it(good: int, bad: int, missed: bool) -> None:
    assert Series([good], [bad], [SEEN]).misses(999_000_000) == [missed]


def test_a_target_of_all_is_missed_by_one() -> None:
    assert Series([10, 9], [0, 1], [SEEN] * 2).misses(10**9) == [False, True]


def test_too_few_requests_miss_no_target() -> None:
    assert Series([0, 1, 1], [2, 1, 2], [SEEN] * 3).misses(999_000_000, 3) == [False, False, True]


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ([], []),
        ([False], []),
        ([True], [range(1)]),
        ([True, True, False, True], [range(2), range(3, 4)]),
        ([False, True, False, False, True, True], [range(1, 2), range(4, 6)]),
    ],
)
def test_runs_of_what_is_true(flags: list[bool], found: list[range]) -> None:
    assert list(runs(flags)) == found


@given(st.lists(st.booleans(), max_size=30))
def test_runs_hold_all_that_is_true_and_lie_apart(flags: Sequence[bool]) -> None:
    found = list(runs(flags))
    assert [at for run in found for at in run] == [at for at, flag in enumerate(flags) if flag]
    assert all(one.stop < other.start for one, other in pairwise(found))


def test_runs_of_intervals_are_runs_of_their_windows() -> None:
    assert widened(iter([range(2), range(3, 4)]), 5) == [range(10), range(15, 20)]
