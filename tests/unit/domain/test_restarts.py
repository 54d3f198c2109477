"""When a series begins anew too often to be passed over in silence."""

from __future__ import annotations

from itertools import accumulate, pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.rows.restarts import OFTEN, Restarts, SeriesReading, restarts_of

Said = tuple[int, int | None]
"""A value, and the start that goes with it."""


def restarts(*said: Said) -> Restarts:
    return restarts_of(SeriesReading(at, *each) for at, each in enumerate(said))


@pytest.mark.parametrize(
    ("said", "times", "several"),
    [
        ([], 0, False),
        ([(7, None)], 0, False),
        ([(7, None), (7, None), (9, None)], 0, False),
        # Without starts a fall is a restart.
        ([(7, None), (2, None), (3, None), (1, None)], 2, False),
        # A newer start is one, though the value rose; one that is known of one reading alone says nothing.
        ([(7, 1), (9, 2)], 1, False),
        ([(7, 1), (9, None), (8, 3)], 1, False),
        # No process began earlier than it had begun, nor falls within one start.
        ([(7, 2), (9, 1)], 0, True),
        ([(7, 2), (6, 2)], 0, True),
    ],
)
def test_what_counts_as_beginning_anew(said: list[Said], times: int, several: bool) -> None:
    assert restarts(*said) == Restarts(times, several)


@given(st.lists(st.lists(st.integers(0, 9), min_size=1), max_size=OFTEN), st.booleans(), st.randoms())
def test_one_process_is_passed_over_up_to_two_restarts(lives: list[list[int]], named: bool, random: Random) -> None:
    """Each life counts from 0 and only rises. In whatever order its readings come."""
    said = [(value, life if named else None) for life, steps in enumerate(lives) for value in accumulate(steps)]
    readings = [SeriesReading(at, *each) for at, each in enumerate(said)]
    random.shuffle(readings)
    found = restarts_of(readings)
    assert not found.several
    assert found.times <= max(len(lives) - 1, 0)
    assert not found.worth_saying


@given(st.lists(st.integers(0, 9), min_size=7, max_size=20), st.integers(1, 1000))
def test_two_that_take_turns_are_told_by_their_values(steps: list[int], apart: int) -> None:
    """One of them is ahead by more than either counts meanwhile."""
    low = list(accumulate(steps))
    ahead = sum(steps) + apart
    found = restarts(*((value + ahead * (at % 2), None) for at, value in enumerate(low)))
    assert found.times == (len(steps) - 1) // 2
    assert found.worth_saying


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=1))
def test_two_that_take_turns_are_told_by_their_starts(turns: list[tuple[bool, int]]) -> None:
    """As soon as the older one answers again."""
    values, said = {False: 0, True: 0}, []
    for younger, step in turns:
        values[younger] += step
        said.append((values[younger], int(younger)))
    answered = [younger for younger, _ in turns]
    again = any(one and not other for one, other in pairwise(answered))
    assert restarts(*said).several == again
