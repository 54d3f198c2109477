"""Minutes and intervals down: at the bound, one below it and one above it."""

from __future__ import annotations

import pytest

from ledger.domain.credits.settlement import attestability
from ledger.domain.credits.verdict import ObjectiveState
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
)

DAY = 1_440

# Google, Vertex AI Search: an error rate of more than 10 % for ten minutes in a row, with at least 2,000 valid
# requests in each.
VERTEX = {
    "method": "downtime_minutes-v1",
    "target": "99.5",
    "error_rate": "10",
    "boundary": "above",
    "minimum_valid": 2000,
    "minimum_run": 10,
}
# GitLab: a minute in which 5 % or more of the requests fail.
GITLAB = {"method": "downtime_minutes-v1", "target": "99.95", "error_rate": "5", "boundary": "at_or_above"}
# Alibaba Cloud and DigitalOcean: intervals of five minutes.
ALIBABA = {
    "method": "interval_threshold-v1",
    "target": "99.9",
    "interval": "PT5M",
    "error_rate": "50",
    "boundary": "at_or_above",
}


def test_two_minutes_are_one_interval() -> None:
    """Of 720 intervals of two minutes one is down: half of its requests failed, all of them in its second minute."""
    assert counts(terms({**ALIBABA, "interval": "PT2M"}), [(2, (10, 0)), (1, (10, 0)), (1, (0, 10))]) == (719, 1)


@pytest.mark.parametrize(
    ("minutes", "cell", "down"),
    [
        (10, (1800, 200), 0),  # 10 % is not above 10 %
        (10, (1799, 201), 10),
        (9, (1799, 201), 0),  # nine in a row are too few
        (11, (1799, 201), 11),  # and all of a longer run count
        (10, (0, 1999), 0),  # one request short of the minimum
        (10, (0, 2000), 10),
        (10, (1800, 201), 10),  # 201 of 2001
    ],
)
def test_vertex_search_at_its_bounds(minutes: int, cell: tuple[int, int], down: int) -> None:
    assert counts(terms(VERTEX), [(100, (2000, 0)), (minutes, cell), (100, (2000, 0))]) == (DAY - down, down)


@pytest.mark.parametrize("between", [(1, (2000, 0)), (1, IDLE), (1, (0, 1999)), (1, NO_DATA), (1, EXCLUDED)])
def test_a_minute_that_is_not_down_cuts_a_run(between: tuple[object, ...]) -> None:
    assert measured(terms(VERTEX), [(9, (0, 2000)), between, (9, (0, 2000))]).bad == 0
    assert measured(terms(VERTEX), [(9, (0, 2000)), between, (10, (0, 2000))]).bad == 10


def test_a_run_may_start_and_end_the_day() -> None:
    assert counts(terms(VERTEX), [(10, (0, 2000)), (DAY - 20, (2000, 0)), (10, (0, 2000))]) == (DAY - 20, 20)
    assert counts(terms(VERTEX), [(DAY, (0, 2000))]) == (0, DAY)


def test_vertex_search_by_hand() -> None:
    """7.2 minutes are 0.5 % of a day: no run of ten minutes fits, so the first one breaches."""
    fine = settled(terms(VERTEX), [(9, (0, 5000)), (1, (5000, 0))])
    assert [(each.good, each.valid, each.state) for each in fine.objectives] == [(DAY, DAY, ObjectiveState.MET)]
    down = settled(terms(VERTEX), [(10, (0, 5000))])
    assert [(each.good, each.valid, each.state) for each in down.objectives] == [(1430, DAY, ObjectiveState.BREACHED)]
    assert down.credit == 80_000


@pytest.mark.parametrize(
    ("cell", "down"),
    [((96, 5), 0), ((95, 5), 1), ((94, 5), 1), ((19, 1), 1), ((20, 1), 0), ((0, 1), 1), (IDLE, 0)],
)
def test_gitlab_counts_a_minute_at_its_bound(cell: tuple[int, int], down: int) -> None:
    assert counts(terms(GITLAB), [(60, (100, 0)), (1, cell)]) == (DAY - down, down)


def test_an_error_rate_of_none_allowed_and_of_all_needed() -> None:
    none = terms({**GITLAB, "error_rate": "0", "boundary": "above"})
    assert counts(none, [(1, (999, 1)), (1, (1000, 0))]) == (DAY - 1, 1)
    every = terms({**GITLAB, "error_rate": "100"})
    assert counts(every, [(1, (1, 999)), (1, (0, 1))]) == (DAY - 1, 1)


def test_the_bound_has_seven_decimals() -> None:
    rare = terms({**GITLAB, "error_rate": "0.0000001", "boundary": "above"})
    # One of 10^9 is the bound itself; a cell holds up to 2^28 - 1, in which one failure is more.
    assert counts(rare, [(1, (2**28 - 2, 1))]) == (DAY - 1, 1)
    exact = terms({**GITLAB, "error_rate": "0.0001", "boundary": "above"})
    assert counts(exact, [(1, (999_999, 1))]) == (DAY, 0)
    assert counts(exact, [(1, (999_998, 1))]) == (DAY - 1, 1)


def test_five_minutes_are_judged_by_their_sums() -> None:
    # 5 of 10 in the first interval; 4 of 9 in the second; the fifth minute belongs to the first.
    assert counts(terms(ALIBABA), [(4, (1, 0)), (1, (1, 5)), (1, (5, 4))]) == (287, 1)
    assert counts(terms(ALIBABA), [(5, (1, 0)), (1, (1, 5)), (1, (5, 4))]) == (287, 1)
    assert breaches(terms(ALIBABA), [(4, (1, 0)), (1, (1, 5)), (1, (5, 4))]) == [(0, 5)]
    assert breaches(terms(ALIBABA), [(5, (1, 0)), (1, (0, 5))]) == [(5, 5)]
    # A failure each side of the line between two intervals is in neither enough.
    assert counts(terms(ALIBABA), [(4, (1, 0)), (1, (0, 3)), (1, (0, 3)), (4, (1, 0))]) == (288, 0)


