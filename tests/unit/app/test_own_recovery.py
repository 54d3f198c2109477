"""Recovery times of an agreement's own violations, from request logs and outages to the statement."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from ledger.domain.record.naming import violations_stream
from ledger.domain.violations.own_recovery import with_own_recoveries
from ledger.domain.windows.window import Cell
from ledger.errors import DocumentInvalid, RequestLogUnusable
from tests.unit.app.conftest import Desk
from tests.unit.app.feeding import desk_of, figures, hand, judge, settle, sha256, work
from tests.unit.app.test_outage_feed import UPTIME, outage

BACK: dict[str, Any] = {
    "id": "back",
    "method": "total_ratio",
    "indicator": "recovery_time",
    "source": "own_violations",
    "measure": {"at_most": "3600"},
    "target": "100",
}


def desk(**changes: Any) -> Desk:
    return desk_of([UPTIME, {**BACK, **changes}])


def test_the_ledgers_own_violations_are_the_incidents() -> None:
    of = desk()
    hand(of, outage("short", "03:10:00", "03:20:00"), outage("long", "10:10:00", "12:20:00"))
    windows = judge(of)
    assert windows[3].cells == (Cell(50, 10), Cell(1, 0))
    assert [window.cells[1] for window in windows[10:13]] == [Cell(0, 0), Cell(0, 0), Cell(0, 1)]
    issued = settle(of)
    assert figures(issued)["back"] == (1, 2, "breached")
    assert issued.settlement.as_document()["objectives"][1]["unit"] == "incidents"


def test_a_violation_that_is_withdrawn_takes_its_recovery_with_it() -> None:
    of = desk()
    hand(of, outage("long", "10:10:00", "12:20:00"))
    assert figures(settle(of))["back"] == (0, 1, "breached")
    hand(of, outage("long", withdrawn=True, revision=2))
    late = work(of)
    assert (late.version, figures(late)) == (2, {"uptime": (1440, 1440, "met"), "back": (0, 0, "no_data")})


def test_a_breach_of_the_recovery_time_is_a_violation_and_no_incident_of_its_own() -> None:
    of = desk(measure={"at_most": "0"})
    hand(of, outage("short", "03:10:00", "03:20:00"))
    assert figures(settle(of))["back"] == (0, 1, "breached")
    with of.database.read() as tx:
        events = list(tx.events.stream(violations_stream(of.register().sla_id, of.period.first)))
    assert [event.payload["objective"] for event in events if event.type == "violation_opened"] == ["uptime", "back"]
    windows = judge(of)
    assert with_own_recoveries(of.agreement, windows)[3].cells == windows[3].cells


def test_what_lasts_at_the_end_of_the_period_is_bad_once_it_is_too_long() -> None:
    of = desk()
    hand(of, outage("late", "23:10:00", "23:50:00"))
    assert figures(settle(of))["back"] == (0, 0, "no_data")
    of = desk()
    hand(of, outage("late", "22:10:00", "23:50:00"))
    assert figures(settle(of))["back"] == (0, 1, "breached")


def test_nobody_hands_in_samples_of_it() -> None:
    of = desk()
    sample = {
        "sample_id": "s",
        "at": "2023-06-14T10:00:00Z",
        "service": "example-chat",
        "indicator": "recovery_time",
        "value": 1,
    }
    with pytest.raises(RequestLogUnusable) as refused:
        hand(of, sample)
    assert refused.value.data["reasons"] == {"not_promised": 1}


@pytest.mark.parametrize(
    ("objectives", "message"),
    [
        ([BACK], "nothing that could be violated"),
        ([UPTIME, {key: value for key, value in BACK.items() if key != "measure"}], "say at_most"),
        ([UPTIME, {**BACK, "measure": {"at_least": "5"}}], "say at_most"),
        ([UPTIME, {**BACK, "indicator": "checksum_failure"}], "says nothing of checksum_failure"),
    ],
)
def test_terms_that_it_cannot_keep_are_refused(objectives: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(DocumentInvalid, match=message):
        desk_of(objectives)


outages = st.builds(
    lambda name, start, minutes: outage(
        name, f"{start // 60:02}:{start % 60:02}:00", f"{(start + minutes) // 60:02}:{(start + minutes) % 60:02}:00"
    ),
    st.sampled_from("abcdef"),
    st.integers(0, 1000),
    st.integers(1, 200),
)


@examples(max_examples=10, deadline=None)
@given(st.lists(outages, min_size=2, max_size=6).flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_any_order_and_any_split_give_the_same_statement(orders: tuple[list[Any], list[Any]]) -> None:
    whole, apart = desk(), desk()
    hand(whole, *orders[0])
    for each in orders[1]:
        hand(apart, each)
    assert sha256(settle(whole)) == sha256(settle(apart))
