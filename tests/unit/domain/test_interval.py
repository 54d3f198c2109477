from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.time.interval import Interval, clip, clipped, covered, minus, union
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


def test_the_start_is_inside_and_the_end_is_outside() -> None:
    assert [instant in Interval(3, 10) for instant in (2, 3, 9, 10)] == [False, True, True, False]
    assert Interval(3, 10).duration_ns == 7


@pytest.mark.parametrize(
    ("other", "inside"), [((3, 10), True), ((4, 9), True), ((2, 10), False), ((3, 11), False), ((11, 12), False)]
)
def test_an_interval_covers_what_lies_wholly_in_it(other: tuple[int, int], inside: bool) -> None:
    assert Interval(3, 10).covers(Interval(*other)) is inside


@pytest.mark.parametrize(
    ("other", "part"),
    [
        ((0, 20), (3, 10)),
        ((4, 9), (4, 9)),
        ((0, 4), (3, 4)),
        ((9, 20), (9, 10)),
        ((0, 3), None),
        ((10, 11), None),
        ((0, 2), None),
    ],
)
def test_an_outage_is_clipped_to_the_period(other: tuple[int, int], part: tuple[int, int] | None) -> None:
    assert clip(Interval(*other), Interval(3, 10)) == (None if part is None else Interval(*part))


def test_of_a_union_what_shares_no_instant_with_the_period_is_dropped() -> None:
    parts = (Interval(0, 3), Interval(4, 5), Interval(8, 12), Interval(13, 14))
    assert clipped(parts, Interval(3, 10)) == (Interval(4, 5), Interval(8, 10))


@given(INTERVALS, INTERVALS)
def test_what_is_left_is_exactly_what_is_in_no_hole(parts: list[Interval], holes: list[Interval]) -> None:
    left = minus(union(parts), union(holes))
    instants = [instant for part in left for instant in range(part.start_ns, part.end_ns)]
    every = {instant for part in parts for instant in range(part.start_ns, part.end_ns)}
    without = {instant for part in holes for instant in range(part.start_ns, part.end_ns)}
    assert instants == sorted(every - without)


def test_intervals_sort_by_their_start_then_their_end() -> None:
    assert sorted([Interval(2, 3), Interval(1, 9), Interval(1, 4)]) == [Interval(1, 4), Interval(1, 9), Interval(2, 3)]


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
