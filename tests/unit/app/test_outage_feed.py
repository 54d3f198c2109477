"""Outage lists from the rows handed in to the statement."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from ledger.domain.record.naming import observations_stream
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import parse_instant_ns
from ledger.domain.windows.window import Cell, WindowState
from ledger.errors import ImplausibleCounts, RequestLogUnusable
from tests.unit.app.conftest import Desk, make_desk, row, signed_agreement
from tests.unit.app.feeding import DAY, desk_of, faults, figures, hand, judge, settle, sha256, work
from tests.unit.app.test_agreement_lifecycle import JUNE, PARTS, amend

UPTIME = {
    "id": "uptime",
    "method": "total_ratio",
    "indicator": "availability",
    "target": "99",
    "source": "outages",
}
ERRORS = {"id": "errors", "method": "total_ratio", "indicator": "error_rate", "target": "99"}
NEXT_DAY = "2023-06-15/P1D"


def outage(name: str, start: str | None = None, end: str | None = None, **more: Any) -> dict[str, Any]:
    day = "" if start is None or "T" in start else "2023-06-14T"
    span = {} if start is None else {"from": f"{day}{start}Z", "to": f"{day}{end}Z"}
    return {"outage_id": name, **span, "service": "example-chat", **more}


def desk() -> Desk:
    return desk_of([UPTIME])


def test_an_outage_list_settles_a_period() -> None:
    of = desk()
    found = hand(of, outage("a", "10:00:00", "10:20:00"), outage("b", "10:10:00", "10:30:00"))
    assert (found.batch.counts.accepted, found.rejections) == (2, ())
    issued = settle(of)
    assert figures(issued) == {"uptime": (1410, 1440, "breached")}
    assert issued.settlement.as_document()["objectives"][0]["unit"] == "minutes"
    assert issued.settlement.credit == 80_000


def test_the_event_says_what_the_list_was() -> None:
    of = desk()
    hand(
        of,
        outage("a", "10:00:00", "10:20:00"),
        outage("a", "10:00:00", "10:30:00"),
        outage("b", "11:00:00", "10:00:00"),
    )
    with of.database.read() as tx:
        (event,) = tx.events.stream(observations_stream(of.register().sla_id, of.agreement.source))
    assert event.payload["format"] == "outages"
    assert event.payload["rows"] == {"accepted": 1, "duplicate": 0, "conflict": 1, "rejected": 1}
    assert event.payload["rejected_reasons"] == {"implausible": 1}
    with pytest.raises(ImplausibleCounts):
        judge(of)
    hand(of, outage("b", withdrawn=True, revision=2))
    assert judge(of)[10].cells == (Cell(30, 30),)


def test_nobody_declares_time_complete_that_has_not_come() -> None:
    """A source that declares the year and falls silent would read 100 % for good."""
    of = desk()
    of.clock.now = period_named(of.agreement, DAY).interval.start_ns + 11 * 3600 * 10**9
    hand(of, outage("a", "10:00:00", "10:20:00"))
    states = [window.state for window in judge(of)]
    assert states == [WindowState.OBSERVED] * 11 + [WindowState.NO_DATA] * 13
    with pytest.raises(RequestLogUnusable, match="from 2023-06-15T00:00:00Z, and now it is 2023-06-14"):
        hand(of, outage("b", "10:00:00", "10:20:00"), period=NEXT_DAY)
    of.clock.now = period_named(of.agreement, DAY).interval.end_ns + 3600 * 10**9
    hand(of, outage("a", "10:00:00", "10:20:00"))
    assert {window.state for window in judge(of)} == {WindowState.OBSERVED}


def test_requests_and_outages_live_in_the_same_windows() -> None:
    of = desk_of([ERRORS, UPTIME])
    hand(of, row("a"), row("b", error_code=500))
    assert {window.state for window in judge(of)} == {WindowState.NO_DATA}
    hand(of, outage("a", "10:00:00", "10:20:00"))
    assert judge(of)[10].cells == (Cell(1, 1), Cell(40, 20))


def test_an_empty_day_is_said_by_an_outage_of_another_and_nothing_is_said_by_silence() -> None:
    of = desk()
    hand(of, outage("a", "2023-06-13T10:00:00", "2023-06-14T00:00:00"), period=None)
    assert {window.state for window in judge(of)} == {WindowState.NO_DATA}
    whole = period_named(of.agreement, "2023-06-13/P1D").interval.start_ns
    end = period_named(of.agreement, DAY).interval.end_ns
    hand(of, outage("a", "2023-06-13T10:00:00", "2023-06-14T00:00:00"), complete=type(of.period.interval)(whole, end))
    assert {window.cells for window in judge(of)} == {(Cell(60, 0),)}


def test_outage_not_clipped_to_the_period_kuvasz_219() -> None:
    """From the rows to the statements: an outage over midnight counts in each day with its part."""
    of = desk()
    rows = [outage("over", "2023-06-14T23:30:00", "2023-06-15T02:00:00")]
    hand(of, *rows)
    hand(of, *rows, period=NEXT_DAY)
    assert figures(settle(of)) == {"uptime": (1410, 1440, "breached")}
    assert figures(settle(of, NEXT_DAY)) == {"uptime": (1320, 1440, "breached")}


def test_overlaps_counted_twice_uptime_monitor_287() -> None:
    """From the rows to the statement: two monitors that saw one outage take its minutes once."""
    of = desk()
    hand(of, outage("eu", "10:00:00", "10:20:00"))
    hand(of, outage("us", "10:05:00", "10:20:00"), outage("ap", "10:00:00", "10:15:00"))
    assert figures(settle(of))["uptime"][:2] == (1420, 1440)


def test_a_later_revision_restates_the_period_that_it_leaves_and_the_one_it_enters() -> None:
    of = desk()
    hand(of, outage("a", "10:00:00", "10:20:00"))
    hand(of, outage("quiet", "2023-06-15T01:00:00", "2023-06-15T01:00:10"), period=NEXT_DAY)
    assert figures(settle(of))["uptime"][:2] == (1420, 1440)
    assert figures(settle(of, NEXT_DAY))["uptime"][:2] == (1440, 1440)
    hand(of, outage("a", "2023-06-15T10:00:00", "2023-06-15T10:20:00", revision=2), period=None)
    left, entered = work(of), work(of, NEXT_DAY)
    assert (left.version, figures(left)["uptime"][:2]) == (2, (1440, 1440))
    assert (entered.version, figures(entered)["uptime"][:2]) == (2, (1420, 1440))
    hand(of, outage("a", withdrawn=True, revision=3), period=None)
    assert figures(work(of, NEXT_DAY))["uptime"][:2] == (1440, 1440)
    assert work(of).version == 2


def test_a_list_that_no_objective_is_counted_from_is_refused() -> None:
    with pytest.raises(RequestLogUnusable) as refused:
        hand(desk_of([ERRORS]), outage("a", "10:00:00", "10:20:00"))
    assert refused.value.data["reasons"] == {"not_promised": 1}
    with pytest.raises(RequestLogUnusable) as refused:
        hand(desk(), outage("a", "2021-06-14T10:00:00", "2021-06-14T10:20:00"), period=None)
    assert refused.value.data["reasons"] == {"outside_period": 1}


outages = st.builds(
    lambda name, start, minutes, revision: outage(
        name,
        f"{start // 60:02}:{start % 60:02}:00",
        f"{(start + minutes) // 60:02}:{(start + minutes) % 60:02}:30",
        revision=revision,
    ),
    st.sampled_from("abc"),
    st.integers(0, 1200),
    st.integers(0, 200),
    st.integers(1, 2),
)


@examples(max_examples=15, deadline=None)
@given(st.lists(outages, min_size=2, max_size=8).flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_any_order_and_any_split_give_the_same_statement(orders: tuple[list[Any], list[Any]]) -> None:
    whole, apart = desk(), desk()
    hand(whole, *orders[0])
    for each in orders[1]:
        hand(apart, each)
    assert sha256(settle(whole)) == sha256(settle(apart))


def test_an_outage_that_ends_before_it_begins_is_told_until_a_revision_answers_it() -> None:
    of = desk()
    hand(of, outage("a", "11:00:00", "10:00:00", revision=2), outage("a", "10:00:00", "10:20:00"), period=None)
    (fault,) = faults(of)
    assert (fault.period, fault.row["sample_id"], fault.row["indicator"]) == (DAY, "2/a", "outages")
    assert fault.row["value"] == "from 2023-06-14T11:00:00Z to 2023-06-14T10:00:00Z"
    assert not fault.resolved
    hand(of, outage("a", revision=3, withdrawn=True), period=None)
    assert [each.resolved for each in faults(of)] == [True]


def test_an_outage_that_blocks_two_days_is_told_once_of_the_first() -> None:
    of = desk()
    hand(of, outage("a", "2023-06-15T10:00:00", "2023-06-14T10:00:00"), period=None)
    assert [each.period for each in faults(of)] == [DAY]
    for period in (DAY, NEXT_DAY):
        with pytest.raises(ImplausibleCounts, match="must end after it begins"):
            judge(of, period)


def test_an_outage_that_cannot_be_in_no_period_is_nobodys_fault() -> None:
    of = desk()
    hand(
        of, outage("b", "10:00:00", "10:20:00"), outage("a", "2190-06-15T10:00:00", "2190-06-14T10:00:00"), period=None
    )
    assert faults(of) == []


def test_what_only_the_terms_of_its_time_count_is_recorded_and_blocks_their_period() -> None:
    availability, *others = signed_agreement()["objectives"]
    of = make_desk()
    by_outages = [{**availability, "source": "outages"}, *others]
    of.agreement = Agreement.from_document(signed_agreement(**JUNE, objectives=by_outages))
    of.clock.now = parse_instant_ns("2023-06-05T00:00:00Z")
    of.register()
    amend(of)
    of.clock.now = parse_instant_ns("2023-07-05T00:00:00Z")
    found = hand(of, outage("a", "2023-06-03T11:00:00", "2023-06-03T10:00:00"), period=None)
    assert found.batch.counts.rejected == {"implausible": 1}
    assert [each.period for each in faults(of)] == [PARTS[0]]
