"""Amounts split over time: parts sum to the whole, and a resource is divided by its own life."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.credits.proration import apportion, prorate, terms_for
from ledger.domain.time.interval import Interval
from tests.unit.domain.samples import agreement

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


def test_nothing_can_be_shared_out_without_a_weight() -> None:
    assert apportion(0, {1: Fraction(0), 2: Fraction(0)}) == {1: 0, 2: 0}
    assert apportion(5, {1: Fraction(0), 2: Fraction(1)}) == {1: 0, 2: 5}
    with pytest.raises(ValueError, match="nothing has a weight"):
        apportion(5, {1: Fraction(0)})
    with pytest.raises(ValueError, match="nothing has a weight"):
        prorate(5, [])


def test_of_more_equal_remainders_than_units_the_first_keys_have_them() -> None:
    fifths = {key: Fraction(1) for key in (5, 4, 3, 2, 1)}
    assert apportion(7, fifths) == {5: 1, 4: 1, 3: 1, 2: 2, 1: 2}
    assert list(apportion(7, fifths)) == [5, 4, 3, 2, 1]


def test_a_part_of_a_period_has_the_base_that_lies_between_its_cuts() -> None:
    """A third of an hour each, of a base that three do not divide."""
    agreed = agreement()
    period = agreed.period_starting(date(2023, 6, 14))
    start_ns, end_ns = period.interval.start_ns, period.interval.end_ns
    third = (end_ns - start_ns) // 3
    cuts = [start_ns, start_ns + third, start_ns + 2 * third, end_ns]
    assert agreed.compensation.base % 3
    bases = []
    for one, other in pairwise(cuts):
        part = replace(period, interval=Interval(one, other), whole=period.interval)
        terms = terms_for(agreed, part)
        assert replace(terms.compensation, base=agreed.compensation.base) == agreed.compensation
        bases.append(terms.compensation.base)
    assert sum(bases) == agreed.compensation.base
    assert max(bases) - min(bases) == 1
    assert terms_for(agreed, period) is agreed


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


def test_remainders_that_look_the_same_are_compared_without_their_whole_parts() -> None:
    little = Fraction(1, 10**40)
    third, two_thirds = Fraction(1, 3), Fraction(2, 3)
    # Remainders of 1/3 less a little, 1/3 and a little, and 1/3: one more unit, for the second.
    assert apportion(3, {1: 1 + third - little, 2: 1 + third + little, 3: third}) == {1: 1, 2: 2, 3: 0}
    # The larger share has the smaller remainder.
    assert apportion(6, {1: 4 + two_thirds - little, 2: two_thirds + little, 3: two_thirds}) == {1: 4, 2: 1, 3: 1}
    assert apportion(4, {1: 2 + third - little, 2: third + little, 3: 1 + third}) == {1: 2, 2: 1, 3: 1}
