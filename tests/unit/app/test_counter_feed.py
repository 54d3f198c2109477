"""Counter logs from the rows handed in to the statement."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from ledger.app.periods.exclusions import AskedExclusion, ExclusionDesk
from ledger.domain.record.naming import observations_stream, windows_stream
from ledger.domain.time.instant import format_instant_ns
from ledger.domain.windows.window import Cell, WindowState
from ledger.errors import DocumentInvalid, ImplausibleCounts, RequestLogUnusable
from tests.unit.app.conftest import Desk
from tests.unit.app.feeding import DAY, desk_of, faults, figures, hand, judge, settle, sha256, work

TOTAL, ERRORS = "llm_request_total", "llm_request_errors_total"
PROMISE: dict[str, Any] = {
    "id": "errors",
    "method": "total_ratio",
    "indicator": "error_rate",
    "target": "99",
    "source": "counters",
    "counters": {"total": TOTAL, "bad": ERRORS},
}
NEXT_DAY = "2023-06-15/P1D"


def reading(counter: str, hour: float, value: object, pod: str = "a", **more: Any) -> dict[str, Any]:
    """A reading so many hours into 2023-06-14."""
    at_ns = desk().period.interval.start_ns + round(hour * 3600) * 10**9
    return {
        "counter": counter,
        "series": {"pod": pod},
        "at": format_instant_ns(at_ns),
        "service": "example-chat",
        "value": value,
        **more,
    }


def hourly(*values: int, counter: str = TOTAL, pod: str = "a") -> list[dict[str, Any]]:
    return [reading(counter, hour, value, pod) for hour, value in enumerate(values)]


_DESKS: list[Desk] = []


def desk() -> Desk:
    if not _DESKS:
        _DESKS.append(desk_of([PROMISE]))
    return _DESKS[0]


def fresh(**changes: Any) -> Desk:
    return desk_of([{**PROMISE, **changes}], coverage_floor="1")


def cells(of: Desk, hours: int) -> list[Cell]:
    return [window.cells[0] for window in judge(of)[:hours]]


def test_pyrra_981_a_restart_of_one_pod_is_none_of_the_others() -> None:
    """From the rows to the statement: increases of every series first, then their sum."""
    of = fresh()
    hand(of, *hourly(100, 150, 20), *hourly(10**6, 10**6, 10**6 + 1, pod="steady"))
    assert cells(of, 2) == [Cell(50, 0), Cell(21, 0)]
    assert figures(settle(of)) == {"errors": (71, 71, "met")}


def test_slo_generator_42_without_an_error_series_nothing_failed() -> None:
    """From the rows to the statement."""
    of = fresh()
    hand(of, *hourly(0, 10))
    assert figures(settle(of)) == {"errors": (10, 10, "met")}


def test_slo_generator_319_more_good_than_all_is_refused_and_not_100_percent() -> None:
    """From the rows handed in: the period is not settled by a share above 1."""
    of = fresh(counters={"total": TOTAL, "good": "good_total"})
    hand(of, *hourly(0, 10), *hourly(0, 11, counter="good_total"))
    with pytest.raises(ImplausibleCounts, match="errors, the window from 2023-06-14T00:00:00Z: 11 good of 10"):
        judge(of)


def test_more_bad_than_all_is_refused_too() -> None:
    of = fresh()
    hand(of, *hourly(0, 10), *hourly(0, 11, counter=ERRORS))
    with pytest.raises(ImplausibleCounts, match="11 bad of 10"):
        judge(of)


def test_a_reading_on_the_border_closes_the_window_before_it() -> None:
    of = fresh()
    hand(of, *hourly(0, 10), reading(TOTAL, 1 + 1 / 3600, 17), reading(TOTAL, 2, 20))
    assert cells(of, 2) == [Cell(10, 0), Cell(10, 0)]


def test_the_last_reading_before_a_period_is_where_its_first_step_begins() -> None:
    of = fresh()
    hand(of, reading(TOTAL, 0.5, 100), reading(TOTAL, 23.5, 130))
    hand(of, reading(TOTAL, 24.5, 150), period=NEXT_DAY)
    assert figures(settle(of)) == {"errors": (30, 30, "met")}
    assert figures(settle(of, NEXT_DAY)) == {"errors": (20, 20, "met")}


def test_a_late_reading_restates_its_own_period_and_that_of_the_next_reading() -> None:
    of = fresh()
    hand(of, reading(TOTAL, 0.5, 100))
    hand(of, reading(TOTAL, 24.5, 150), period=NEXT_DAY)
    assert figures(settle(of)) == {"errors": (0, 0, "no_data")}
    assert figures(settle(of, NEXT_DAY)) == {"errors": (50, 50, "met")}
    hand(of, reading(TOTAL, 23.5, 130), period=None)
    first, second = work(of), work(of, NEXT_DAY)
    assert (first.version, figures(first)) == (2, {"errors": (30, 30, "met")})
    assert (second.version, figures(second)) == (2, {"errors": (20, 20, "met")})


def test_a_row_that_counts_nowhere_is_no_end_of_a_step() -> None:
    """One exporter writes the readings of two services into a log; those of the other one stand between."""
    of = fresh()
    hand(of, reading(TOTAL, 0.5, 100), reading(TOTAL, 23.75, 7, service="other"))
    hand(of, reading(TOTAL, 24.5, 150), period=NEXT_DAY)
    settle(of)
    assert figures(settle(of, NEXT_DAY)) == {"errors": (50, 50, "met")}
    hand(of, reading(TOTAL, 23.5, 130), period=None)
    assert figures(work(of)) == {"errors": (30, 30, "met")}
    assert figures(work(of, NEXT_DAY)) == {"errors": (20, 20, "met")}


def test_a_window_that_nobody_read_has_no_data_whatever_is_declared() -> None:
    of = fresh()
    hand(of, *hourly(0, 10), reading(TOTAL, 3.5, 30), reading(ERRORS, 2.5, 1))
    windows = judge(of)
    assert [window.state for window in windows[:4]] == [
        WindowState.OBSERVED,
        WindowState.NO_DATA,
        WindowState.NO_DATA,
        WindowState.OBSERVED,
    ]
    assert windows[3].cells == (Cell(20, 0),)


def test_a_conflict_is_no_reading_and_takes_a_wrong_one_out() -> None:
    of = fresh()
    hand(of, *hourly(0, 10), reading(TOTAL, 2, 7, start="2023-06-13T00:00:00Z"), reading(TOTAL, 3, 30))
    with of.database.read() as tx:
        (event,) = tx.events.stream(observations_stream(of.register().sla_id, of.agreement.source))
    assert (event.payload["format"], event.payload["rows"]["accepted"]) == ("counters", 4)
    found = hand(of, reading(TOTAL, 2, 20))
    assert found.batch.counts.conflicts == 1
    assert judge(of)[1].state is WindowState.OBSERVED
    assert cells(of, 3) == [Cell(10, 0), Cell(0, 0), Cell(20, 0)]


def test_more_than_a_window_holds_names_the_objective_and_the_window() -> None:
    of = fresh()
    hand(of, *hourly(0, 1, 2**28 + 1))
    with pytest.raises(ImplausibleCounts, match="errors, the window from 2023-06-14T01:00:00Z: good 268435456"):
        judge(of)


def test_a_fall_within_one_start_blocks_the_period() -> None:
    of, start = fresh(), "2023-06-13T00:00:00Z"
    hand(of, reading(TOTAL, 1, 50, start=start), reading(TOTAL, 2, 49, start=start))
    with pytest.raises(ImplausibleCounts, match="without a newer start"):
        judge(of)


def test_an_implausible_reading_blocks_its_period_until_a_usable_one_stands_there() -> None:
    of = fresh()
    found = hand(of, *hourly(0, 10), reading(TOTAL, 2, -5), reading(TOTAL, 3, "1.5"))
    assert found.batch.counts.rejected == {"implausible": 2}
    with pytest.raises(ImplausibleCounts, match="whole number from 0"):
        judge(of)
    told = [(each.row["indicator"], each.row["line"], each.row["value"], each.resolved) for each in faults(of)]
    assert told == [("counters", 3, "-5", False), ("counters", 4, "1.5", False)]
    hand(of, reading(TOTAL, 2, 15), reading(TOTAL, 3, 16))
    assert [each.resolved for each in faults(of)] == [True, True]
    assert cells(of, 3) == [Cell(10, 0), Cell(5, 0), Cell(1, 0)]


def test_steps_seen_in_excluded_time_leave_both_sides() -> None:
    maintenance = {"classes": [{"id": "rotation", "reason": "new hardware"}]}
    of = desk_of([PROMISE], coverage_floor="1", maintenance=maintenance)
    hand(of, *hourly(0, 10, 20, 30), reading(TOTAL, 1.5, 13))
    hand(of, reading(ERRORS, 0, 0), reading(ERRORS, 1, 0), reading(ERRORS, 1.5, 3))
    start_ns = of.period.interval.start_ns
    asked = AskedExclusion(
        id="t-1",
        clause="rotation",
        from_ns=start_ns + 3600 * 10**9,
        to_ns=start_ns + 5400 * 10**9,
        reason="new racks",
        ticket="CHG-1",
        announced_at_ns=None,
        approved_by="board",
    )
    ExclusionDesk(of.database, of.attestor, of.clock).record(of.register().sla_id, asked)
    assert cells(of, 3) == [Cell(10, 0), Cell(7, 0), Cell(10, 0)]


def excluding_hour(of: Desk, hour: float) -> None:
    start_ns = of.period.interval.start_ns + round(hour * 3600) * 10**9
    asked = AskedExclusion(
        id="t-2",
        clause="rotation",
        from_ns=start_ns,
        to_ns=start_ns + 3600 * 10**9,
        reason="new racks",
        ticket="CHG-2",
        announced_at_ns=None,
        approved_by="board",
    )
    ExclusionDesk(of.database, of.attestor, of.clock).record(of.register().sla_id, asked)


def test_no_error_is_sent_into_excluded_time_by_another_value_for_the_reading_before_it() -> None:
    """The errors of the second hour were read as it ended, and the third one is excluded afterwards."""
    of = desk_of([PROMISE], coverage_floor="1", maintenance={"classes": [{"id": "rotation", "reason": "new hardware"}]})
    errors = [reading(ERRORS, hour, value) for hour, value in enumerate([0, 0, 5, 5, 5])]
    hand(of, *hourly(0, 10, 20, 30, 40), *errors)
    excluding_hour(of, 2)
    honest = [Cell(10, 0), Cell(5, 5), Cell(0, 0), Cell(10, 0)]
    assert cells(of, 4) == honest
    later = hand(of, reading(ERRORS, 2, 3)).batch
    assert (later.counts.conflicts, cells(of, 4)) == (1, honest)
    # Not even where the requests of that hour are in doubt as well: both steps count before the exclusion.
    hand(of, reading(TOTAL, 2, 19))
    assert cells(of, 4) == [Cell(10, 0), Cell(15, 5), Cell(0, 0), Cell(10, 0)]


def test_errors_count_where_the_requests_of_their_time_do() -> None:
    """Both counters are read every hour, but for the one of all after the third."""
    of = fresh()
    errors = [reading(ERRORS, hour, value) for hour, value in enumerate([0, 0, 2, 5, 5])]
    hand(of, *hourly(0, 10, 20), reading(TOTAL, 4, 40), *errors)
    assert [window.state for window in judge(of)[:4]] == [*[WindowState.OBSERVED] * 2, "no_data", "observed"]
    assert cells(of, 4) == [Cell(10, 0), Cell(8, 2), Cell(0, 0), Cell(17, 3)]


def test_nobody_gets_rid_of_errors_or_of_a_window_by_contradicting_readings() -> None:
    """The errors of the second hour, then the requests of the next: all that is left is when it was seen."""
    of = fresh()
    errors = [reading(ERRORS, hour, value) for hour, value in enumerate([0, 0, 5, 5, 5])]
    hand(of, *hourly(0, 10, 20, 30, 40), *errors)
    assert cells(of, 4) == [Cell(10, 0), Cell(5, 5), Cell(10, 0), Cell(10, 0)]
    hand(of, reading(ERRORS, 2, 3), reading(TOTAL, 3, 29))
    assert cells(of, 4) == [Cell(10, 0), Cell(10, 0), Cell(0, 0), Cell(15, 5)]
    assert {window.state for window in judge(of)[:4]} == {WindowState.OBSERVED}


def test_at_the_end_of_a_period_errors_count_in_its_last_hour_with_requests() -> None:
    of = fresh()
    errors = [reading(ERRORS, hour, value) for hour, value in [(22, 0), (23, 0), (24, 5)]]
    requests = [reading(TOTAL, hour, value) for hour, value in [(22, 0), (23, 10), (24, 20), (24, 19), (25, 30)]]
    hand(of, *requests, *errors)
    assert [window.cells[0] for window in judge(of)[22:]] == [Cell(5, 5), Cell(0, 0)]


def test_a_window_names_the_batches_that_its_steps_stand_on() -> None:
    of = fresh()
    first = hand(of, *hourly(0, 10)).batch.digest
    second = hand(of, reading(TOTAL, 3, 30)).batch.digest
    judge(of)
    registered = of.register()
    with of.database.read() as tx:
        events = list(tx.events.stream(windows_stream(registered.sla_id, of.period.first)))
    assert events[0].payload["inputs"] == [first]
    assert events[2].payload["inputs"] == sorted([first, second])


def test_counters_that_no_objective_names_are_refused() -> None:
    with pytest.raises(RequestLogUnusable) as refused:
        hand(fresh(), *hourly(0, 1, counter="other_total"))
    assert refused.value.data["reasons"] == {"not_promised": 2}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"counters": {"total": TOTAL}}, "say good or bad"),
        ({"counters": {"total": TOTAL, "good": "a", "bad": "b"}}, "say good or bad"),
        ({"indicator": "response_latency", "threshold_ms": "1"}, "says nothing of response_latency"),
    ],
)
def test_terms_that_counters_cannot_keep_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DocumentInvalid, match=message):
        fresh(**changes)


readings = st.builds(
    reading,
    st.just(TOTAL),
    st.integers(-4, 40).map(lambda half: half / 2),
    st.integers(0, 30),
    st.sampled_from(["a", "b"]),
)


@examples(max_examples=15, deadline=None)
@given(
    st.lists(readings, min_size=2, max_size=10).flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows)))
)
def test_any_order_and_any_split_give_the_same_statement(orders: tuple[list[Any], list[Any]]) -> None:
    desks = [fresh(counters={"total": TOTAL, "bad": ERRORS}) for _ in orders]
    floor = [reading(TOTAL, -3, 0)]
    hand(desks[0], *floor, *(row for row in orders[0] if row["counter"] == TOTAL), period=None)
    hand(desks[0], reading(TOTAL, 23.9, 500, "c"))
    hand(desks[1], reading(TOTAL, 23.9, 500, "c"))
    for each in (*reversed(orders[1]), *floor):
        if each["counter"] == TOTAL:
            hand(desks[1], each, period=None)
    assert judge(desks[0]) == judge(desks[1])
    assert sha256(settle(desks[0])) == sha256(settle(desks[1], DAY))
