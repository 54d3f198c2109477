"""Histogram logs from the rows handed in to the statement."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from ledger.app.periods.exclusions import AskedExclusion, ExclusionDesk
from ledger.domain.rows.observation import Reason, RowRejection
from ledger.domain.time.instant import format_instant_ns, parse_instant_ns
from ledger.domain.windows.window import Cell, WindowState
from ledger.errors import DocumentInvalid, ImplausibleCounts, RequestLogUnusable
from ledger.ingest.facts import read_facts
from tests.unit.app.conftest import Desk
from tests.unit.app.feeding import desk_of, faults, figures, hand, judge, settle, sha256, work

NAME = "llm_inference_duration_seconds"
PROMISE: dict[str, Any] = {
    "id": "fast",
    "method": "exact_quantile",
    "indicator": "response_latency",
    "threshold_ms": "1000",
    "target": "95",
    "quantile": "0.95",
    "source": "histograms",
    "histogram": NAME,
}
DAY_NS = parse_instant_ns("2023-06-14T00:00:00Z")


def reading(hour: float, pod: str = "a", start: str | None = None, **buckets: int) -> dict[str, Any]:
    """Buckets are written le1, le0_5 and so on; ``all`` is +Inf."""
    found = {"+Inf" if name == "all" else name[2:].replace("_", "."): count for name, count in buckets.items()}
    row = {
        "histogram": NAME,
        "series": {"pod": pod},
        "at": format_instant_ns(DAY_NS + round(hour * 3600) * 10**9),
        "service": "example-chat",
        "buckets": found,
    }
    return row if start is None else {**row, "start": start}


def fresh(**changes: Any) -> Desk:
    return desk_of([{**PROMISE, **changes}], coverage_floor="1")


def cells(of: Desk, hours: int) -> list[Cell]:
    return [window.cells[0] for window in judge(of)[:hours]]


def test_pyrra_1502_a_bound_is_a_number_however_it_is_written() -> None:
    """From the rows to the statement: a process that says 1 and later 1.0 has one bucket."""
    of = fresh()
    hand(of, reading(0, le1=0, all=0), reading(1, le1_0=95, all=100))
    assert figures(settle(of)) == {"fast": (95, 100, "met")}


def test_the_same_reading_with_bounds_written_otherwise_is_a_duplicate() -> None:
    of = fresh()
    found = hand(of, reading(0, le1=0, all=0), reading(1, le1=9, all=9), reading(1, le1_00=9, all=9))
    assert (found.batch.counts.accepted, found.batch.counts.duplicates) == (2, 1)


def test_prometheus_13020_a_threshold_between_bounds_is_undecided_and_never_interpolated() -> None:
    """From the rows to the statement: 92 to 98 of 100 are within 2 s, and P95 <= 2 s stays without a verdict."""
    of = fresh(threshold_ms="2000")
    hand(of, reading(0, le1=0, le5=0, all=0), reading(1, le1=92, le5=98, all=100))
    issued = settle(of)
    assert figures(issued) == {"fast": (92, 100, "insufficient_data")}
    assert issued.settlement.objectives[0].undecided == 6
    assert issued.settlement.credit == 0
    assert any("undecided" in reason for reason in issued.settlement.not_attestable)


def test_increases_of_series_first_and_a_restart_of_one_is_none_of_the_others() -> None:
    of = fresh()
    hand(of, reading(0, le1=90, all=100), reading(1, le1=180, all=200), reading(2, le1=5, all=9))
    hand(of, reading(0, "b", le1=7, all=7), reading(2, "b", le1=8, all=8))
    assert cells(of, 2) == [Cell(90, 10), Cell(6, 4)]


def test_a_newer_start_counts_all_and_a_start_in_the_period_counts_its_first_reading() -> None:
    of = fresh()
    hand(
        of,
        reading(1, start="2023-06-14T00:30:00Z", le1=5, all=5),
        reading(2, start="2023-06-14T01:30:00Z", le1=6, all=8),
    )
    assert cells(of, 2) == [Cell(5, 0), Cell(6, 2)]


def test_a_process_that_began_as_the_period_did_counts_from_its_first_reading_on() -> None:
    of, begun = fresh(), "2023-06-14T00:00:00Z"
    hand(of, reading(0, start=begun, le1=5, all=6), reading(1, start=begun, le1=95, all=106))
    assert figures(settle(of)) == {"fast": (90, 100, "breached")}


def test_a_sketch_between_two_readings_is_no_end_of_their_step() -> None:
    of = fresh()
    hand(of, reading(0.5, le1=100, all=100), sketch(23.75, v1=0))
    hand(of, reading(24.5, le1=150, all=150), period="2023-06-15/P1D")
    settle(of)
    assert figures(settle(of, "2023-06-15/P1D")) == {"fast": (50, 50, "met")}
    hand(of, reading(23.5, le1=130, all=130), period=None)
    assert figures(work(of)) == {"fast": (30, 30, "met")}
    assert figures(work(of, "2023-06-15/P1D")) == {"fast": (20, 20, "met")}


def test_bounds_that_only_one_reading_has_decide_nothing() -> None:
    of = fresh()
    hand(of, reading(0, le0_5=0, le1=0, le5=0, all=0), reading(1, le0_5=3, le5=8, all=10))
    assert cells(of, 1) == [Cell(3, 2, 5)]


def test_a_window_that_nobody_read_has_no_data() -> None:
    of = fresh()
    hand(of, reading(0, le1=0, all=0), reading(2, le1=4, all=4))
    assert judge(of)[0].state is WindowState.NO_DATA
    assert judge(of)[1].cells == (Cell(4, 0),)


def test_a_conflict_is_no_reading() -> None:
    of = fresh()
    hand(of, reading(0, le1=0, all=0), reading(1, le1=4, all=4), reading(2, le1=6, all=7))
    assert hand(of, reading(1, le1=5, all=5)).batch.counts.conflicts == 1
    assert judge(of)[0].state is WindowState.OBSERVED
    assert judge(of)[1].cells == (Cell(6, 1),)


def test_counts_that_fall_without_a_newer_start_block_the_period() -> None:
    of, start = fresh(), "2023-06-13T00:00:00Z"
    hand(of, reading(0, start=start, le1=9, all=9), reading(1, start=start, le1=8, all=10))
    with pytest.raises(ImplausibleCounts, match="never fall without a newer start"):
        judge(of)


def test_an_implausible_reading_blocks_its_period_until_a_usable_one_stands_there() -> None:
    of = fresh()
    found = hand(of, reading(0, le1=0, all=0), reading(1, le1=9, le5=3, all=9), reading(2, le1=9))
    assert found.batch.counts.rejected == {"implausible": 2}
    with pytest.raises(ImplausibleCounts):
        judge(of)
    assert [each.row["value"] for each in faults(of)] == ["le +Inf: 9, le 1: 9, le 5: 3", "le 1: 9"]
    hand(of, reading(1, le1=9, le5=9, all=9), reading(2, le1=9, all=9))
    assert [each.resolved for each in faults(of)] == [True, True]
    assert cells(of, 2) == [Cell(9, 0), Cell(0, 0)]


@pytest.mark.parametrize("most", [2**63, 10**300])
def test_counts_that_no_process_reaches_are_implausible(most: int) -> None:
    of = fresh()
    assert hand(of, reading(1, le1=1, all=1), reading(2, le1=1, all=most)).batch.counts.rejected == {"implausible": 1}


def test_more_than_a_window_holds_names_the_objective_and_the_window() -> None:
    of = fresh()
    hand(of, reading(0, le1=0, all=0), reading(2, le1=2**28, all=2**28))
    with pytest.raises(ImplausibleCounts, match="objective fast, the window from 2023-06-14T01:00:00Z: good 268435456"):
        judge(of)


def test_a_late_reading_restates_the_period() -> None:
    of = fresh()
    hand(of, reading(0, le1=0, all=0))
    hand(of, reading(20, le1=90, all=100), period=None)
    assert figures(settle(of)) == {"fast": (90, 100, "breached")}
    hand(of, reading(22, le1=1090, all=1100), period=None)
    late = work(of)
    assert (late.version, figures(late)) == (2, {"fast": (1090, 1100, "met")})


def test_a_histogram_that_no_objective_names_is_refused() -> None:
    with pytest.raises(RequestLogUnusable) as refused:
        hand(fresh(histogram="other"), reading(0, le1=0, all=0))
    assert refused.value.data["reasons"] == {"not_promised": 1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"histogram": ...}, "source: histograms needs it"),
        ({"indicator": "availability", "method": "total_ratio"}, "says nothing of availability"),
    ],
)
def test_terms_that_histograms_cannot_keep_are_refused(changes: dict[str, Any], message: str) -> None:
    item = {key: value for key, value in {**PROMISE, **changes}.items() if value is not ...}
    if item["method"] == "total_ratio":
        del item["threshold_ms"], item["quantile"]
    with pytest.raises(DocumentInvalid, match=message):
        desk_of([item])


@pytest.mark.parametrize(
    ("buckets", "field"),
    [
        ({}, "buckets"),
        ([1], "buckets"),
        ({"1": "7"}, "buckets.1"),
        ({"1": 1.5}, "buckets.1"),
        ({"1": None}, "buckets.1"),
    ],
)
def test_rows_that_cannot_be_read(buckets: object, field: str) -> None:
    (found,) = read_facts(json.dumps({**reading(0, all=1), "buckets": buckets}).encode() + b"\n")
    assert isinstance(found, RowRejection)
    assert (found.reason, found.field) == (Reason.FIELD_INVALID, field)


def sketch(hour: float, alpha: str = "0.01", **values: int) -> dict[str, Any]:
    """Values are written v0_99 and so on."""
    row = reading(hour, all=1)
    del row["buckets"]
    found = {name[1:].replace("_", "."): count for name, count in values.items()}
    return {**row, "sketch": {"alpha": alpha, "values": found}}


def test_a_sketch_counts_what_came_since_the_one_before_and_leaves_open_what_its_accuracy_does() -> None:
    of = fresh()
    hand(of, sketch(1, v0_5=80, v0_98=5, v1_005=4, v1_2=3), sketch(1.4, v0_1=7), reading(1.5, le1=0, all=0))
    hand(of, reading(2, le1=1, all=2))
    assert cells(of, 2) == [Cell(85, 3, 4), Cell(8, 1)]


def test_sketches_in_conflict_count_once_as_bad_and_the_same_twice_is_one() -> None:
    of = fresh()
    found = hand(of, sketch(1, v0_5=80), sketch(1, v0_50=80), sketch(1, v0_5=79, v3=4))
    assert (found.batch.counts.accepted, found.batch.counts.duplicates, found.batch.counts.conflicts) == (1, 1, 1)
    assert cells(of, 1) == [Cell(0, 83)]


@pytest.mark.parametrize("wrong", [sketch(1, "1", v1=1), sketch(1, "0", v1=1), sketch(1, v1=-1)])
def test_a_sketch_that_cannot_be_blocks_its_period(wrong: dict[str, Any]) -> None:
    of = fresh()
    assert hand(of, wrong, sketch(2, v1=1)).batch.counts.rejected == {"implausible": 1}
    with pytest.raises(ImplausibleCounts):
        judge(of)


@pytest.mark.parametrize("said", [None, {"alpha": "1"}, {"alpha": "1", "values": [1]}, {"alpha": "x", "values": {}}])
def test_a_sketch_that_cannot_be_read(said: object) -> None:
    (found,) = read_facts(json.dumps({**sketch(1), "sketch": said}).encode() + b"\n")
    assert isinstance(found, RowRejection)
    (both,) = read_facts(json.dumps({**sketch(1), "buckets": {}}).encode() + b"\n")
    assert isinstance(both, RowRejection)


readings = st.builds(
    lambda half, pod, good, bad: reading(half / 2, pod, le1=good, all=good + bad),
    st.integers(0, 47),
    st.sampled_from("ab"),
    st.integers(0, 9),
    st.integers(0, 9),
)


@examples(max_examples=10, deadline=None)
@given(st.lists(readings, min_size=2, max_size=8).flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_any_order_and_any_split_give_the_same_statement(orders: tuple[list[Any], list[Any]]) -> None:
    whole, apart = fresh(), fresh()
    hand(whole, reading(23.9, "c", le1=1, all=1), *orders[0])
    for each in orders[1]:
        hand(apart, each)
    hand(apart, reading(23.9, "c", le1=1, all=1))
    results = []
    for of in (whole, apart):
        try:
            judge(of)
            results.append(sha256(settle(of)))
        except ImplausibleCounts as refused:
            results.append(refused.code)
    assert results[0] == results[1]


def test_no_slow_answer_is_sent_into_excluded_time_by_another_value_for_the_reading_before_it() -> None:
    maintenance = {"classes": [{"id": "rotation", "reason": "new hardware"}]}
    of = desk_of([PROMISE], coverage_floor="1", maintenance=maintenance)
    steady = [reading(hour, "b", le1=0, all=0) for hour in range(4)]
    hand(of, *steady, reading(0, le1=0, all=0), reading(1, le1=10, all=10), reading(2, le1=10, all=20))
    hand(of, reading(3, le1=10, all=20))
    asked = AskedExclusion(
        id="t-1",
        clause="rotation",
        from_ns=DAY_NS + 2 * 3600 * 10**9,
        to_ns=DAY_NS + 3 * 3600 * 10**9,
        reason="new racks",
        ticket="CHG-1",
        announced_at_ns=None,
        approved_by="board",
    )
    ExclusionDesk(of.database, of.attestor, of.clock).record(of.register().sla_id, asked)
    honest = [Cell(10, 0), Cell(0, 10), Cell(0, 0)]
    assert cells(of, 3) == honest
    hand(of, reading(2, le1=11, all=20))
    assert cells(of, 3) == honest
