"""Counters: exact increases over restarts (worked case open_05)."""

from __future__ import annotations

import json
from collections.abc import Hashable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.rows.counters import Counters
from ledger.domain.rows.observation import Verdict
from ledger.domain.time.interval import Interval
from ledger.errors import ImplausibleCounts

ALL = Interval(0, 1_000)


def total(counters: Counters, within: Interval = ALL) -> Fraction:
    """By how much all series rose together."""
    return sum((step.size for step in counters.steps(within)), Fraction(0))


def counted(*values: int, start_ns: int | None = None) -> Counters:
    """One series that is read every 10 ns."""
    found = Counters()
    for at, value in enumerate(values):
        found.add("pod", at * 10, value, start_ns)
    return found


@pytest.fixture
def case(sla_fixtures: Path) -> Any:
    return json.loads((sla_fixtures / "sla/cases/case_open_05_counter_reset.json").read_text())


def test_worked_case_05(case: Any) -> None:
    counters, summed = Counters(), [0] * 4
    for pod, values in case["input"]["series"].items():
        for at, value in enumerate(values):
            counters.add(pod, at, int(value))
            summed[at] += int(value)
    increases: dict[Hashable, Fraction] = {}
    for step in counters.steps(ALL):
        increases[step.series] = increases.get(step.series, Fraction(0)) + step.size
    assert {pod: str(value) for pod, value in increases.items()} == case["expected"]["increase"]
    found = str(total(counters))
    assert found == case["expected"]["total"]
    wrong = case["expected"]["must_not_be"]
    assert str(total(counted(*summed))) == wrong["sum_then_increase"]
    assert str(summed[-1] - summed[0]) == wrong["last_minus_first_total"]
    assert found not in wrong.values()


def test_pyrra_981_a_restart_of_one_pod_is_none_of_the_others() -> None:
    counters = Counters()
    for at, (restarting, steady) in enumerate([(100, 10**6), (150, 10**6), (20, 10**6 + 1)]):
        counters.add("restarting", at, restarting)
        counters.add("steady", at, steady)
    assert total(counters) == 50 + 20 + 1


def test_nothing_is_extrapolated_to_the_edges_of_a_span() -> None:
    assert total(counted(0, 10, 20, 30), Interval(4, 26)) == 20
    assert total(counted(0, 10, 20, 30), Interval(10, 29)) == 10
    assert total(counted(7, 10, 20, 30), Interval(-100, 26)) == 13


def test_spans_that_touch_share_no_step_and_lose_none() -> None:
    counters = counted(5, 9, 2, 40)
    whole = total(counters, Interval(0, 30))
    assert whole == 4 + 2 + 38
    assert sum(total(counters, Interval(at, at + 6)) for at in range(0, 30, 6)) == whole


@pytest.mark.parametrize(("second", "expected"), [(20, 20), (150, 150), (100, 100)])
def test_a_newer_start_counts_from_0_whether_or_not_the_value_fell(second: int, expected: int) -> None:
    counters = Counters()
    counters.add("pod", 0, 100, start_ns=-5)
    counters.add("pod", 10, second, start_ns=7)
    assert total(counters) == expected


def test_a_series_that_started_in_the_span_counts_from_its_start() -> None:
    counters = Counters()
    counters.add("pod", 50, 7, start_ns=20)
    assert total(counters, Interval(10, 60)) == 7
    assert total(counters, Interval(30, 60)) == 0


def test_a_series_that_started_as_the_span_did_counts_unless_it_was_read_by_then() -> None:
    counters = Counters()
    counters.add("pod", 50, 7, start_ns=20)
    assert total(counters, Interval(20, 60)) == 7
    # What it had counted when the span began is no part of it.
    assert total(counters, Interval(50, 60)) == 0
    counters.add("pod", 20, 2, start_ns=20)
    assert total(counters, Interval(20, 60)) == 5


def test_the_last_reading_at_the_start_of_a_span_is_the_one_it_counts_from() -> None:
    assert total(counted(1, 10, 100), Interval(20, 30)) == 0
    assert total(counted(1, 10, 100), Interval(10, 20)) == 90
    assert total(counted(1, 10, 100), Interval(15, 20)) == 90


def test_a_counter_that_falls_within_one_start_is_refused() -> None:
    counters = Counters()
    name = "p" * 201
    counters.add(name, 0, 10, start_ns=0)
    counters.add(name, 10, 4, start_ns=0)
    with pytest.raises(ImplausibleCounts, match="several processes") as refused:
        total(counters)
    assert refused.value.data == {"series": name[:200], "at_ns": "10"}
    assert str(refused.value).startswith(f"{name[:200]}: the counter went from 10 back to 4 until 1970-01-01T00:00:00")


def test_a_counter_that_stays_within_one_start_did_not_start_again() -> None:
    assert total(counted(10, 10, 12, start_ns=0)) == 2
    assert total(counted(10, 10, 12)) == 2


@pytest.mark.parametrize(("first_ns", "second_ns"), [(None, 5), (0, None), (None, None)])
def test_where_one_reading_names_no_start_a_fall_is_a_restart(first_ns: int | None, second_ns: int | None) -> None:
    for value, rose in ((4, 4), (10, 0), (13, 3)):
        counters = Counters()
        counters.add("pod", 0, 10, start_ns=first_ns)
        counters.add("pod", 10, value, start_ns=second_ns)
        assert total(counters, Interval(-5, 20)) == rose + (10 if first_ns == 0 else 0)


def test_an_older_start_is_no_restart_and_a_fall_to_it_is_refused() -> None:
    counters = Counters()
    counters.add("pod", 0, 10, start_ns=-2)
    counters.add("pod", 10, 15, start_ns=-3)
    assert total(counters) == 5
    counters.add("pod", 20, 14, start_ns=-4)
    with pytest.raises(ImplausibleCounts):
        total(counters)


def test_a_series_whose_readings_all_contradict_or_come_later_says_nothing() -> None:
    counters = Counters()
    counters.add("pod", 5, 10)
    counters.add("pod", 5, 11)
    counters.add("later", 2_000, 10)
    assert list(counters.steps(ALL)) == []
    # Somebody looked, whatever he saw.
    assert counters.read_at() == {5, 2_000}
    counters.add("pod", 1_000, 12)
    counters.add("pod", 900, 3)
    assert [(step.series, step.at_ns, step.size) for step in counters.steps(ALL)] == [("pod", 1_000, 9)]


def test_a_value_twice_is_one_reading_and_another_value_a_conflict() -> None:
    counters = counted(1, 5, 9)
    assert counters.add("pod", 10, 5) is Verdict.DUPLICATE
    assert counters.add("pod", 10, 6) is Verdict.CONFLICT
    assert counters.add("pod", 10, 5) is Verdict.CONFLICT
    assert total(counters) == 8


def test_a_negative_counter_is_refused() -> None:
    with pytest.raises(ImplausibleCounts) as refused:
        Counters().add("pod", 0, -1)
    assert refused.value.data == {"series": "pod"}
    assert Counters().add("pod", 0, 0) is Verdict.ACCEPTED


@given(st.permutations([(at, value) for at, value in enumerate([3, 9, 9, 1, 4, 4, 0, 8])]))
def test_the_order_of_arrival_changes_nothing(readings: list[tuple[int, int]]) -> None:
    counters = Counters()
    for at, value in readings:
        counters.add("pod", at, value)
    assert total(counters) == 6 + 1 + 3 + 8