def test_intervals_of_windows_of_their_own_length() -> None:
    terms_ = terms(ALIBABA, window="PT5M")
    assert counts(terms_, [(1, (1, 1)), (1, (2, 1)), (2, (0, 1))]) == (285, 3)
    assert breaches(terms_, [(1, (1, 1)), (1, (2, 1)), (2, (0, 1))]) == [(0, 1), (2, 2)]


def test_partial_intervals_at_the_end_do_not_count() -> None:
    """1,440 minutes hold 205 intervals of seven minutes, and five minutes more."""
    sevens = terms({**ALIBABA, "interval": "PT7M"})
    assert counts(sevens, [(DAY - 5, (10, 0)), (5, (0, 10))]) == (205, 0)
    assert counts(sevens, [(DAY - 6, (10, 0)), (6, (0, 70))]) == (204, 1)


def test_minutes_of_half_minute_windows() -> None:
    halves = terms(GITLAB, window="PT30S")
    assert counts(halves, [(1, (100, 0)), (1, (90, 10)), (1, (100, 4))]) == (DAY - 1, 1)
    assert breaches(halves, [(2, (100, 0)), (1, (90, 10)), (1, (100, 0))]) == [(2, 2)]


def test_what_no_data_and_exclusion_do_to_the_denominator() -> None:
    runs = [(1, (0, 10)), (10, NO_DATA), (30, EXCLUDED)]
    assert counts(terms(GITLAB), runs) == (DAY - 41, 1)
    full = terms({**GITLAB, "denominator": "full"})
    assert counts(full, runs) == (DAY - 11, 1)
    scheduled = terms({**GITLAB, "denominator": "scheduled"})
    assert counts(scheduled, runs) == (DAY - 41, 1)


def test_an_interval_is_in_the_state_of_its_windows() -> None:
    # Observed where any window is; excluded only where all are.
    full, scheduled = terms({**ALIBABA, "denominator": "full"}), terms(ALIBABA)
    for runs, with_full, with_scheduled in (
        ([(4, NO_DATA), (1, (1, 0))], 288, 288),
        ([(5, NO_DATA)], 287, 287),
        ([(4, EXCLUDED), (1, NO_DATA)], 287, 287),
        ([(5, EXCLUDED)], 288, 287),
        ([(4, EXCLUDED), (1, IDLE)], 288, 288),
    ):
        assert counts(full, runs) == (with_full, 0)
        assert counts(scheduled, runs) == (with_scheduled, 0)


def test_violations_are_the_runs_that_count() -> None:
    runs = [(3, (2000, 0)), (9, (0, 2000)), (1, (2000, 0)), (12, (1000, 2000)), (1, (2000, 0))]
    (violation,) = broken(terms(VERTEX), runs)
    assert (violation.first_window, violation.windows) == (13, 12)
    assert (violation.good, violation.valid) == (12_000, 36_000)
    assert breaches(terms(GITLAB), runs) == [(3, 9), (13, 12)]


def test_what_is_undecided_may_be_down() -> None:
    # 4 or 6 of 100 failed: the minute may be down or not.
    runs = [(1, (94, 4, 2)), (1, (90, 10))]
    found = measured(terms(GITLAB), runs)
    assert (found.good, found.bad, found.undecided) == (DAY - 2, 1, 1)
    assert breaches(terms(GITLAB), runs) == [(1, 1)]
    strict = {**GITLAB, "target": "99.9"}  # 1.44 minutes may be down
    assert settled(terms(strict), runs).objectives[0].state is ObjectiveState.INSUFFICIENT_DATA
    assert settled(terms({**GITLAB, "target": "99.8"}), runs).objectives[0].state is ObjectiveState.MET
    assert settled(terms(GITLAB), runs).objectives[0].state is ObjectiveState.BREACHED
    # A run that the undecided minute would make long enough.
    found = measured(terms(VERTEX), [(9, (0, 2000)), (1, (1700, 200, 100))])
    assert (found.good, found.bad, found.undecided) == (DAY - 10, 0, 10)


def test_deployments_over_the_full_period_are_no_sum_of_what_is_sealed() -> None:
    azure = {"method": "deployment_minutes-v1", "indicator": "deployment_up", "target": "99.5"}
    for denominator, named in (("scheduled", False), ("full", True)):
        reasons = attestability(terms({**azure, "denominator": denominator}))
        assert any("takes what is excluded as up (denominator: full)" in each for each in reasons) is named


def test_deployments_are_counted_together() -> None:
    """Three deployments of which one is down for ten minutes: 30 of 4,320 deployment minutes at 99.5 % ..."""
    azure = {"method": "deployment_minutes-v1", "indicator": "deployment_up", "target": "99.5"}
    assert counts(terms(azure), [(10, (2, 1)), (DAY - 10, (3, 0))]) == (3 * DAY - 10, 10)
    assert breaches(terms(azure), [(10, (2, 1)), (1, (3, 0)), (2, (0, 3))]) == [(0, 10), (11, 2)]
    excluded = [(1, (3, 1)), (4, EXCLUDED), (2, (2, 0)), (DAY - 7, NO_DATA)]
    assert counts(terms(azure), excluded) == (7, 1)
    # With the full period all deployments are up in it, as many as there were at most.
    assert counts(terms({**azure, "denominator": "full"}), excluded) == (7 + 4 * 4, 1)
    assert counts(terms({**azure, "denominator": "full"}), [(4, EXCLUDED), (DAY - 4, NO_DATA)]) == (0, 0)
