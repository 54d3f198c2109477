"""Slices attained: tumbling and rolling, runs of them, and together with another objective's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger.domain.credits.verdict import ObjectiveState
from ledger.domain.methods.attainment import bad_slices
from ledger.domain.methods.registry import Measuring
from tests.unit.domain.methods.timeline import (
    EXCLUDED,
    IDLE,
    NO_DATA,
    breaches,
    broken,
    counts,
    measured,
    settled,
    terms,
    timeline,
)

DAY = 1_440

# The time to the first token: P95 <= 800 ms may not be missed in three windows of five minutes in a row, which start
# every minute. A cell counts the requests at or under 800 ms, and those above.
TTFT = {
    "method": "attainment-v1",
    "indicator": "first_token_latency",
    "threshold_ms": "800",
    "target": "100",
    "slice": {"window": "PT5M", "step": "PT1M", "target": "95", "consecutive": 3},
}
SLICES = DAY - 4
FINE, SLOW = (100, 0), (0, 100)


def tumbling(**slice_: object) -> dict[str, object]:
    return {**TTFT, "slice": {"window": "PT5M", "target": "95", **slice_}}


@pytest.mark.parametrize(
    ("minutes", "bad"),
    [
        # 25 slow requests of 500 are 5 %: at the bound.
        ([(1, (75, 25))], 0),
        # One more misses in each of the five windows that hold the minute.
        ([(1, (74, 26))], 5),
        # The minute leaves sight after five windows: with 26 slow ones in one, 25 windows later in another.
        ([(1, (74, 26)), (25, FINE), (1, (74, 26))], 10),
    ],
)
def test_rolling_windows_at_the_bound(minutes: list[tuple[int, tuple[int, int]]], bad: int) -> None:
    busy = 120 + sum(number for number, _ in minutes)
    assert counts(terms(TTFT), [(60, FINE), *minutes, (60, FINE)]) == (busy - bad, bad)


def test_three_in_a_row_break_and_two_do_not() -> None:
    # Idle but for two minutes: 100 requests four minutes apart are together in one window only, 95 of them fast.
    alone = [(1, (0, 1)), (4, IDLE), (1, (100, 0))]
    # The slow request is alone in one window at the start of the day (minutes 0 to 4), then out of sight.
    assert counts(terms(TTFT), alone) == (6, 0)
    assert breaches(terms(TTFT), alone) == []
    # From the third minute on it is alone in three windows: those that start in minute 0, 1 and 2.
    assert counts(terms(TTFT), [(2, IDLE), *alone]) == (5, 3)
    assert breaches(terms(TTFT), [(2, IDLE), *alone]) == [(0, 7)]
    # From the second minute on in two.
    assert counts(terms(TTFT), [(1, IDLE), *alone]) == (7, 0)


def test_which_slices_are_bad() -> None:
    """Those of a long enough run, and no others: the slow minute is alone in those of minutes 0, 1 and 2."""
    rule = terms(TTFT)
    for before, bad in ((1, 0), (2, 3)):
        _, windows = timeline(rule, [(before, IDLE), (1, (0, 1)), (4, IDLE), (1, (100, 0))])
        series, undecided = Measuring(rule.objectives, windows, 60).columns(0)
        assert undecided is None
        found = bad_slices(rule.objectives[0], series.rolling(5, 1), None)
        assert found == [True] * bad + [False] * (SLICES - bad)


def test_the_rule_by_hand_in_a_day() -> None:
    """Four slow minutes from 08:00: windows that start from 07:56 to 08:03 miss, eight in a row."""
    runs = [(480, FINE), (4, SLOW), (DAY - 484, FINE)]
    assert counts(terms(TTFT), runs) == (SLICES - 8, 8)
    (violation,) = broken(terms(TTFT), runs)
    # They cover 07:56 to 08:08.
    assert (violation.first_window, violation.windows) == (476, 12)
    assert (violation.good, violation.valid) == (800, 1200)
    found = settled(terms(TTFT), runs)
    assert [(each.good, each.valid, each.state) for each in found.objectives] == [
        (SLICES - 8, SLICES, ObjectiveState.BREACHED)
    ]
    assert found.credit == 80_000


def test_tumbling_windows_need_three_of_their_own() -> None:
    # With a step of five minutes the same four minutes lie in one window.
    rule = terms(tumbling(step="PT5M", consecutive=3))
    assert counts(rule, [(480, FINE), (4, SLOW), (DAY - 484, FINE)]) == (288, 0)
    assert counts(rule, [(480, FINE), (10, SLOW), (DAY - 490, FINE)]) == (288, 0)
    assert counts(rule, [(480, FINE), (15, SLOW), (DAY - 495, FINE)]) == (285, 3)
    assert breaches(rule, [(480, FINE), (15, SLOW), (DAY - 495, FINE)]) == [(480, 15)]
    assert counts(rule, [(480, FINE), (10, SLOW), (5, FINE), (10, SLOW), (DAY - 505, FINE)]) == (288, 0)
    # Without a step windows tumble.
    assert counts(terms(tumbling(consecutive=3)), [(15, SLOW), (DAY - 15, FINE)]) == (285, 3)


def test_attainment_of_a_day_in_slices() -> None:
    """Five-minute slices within the target, of those with requests: 99 % may not fail in 288."""
    share = terms({**tumbling(), "target": "99"})
    assert counts(share, [(10, SLOW), (DAY - 10, FINE)]) == (286, 2)
    assert settled(share, [(10, SLOW), (DAY - 10, FINE)]).objectives[0].state is ObjectiveState.MET
    assert settled(share, [(15, SLOW), (DAY - 15, FINE)]).objectives[0].state is ObjectiveState.BREACHED
    # Idle slices are not judged: 2 of 200 may fail, and 2 of 199 may not.
    assert settled(share, [(10, SLOW), (990, FINE)]).objectives[0].state is ObjectiveState.MET
    assert settled(share, [(10, SLOW), (985, FINE)]).objectives[0].state is ObjectiveState.BREACHED
    assert settled(share, []).objectives[0].state is ObjectiveState.NO_DATA


def test_openslo_timeslices(sla_fixtures: Path) -> None:
    (path,) = (sla_fixtures / "sla/cases").glob("case_open_08_*.json")
    case = json.loads(path.read_text())
    said, expected = case["input"], case["expected"]["Timeslices"]
    assert (said["target"], said["time_slice_target"]) == ("0.95", "0.95")
    timeslices = {"method": "attainment-v1", "target": "95", "slice": {"window": "PT1M", "target": "95"}}
    runs = [(1, (good, valid - good)) for good, valid in zip(said["good"], said["valid"], strict=True)]
    good, bad = counts(terms(timeslices), runs)
    assert (good, good + bad) == (expected["good_slices"], expected["slices"])
    assert good * 100 == (good + bad) * int(expected["percent"])
    attack, burns = said["attack"], int(case["expected"]["attack"]["Timeslices_slices_to_burn"])
    fortnight = terms(timeslices, period="P14D")
    for attacked, state in ((burns, ObjectiveState.MET), (burns + 1, ObjectiveState.BREACHED)):
        attacked_runs = [(attacked, (1, 99)), (attack["window_slices"] - attacked, (99, 1))]
        assert settled(fortnight, attacked_runs).objectives[0].state is state


@pytest.mark.parametrize(("requests", "judged"), [(99, 0), (100, 1), (101, 1)])
def test_a_slice_below_the_minimum_is_not_judged(requests: int, judged: int) -> None:
    assert counts(terms(tumbling(minimum_valid=100)), [(1, (0, requests))]) == (0, judged)
    assert breaches(terms(tumbling(minimum_valid=100)), [(1, (0, requests))]) == ([(0, 5)] if judged else [])
    assert counts(terms(tumbling(minimum_valid=100)), [(1, (requests, 0))]) == (judged, 0)


@pytest.mark.parametrize("between", [(5, IDLE), (5, NO_DATA), (5, EXCLUDED), (1, (19, 0)), (5, FINE)])
def test_a_slice_that_is_not_judged_or_kept_ends_a_run(between: tuple[object, ...]) -> None:
    rule = terms(tumbling(consecutive=3, minimum_valid=20))
    assert measured(rule, [(10, SLOW), between, *([(4, IDLE)] if between[0] == 1 else []), (10, SLOW)]).bad == 0


def test_slices_that_only_touch_are_one_violation_where_they_roll() -> None:
    """Windows of four minutes, a minute apart: a miss in minute 3 and one in minute 7, each alone in its windows."""
    rule = terms({**TTFT, "slice": {"window": "PT2M", "step": "PT1M", "target": "100"}})
    assert breaches(rule, [(1, FINE), (1, SLOW), (1, FINE), (1, SLOW), (3, FINE), (1, SLOW), (1, FINE)]) == [
        (0, 5),
        (6, 3),
    ]
    assert breaches(rule, [(1, SLOW), (1, FINE), (1, FINE), (1, SLOW), (1, FINE)]) == [(0, 5)]


def test_partial_slices_do_not_count() -> None:
    sevens = terms({**TTFT, "slice": {"window": "PT7M", "target": "95"}})
    assert counts(sevens, [(1_435, FINE), (5, SLOW)]) == (205, 0)
    rolling = terms({**TTFT, "slice": {"window": "PT7M", "step": "PT1M", "target": "95"}})
    assert counts(rolling, [(DAY, FINE)]) == (DAY - 6, 0)


# Controlled refusals: breached only where CRR < 92 % and hallucinations > 5 % in the same hour.
CRR = {
    "id": "crr",
    "method": "attainment-v1",
    "indicator": "controlled_refusal",
    "evaluator": "refusal-set 3",
    "target": "100",
    "slice": {"window": "PT1H", "target": "92", "only_with": "hallucination", "minimum_valid": 1},
}
HALLUCINATION = {
    "id": "hallucination",
    "method": "attainment-v1",
    "indicator": "hallucination",
    "evaluator": "factbench 2.1",
    "target": "100",
    "slice": {"window": "PT1H", "target": "95", "minimum_valid": 1},
}


@pytest.mark.parametrize(
    ("refused", "sourced", "bad"),
    [
        ((92, 8), (94, 6), 0),  # CRR at its bound
        ((91, 9), (95, 5), 0),  # hallucinations at their bound
        ((91, 9), (94, 6), 1),  # both past it
        ((91, 9), IDLE, 0),
        (IDLE, (94, 6), 0),
    ],
)
def test_refusals_break_only_with_hallucinations(refused: tuple[int, int], sourced: tuple[int, int], bad: int) -> None:
    both = terms(CRR, HALLUCINATION, window="PT1H")
    runs = [(1, (100, 0), (100, 0)), (1, refused, sourced)]
    assert measured(both, runs).bad == bad
    assert breaches(both, runs) == ([(1, 1)] if bad else [])
    assert measured(both, runs, 1).bad == (sourced == (94, 6))


def test_the_two_conditions_hold_in_the_same_hour() -> None:
    both = terms(CRR, HALLUCINATION, window="PT1H")
    assert counts(both, [(1, (0, 10), (10, 0)), (1, (10, 0), (0, 10))]) == (2, 0)
    assert counts(both, [(1, (0, 10), (10, 0)), (1, (0, 10), (0, 10))]) == (1, 1)
    # The order of the objectives in the agreement does not matter.
    swapped = terms(HALLUCINATION, CRR, window="PT1H")
    assert counts(swapped, [(1, (10, 0), (0, 10)), (1, (0, 10), (0, 10))], 1) == (1, 1)


def test_what_is_undecided_in_either_condition_leaves_the_verdict_open() -> None:
    both = terms(CRR, HALLUCINATION, window="PT1H")
    for refused, sourced, undecided in (
        ((91, 9, 0), (94, 5, 1), 1),  # the companion may or may not miss
        ((91, 8, 1), (94, 6, 0), 1),  # this one may or may not
        ((91, 8, 1), (94, 5, 1), 1),
        ((92, 8, 0), (94, 5, 1), 0),  # kept whatever the companion did
        ((91, 9, 0), (95, 4, 1), 0),  # the companion keeps even so: 5 of 100
        ((91, 9, 0), (94, 6, 1), 0),  # and misses even so
    ):
        found = measured(both, [(1, refused, sourced)])
        assert found.undecided == undecided, (refused, sourced)
        assert found.valid == 1
        state = settled(both, [(1, refused, sourced)]).objectives[0].state
        assert (state is ObjectiveState.INSUFFICIENT_DATA) is (undecided == 1)
        assert measured(both, [(1, refused, sourced), (1, refused, sourced)]).undecided == 2 * undecided


def test_more_that_is_undecided_never_decides_more() -> None:
    rule = terms(tumbling(consecutive=2))
    spread = [measured(rule, [(2, (90, 0, 10 - sure)), (3, (90, 0)), (5, (90, 10))]).undecided for sure in range(11)]
    assert spread == sorted(spread, reverse=True)
