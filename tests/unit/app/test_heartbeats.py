"""Heartbeats as facts: handed in as logs of their own, judged with the requests, late ones restate."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.app.facts.handing_in import HandedIn, hand_in
from ledger.app.judgement.windows import evaluate_windows
from ledger.app.settlement.statements import IssuedStatement, issue_statement, issued_for
from ledger.domain.record.naming import observations_stream
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import DAY_NS, SECOND_NS, format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.domain.windows.window import Window, WindowState
from ledger.errors import ClaimDeadlinePassed, RequestLogUnusable
from ledger.ingest.facts import read_facts
from tests.conformance.samples import SeededRandomness
from tests.unit.app.conftest import Desk, log, make_desk, row
from tests.unit.app.test_stages import close, runner

pytestmark = pytest.mark.slow

HOUR_NS = 3600 * SECOND_NS
SOURCE = {"name": "gateway", "coverage": "heartbeat"}


def make(**source: Any) -> Desk:
    desk = make_desk(source={**SOURCE, **source})
    desk.clock.now = desk.period.interval.end_ns
    return desk


def at(hour: int, second: int = 0) -> str:
    return format_instant_ns(make_desk().period.interval.start_ns + hour * HOUR_NS + second * SECOND_NS)


def beat(name: str, hour: int, covers_s: int = 3600, **more: Any) -> dict[str, Any]:
    """A heartbeat at the start of an hour of the day."""
    return {"heartbeat_id": name, "at": at(hour), "service": "example-chat", "covers_s": covers_s, **more}


WHOLE_DAY = [beat(f"h{hour}", hour) for hour in range(1, 25)]


def hand(desk: Desk, *rows: dict[str, Any], complete: Interval | None = None) -> HandedIn:
    return hand_in(
        desk.database,
        desk.register().sla_id,
        log(*rows),
        attestor=desk.attestor,
        clock=desk.clock,
        read_rows=read_facts,
        declared_complete=complete,
    )


def judge(desk: Desk, period: str | None = None) -> tuple[Window, ...]:
    registered = desk.register()
    chosen = desk.period if period is None else period_named(desk.agreement, period)
    with desk.database.begin() as tx:
        return evaluate_windows(tx, registered, chosen, read_rows=read_facts).windows


def observed(windows: tuple[Window, ...]) -> list[int]:
    return [at for at, window in enumerate(windows) if window.state is WindowState.OBSERVED]


def settle(desk: Desk) -> None:
    while runner(desk).run_once():
        pass


def newest(desk: Desk) -> IssuedStatement:
    registered = desk.register()
    with desk.database.read() as tx:
        return issued_for(tx, registered, desk.period)


def verdicts(found: HandedIn) -> tuple[int, int, int, int]:
    counts = found.batch.counts
    return counts.accepted, counts.duplicates, counts.conflicts, counts.rejected_total


def test_a_heartbeat_makes_the_time_before_it_observed() -> None:
    desk = make()
    assert verdicts(hand(desk, beat("a", 3), beat("b", 4))) == (2, 0, 0, 0)
    windows = judge(desk)
    assert observed(windows) == [2, 3]
    assert all(windows[hour].idle for hour in (2, 3))


def test_uptime_kuma_6475_rows_without_a_heartbeat_count_nowhere_until_one_comes() -> None:
    desk = make()
    hand(desk, row("a", at(5)), row("b", at(7), error_code=500))
    assert observed(judge(desk)) == []
    hand(desk, beat("h", 6))
    windows = judge(desk)
    assert observed(windows) == [5]
    assert (windows[5].cells[0].good, windows[5].cells[0].bad) == (1, 0)


def test_a_declared_span_counts_as_heartbeat() -> None:
    desk = make()
    start = desk.period.interval.start_ns
    hand(desk, row("a", at(5)), complete=Interval(start + 5 * HOUR_NS, start + 6 * HOUR_NS))
    hand(desk, beat("h", 7))
    assert observed(judge(desk)) == [5, 6]


def test_a_heartbeat_over_midnight_is_one_fact_of_both_days() -> None:
    desk = make()
    desk.clock.now += HOUR_NS
    assert verdicts(hand(desk, beat("m", 24), {**beat("n", 24), "at": at(24, 1800)})) == (2, 0, 0, 0)
    assert verdicts(hand(desk, {**beat("n", 24), "at": at(24, 1800)})) == (0, 1, 0, 0)
    hand(desk, {**beat("o", 24), "at": at(25)})
    assert observed(judge(desk)) == [23]
    assert observed(judge(desk, "2023-06-15/P1D")) == [0]


def test_the_event_says_that_it_was_heartbeats_and_over_which_time() -> None:
    desk = make()
    hand(desk, beat("a", 3), beat("a", 3, 60), beat("b", 4), {**beat("c", 5), "service": "other"})
    with desk.database.read() as tx:
        (event,) = tx.events.stream(observations_stream(desk.register().sla_id, "gateway"))
    start = desk.period.interval.start_ns
    assert event.payload["format"] == "heartbeats"
    assert event.payload["rows"] == {"accepted": 2, "duplicate": 0, "conflict": 1, "rejected": 1}
    assert event.payload["span"] == {"from_ns": str(start + 2 * HOUR_NS), "to_ns": str(start + 4 * HOUR_NS)}


def test_windows_name_the_heartbeats_that_they_were_judged_from() -> None:
    desk = make()
    first, other_day = hand(desk, beat("a", 3)), hand(desk, {**beat("b", 3), "at": at(-3)})
    registered = desk.register()
    with desk.database.begin() as tx:
        judged = evaluate_windows(tx, registered, desk.period, read_rows=read_facts)
    assert judged.inputs == (first.batch.digest,)
    assert other_day.batch.digest != first.batch.digest


def test_a_source_that_declares_complete_logs_has_no_heartbeats() -> None:
    desk = make_desk()
    desk.clock.now = desk.period.interval.end_ns
    with pytest.raises(RequestLogUnusable) as refused:
        hand(desk, beat("a", 3))
    assert refused.value.data["reasons"] == {"no_heartbeats": 1}
    assert "declare the span" in refused.value.message


def test_heartbeats_say_themselves_what_they_cover() -> None:
    desk = make()
    with pytest.raises(RequestLogUnusable, match="without a span"):
        hand(desk, beat("a", 3), complete=desk.period.interval)
    assert observed(judge(desk)) == []


def test_a_heartbeat_of_time_that_has_not_come_is_refused_and_taken_when_it_has() -> None:
    desk = make()
    desk.clock.now = desk.period.interval.start_ns + 5 * HOUR_NS
    with pytest.raises(RequestLogUnusable) as refused:
        hand(desk, beat("a", 6))
    assert refused.value.data["reasons"] == {"in_the_future": 1}
    desk.clock.now += HOUR_NS
    assert verdicts(hand(desk, beat("a", 6))) == (1, 0, 0, 0)
    assert observed(judge(desk)) == [5]


def test_what_was_refused_as_too_early_is_not_judged_later() -> None:
    desk = make()
    desk.clock.now = desk.period.interval.start_ns + 2 * HOUR_NS
    assert verdicts(hand(desk, *WHOLE_DAY)) == (2, 0, 0, 22)
    desk.clock.now = desk.period.interval.end_ns
    assert observed(judge(desk)) == [0, 1]
    assert verdicts(hand(desk, *WHOLE_DAY[1:])) == (22, 1, 0, 0)
    assert len(observed(judge(desk))) == 24


def test_late_heartbeats_restate_what_was_withheld_without_them() -> None:
    desk = make()
    hand(desk, row("a", at(5), error_code=500))
    close(desk)
    settle(desk)
    assert (newest(desk).version, str(newest(desk).settlement.state)) == (1, "withheld")
    hand(desk, *WHOLE_DAY)
    settle(desk)
    assert (newest(desk).version, str(newest(desk).settlement.state)) == (2, "settled")
    # Another heartbeat of time that is covered says nothing that changes the statement.
    hand(desk, beat("again", 5, 60))
    settle(desk)
    assert newest(desk).version == 2


def test_no_bad_period_is_withheld_by_contradicting_the_heartbeats_that_covered_it() -> None:
    """Of a day that was settled with a credit the source says anew what each of them covers, a second each."""
    desk = make()
    hand(desk, row("a", at(5), error_code=500))
    hand(desk, *WHOLE_DAY)
    close(desk)
    settle(desk)
    credit = newest(desk).settlement.credit
    assert credit
    assert verdicts(hand(desk, *(beat(f"h{hour}", hour, 1) for hour in range(1, 25)))) == (0, 0, 24, 0)
    settle(desk)
    assert (newest(desk).version, newest(desk).settlement.credit) == (1, credit)


def test_heartbeats_of_a_closed_period_are_taken_until_its_deadline() -> None:
    desk = make()
    hand(desk, *WHOLE_DAY)
    close(desk)
    desk.clock.now += 30 * DAY_NS
    assert verdicts(hand(desk, *WHOLE_DAY[:-1])) == (0, 23, 0, 0)
    with pytest.raises(ClaimDeadlinePassed):
        hand(desk, beat("new", 5))


def test_a_source_has_one_kind_of_heartbeat_for_requests_and_samples() -> None:
    objectives = [
        {"id": "uptime", "method": "total_ratio", "indicator": "availability", "target": "99"},
        {
            "id": "facts",
            "method": "total_ratio",
            "indicator": "fact_consistency",
            "target": "98.2",
            "evaluator": "factbench 2.1",
            "minimum_valid": 1,
        },
    ]
    compensation = dict(make_desk().agreement.document["compensation"])
    rule = compensation["rules"][0]
    compensation["rules"] = [
        {**rule, "tiers": {each["id"]: [{"below": "98", "credit_percent": "10"}] for each in objectives}}
    ]
    desk = make_desk(source=SOURCE, objectives=objectives, compensation=compensation)
    desk.clock.now = desk.period.interval.end_ns
    sample = {"sample_id": "s", "at": at(5), "service": "example-chat", "indicator": "fact_consistency", "good": 9}
    hand(desk, {**sample, "bad": 1, "evaluator": "factbench 2.1"})
    hand(desk, beat("a", 6), beat("b", 7))
    windows = judge(desk)
    assert observed(windows) == [5, 6]
    assert windows[5].cells[1].valid == 10
    assert windows[6].idle


BEATS = st.builds(beat, st.sampled_from("abcd"), st.integers(-1, 26), st.sampled_from([60, 1800, 3600]))
ROWS = st.builds(
    lambda name, hour, code: row(name, at(hour), error_code=code),
    st.sampled_from("abcd"),
    st.integers(0, 23),
    st.sampled_from([None, 500]),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(BEATS, max_size=12), st.lists(ROWS, max_size=6), st.lists(st.integers(1, 11), max_size=3), st.randoms())
def test_in_whatever_order_and_batches_heartbeats_come_the_statement_is_the_same(
    beats: list[dict[str, Any]], rows: list[dict[str, Any]], cuts: list[int], random: Any
) -> None:
    shuffled = list(beats)
    random.shuffle(shuffled)
    edges = sorted({0, len(beats), *(min(cut, len(beats)) for cut in cuts)})
    parts = [shuffled[start:end] for start, end in itertools.pairwise(edges)]
    batches = [part for part in (*parts, rows) if part]
    random.shuffle(batches)
    assert statement_of([*parts, rows]) == statement_of([beats, rows]) == statement_of(batches)


def statement_of(batches: list[list[dict[str, Any]]]) -> Any:
    desk = make(heartbeat="PT1H")
    # The clock is past every heartbeat: what comes ahead of its time is another fact.
    desk.clock.now = desk.period.interval.end_ns + 3 * HOUR_NS
    for batch in batches:
        if batch:
            hand(desk, *batch)
    registered = desk.register()
    with desk.database.begin() as tx:
        judged = evaluate_windows(tx, registered, desk.period, read_rows=read_facts)
        issued = issue_statement(
            tx,
            registered,
            desk.period,
            judged,
            attestor=desk.attestor,
            collector=desk.collector,
            # Its own: what the events before it drew is another matter.
            randomness=SeededRandomness(1),
            now_ns=desk.clock.now_ns(),
        )
        payload = tx.events.by_id(issued.receipt.event_id).payload
    return judged.windows, {name: value for name, value in payload.items() if name != "closing_event"}
