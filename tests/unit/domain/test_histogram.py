"""Histograms and sketches: what their counts can decide (worked case open_09)."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.credits.verdict import ObjectiveState, judge
from ledger.domain.facts.histogram import Histogram, shown_interval, sketched_within
from ledger.domain.windows.window import Cell
from ledger.errors import ImplausibleCounts


@pytest.fixture
def case(sla_fixtures: Path) -> Any:
    return json.loads((sla_fixtures / "sla/cases/case_open_09_histogram_quantile.json").read_text())


def buckets(*pairs: tuple[str, int]) -> Histogram:
    return Histogram.of(pairs)


def fraction(text: str) -> tuple[int, int]:
    good, valid = text.split("/")
    return int(good), int(valid)


def test_worked_case_09(case: Any) -> None:
    given_, expected = case["input"], case["expected"]
    found = buckets(*map(tuple, given_["cumulative_buckets"]))
    shown = {text: found.shown_quantile(Fraction(text)) for text in given_["quantiles"]}
    assert shown == {text: Fraction(value) for text, value in expected["quantile"].items()}
    exact = found.within(Fraction("0.5"))
    assert ((exact.good, exact.valid), exact.undecided) == (
        fraction(expected["attainment"]["0.5"]["exact_fraction"]),
        0,
    )
    between, bounds = found.within(Fraction("0.4")), expected["attainment"]["0.4"]
    assert (between.good, between.valid) == fraction(bounds["lower_fraction"])
    assert (between.good + between.undecided, between.valid) == fraction(bounds["upper_fraction"])


def test_worked_case_09_without_values_there_is_no_quantile(case: Any) -> None:
    empty = buckets(*map(tuple, case["input"]["empty_buckets"]))
    assert empty.shown_quantile(Fraction(1, 2)) is case["expected"]["empty"]["quantile"] is None
    cell = empty.within(Fraction(1))
    assert str(judge(cell.good, cell.valid, 10**9)) == case["expected"]["empty"]["status"]


def test_worked_case_09_a_sketch_shows_a_value_within_its_accuracy(case: Any) -> None:
    low, high = shown_interval(Fraction("0.5"), Fraction(case["input"]["ddsketch_relative_accuracy"]))
    assert [low, high] == [Fraction(text) for text in case["expected"]["ddsketch_interval_for_true_0_5"]]


@pytest.mark.parametrize(
    ("pairs", "q", "shown"),
    [
        ((("1", 10), ("+Inf", 10)), "0.5", "0.5"),  # the fifth of ten between 0 and 1
        ((("1", 1), ("+Inf", 1)), "0.5", "0.5"),  # half of one value lies in the middle, too
        ((("1", 4), ("3", 8), ("+Inf", 8)), "0.75", "2"),  # the second of four between 1 and 3
        ((("-1", 2), ("1", 3), ("+Inf", 3)), "0.5", "-1"),  # nothing is known below the first bound, if that is below 0
        ((("1", 0), ("2", 5), ("+Inf", 5)), "0", "1"),
        ((("1", 1), ("+Inf", 2)), "0.9", "1"),  # above the last bound
        ((("0", 2), ("1", 3), ("+Inf", 3)), "0.5", "0"),  # nor if it is 0
        ((("1", 2), ("2", 2), ("4", 3), ("+Inf", 3)), "0.5", "0.75"),
        ((("1", 2), ("2", 2), ("4", 4), ("+Inf", 4)), "0.5", "1"),  # the last one within a bound is at it
        ((("2", 4), ("+Inf", 4)), "1", "2"),
    ],
)
def test_a_shown_quantile_lies_evenly_in_its_bucket(pairs: tuple[tuple[str, int], ...], q: str, shown: str) -> None:
    assert Histogram.of(pairs).shown_quantile(Fraction(q)) == Fraction(shown)


LATENCIES = (("0.1", 100), ("0.25", 180), ("0.5", 190), ("1", 198), ("+Inf", 200))


@pytest.mark.parametrize(
    ("target_percent", "state"),
    [
        (90, ObjectiveState.MET),
        (91, ObjectiveState.INSUFFICIENT_DATA),
        (95, ObjectiveState.INSUFFICIENT_DATA),
        (96, ObjectiveState.BREACHED),
    ],
)
def test_between_bounds_a_verdict_needs_both_ends_on_one_side(target_percent: int, state: ObjectiveState) -> None:
    cell = buckets(*LATENCIES).within(Fraction("0.4"))
    assert judge(cell.good, cell.valid, target_percent * 10**7, cell.undecided) is state


def test_beyond_the_last_bound_only_the_last_bucket_is_undecided() -> None:
    assert buckets(*LATENCIES).within(Fraction(5)) == Cell(198, 0, 2)
    assert buckets(*LATENCIES).within(Fraction("0.05")) == Cell(0, 100, 100)


def test_pyrra_1502_a_bound_is_a_number_however_it_is_written() -> None:
    assert buckets(("1", 3), ("+Inf", 4)) == buckets(("1.0", 3), ("+Inf", 4)) == buckets(("1e0", 3), ("+Inf", 4))
    assert buckets(("1.0", 3), ("1", 3), ("+Inf", 4)).bounds == (Fraction(1),)
    with pytest.raises(ImplausibleCounts):
        buckets(("1.0", 3), ("1", 2), ("+Inf", 4))


def test_prometheus_13020_a_shown_quantile_jumps_where_the_attainment_moves_by_one_request() -> None:
    calm = buckets(("0.1", 10_000), ("0.5", 10_000), ("10", 10_000), ("+Inf", 10_000))
    one_slow = buckets(("0.1", 9_998), ("0.5", 9_998), ("10", 10_000), ("+Inf", 10_000))
    q = Fraction("0.9999")
    before, after = calm.shown_quantile(q), one_slow.shown_quantile(q)
    assert before is not None
    assert before < Fraction("0.1")
    assert after == Fraction("5.25")
    assert one_slow.within(Fraction("0.5")) == Cell(9_998, 2)
    assert judge(9_998, 10_000, 999_800_000) is ObjectiveState.MET


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ((("1", 3), ("2", 2), ("+Inf", 4)), "rise"),
        ((("1", 5), ("+Inf", 4)), "rise"),
        ((("1", -1), ("+Inf", 4)), "rise"),
        ((("1", 3),), "missing"),
        ((("NaN", 3), ("+Inf", 4)), "no number"),
    ],
)
def test_what_no_histogram_says_is_refused(pairs: tuple[tuple[str, int], ...], said: str) -> None:
    with pytest.raises(ImplausibleCounts, match=said):
        Histogram.of(pairs)


def test_the_bucket_that_cannot_be_is_named() -> None:
    for pairs, name in (((("x" * 41, 3), ("+Inf", 4)), "x" * 40), ((("1", 3), ("1.0", 2), ("+Inf", 4)), "1.0")):
        with pytest.raises(ImplausibleCounts) as refused:
            buckets(*pairs)
        assert refused.value.data == {"bucket": name}
        assert name in str(refused.value)


@pytest.mark.parametrize("text", ["+1", "-1", "1" * 30, "1." + "0" * 30, "0.005", "1e3", "1E-300", "+1.5e+99", "-0.1"])
def test_a_bound_is_a_decimal_of_at_most_30_digits_on_each_side_with_an_exponent_or_none(text: str) -> None:
    assert buckets((text, 0), ("+Inf", 4)).bounds == (Fraction(text),)


@pytest.mark.parametrize(
    "text",
    ["", "1" * 31, "1." + "0" * 31, "1e1000", ".5", "1.", "1/2", " 1", "1e", "++1", "\u0661", "inf", "1_0"],
)
def test_what_is_no_such_decimal_is_no_bound(text: str) -> None:
    with pytest.raises(ImplausibleCounts, match="is no number"):
        buckets((text, 0), ("+Inf", 4))


def test_equal_counts_are_no_fall_and_no_values_are_none() -> None:
    assert buckets(("+Inf", 0)) == Histogram((), (), 0)
    assert buckets(("1", 4), ("2", 4), ("+Inf", 4)).within(Fraction(1)) == Cell(4, 0)
    assert buckets(("1", 0), ("+Inf", 0)).within(Fraction(1)) == Cell(0, 0)
    assert buckets(("+Inf", 3)).within(Fraction(1)) == Cell(0, 0, 3)
    assert buckets(("+Inf", 3)).shown_quantile(Fraction(1, 2)) is None


@given(
    st.lists(st.integers(1, 2_000), max_size=40),
    st.sets(st.integers(1, 2_000), min_size=1, max_size=6),
    st.integers(1, 2_000),
)
def test_the_interval_holds_the_truth(values: list[int], bounds: set[int], threshold: int) -> None:
    pairs = [(str(bound), sum(value <= bound for value in values)) for bound in bounds]
    cell = Histogram.of([*pairs, ("+Inf", len(values))]).within(Fraction(threshold))
    truth = sum(value <= threshold for value in values)
    assert cell.good <= truth <= cell.good + cell.undecided
    assert cell.valid == len(values)
    assert cell.undecided == 0 or threshold not in bounds


@given(st.lists(st.tuples(st.integers(1, 2_000), st.integers(-100, 100)), max_size=40), st.integers(1, 2_000))
def test_a_sketch_decides_only_what_its_accuracy_allows(values: list[tuple[int, int]], threshold: int) -> None:
    alpha, shown = Fraction(1, 100), dict[Fraction, int]()
    for value, error in values:
        seen = value * (1 + alpha * error / 100)
        shown[seen] = shown.get(seen, 0) + 1
    cell = sketched_within(shown, Fraction(threshold), alpha)
    truth = sum(value <= threshold for value, _ in values)
    assert cell.good <= truth <= cell.good + cell.undecided
    assert cell.valid == len(values)


def test_a_sketch_leaves_undecided_what_it_shows_near_the_threshold() -> None:
    shown = {
        Fraction("0.49"): 1,
        Fraction("0.495"): 1,
        Fraction("0.4951"): 1,
        Fraction("0.505"): 1,
        Fraction("0.506"): 1,
    }
    assert sketched_within(shown, Fraction("0.5"), Fraction("0.01")) == Cell(2, 1, 2)
