"""What of the charges falls on a time: as a plain sum over all of them says it, in a fraction of its time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.domain.credits.charged_time import ChargedTime, total
from ledger.domain.time.interval import Interval, union

Parts = Sequence[tuple[Fraction, Interval]]
WHOLE = Fraction(700)


def overlap_ns(one: Interval, other: Interval) -> int:
    return max(0, min(one.end_ns, other.end_ns) - max(one.start_ns, other.start_ns))


def lived_ns(life: Interval, excluded: Sequence[Interval]) -> int:
    return life.duration_ns - sum(overlap_ns(life, each) for each in excluded)


def plainly(parts: Parts, excluded: Sequence[Interval], lost: Interval) -> Fraction:
    """Charge by charge: its amount x how long it was lost / how long it was there, what is excluded in neither."""
    found = Fraction(0)
    for amount, life in parts:
        lived, start_ns, end_ns = (
            lived_ns(life, excluded),
            max(lost.start_ns, life.start_ns),
            min(lost.end_ns, life.end_ns),
        )
        if lived and start_ns < end_ns:
            found += amount * Fraction(lived_ns(Interval(start_ns, end_ns), excluded), lived)
    return found


def plainly_for(parts: Parts, excluded: Sequence[Interval], length_ns: int) -> Fraction:
    lives = ((amount, lived_ns(life, excluded)) for amount, life in parts)
    return sum((amount * Fraction(length_ns, lived) for amount, lived in lives if lived), Fraction(0))


@pytest.mark.parametrize(
    ("lost", "excluded", "share"),
    [
        (Interval(0, 2), [], Fraction(1, 5)),
        # of a resource that goes, only what it was there for
        (Interval(8, 12), [], Fraction(1, 5)),
        (Interval(20, 22), [], 0),
        # what is excluded is no time of its life
        (Interval(0, 2), [Interval(5, 10)], Fraction(2, 5)),
        (Interval(0, 2), [Interval(0, 10)], 0),
        # and no time that was lost
        (Interval(0, 4), [Interval(1, 3)], Fraction(1, 4)),
        (Interval(0, 10), [Interval(1, 9)], 1),
        (Interval(4, 8), [Interval(0, 2), Interval(8, 30)], Fraction(2, 3)),
    ],
)
def test_a_resource_of_ten_days_is_divided_by_those(lost: Interval, excluded: list[Interval], share: Fraction) -> None:
    assert ChargedTime([(WHOLE, Interval(0, 10))], excluded).charge(lost) == WHOLE * share


@pytest.mark.parametrize(
    ("lost", "excluded", "share"),
    [
        # five of ten days are excluded, and no less is divided by
        (Interval(0, 2), [Interval(5, 10)], Fraction(1, 5)),
        (Interval(4, 6), [Interval(5, 10)], Fraction(1, 10)),
        (Interval(0, 10), [Interval(5, 10)], Fraction(1, 2)),
        (Interval(0, 2), [Interval(0, 10)], 0),
    ],
)
def test_a_life_that_is_divided_by_as_it_is(lost: Interval, excluded: list[Interval], share: Fraction) -> None:
    assert ChargedTime([(WHOLE, Interval(0, 10))], excluded, full=True).charge(lost) == WHOLE * share


def test_what_falls_on_a_time_wherever_it_lies() -> None:
    lives = [Interval(0, 10), Interval(0, 5), Interval(6, 8)]
    charged = ChargedTime([(WHOLE, life) for life in lives], [Interval(6, 8)])
    assert charged.charge_for(2) == WHOLE * 2 / 8 + WHOLE * 2 / 5


def test_nothing_is_charged_for_nothing() -> None:
    assert ChargedTime(()).charge(Interval(0, 5)) == ChargedTime(()).charge_for(5) == total([]) == 0


intervals = st.tuples(st.integers(0, 40), st.integers(1, 25)).map(lambda pair: Interval(pair[0], sum(pair)))
amounts = st.fractions(min_value=0, max_value=10**6, max_denominator=1000)


@settings(max_examples=200)
@given(st.lists(st.tuples(amounts, intervals), max_size=12), st.lists(intervals, max_size=6), intervals)
def test_it_is_what_a_plain_sum_says(parts: Parts, out: list[Interval], lost: Interval) -> None:
    excluded = union(out)
    charged = ChargedTime(parts, excluded)
    assert charged.charge(lost) == plainly(parts, excluded, lost)
    assert charged.charge_for(lost.duration_ns) == plainly_for(parts, excluded, lost.duration_ns)


@given(st.integers(1, 99), st.lists(intervals, max_size=4), st.lists(st.tuples(amounts, intervals), max_size=5))
def test_a_loss_that_is_cut_in_two_is_the_same_loss(cut: int, out: list[Interval], parts: Parts) -> None:
    charged = ChargedTime(parts, union(out))
    assert charged.charge(Interval(0, cut)) + charged.charge(Interval(cut, 100)) == charged.charge(Interval(0, 100))


@given(st.lists(st.fractions(max_denominator=10**6), max_size=20))
def test_a_total_is_the_sum(found: list[Fraction]) -> None:
    assert total(found) == sum(found, Fraction(0))


def test_incidents_cost_look_ups_and_not_sums_over_all_lives() -> None:
    """Thirty times the incidents over a thousand lives take less than three times as long as a few added up plainly."""
    hour_ns = 3600 * 10**9
    parts = [(Fraction(1000 + at), Interval(at % 90 * hour_ns, (100 + at % 600) * hour_ns)) for at in range(1000)]
    excluded = [Interval(at * hour_ns, (at + 1) * hour_ns) for at in range(0, 720, 60)]
    lost = [Interval(at * hour_ns // 2, at * hour_ns // 2 + 60 * 10**9) for at in range(1200)]
    started_s = time.process_time()
    few = [plainly(parts, excluded, each) for each in lost[::30]]
    plain_s = time.process_time() - started_s
    started_s = time.process_time()
    charged = ChargedTime(parts, excluded)
    found = [charged.charge(each) for each in lost]
    assert time.process_time() - started_s < 3 * plain_s
    assert found[::30] == few
    assert total(found) > 0
