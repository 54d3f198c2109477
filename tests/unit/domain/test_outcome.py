"""What one request counts under the methods of the agreement: grades, repeats, samples."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.credits.settlement import settle
from ledger.domain.credits.verdict import ObjectiveState
from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.facts.outcome import repeated_failures
from ledger.domain.rows.observation import RequestColumns, RequestRow, Rows
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.time.interval import Interval
from ledger.domain.windows.window import Cell
from tests.unit.domain.samples import DAY_NS, HOUR_NS, agreement, row

DAY = "2023-06-14/P1D"
GRADES = [
    {"at_most_ms": "500", "score": "1"},
    {"at_most_ms": "1000", "score": "0.75"},
    {"at_most_ms": "2500.5", "score": "0.333"},
]
GRADED = {"method": "graded_score-v1", "indicator": "response_latency", "target": "90", "grades": GRADES}
UPTIME = {"method": "total_ratio", "indicator": "availability", "target": "99.9"}
AZURE = {**UPTIME, "repeat_window": "PT5M"}
CLAUSES = [{"id": "rate-limit", "error_codes": [429], "reason": "over the agreed rate"}]


def terms(*objectives: dict[str, Any], clauses: Any = (), tiers: Any = None, period: str = "P1D") -> Agreement:
    def change(plain: dict[str, Any]) -> None:
        plain["objectives"] = [{"id": f"o{at}", **objective} for at, objective in enumerate(objectives)]
        plain["exclusions"] = list(clauses)
        plain["period"] = period
        plain["compensation"]["base"] = "100.00"
        plain["compensation"]["caps"] = {}
        plain["compensation"]["minimum"] = "0.00"
        plain["compensation"]["rules"][0]["tiers"] = {"o0": tiers or [{"below": "90", "credit_percent": "10"}]}

    return agreement(change)


def totals(of: Agreement, *rows: RequestRow, spans: Any = ()) -> list[tuple[int, int]]:
    """(good, bad) of each objective over the day."""
    evaluator = Evaluator(of, period_named(of, DAY), spans=spans)
    evaluator.add_all(rows)
    windows = evaluator.windows()
    return [
        (sum(w.cells[at].good for w in windows), sum(w.cells[at].bad for w in windows))
        for at in range(len(of.objectives))
    ]


def failures(*starts_s: float, code: int = 503) -> list[RequestRow]:
    return [row(f"f{at}", at_s=start, code=code) for at, start in enumerate(starts_s)]


@pytest.mark.parametrize(
    ("response_ns", "units"),
    [
        (1, 1000),
        (500_000_000, 1000),
        (500_000_001, 750),
        (1_000_000_000, 750),
        (2_500_500_000, 333),
        (2_500_500_001, 0),
    ],
)
def test_a_grade_holds_its_bound_and_nothing_above(response_ns: int, units: int) -> None:
    assert totals(terms(GRADED), row()._replace(response_ns=response_ns)) == [(units, 1000 - units)]


def test_a_failed_request_scores_0_and_one_that_a_clause_takes_out_is_not_scored() -> None:
    rows = [row("a", response_ms=100), row("b", code=503), row("c", code=429)]
    assert totals(terms(GRADED), *rows) == [(1000, 2000)]
    assert totals(terms(GRADED, clauses=CLAUSES), *rows) == [(1000, 1000)]


def test_a_graded_conflict_counts_once_and_scores_0() -> None:
    assert totals(terms(GRADED), row("a", response_ms=100), row("a", response_ms=90)) == [(0, 1000)]


def test_sixteen_objectives_of_eight_grades_fit_an_outcome() -> None:
    grades = [{"at_most_ms": str(100 * at), "score": f"0.{9 - at}"} for at in range(1, 9)]
    of = terms(*[{**GRADED, "grades": grades}] * 15, UPTIME)
    assert totals(of, row("a", response_ms=350), row("b", code=500)) == [*[(500, 1500)] * 15, (1, 1)]


def test_an_error_rate_is_told_by_the_share_that_did_not_fail() -> None:
    of = terms({"method": "total_ratio", "indicator": "error_rate", "target": "99.5"})
    assert totals(of, row("a"), row("b", code=500)) == [(1, 1)]


@pytest.mark.parametrize("method", ["total_ratio", "interval_mean-v1", "attainment-v1"])
def test_a_latency_is_told_by_its_threshold_under_any_method(method: str) -> None:
    more = {
        "total_ratio": {},
        "interval_mean-v1": {"interval": "PT1H"},
        "attainment-v1": {"slice": {"window": "PT1H", "target": "50"}},
    }
    of = terms(
        {"method": method, "indicator": "first_token_latency", "target": "95", "threshold_ms": "300", **more[method]}
    )
    assert totals(of, row("a", first_token_ms=300), row("b", first_token_ms=301), row("c", code=500)) == [(1, 1)]


@pytest.mark.parametrize("as_columns", [False, True], ids=["row by row", "as columns"])
def test_each_latency_has_its_own_threshold_and_holds_it(as_columns: bool) -> None:
    latency = {"method": "total_ratio", "target": "95"}
    of = terms(
        {**latency, "indicator": "first_token_latency", "threshold_ms": "300"},
        {**latency, "indicator": "response_latency", "threshold_ms": "900"},
    )
    rows = [
        row("both", first_token_ms=300, response_ms=900),
        row("late at first", first_token_ms=301, response_ms=900),
        row("late at last", first_token_ms=300, response_ms=901),
        row("of which nobody said when", first_token_ms=1, response_ms=1)._replace(
            first_token_ns=None, response_ns=None
        ),
        row("failed", code=500),
    ]
    found = Evaluator(of, period_named(of, DAY), distinct=as_columns)
    found.add_all([columns(rows)] if as_columns else rows)
    assert found.windows()[0].cells == (Cell(2, 2), Cell(2, 2))


def test_a_stream_that_breaks_off_after_its_first_token_is_a_failure_and_stays_out_of_first_tokens() -> None:
    broken = row("a", code=-100)._replace(first_token_ns=1, response_ns=2)
    of = terms(
        UPTIME,
        {"method": "total_ratio", "indicator": "first_token_latency", "target": "95", "threshold_ms": "300"},
        GRADED,
    )
    assert totals(of, broken) == [(0, 1), (0, 0), (0, 1000)]


def test_requests_count_nothing_to_a_sampled_objective() -> None:
    sampled = {"method": "total_ratio", "indicator": "metric_value", "target": "98.2"}
    assert totals(terms(sampled, UPTIME), row("a"), row("b", code=500)) == [(0, 0), (1, 1)]


# --- repeats -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("starts_s", "bad"),
    [((0, 299.999), 1), ((0, 300), 2), ((0, 200, 400), 2), ((0, 0, 0), 1), ((), 0), ((0, 100, 200, 299, 300), 2)],
)
def test_repeats_within_the_window_leave_both_sides(starts_s: tuple[float, ...], bad: int) -> None:
    assert totals(terms(AZURE, UPTIME), row("ok"), *failures(*starts_s)) == [(1, bad), (1, len(starts_s))]


def test_a_success_in_the_window_counts_and_closes_nothing() -> None:
    assert totals(terms(AZURE), *failures(0, 20), row("ok", at_s=10)) == [(1, 1)]


def test_what_a_clause_takes_out_opens_no_window() -> None:
    rows = [row("x", at_s=0, code=429), row("y", at_s=200, code=500), row("z", at_s=400, code=500)]
    assert totals(terms(AZURE, clauses=CLAUSES), *rows) == [(0, 1)]
    assert totals(terms(AZURE), *rows) == [(0, 2)]


def test_a_conflicting_id_always_counts_and_hides_nothing() -> None:
    told_twice = [row("c", at_s=10, code=500), row("c", at_s=20, code=500)]
    assert totals(terms(AZURE), *failures(0), *told_twice) == [(0, 2)]
    assert totals(terms(AZURE), *told_twice, *failures(100)) == [(0, 2)]


def test_a_failure_in_a_window_that_nobody_declared_hides_none_that_counts() -> None:
    hour = Interval(DAY_NS + HOUR_NS // 2, DAY_NS + 3 * HOUR_NS)
    rows = failures(3599, 3601)
    assert totals(terms(AZURE), *rows, spans=[hour]) == [(0, 1)]
    evaluator = Evaluator(terms(AZURE), period_named(terms(AZURE), DAY), spans=[hour])
    evaluator.add_all(rows)
    assert [window.cells[0] for window in evaluator.windows()][1] == Cell(0, 1)


STARTS = st.lists(st.integers(0, 60), max_size=12)


@given(STARTS, STARTS, st.integers(1, 20))
def test_more_failures_never_count_for_fewer(some: list[int], more: list[int], within: int) -> None:
    def counted(starts: list[int]) -> int:
        return len(starts) - len(repeated_failures(starts, within))

    assert counted(some) <= counted(some + more)
    assert counted(some) == counted(some[::-1])


@given(STARTS, st.integers(1, 20))
def test_what_counts_is_the_most_failures_that_are_a_window_apart(starts: list[int], within: int) -> None:
    best = 0
    for size in range(min(len(starts), 6), 0, -1):
        sets = itertools.combinations(sorted(starts), size)
        if any(all(b - a >= within for a, b in itertools.pairwise(chosen)) for chosen in sets):
            best = size
            break
    assert min(6, len(starts) - len(repeated_failures(starts, within))) == best


@given(st.lists(st.tuples(st.integers(0, 4_000), st.sampled_from([None, 500, 429])), min_size=1, max_size=12))
def test_columns_repeat_as_their_rows_do(said: list[tuple[int, int | None]]) -> None:
    rows = [row(f"r{at}", at_s=start, code=code, response_ms=700) for at, (start, code) in enumerate(said)]
    of = terms(AZURE, GRADED, clauses=CLAUSES)
    found = Evaluator(of, period_named(of, DAY), distinct=True)
    found.add_all([columns(rows)])
    assert [
        (sum(w.cells[at].good for w in found.windows()), sum(w.cells[at].bad for w in found.windows())) for at in (0, 1)
    ] == totals(of, *rows)


def columns(rows: list[RequestRow]) -> RequestColumns:
    return RequestColumns(
        1,
        [each.request_id for each in rows],
        [each.service for each in rows],
        [each.started_at_ns for each in rows],
        [each.error_code for each in rows],
        [each.first_token_ns for each in rows],
        [each.response_ns for each in rows],
        b"".join(each.body_digest.hex().encode() + b"\n" for each in rows),
    )


# --- worked case open_03 -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def azure_month(sla_fixtures: Path) -> tuple[Any, Callable[[int], RequestColumns]]:
    """The case, and what makes so many requests that succeeded."""
    case = json.loads((sla_fixtures / "sla/cases/case_open_03_azure_transactions.json").read_text())
    ids = [f"r{at}" for at in range(1_000_000)]

    def make(succeeded: int) -> RequestColumns:
        found = ids[:succeeded]
        latency: list[int | None] = [SECOND_NS // 2] * succeeded
        starts = [DAY_NS] * succeeded
        return RequestColumns(1, found, ["example-chat"] * succeeded, starts, [None] * succeeded, latency, latency, b"")

    return case, make


@pytest.mark.long
@pytest.mark.parametrize("name", ["a", "b", "c", "d", "e"])
def test_worked_case_03(azure_month: tuple[Any, Callable[[int], RequestColumns]], name: str) -> None:
    case, make = azure_month
    given_ = next(each for each in case["input"]["rows"] if each["id"] == name)
    expected = case["expected"]["rows"][name]
    tiers = [{"below": tier["lt"], "credit_percent": tier["credit_percent"]} for tier in case["input"]["tiers"]]
    failed, repeated = given_["raw_failed"], given_["repeated_failed"]
    # Half a month has no room for 10,001 failures that are five minutes apart: of them none can be called a repeat.
    fits = (failed - repeated) * 300 < 16 * 86_400
    of = terms(AZURE if fits else UPTIME, tiers=tiers, period="P1M")
    month = period_named(of, "2023-06-01/P1M")
    batch: list[Rows] = []
    if given_["raw_total"]:
        starts_s = [300 * at if fits else at for at in range(failed - repeated)]
        apart = [row(f"f{at}", at_s=start, code=500) for at, start in enumerate(starts_s)]
        again = [row(f"g{at}", at_s=start + 299.5, code=500) for at, start in enumerate(starts_s[:repeated])]
        batch = [[make(given_["raw_total"] - failed), columns(apart + again)]]
    evaluator = Evaluator(of, month, distinct=True)
    for rows in batch:
        evaluator.add_all(rows)
    settlement = settle(of, month, evaluator.windows())
    (result,) = settlement.objectives
    assert settlement.credit == int(expected["credit_percent"]) * 100
    if "status" in expected:
        assert str(result.state) == expected["status"]
        assert (result.valid, expected["uptime_percent"]) == (0, None)
        return
    percent = Fraction(100 * result.good, result.valid)
    if "uptime_percent" in expected:
        assert percent == Fraction(expected["uptime_percent"])
    else:
        assert (result.valid, result.valid - result.good) == (expected["total"], expected["failed"])
        assert percent == Fraction(expected["uptime_percent_fraction"])
        assert round(percent, 10) == Fraction(expected["uptime_percent_10dp"])
    assert result.state is (ObjectiveState.MET if percent >= Fraction("99.9") else ObjectiveState.BREACHED)
