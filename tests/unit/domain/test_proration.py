"""Amounts split over time: parts sum to the whole, and a resource is divided by its own life."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.interval import Interval
from ledger.domain.proration import apportion, prorate, share_of_life

lengths = st.lists(st.integers(1, 10**15), min_size=1, max_size=8)


@given(st.integers(0, 10**12), lengths)
def test_the_parts_of_a_period_sum_to_its_amount(total: int, durations: list[int]) -> None:
    parts = prorate(total, durations)
    assert sum(parts) == total
    for part, duration in zip(parts, durations, strict=True):
        assert abs(part - Fraction(total * duration, sum(durations))) < 1


def test_of_equal_parts_the_earlier_has_the_rest() -> None:
    assert prorate(100, [7, 7, 7]) == (34, 33, 33)
    assert prorate(0, [1, 2]) == (0, 0)


@given(st.integers(1, 100), st.lists(st.tuples(st.integers(0, 90), st.integers(1, 10)), max_size=1))
def test_losses_next_to_each_other_are_one_loss(cut: int, excluded: list[tuple[int, int]]) -> None:
    life = Interval(0, 101)
    out = [Interval(start, start + length) for start, length in excluded]
    halves = share_of_life(Interval(0, cut), life, out) + share_of_life(Interval(cut, 101), life, out)
    assert halves == share_of_life(life, life, out)


def test_the_life_is_the_denominator() -> None:
    assert share_of_life(Interval(0, 2), Interval(0, 10), []) == Fraction(1, 5)
    assert share_of_life(Interval(8, 12), Interval(0, 10), []) == Fraction(1, 5)
    assert share_of_life(Interval(0, 2), Interval(0, 10), [Interval(5, 10)]) == Fraction(2, 5)
    assert share_of_life(Interval(0, 2), Interval(0, 10), [Interval(0, 10)]) == 0
    assert share_of_life(Interval(20, 22), Interval(0, 10), []) == 0


@given(st.integers(1, 10**6), st.dictionaries(st.integers(0, 50), st.fractions(0, 20), min_size=1))
def test_whole_parts_are_those_of_the_exact_largest_remainders(total: int, weights: dict[int, Fraction]) -> None:
    weight = sum(weights.values())
    if not weight:
        return
    exact = {key: total * each / weight for key, each in weights.items()}
    expected = {key: int(share) for key, share in exact.items()}
    rest = total - sum(expected.values())
    for key in sorted(exact, key=lambda key: (expected[key] - exact[key], key))[:rest]:
        expected[key] += 1
    assert apportion(total, weights) == expected


def test_remainders_that_differ_beyond_64_bits_are_told_apart() -> None:
    almost = Fraction(10**40 - 1, 10**40)
    # 1.5 and a little, 1.5 less a little: the later key has the larger remainder.
    assert apportion(3, {1: almost, 2: 2 - almost}) == {1: 1, 2: 2}
    assert apportion(3, {1: Fraction(1), 2: Fraction(1)}) == {1: 2, 2: 1}
