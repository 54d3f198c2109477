"""The mean of intervals: against the worked cases, by hand, and against plain fractions on any data."""

from __future__ import annotations

import json
import math
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledger.cli.output import percent_floored
from ledger.domain.credits.verdict import ObjectiveState, judge
from ledger.domain.methods import interval_mean
from ledger.domain.money import PARTS_PER_BILLION
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.periods import MAX_WINDOWS
from tests.unit.domain.methods.timeline import EXCLUDED, IDLE, NO_DATA, breaches, counts, measured, settled, terms

MEAN = {"method": "interval_mean-v1", "target": "99.9", "interval": "PT5M"}
POOLED = {"method": "total_ratio", "target": "99.9"}


def case(fixtures: Path, name: str) -> Any:
    (path,) = (fixtures / "sla/cases").glob(f"case_{name}_*.json")
    return json.loads(path.read_text())


def paying(objective: dict[str, Any], given_case: Any) -> Agreement:
    """An agreement of 30 days with the case's tiers, base and minimum."""
    said = given_case["input"]
    base = said.get("base", {"amount": "1000.00", "currency": "USD"})
    return terms(
        objective,
        window="PT5M",
        period="P30D",
        compensation__currency=base["currency"],
        compensation__base=base["amount"],
        compensation__minimum=said.get("minimum_payout_gt", "0"),
        compensation__rounding=said.get("rounding", "HALF_EVEN").lower(),
        compensation__caps={},
        compensation__rules__0__tiers={
            "objective": [{"below": t["lt"], "credit_percent": t["credit_percent"]} for t in said["tiers"]]
        },
    )


def test_stedi_worked_case(sla_fixtures: Path) -> None:
    given_case = case(sla_fixtures, "open_01")
    runs = []
    for group in given_case["input"]["groups"]:
        requests, errors = group["requests_per_interval"], group["errors_per_interval"]
        runs.append((group["intervals"], (requests - errors, errors)))
    expected, wrong = given_case["expected"], given_case["expected"]["must_not_be"]
    found = settled(paying(MEAN, given_case), runs)
    (result,) = found.objectives
    assert result.valid == given_case["input"]["period_intervals"] * PARTS_PER_BILLION
    assert Fraction(result.good * 100, result.valid) == Fraction(expected["uptime_percent"])
    assert found.trace is not None
    assert found.trace.combined_bps == int(expected["credit_percent"]) * 100
    assert found.trace.combined_amount == Fraction(expected["credit_unrounded"]) * 100
    assert found.credit == int(expected["credit"].replace(".", ""))
    # The other ways to read the clause give what it must not be.
    pooled = settled(paying(POOLED, given_case), runs)
    assert Fraction(pooled.objectives[0].good * 100, pooled.objectives[0].valid) == Fraction(
        wrong["pooled_ratio_uptime_percent"]
    )
    assert pooled.trace is not None
    assert pooled.trace.combined_bps == int(wrong["pooled_credit_percent"]) * 100
    without_idle = measured(paying(MEAN, given_case), [runs[0], (runs[1][0], NO_DATA)])
    ignoring = Fraction(wrong["ignore_idle_intervals_uptime_percent"])
    assert Fraction(without_idle.good * 100, without_idle.valid) == ignoring


def test_a_mean_at_the_threshold_is_not_below_it(sla_fixtures: Path) -> None:
    given_case = case(sla_fixtures, "open_02")
    (row,) = (row for row in given_case["input"]["rows"] if row["kind"] == "interval_mean")
    assert row["bad_error_rate"] == "0.005"
    found = settled(paying(MEAN, given_case), [(row["bad_intervals"], (199, 1))])
    (result,) = found.objectives
    assert Fraction(result.good * 100, result.valid) == Fraction(given_case["expected"]["exact_uptime_percent"]["j"])
    assert (result.state, found.credit) == (ObjectiveState.MET, 0)
    # One failure more is below it.
    more = settled(paying(MEAN, given_case), [(row["bad_intervals"], (199, 1)), (1, (10**8 - 1, 1))])
    assert (more.objectives[0].state, more.credit) == (ObjectiveState.BREACHED, 10_000)


