"""Judging while the period runs: violations open and grow live, and closing comes to what it would have anyway."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.app.closing import Cause, close_period
from ledger.app.exclusions import AskedExclusion, ExclusionDesk
from ledger.app.statements import issue_statement
from ledger.app.violations import record_violations
from ledger.app.watching import Judge, Watch
from ledger.app.windows import evaluate_windows
from ledger.domain.canonical import canonical_bytes
from ledger.domain.interval import Interval
from ledger.domain.naming import statement_stream, violations_stream, windows_stream
from ledger.errors import PeriodClosed, PeriodNotBegun
from tests.unit.app.conftest import Desk, find_requests, log, make_desk, read_rows, row
from tests.unit.app.test_exclusions import MEMBERS
from tests.unit.app.test_settling import record

HOUR_NS = 3600 * 10**9
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class FixedClock:
    def __init__(self, ns: int) -> None:
        self.ns = ns

    def now_ns(self) -> int:
        return self.ns


class Day:
    """The example's day as it goes by."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.start_ns = desk.period.interval.start_ns
        self.clock = FixedClock(self.start_ns)
        self.judge = Judge(
            desk.attestor,
            read_rows=read_rows,
            find_evidence=lambda *_: (),
            find_requests=find_requests,
            clock=self.clock,
        )
        self.watch = Watch(desk.database, self.judge)
        self.registered = desk.register()

    def hour(self, hour: int, *bodies: dict[str, Any]) -> None:
        """The log of an hour comes in at its end."""
        span = Interval(self.start_ns + hour * HOUR_NS, self.start_ns + (hour + 1) * HOUR_NS)
        record(self.desk, log(*bodies), span)
        self.clock.ns = span.end_ns

    def types(self, stream: str) -> list[str]:
        with self.desk.database.read() as tx:
            return [event.type for event in tx.events.stream(stream)]

    def violations(self) -> list[str]:
        found = self.types(violations_stream(self.registered.sla_id, self.desk.period.first))
        return [name.removeprefix("violation_") for name in found]

    def judgements(self) -> int:
        return len(self.types(windows_stream(self.registered.sla_id, self.desk.period.first)))

    def settle(self) -> bytes:
        """Close the day as the stages do; what its statement says. Salts and ids are chance."""
        desk = self.desk
        now_ns = desk.period.interval.end_ns
        with desk.database.begin() as tx:
            close_period(tx, self.registered, desk.period, cause=Cause.REQUEST, now_ns=now_ns)
            judged = evaluate_windows(tx, self.registered, desk.period, read_rows=read_rows)
            record_violations(
                tx,
                self.registered,
                desk.period,
                judged,
                find_evidence=lambda *_: (),
                find_requests=find_requests,
                now_ns=now_ns,
            )
            issue_statement(
                tx,
                self.registered,
                desk.period,
                judged,
                attestor=desk.attestor,
                collector=desk.collector,
                randomness=desk.randomness,
                now_ns=now_ns,
            )
        with desk.database.read() as tx:
            (issued,) = tx.events.stream(statement_stream(self.registered.sla_id, desk.period.first))
            return canonical_bytes({**issued.payload, "telemetry_root": None, "closing_event": None})


def bad(hour: int, name: str) -> dict[str, Any]:
    return row(name, at=f"2023-06-14T{hour:02}:30:00Z", error_code=500, traceparent=f"00-{TRACE}-{'1' * 16}-01")


def good(hour: int, name: str) -> dict[str, Any]:
    return row(name, at=f"2023-06-14T{hour:02}:10:00Z")


def test_an_exclusion_has_a_running_period_judged_and_withdraws_its_violation() -> None:
    day = Day(make_desk(**MEMBERS))
    day.hour(3, bad(3, "a"))
    assert day.watch.judge_new() == 1
    assert day.violations() == ["opened"]
    desk = ExclusionDesk(day.desk.database, day.desk.attestor, day.clock)
    hour_ns = day.start_ns + 3 * HOUR_NS
    desk.record(
        day.registered.sla_id,
        AskedExclusion("d", "dispute", hour_ns, hour_ns + HOUR_NS, "agreed", approved_by="both"),
    )
    assert day.watch.judge_new() == 1
    assert day.violations() == ["opened", "withdrawn"]
    desk.withdraw(day.registered.sla_id, "d", reason="not agreed")
    assert day.watch.judge_new() == 1
    assert day.violations() == ["opened", "withdrawn", "opened"]


