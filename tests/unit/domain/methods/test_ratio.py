"""Sums of the period: ratios, quantiles by nearest rank, graded scores, and the windows of their violations."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.credits.method_words import METHOD_WORDS
from ledger.domain.credits.settlement import result_unit
from ledger.domain.credits.verdict import ObjectiveState
from ledger.domain.methods.series import runs
from tests.unit.domain.methods.timeline import EXCLUDED, IDLE, NO_DATA, breaches, counts, measured, settled, terms

RATIO = {"method": "total_ratio", "target": "99.9"}


def test_all_that_is_good_of_all_that_is_valid() -> None:
    assert counts(terms(RATIO), [(2, (10, 1)), (1, NO_DATA), (1, EXCLUDED), (1, (5, 0))]) == (25, 2)
    found = measured(terms(RATIO), [(2, (10, 1, 3))])
    assert (found.good, found.bad, found.undecided, found.volume) == (20, 2, 6, 28)


# One minute of two requests, of which one failed; one of 9,998, of which none did.
UNEVEN = [(1, (1, 1)), (1, (9_998, 0))]


def test_sloth_241_a_ratio_is_that_of_the_sums_however_unevenly_requests_came() -> None:
    assert counts(terms(RATIO), UNEVEN) == (9_999, 1)
    assert settled(terms(RATIO), UNEVEN).objectives[0].state is ObjectiveState.MET
    # So it is in longer windows: 1 of 10,000 misses no target of 99.9 %, though half of a minute's requests failed.
    assert breaches(terms({**RATIO, "window": "PT1H"}), UNEVEN) == []
    assert breaches(terms(RATIO), UNEVEN) == [(0, 1)]


def test_sloth_618_a_mean_of_ratios_is_another_method_by_name_unit_and_words() -> None:
    mean = {"method": "interval_mean-v1", "interval": "PT1M", "target": "99.9"}
    # The mean of the day's 1,440 minutes: half a minute is lost, whatever the others carried.
    assert counts(terms(mean), UNEVEN) == (1_440 * 10**9 - 5 * 10**8, 5 * 10**8)
    ratio, mean_of = (settled(terms(each), UNEVEN).objectives[0] for each in (RATIO, mean))
    assert (result_unit(ratio), result_unit(mean_of)) == ("requests", "billionths of an interval")
    assert "mean" in METHOD_WORDS["interval_mean-v1"].words
    assert "mean" not in METHOD_WORDS["total_ratio"].words


@pytest.mark.parametrize(
    ("good", "bad", "state"),
    [(999, 1, "met"), (998, 1, "breached"), (1000, 1, "met"), (0, 0, "no_data"), (0, 1, "breached"), (1, 0, "met")],
)
def test_the_target_is_met_at_it(good: int, bad: int, state: str) -> None:
    assert settled(terms(RATIO), [(1, (good, bad))]).objectives[0].state == state


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(1, 99))
def test_a_quantile_is_the_nearest_rank(latencies: list[int], percent: int) -> None:
    """P_q <= T exactly where as many requests as its rank are at or under T."""
    rank = -(-percent * len(latencies) // 100)
    bound = 15
    within = sorted(latencies)[rank - 1] <= bound
    fast = sum(latency <= bound for latency in latencies)
    quantile = {
        "method": "exact_quantile",
        "indicator": "response_latency",
        "threshold_ms": "15",
        "target": str(percent),
        "quantile": f"0.{percent:02}",
    }
    state = settled(terms(quantile), [(1, (fast, len(latencies) - fast))]).objectives[0].state
    assert state is (ObjectiveState.MET if within else ObjectiveState.BREACHED)


def test_windows_that_miss_the_target_by_their_own_counts() -> None:
    cells = [(1, (999, 1)), (2, (998, 1)), (1, IDLE), (1, (0, 1)), (1, NO_DATA), (1, (0, 5))]
    assert breaches(terms(RATIO), cells) == [(1, 2), (4, 1), (6, 1)]


def test_violations_may_be_looked_for_in_longer_windows() -> None:
    fives = terms({**RATIO, "window": "PT5M"})
    assert breaches(fives, [(1, (0, 1)), (1, (999, 0))]) == []
    assert breaches(fives, [(1, (0, 1)), (1, (998, 0)), (8, IDLE), (1, (0, 1))]) == [(0, 5), (10, 5)]
    # A window without enough volume breaks nothing.
    busy = terms({**RATIO, "window": "PT5M", "minimum_valid": 100})
    assert breaches(busy, [(5, (0, 20)), (4, (0, 20)), (1, (0, 19)), (5, (0, 21))]) == [(0, 5), (10, 5)]


@pytest.mark.parametrize(("valid", "state"), [(999, "insufficient_data"), (1000, "breached"), (1001, "breached")])
def test_below_the_minimum_volume_there_is_no_verdict(valid: int, state: str) -> None:
    busy = terms({**RATIO, "minimum_valid": 1000})
    found = settled(busy, [(1, (0, valid))])
    assert found.objectives[0].state == state
    assert found.credit == (0 if state == "insufficient_data" else 80_000)
    assert settled(busy, [(1, (valid, 0))]).objectives[0].state == ("met" if valid >= 1000 else state)
    assert settled(busy, []).objectives[0].state == "no_data"


GRADED = {
    "method": "graded_score-v1",
    "indicator": "response_latency",
    "target": "95",
    "grades": [{"at_most_ms": "1000", "score": "1"}, {"at_most_ms": "2000", "score": "0.5"}],
}


def test_a_graded_score_counts_thousandths() -> None:
    # Nine requests of full score and one of half: 9,500 of 10,000.
    found = settled(terms(GRADED), [(1, (9500, 500))])
    assert (found.objectives[0].good, found.objectives[0].valid, found.objectives[0].state) == (9500, 10_000, "met")
    assert settled(terms(GRADED), [(1, (9499, 501))]).objectives[0].state == "breached"


@pytest.mark.parametrize(("requests", "state"), [(9, "insufficient_data"), (10, "breached")])
def test_the_minimum_volume_of_a_graded_score_is_in_requests(requests: int, state: str) -> None:
    busy = terms({**GRADED, "minimum_valid": 10})
    assert settled(busy, [(1, (0, requests * 1000))]).objectives[0].state == state
    assert breaches(busy, [(1, (0, requests * 1000))]) == ([(0, 1)] if requests == 10 else [])


@pytest.mark.parametrize(
    "objective",
    [
        {"method": "interval_mean-v1", "interval": "PT5M", "minimum_valid": 100},
        {"method": "attainment-v1", "slice": {"window": "PT1M", "target": "99"}, "minimum_valid": 100},
    ],
    ids=["a mean of intervals", "slices"],
)
def test_the_minimum_volume_is_in_requests_whatever_the_method_counts(objective: dict[str, object]) -> None:
    assert settled(terms(objective), [(1, (0, 99))]).objectives[0].state == "insufficient_data"
    assert settled(terms(objective), [(10, (0, 10))]).objectives[0].state == "breached"


@given(st.lists(st.booleans(), max_size=30))
def test_runs_are_maximal(flags: list[bool]) -> None:
    found = list(runs(flags))
    assert [at for run in found for at in run] == [at for at, flag in enumerate(flags) if flag]
    assert all(a.stop < b.start for a, b in pairwise(found))