def test_openslo_ratio_timeslices(sla_fixtures: Path) -> None:
    given_case = case(sla_fixtures, "open_08")
    said, expected = given_case["input"], given_case["expected"]
    runs = [(1, (good, valid - good)) for good, valid in zip(said["good"], said["valid"], strict=True)]
    mean = {**MEAN, "interval": "PT1M", "target": "95"}
    found = measured(terms(mean), [*runs, (1_440 - len(runs), NO_DATA)])
    exact = Fraction(expected["RatioTimeslices"]["ratio_fraction"])
    assert found.valid == len(runs) * PARTS_PER_BILLION
    assert found.good == exact * found.valid // 1
    assert expected["RatioTimeslices"]["percent_10dp"].startswith(percent_floored(found.good, found.valid)[:7])
    occurrences = expected["Occurrences"]
    pooled = counts(terms({**POOLED, "target": "95"}), runs)
    assert pooled == (occurrences["good"], occurrences["valid"] - occurrences["good"])
    attack, burns = said["attack"], Fraction(expected["attack"]["RatioTimeslices_slices_to_burn_fraction"])
    assert (attack["normal_ratio"], attack["attack_ratio"], attack["target"]) == ("0.99", "0.01", "0.95")
    fortnight = terms(mean, period="P14D", window="PT1M")
    for attacked, state in ((burns // 1, ObjectiveState.MET), (burns // 1 + 1, ObjectiveState.BREACHED)):
        attacked_runs = [(attacked, (1, 99)), (attack["window_slices"] - attacked, (99, 1))]
        assert settled(fortnight, attacked_runs).objectives[0].state is state


def test_by_hand() -> None:
    """288 intervals of five minutes, windows of a minute: errors / requests by interval, the rest idle."""
    # 1/4 and 1/2: 288 - 3/4.
    assert counts(terms(MEAN), [(5, (3, 1)), (4, IDLE), (1, (1, 1))]) == (287_250_000_000, 750_000_000)
    # 1/3: rounded up to the next billionth.
    assert counts(terms(MEAN), [(1, (2, 1))]) == (287_666_666_666, 333_333_334)
    # An interval over its minutes is one ratio: 3 of 12.
    assert counts(terms(MEAN), [(1, (0, 3)), (4, (2, 1)), (1, IDLE)]) == (288 * 10**9 - 466_666_667, 466_666_667)
    assert counts(terms(MEAN), []) == (288 * 10**9, 0)
    # Nothing of what was not observed counts.
    assert counts(terms(MEAN), [(10, NO_DATA), (5, EXCLUDED)]) == (285 * 10**9, 0)
    assert counts(terms(MEAN), [(1_440, NO_DATA)]) == (0, 0)


def test_intervals_that_break_the_promise() -> None:
    runs = [(5, (999, 1)), (5, (998, 2)), (1, (0, 1)), (4, IDLE), (5, IDLE), (5, (1, 1))]
    assert breaches(terms(MEAN), runs) == [(5, 10), (20, 5)]


def test_a_partial_interval_at_the_end_does_not_count() -> None:
    sevens = terms({**MEAN, "interval": "PT7M"})
    assert counts(sevens, [(1_435, (1, 0)), (5, (0, 1))]) == (205 * 10**9, 0)


@pytest.mark.parametrize(
    ("fractions", "expected"),
    [
        ([], 0),
        ([(1, 10**9)], 1),
        ([(1, 10**9 + 1)], 1),
        ([(1, 10**9 - 1)], 2),
        ([(1, 3), (1, 3), (1, 3)], 10**9),  # the floors of the thirds sum to less than one
        ([(1, 7)] * 7, 10**9),
        ([(1, 3), (2, 3), (1, 2)], 1_500_000_000),
    ],
)
def test_the_sum_is_rounded_up_once(fractions: list[tuple[int, int]], expected: int) -> None:
    assert interval_mean._billionths_rounded_up(fractions) == expected


def test_a_loss_that_is_above_a_billionth_by_less_than_any_scale_is_rounded_up() -> None:
    """Four intervals of some 2^28 requests each, whose error rates sum to a whole number and 10^-33."""
    valid = [2**28 - 1, 2**28 - 2, 2**28 - 3, 2**28 - 5]
    product = math.prod(valid)
    errors = [(pow(product // of, -1, of), of) for of in valid]
    whole = sum(Fraction(bad, of) for bad, of in errors) - Fraction(1, product)
    assert whole.denominator == 1
    assert interval_mean._billionths_rounded_up(errors) == whole * PARTS_PER_BILLION + 1


def test_as_many_intervals_as_there_may_be_are_added_up_at_once() -> None:
    errors = [(7, 10**8 + at) for at in range(MAX_WINDOWS)]
    started = time.process_time()
    lost = interval_mean._billionths_rounded_up(errors)
    assert time.process_time() - started < 5  # the fractions themselves take ten times that
    finer = sum(7 * 10**60 // of for _, of in errors)
    assert (lost - 1) * 10**51 < finer < lost * 10**51


VALID = st.integers(1, 50) | st.integers(1, 2**28 - 1)
INTERVAL = VALID.flatmap(lambda valid: st.tuples(st.integers(0, valid), st.just(valid)))
TARGET_PPB = st.integers(1, PARTS_PER_BILLION)


@given(st.lists(INTERVAL, max_size=40), TARGET_PPB, st.integers(1, 40))
@example([(1, 3)] * 3, 500_000_000, 6)  # straddles: the floors of three thirds lie on the other side
@example([(1, 7)] * 7, 500_000_000, 2)
def test_every_comparison_is_that_of_the_fractions(
    intervals: list[tuple[int, int]], target_ppb: int, idle: int
) -> None:
    lost = interval_mean._billionths_rounded_up([pair for pair in intervals if pair[0]])
    number = len(intervals) + idle
    valid = number * PARTS_PER_BILLION
    mean = 1 - sum((Fraction(bad, of) for bad, of in intervals), Fraction(0)) / number
    for threshold in {target_ppb, *_next_to(mean)}:
        below = mean < Fraction(threshold, PARTS_PER_BILLION)
        assert ((valid - lost) * PARTS_PER_BILLION < valid * threshold) is below
        assert (judge(valid - lost, valid, threshold) is ObjectiveState.BREACHED) is below


def _next_to(mean: Fraction) -> set[int]:
    """The thresholds on both sides of a mean, and at it if there is one."""
    at = mean.numerator * PARTS_PER_BILLION // mean.denominator
    return {threshold for threshold in (at, at + 1) if 0 < threshold <= PARTS_PER_BILLION}
