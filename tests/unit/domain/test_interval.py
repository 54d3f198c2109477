from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.interval import Interval, covered, minus, union
from ledger.errors import IntervalInvalid

INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)).map(lambda p: Interval(p[0], p[0] + p[1])))


@given(INTERVALS, st.integers(-1, 90))
def test_a_union_holds_exactly_the_instants_of_its_parts(parts: list[Interval], instant: int) -> None:
    assert any(instant in part for part in parts) == any(instant in part for part in union(parts))


@given(INTERVALS)
def test_a_union_is_sorted_and_its_intervals_do_not_even_touch(parts: list[Interval]) -> None:
    merged = union(parts)
    assert all(left.end_ns < right.start_ns for left, right in itertools.pairwise(merged))


@given(INTERVALS, st.randoms())
def test_a_union_depends_neither_on_order_nor_on_repeats(parts: list[Interval], random: object) -> None:
    shuffled = [*parts, *parts]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert union(shuffled) == union(parts) == union(union(parts))


@given(INTERVALS, st.integers(0, 60), st.integers(1, 20))
def test_covered_means_every_instant_is_in_some_part(parts: list[Interval], start: int, length: int) -> None:
    window = Interval(start, start + length)
    every = all(any(instant in part for part in parts) for instant in range(start, start + length))
    assert covered(window, union(parts)) == every


def test_overlaps_count_once() -> None:
    total = sum(part.duration_ns for part in union([Interval(0, 10), Interval(5, 15), Interval(15, 20)]))
    assert total == 20


def test_the_end_is_outside() -> None:
    assert 9 in Interval(0, 10)
    assert 10 not in Interval(0, 10)


@pytest.mark.parametrize("end", [5, 4])
def test_an_interval_cannot_be_empty_or_run_backwards(end: int) -> None:
    with pytest.raises(IntervalInvalid):
        Interval(5, end)


def test_what_is_left_without_holes() -> None:
    parts = (Interval(0, 10), Interval(20, 30))
    assert minus(parts, (Interval(2, 3), Interval(25, 26))) == (
        *(Interval(0, 2), Interval(3, 10)),
        *(Interval(20, 25), Interval(26, 30)),
    )
    assert minus(parts, (Interval(5, 22),)) == (Interval(0, 5), Interval(22, 30))
    assert minus(parts, (Interval(12, 15),)) == parts
    assert minus(parts, (Interval(0, 30),)) == ()
