"""Sample logs as facts: handed in like request logs, judged into the same windows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ledger.app.access import Principal, Scope
from ledger.app.facts.handing_in import HandedIn, hand_in
from ledger.app.facts.quality import QualityDesk
from ledger.app.judgement.windows import evaluate_windows, load_windows
from ledger.app.settlement.statements import issue_statement, issued_for
from ledger.domain.events.quality_events import MAX_ROWS
from ledger.domain.record.naming import observations_stream, quality_stream
from ledger.domain.time.interval import Interval
from ledger.domain.windows.window import Cell, Window, WindowState
from ledger.errors import CursorInvalid, ImplausibleCounts, NotFound, RequestLogUnusable
from ledger.ingest.facts import read_facts
from tests.unit.app.conftest import Desk, log, make_desk, row
from tests.unit.app.test_stages import close, runner, states

HOUR_NS = 3600 * 10**9
OBJECTIVES = [
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
TIERS = {"uptime": [{"below": "99", "credit_percent": "10"}], "facts": [{"below": "98.2", "credit_percent": "20"}]}


def desk_for(objectives: Any = OBJECTIVES) -> Desk:
    compensation = json.loads(json.dumps(make_desk().agreement.document["compensation"]))
    compensation["rules"][0]["tiers"] = {each["id"]: TIERS[each["id"]] for each in objectives}
    return make_desk(objectives=objectives, compensation=compensation)


def sample(name: str, at: str = "2023-06-14T10:00:00Z", **said: Any) -> dict[str, Any]:
    body = {"sample_id": name, "at": at, "service": "example-chat", "indicator": "fact_consistency"}
    return {**body, "evaluator": "factbench 2.1", **(said or {"good": 982, "bad": 18})}


def hand(desk: Desk, *rows: dict[str, Any], complete: Interval | None = None) -> HandedIn:
    return hand_in(
        desk.database,
        desk.register().sla_id,
        log(*rows),
        attestor=desk.attestor,
        clock=desk.clock,
        read_rows=read_facts,
        declared_complete=complete or desk.period.interval,
    )


def judge(desk: Desk) -> tuple[Window, ...]:
    registered = desk.register()
    with desk.database.begin() as tx:
        judged = evaluate_windows(tx, registered, desk.period, read_rows=read_facts)
        assert load_windows(tx, registered, desk.period).windows == judged.windows
        return judged.windows


def test_requests_and_samples_of_one_agreement_live_in_the_same_windows() -> None:
    desk = desk_for()
    hand(desk, row("a"), row("b", error_code=500))
    found = hand(desk, sample("s-1"), sample("s-2", "2023-06-14T11:00:00Z", good=5, bad=1, undecided=2))
    assert (found.batch.counts.accepted, found.rejections) == (2, ())
    windows = judge(desk)
    assert windows[10].cells == (Cell(1, 1), Cell(982, 18))
    assert windows[11].cells == (Cell(0, 0), Cell(5, 1, 2))
    assert all(window.state is WindowState.OBSERVED for window in windows)


def test_the_event_says_which_log_it_was() -> None:
    desk = desk_for()
    hand(desk, row("a"))
    hand(desk, sample("s-1"), sample("s-1", good=1, bad=0), sample("s-2", good=1, bad=0, evaluator="other 1"))
    stream = observations_stream(desk.register().sla_id, desk.agreement.source)
    with desk.database.read() as tx:
        events = list(tx.events.stream(stream))
    assert [event.payload["format"] for event in events] == ["requests", "samples"]
    assert events[1].payload["rows"] == {"accepted": 1, "duplicate": 0, "conflict": 1, "rejected": 1}
    assert events[1].payload["rejected_reasons"] == {"other_evaluator": 1}


def test_a_request_and_a_sample_of_one_id_are_no_conflict() -> None:
    desk = desk_for()
    assert hand(desk, row("same")).batch.counts.accepted == 1
    assert hand(desk, sample("same")).batch.counts.accepted == 1
    assert judge(desk)[10].cells == (Cell(1, 0), Cell(982, 18))


def test_samples_repeat_and_conflict_over_batches_as_requests_do() -> None:
    desk = desk_for()
    hand(desk, row("a"))
    hand(desk, sample("s-1"), sample("s-2"))
    again = hand(desk, sample("s-2"), sample("s-1", good=1000, bad=0)).batch.counts
    assert (again.accepted, again.duplicates, again.conflicts) == (0, 1, 1)
    assert judge(desk)[10].cells[1] == Cell(982, 18 + 1000)


def test_without_a_sample_log_a_window_has_no_data_and_with_one_that_is_empty_of_samples_it_is_idle() -> None:
    desk = desk_for()
    hand(desk, row("a"))
    assert {window.state for window in judge(desk)} == {WindowState.NO_DATA}
    start = desk.period.interval.start_ns
    hand(desk, sample("s-1"), complete=Interval(start + 9 * HOUR_NS, start + 12 * HOUR_NS))
    windows = judge(desk)
    assert [at for at, window in enumerate(windows) if window.state is WindowState.OBSERVED] == [9, 10, 11]
    assert windows[11].idle


def test_an_agreement_of_samples_alone_needs_no_request_log() -> None:
    desk = desk_for([OBJECTIVES[1]])
    hand(desk, sample("s-1"))
    windows = judge(desk)
    assert windows[10].cells == (Cell(982, 18),)
    assert all(window.state is WindowState.OBSERVED for window in windows)


def test_samples_that_no_objective_is_for_are_refused_and_nothing_is_written() -> None:
    desk = desk_for([OBJECTIVES[0]])
    with pytest.raises(RequestLogUnusable) as refused:
        hand(desk, sample("s-1"))
    assert refused.value.data["reasons"] == {"not_promised": 1}


def test_more_good_than_all_is_kept_and_blocks_the_period_until_it_is_answered() -> None:
    desk = desk_for([OBJECTIVES[1]])
    found = hand(desk, sample("lie", good=11, total=10), sample("s-1"))
    assert found.batch.counts.rejected == {"implausible": 1}
    with pytest.raises(ImplausibleCounts):
        judge(desk)
    (fault,) = QualityDesk(desk.database, read_facts).of(desk.attestor.sla_id(desk.agreement))
    assert (fault.digest, fault.source, fault.period) == (found.batch.digest, "gateway-log", str(desk.period))
    assert (fault.row["sample_id"], fault.row["line"], fault.row["field"]) == ("lie", 1, "bad")
    assert fault.row["value"] == "good 11, bad -1, undecided 0"
    assert "is good more than the total?" in fault.row["message"]
    assert not fault.resolved
    hand(desk, sample("lie", good=10, total=11))
    assert judge(desk)[10].cells == (Cell(992, 19),)
    assert [each.resolved for each in QualityDesk(desk.database, read_facts).of(fault.sla_id)] == [True]


def test_a_log_of_nothing_but_a_lie_is_recorded_and_blocks() -> None:
    desk = desk_for([OBJECTIVES[1]])
    hand(desk, sample("lie", good=11, total=10))
    with pytest.raises(ImplausibleCounts):
        judge(desk)
    assert len(QualityDesk(desk.database, read_facts).of(desk.attestor.sla_id(desk.agreement))) == 1


def test_a_lie_about_what_was_said_before_is_told_and_resolved_at_once() -> None:
    desk = desk_for([OBJECTIVES[1]])
    hand(desk, sample("s-1"))
    hand(desk, sample("s-1", good=-5, total=10), sample("s-2", good=-5, bad=5), sample("s-3"))
    found = QualityDesk(desk.database, read_facts).of(desk.attestor.sla_id(desk.agreement))
    assert [(each.row["sample_id"], each.row["value"], each.resolved) for each in found] == [
        ("s-2", "good -5, bad 5, undecided 0", False),
        ("s-1", "good -5, bad 15, undecided 0", True),
    ]


def test_lies_of_a_batch_are_all_told_and_none_of_another_period_or_span() -> None:
    desk = desk_for([OBJECTIVES[1]])
    lies = [sample(f"lie-{at}", good=2, total=1) for at in range(MAX_ROWS + 1)]
    hand(desk, *lies, sample("late", at="2031-01-01T00:00:00Z", good=2, total=1), sample("s-1"))
    assert len(QualityDesk(desk.database, read_facts).of(desk.attestor.sla_id(desk.agreement))) == MAX_ROWS + 1
    with desk.database.read() as tx:
        events = list(tx.events.stream(quality_stream(desk.attestor.sla_id(desk.agreement))))
    assert [len(event.payload["rows"]) for event in events] == [MAX_ROWS, 1]


def test_a_value_is_told_as_it_was_said() -> None:
    score = {**OBJECTIVES[1], "indicator": "logical_consistency", "measure": {"score_of": "5"}}
    desk = desk_for([score])
    for name, value in (("a", "5.000000001"), ("b", "-0.25"), ("c", "6")):
        hand(desk, {**sample(name, value=value), "indicator": "logical_consistency"})
    found = QualityDesk(desk.database, read_facts).of(desk.attestor.sla_id(desk.agreement))
    assert [each.row["value"] for each in found] == ["5.000000001", "-0.25", "6"]


def test_what_is_wrong_with_an_agreement_is_for_who_may_see_it() -> None:
    desk = desk_for([OBJECTIVES[1]])
    sla_id, nowhere = desk.attestor.sla_id(desk.agreement), "0x" + "22" * 32
    quality = QualityDesk(desk.database, read_facts)
    guest = Principal("guest", "default", frozenset({Scope.READ_UPTIME}), frozenset({"0x" + "11" * 32, nowhere}))
    for not_seen in (sla_id, nowhere):
        with pytest.raises(NotFound):
            quality.page(not_seen, guest, state=None, after=None, limit=1)
    with pytest.raises(NotFound):
        quality.of(nowhere)


def test_a_walk_over_bad_rows_meets_each_once_though_some_are_answered_meanwhile() -> None:
    desk = desk_for([OBJECTIVES[1]])
    sla_id, names = desk.attestor.sla_id(desk.agreement), [f"lie-{at}" for at in range(5)]
    quality = QualityDesk(desk.database, read_facts)
    everything = Principal("finance", "default", frozenset(Scope))
    hand(desk, *(sample(name, good=2, total=1) for name in names))
    walked, after = [], None
    while True:
        found = quality.page(sla_id, everything, state="open", after=after, limit=2)
        walked += [(row["sample_id"], found.open) for row in found.page.rows]
        after = found.page.last_id
        if after is None:
            break
        # The row that the cursor names, and one that was not met yet.
        hand(desk, sample(walked[-1][0], good=1, total=1), *[sample(names[3])] * (len(walked) == 2))
    assert walked == [("lie-0", 5), ("lie-1", 5), ("lie-2", 3), ("lie-4", 3)]
    resolved = quality.page(sla_id, everything, state="resolved", after=None, limit=9).page.rows
    assert [row["sample_id"] for row in resolved] == ["lie-1", "lie-3"]
    for forged in ("0.5", "9.0", "x", "-1"):
        with pytest.raises(CursorInvalid):
            quality.page(sla_id, everything, state=None, after=forged, limit=2)


def test_what_a_bad_row_counted_needs_the_scope_of_its_indicator() -> None:
    desk = desk_for([OBJECTIVES[1]])
    sla_id = desk.attestor.sla_id(desk.agreement)
    hand(desk, sample("lie", good=11, total=10))
    quality, seen = QualityDesk(desk.database, read_facts), []
    for scopes in ({Scope.READ_UPTIME}, {Scope.READ_UPTIME, Scope.READ_LATENCY}):
        viewer = Principal("viewer", "default", frozenset(scopes))
        (row,) = quality.page(sla_id, viewer, state=None, after=None, limit=2).page.rows
        seen.append((row["sample_id"], row["value"], row["message"] is None, row["withheld"]))
    # Of an indicator that has no scope of its own every scope of metrics is needed.
    assert seen == [
        ("lie", None, True, ["message", "value"]),
        ("lie", "good 11, bad -1, undecided 0", False, []),
    ]


def test_a_closed_period_waits_for_the_answer_to_an_implausible_count_and_goes_on_with_it() -> None:
    desk = desk_for([OBJECTIVES[1]])
    desk.clock.now = desk.period.interval.end_ns
    hand(desk, sample("lie", good=11, total=10), sample("s-1"))
    close(desk)
    while runner(desk).run_once():
        pass
    assert states(desk) == [("evaluate", "parked")]
    hand(desk, sample("lie", good=10, total=11))
    while runner(desk).run_once():
        pass
    registered = desk.register()
    with desk.database.read() as tx:
        issued = issued_for(tx, registered, desk.period)
    (result,) = issued.settlement.objectives
    assert (result.good, result.valid) == (992, 1011)


def test_a_sample_that_comes_after_the_closing_restates_the_period() -> None:
    desk = desk_for([OBJECTIVES[1]])
    desk.clock.now = desk.period.interval.end_ns
    hand(desk, sample("s-1", good=100, bad=0))
    close(desk)
    while runner(desk).run_once():
        pass
    hand(desk, sample("s-2", good=0, bad=100))
    while runner(desk).run_once():
        pass
    registered = desk.register()
    with desk.database.read() as tx:
        issued = issued_for(tx, registered, desk.period)
    assert (issued.version, issued.settlement.objectives[0].valid) == (2, 200)


def test_a_statement_says_what_is_undecided_and_that_no_circuit_adds_it_up() -> None:
    desk = desk_for([OBJECTIVES[1]])
    hand(desk, sample("s-1", good=98, bad=1, undecided=1))
    judge(desk)
    registered = desk.register()
    with desk.database.begin() as tx:
        issued = issue_statement(
            tx,
            registered,
            desk.period,
            load_windows(tx, registered, desk.period),
            attestor=desk.attestor,
            collector=desk.collector,
            randomness=desk.randomness,
            now_ns=desk.clock.now_ns(),
        )
        result = tx.views.statement(issued.id)["objectives"][0]
    assert (result["good"], result["valid"], result["state"]) == (98, 100, "insufficient_data")
    assert result["undecided"] == 1
    assert any("undecided" in reason for reason in issued.settlement.not_attestable)
    assert issued.settlement.credit == 0
