"""Periods that are not closed: what each waits for, from its first instant to its closing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ledger.app.facts.observations import record_observations
from ledger.app.periods.closing import Cause, Schedule, close_period
from ledger.app.periods.pending import MAX_PERIODS, read_pending
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import DAY_NS, format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.errors import NotFound
from tests.unit.app.conftest import Desk, log, make_desk, read_rows, row, signed_agreement

HOUR_NS = 3600 * 10**9
WAITING = {"when": "watermark", "at_latest": "PT168H"}


def make(**changes: Any) -> Desk:
    """An agreement of days that was registered on 2023-06-14 at noon."""
    desk = make_desk(**changes)
    desk.clock.now = desk.period.interval.start_ns + 12 * HOUR_NS
    desk.register()
    return desk


def pending(desk: Desk, hours_after_end: int) -> dict[str, tuple[str, int | None]]:
    """What each period waits for, and how long after the end of the day of registration that comes at the latest."""
    end_ns = desk.period.interval.end_ns
    with desk.database.read() as tx:
        found = read_pending(tx, desk.attestor.sla_id(desk.agreement), now_ns=end_ns + hours_after_end * HOUR_NS)
    return {
        each["period"][5:10]: (
            each["waits_for"],
            None if each["until_ns"] is None else (each["until_ns"] - end_ns) // HOUR_NS,
        )
        for each in found
    }


def declare(desk: Desk, until_ns: int) -> None:
    registered = desk.register()
    desk.clock.now = until_ns
    with desk.database.begin() as tx:
        record_observations(
            tx,
            registered,
            log(row("a", format_instant_ns(until_ns - 1))),
            read_rows=read_rows,
            declared_complete=Interval(desk.period.interval.start_ns, until_ns),
            now_ns=until_ns,
        )


def test_a_period_waits_for_its_end_and_its_grace_and_then_it_is_due() -> None:
    desk = make()
    assert list(pending(desk, -24).items())[-1] == ("06-14", ("end", 0))
    assert list(pending(desk, 1).items())[-2:] == [("06-14", ("grace", 72)), ("06-15", ("end", 24))]
    assert pending(desk, 72)["06-14"] == ("schedule", None)


def test_what_had_ended_before_the_registration_waits_for_somebody_who_asks() -> None:
    assert pending(make(), -1)["06-13"] == ("request", None)


def test_a_source_that_is_behind_is_waited_for_until_the_latest_time() -> None:
    desk = make(closing=WAITING)
    assert pending(desk, 72)["06-14"] == ("watermark", 168)
    assert pending(desk, 168)["06-14"] == ("schedule", None)
    declare(desk, desk.period.interval.end_ns)
    found = pending(desk, 96)
    assert (found["06-14"], found["06-15"]) == (("schedule", None), ("watermark", 192))


def test_the_watermark_is_shown_whether_it_is_waited_for_or_not() -> None:
    desk = make()
    declare(desk, desk.period.interval.start_ns + 18 * HOUR_NS)
    with desk.database.read() as tx:
        found = read_pending(tx, desk.attestor.sla_id(desk.agreement), now_ns=desk.period.interval.end_ns)
    assert {each["watermark_ns"] for each in found} == {desk.period.interval.start_ns + 18 * HOUR_NS}


@pytest.mark.parametrize("closing", [{"when": "grace"}, WAITING])
def test_what_is_due_the_schedule_closes_and_nothing_else(closing: dict[str, str]) -> None:
    desk = make(closing=closing)
    schedule = Schedule(desk.database, desk.attestor, desk.clock)
    for hours in (0, 71, 72, 96, 167, 168, 200):
        due = [day for day, (waits_for, _) in pending(desk, hours).items() if waits_for == "schedule"]
        desk.clock.now = desk.period.interval.end_ns + hours * HOUR_NS
        assert schedule.close_due() == len(due)
        assert "schedule" not in {waits_for for waits_for, _ in pending(desk, hours).values()}


def test_a_closed_period_is_pending_no_more() -> None:
    desk = make()
    registered, now_ns = desk.register(), desk.period.interval.end_ns + HOUR_NS
    with desk.database.begin() as tx:
        close_period(tx, registered, desk.period, cause=Cause.REQUEST, now_ns=now_ns)
    assert "06-14" not in pending(desk, 1)


def test_an_agreement_that_is_over_shows_its_last_periods() -> None:
    desk = make()
    with desk.database.read() as tx:
        found = read_pending(tx, desk.attestor.sla_id(desk.agreement), now_ns=desk.agreement.ends_ns + 900 * DAY_NS)
    assert len(found) == MAX_PERIODS
    assert found[-1]["end_ns"] == desk.agreement.ends_ns
    assert {each["waits_for"] for each in found} == {"schedule"}


def test_of_rolling_periods_all_that_began_are_shown() -> None:
    compensation = {**make_desk().agreement.document["compensation"], "rules": []}
    agreement = Agreement.from_document(signed_agreement(period="P3D", step="P1D", compensation=compensation))
    desk = replace(make_desk(), agreement=agreement, period=period_named(agreement, "2023-06-14/P3D"))
    desk.register()
    with desk.database.read() as tx:
        found = read_pending(tx, desk.attestor.sla_id(agreement), now_ns=desk.period.interval.start_ns)
    assert [each["period"] for each in found][-3:] == ["2023-06-12/P3D", "2023-06-13/P3D", "2023-06-14/P3D"]


def test_an_agreement_that_is_not_there_is_not_found() -> None:
    desk = make()
    with desk.database.read() as tx, pytest.raises(NotFound):
        read_pending(tx, "0x" + "00" * 32, now_ns=0)
