"""Judging while the period runs: violations open and grow live, and closing comes to what it would have anyway."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from ledger.app.judgement.judging import Judge, Watch
from ledger.app.judgement.period_facts import KeptPeriods, PeriodFacts
from ledger.app.judgement.violations import record_violations
from ledger.app.judgement.windows import evaluate_windows
from ledger.app.periods.closing import Cause, close_period
from ledger.app.periods.exclusions import AskedExclusion, ExclusionDesk, load_excluded
from ledger.app.settlement.statements import issue_statement
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.events import StoredEvent
from ledger.domain.record.naming import statement_stream, violations_stream, windows_stream
from ledger.domain.time.interval import Interval
from ledger.errors import PeriodClosed, PeriodNotBegun, StorageUnavailable
from ledger.store.memory import MemoryDatabase
from ledger.store.memory_events import MemoryEvents
from tests.conformance.samples import SeededRandomness
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


class Reads:
    """Counts what looks at a period read: batches, and events of streams."""

    def __init__(self, day: Day, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batches, self.events = 0, 0
        stream, rows = MemoryEvents.stream, day.judge.read_rows

        def counted_stream(events: MemoryEvents, name: str, *, start: int = 0) -> Iterator[StoredEvent]:
            for event in stream(events, name, start=start):
                self.events += event.type in ("window_evaluated", "observations_recorded")
                yield event

        def counted_rows(data: bytes) -> Any:
            self.batches += 1
            return rows(data)

        monkeypatch.setattr(MemoryEvents, "stream", counted_stream)
        day.watch.judge = replace(day.judge, read_rows=counted_rows)

    def of(self, look: Callable[[], object]) -> tuple[int, int]:
        self.batches, self.events = 0, 0
        look()
        return self.batches, self.events


def test_a_look_reads_what_came_in_since_the_last_one_however_much_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    day = Day(make_desk())
    reads, found = Reads(day, monkeypatch), []
    for hour in range(24):
        day.hour(hour, good(hour, f"g{hour}"))
        found.append(reads.of(day.watch.judge_new))
    # One batch; the event before and the one that came, of batches and of judgements.
    assert set(found[2:]) == {(1, 4)}
    assert reads.of(day.watch.judge_new) == (0, 0)


def test_what_is_kept_is_bounded_and_what_is_not_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    day = Day(make_desk())
    day.judge = replace(day.judge, kept=KeptPeriods(limit=35))
    day.watch = Watch(day.desk.database, day.judge)
    reads, found = Reads(day, monkeypatch), []
    for hour in range(6):
        day.hour(hour, good(hour, f"g{hour}"))
        found.append(reads.of(day.watch.judge_new))
    # A row for each hour and ten for each judgement read: after the fifth look it is more than that.
    assert [batches for batches, _ in found] == [1, 1, 1, 1, 1, 6]


@pytest.mark.parametrize("change", ["declared for more", "a replayed row", "another body", "excluded"])
def test_a_kept_period_comes_to_what_one_read_anew_does(change: str) -> None:
    day = Day(make_desk(**MEMBERS))
    for hour in range(4):
        day.hour(hour, good(hour, f"g{hour}"), bad(hour, f"b{hour}"))
        day.watch.judge_new()
    if change == "declared for more":
        record(day.desk, log(good(1, "g1"), bad(1, "b1")), day.desk.period.interval)
    elif change == "a replayed row":
        day.hour(4, good(4, "g4"), good(4, "g4"))
    elif change == "another body":
        day.hour(4, bad(4, "g2"), bad(4, "x"))
    elif change == "excluded":
        hour_ns = day.start_ns + 3 * HOUR_NS
        asked = AskedExclusion("d", "dispute", hour_ns, hour_ns + HOUR_NS, "agreed", approved_by="both")
        ExclusionDesk(day.desk.database, day.desk.attestor, day.clock).record(day.registered.sla_id, asked)
    day.hour(5, good(5, "last"))
    day.watch.judge_new()
    with day.desk.database.begin() as tx:
        excluded = load_excluded(tx, day.registered.sla_id, day.registered.agreement, day.desk.period)
        kept, _ = day.judge.kept.take(day.registered.sla_id, day.desk.period)
        assert kept is not None
        anew = PeriodFacts.read(tx, day.registered, day.desk.period, excluded)
        assert kept.judge(tx, read_rows) == anew.judge(tx, read_rows)


def test_a_look_that_fails_leaves_nothing_half_done_behind() -> None:
    day = Day(make_desk())
    day.hour(0, good(0, "a"))
    day.watch.judge_new()
    honest = day.judge.read_rows

    def failing(data: bytes) -> Any:
        yield from list(honest(data))[:1]
        raise StorageUnavailable("the disk went away")

    day.watch.judge = replace(day.judge, read_rows=failing)
    day.hour(1, good(1, "b"), bad(1, "c"))
    with pytest.raises(StorageUnavailable):
        day.watch.judge_new()
    day.watch.judge = day.judge
    day.hour(2, good(2, "d"))
    day.watch.judge_new()
    assert [(row["cells"]["availability"]["good"], row["cells"]["availability"]["bad"]) for row in _windows(day)] == [
        (1, 0),
        (1, 1),
        (1, 0),
    ]


def test_another_stream_in_the_place_of_the_one_that_was_read_is_read_whole() -> None:
    """As after a restore, or where two tenants have the same agreement."""
    one, desk = Day(make_desk()), make_desk()
    other = Day(replace(desk, database=MemoryDatabase(desk.clock, SeededRandomness(8))))
    one.hour(0, good(0, "a"), bad(0, "b"))
    one.watch.judge_new()
    other.watch.judge = replace(other.judge, kept=one.judge.kept)
    other.hour(0, good(0, "x"))
    other.watch.judge_new()
    (row,) = _windows(other)
    assert row["cells"]["availability"] == {"good": 1, "bad": 0}