@pytest.fixture
def day(desk: Desk) -> Day:
    return Day(desk)


def test_a_violation_opens_grows_and_closes_as_facts_come_in(day: Day) -> None:
    day.hour(0, good(0, "a"))
    assert day.watch.judge_new() == 1
    assert day.violations() == []
    day.hour(1, bad(1, "b"))
    day.watch.judge_new()
    assert day.violations() == ["opened"]
    day.hour(2, bad(2, "c"))
    day.watch.judge_new()
    assert day.violations() == ["opened", "updated"]
    day.hour(3, good(3, "d"))
    day.watch.judge_new()
    assert day.violations() == ["opened", "updated", "closed"]


def test_its_evidence_names_the_worst_requests_with_their_traces(day: Day) -> None:
    day.hour(1, good(1, "a"), bad(1, "b"))
    day.watch.judge_new()
    with day.desk.database.read() as tx:
        (opened,) = tx.events.stream(violations_stream(day.registered.sla_id, day.desk.period.first))
    (request,) = opened.payload["evidence"]["requests"]
    (batch,) = opened.payload["evidence"]["inputs"]
    assert (request["request_id"], request["trace_id"], request["error_code"]) == ("b", TRACE, "500")
    assert (request["batch"], request["line"]) == (batch, 2)


def test_without_new_facts_nothing_is_done(day: Day) -> None:
    day.hour(1, bad(1, "b"))
    assert day.watch.judge_new() == 1
    judged = day.judgements()
    assert day.watch.judge_new() == 0
    with day.desk.database.begin() as tx:
        assert day.judge.judge(tx, day.registered, day.desk.period) == ()
    assert (day.judgements(), day.violations()) == (judged, ["opened"])


def test_a_batch_states_only_the_windows_it_changes(day: Day) -> None:
    for hour in range(5):
        day.hour(hour, good(hour, f"r{hour}"))
        day.watch.judge_new()
    assert day.judgements() == 5


def test_closing_comes_to_the_same_whether_it_was_watched_or_not() -> None:
    watched, unwatched = Day(make_desk()), Day(make_desk())
    for hour in range(24):
        for day in (watched, unwatched):
            day.hour(hour, good(hour, f"g{hour}"), *([bad(hour, f"b{hour}")] if hour in (3, 4, 20) else []))
        watched.watch.judge_new()
    assert watched.violations() == ["opened", "updated", "closed", "opened", "closed"]
    assert watched.settle() == unwatched.settle()
    last = [
        [row["cells"] for row in _windows(day)] + [(row["id"], row["state"], row["bad"]) for row in _violations(day)]
        for day in (watched, unwatched)
    ]
    assert last[0] == last[1]


def test_a_closed_period_and_one_to_come_are_not_judged(day: Day) -> None:
    day.hour(1, bad(1, "b"))
    day.clock.ns = day.start_ns - 1
    with day.desk.database.begin() as tx, pytest.raises(PeriodNotBegun):
        day.judge.judge(tx, day.registered, day.desk.period)
    with day.desk.database.begin() as tx:
        close_period(tx, day.registered, day.desk.period, cause=Cause.REQUEST, now_ns=day.desk.period.interval.end_ns)
    day.clock.ns = day.desk.period.interval.end_ns
    with day.desk.database.begin() as tx, pytest.raises(PeriodClosed):
        day.judge.judge(tx, day.registered, day.desk.period)
    assert day.watch.judge_new() == 0
    assert day.violations() == []


def test_the_running_period_is_the_one_of_now(day: Day) -> None:
    day.clock.ns = day.start_ns + HOUR_NS
    with day.desk.database.read() as tx:
        assert day.judge.current(tx, day.registered, None) == day.desk.period
        assert str(day.judge.current(tx, day.registered, "2023-06-15/P1D")) == "2023-06-15/P1D"
        day.clock.ns = 10**18
        with pytest.raises(PeriodNotBegun, match="name a period"):
            day.judge.current(tx, day.registered, None)


def _windows(day: Day) -> Any:
    with day.desk.database.read() as tx:
        return tx.views.windows(day.registered.sla_id, str(day.desk.period))


def _violations(day: Day) -> Any:
    with day.desk.database.read() as tx:
        return tx.views.violations(limit=100)
