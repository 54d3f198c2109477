"""Exclusions as events: recorded, withdrawn, what they do to windows and violations, and what is refused."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ledger.app.judgement.violations import record_violations
from ledger.app.judgement.windows import JudgedPeriod, evaluate_windows
from ledger.app.periods.closing import Cause, close_period
from ledger.app.periods.exclusions import (
    MAX_EXCLUSIONS,
    AskedExclusion,
    ExclusionDesk,
    RecordedExclusion,
    rulings_by_id,
)
from ledger.app.settlement.statements import issue_statement
from ledger.attest.checks.case import Case
from ledger.attest.checks.exclusion_checks import require_excluded
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.naming import (
    closing_stream,
    exclusions_stream,
    statement_stream,
    violations_stream,
    windows_stream,
)
from ledger.domain.time.instant import parse_instant_ns
from ledger.domain.windows.exclusions import Ruling
from ledger.domain.windows.window import WindowState
from ledger.errors import (
    ClaimDeadlinePassed,
    ExclusionInvalid,
    ExclusionRefused,
    IdempotencyConflict,
    NotFound,
)
from tests.unit.app import test_restating as restating
from tests.unit.app.conftest import Desk, find_requests, log, make_desk, read_rows, row
from tests.unit.app.test_settling import record

MEMBERS: dict[str, Any] = {
    "maintenance": {
        "classes": [
            {
                "id": "gray-release",
                "reason": "a new version on part of the traffic",
                "longest": "PT15M",
                "at_most": {"count": 2, "per": "month"},
            },
            {"id": "rotation", "reason": "hosts are replaced", "notice": "PT72H"},
        ],
    },
    "carve_outs": [{"id": "dispute", "kind": "dispute", "reason": "both parties agree to leave it out"}],
}


@pytest.fixture
def desk() -> Desk:
    return make_desk(**MEMBERS)


def asked(name: str = "release-7", at: str = "10:00", minutes: int = 15, **changes: Any) -> AskedExclusion:
    from_ns = parse_instant_ns(f"2023-06-14T{at}:00Z")
    found = AskedExclusion(
        id=name,
        clause="gray-release",
        from_ns=from_ns,
        to_ns=from_ns + minutes * 60 * 10**9,
        reason="version 7",
        ticket="CHG-7",
        approved_by="change board",
        by="key 1",
    )
    return replace(found, **changes)


def exclusions(desk: Desk) -> ExclusionDesk:
    desk.register()
    return ExclusionDesk(desk.database, desk.attestor, desk.clock)


def sla_id(desk: Desk) -> str:
    return desk.attestor.sla_id(desk.agreement)


def add(desk: Desk, **changes: Any) -> RecordedExclusion:
    return exclusions(desk).record(sla_id(desk), asked(**changes))


def judge(desk: Desk) -> JudgedPeriod:
    registered = desk.register()
    end_ns = desk.period.interval.end_ns
    with desk.database.begin() as tx:
        judged = evaluate_windows(tx, registered, desk.period, read_rows=read_rows)
        record_violations(
            tx, registered, desk.period, judged, find_evidence=lambda *_: (), find_requests=find_requests, now_ns=end_ns
        )
    return judged


def events(desk: Desk, stream: str) -> list[Any]:
    with desk.database.read() as tx:
        return list(tx.events.stream(stream))


def close(desk: Desk) -> None:
    registered = desk.register()
    with desk.database.begin() as tx:
        close_period(tx, registered, desk.period, cause=Cause.REQUEST, now_ns=desk.period.interval.end_ns)


def test_an_exclusion_is_recorded_as_it_was_asked_for(desk: Desk) -> None:
    made = add(desk)
    (event,) = events(desk, exclusions_stream(sla_id(desk)))
    assert (event.type, event.payload) == ("exclusion_recorded", made.payload)
    assert event.payload["ticket"] == "CHG-7"
    assert event.payload["by"] == "key 1"
    assert made.ruled is not None
    assert made.ruled.ruling is Ruling.HONOURED


def test_the_same_again_gives_the_first_receipt_and_another_one_under_its_id_is_refused(desk: Desk) -> None:
    first, again = add(desk), add(desk, by="key 2")
    assert again.receipt == first.receipt
    with pytest.raises(IdempotencyConflict, match="another exclusion"):
        add(desk, minutes=14)


def test_what_its_class_does_not_allow_is_recorded_with_the_reason_and_not_honoured(desk: Desk) -> None:
    add(desk)
    add(desk, name="release-8", at="12:00")
    third = add(desk, name="release-9", at="14:00")
    assert third.ruled is not None
    assert (third.ruled.ruling, third.ruled.honoured) == (Ruling.TOO_MANY, None)
    late = add(desk, name="hosts", clause="rotation", announced_at_ns=parse_instant_ns("2023-06-13T00:00:00Z"))
    assert late.ruled is not None
    assert late.ruled.ruling is Ruling.ANNOUNCED_LATE


def test_a_window_and_a_violation_go_with_the_exclusion_that_holds_them(desk: Desk) -> None:
    desk_rows = [row("a", at="2023-06-14T03:00:00Z", error_code=500), row("b", at="2023-06-14T05:00:00Z")]
    record(desk, log(*desk_rows))
    assert judge(desk).windows[3].cells[0].bad == 1
    made = add(desk, name="dispute-1", at="03:00", minutes=60, clause="dispute", ticket=None)
    assert made.ruled is not None
    judged = judge(desk)
    assert judged.windows[3].state is WindowState.EXCLUDED
    told = [event for event in events(desk, windows_stream(sla_id(desk), desk.period.first)) if event.version >= 24]
    assert [(event.payload["index"], event.payload["exclusions"]) for event in told] == [(3, {"dispute-1": 1})]
    last = events(desk, violations_stream(sla_id(desk), desk.period.first))[-1]
    assert last.type == "violation_withdrawn"
    assert last.payload["reason"] == (
        "the windows were judged anew and show no violation here: time in it is excluded by dispute-1 (dispute)"
    )


def test_a_withdrawn_exclusion_takes_nothing_out_and_the_violation_is_back(desk: Desk) -> None:
    record(desk, log(row("a", at="2023-06-14T03:00:00Z", error_code=500)))
    add(desk, name="dispute-1", at="03:00", minutes=60, clause="dispute")
    assert judge(desk).windows[3].state is WindowState.EXCLUDED
    gone = exclusions(desk).withdraw(sla_id(desk), "dispute-1", reason="settled otherwise", by="key 1")
    assert (gone.payload["withdrawn_reason"], gone.payload["withdrawn_by"]) == ("settled otherwise", "key 1")
    assert judge(desk).windows[3].cells[0].bad == 1
    kinds = [event.type for event in events(desk, violations_stream(sla_id(desk), desk.period.first))]
    assert kinds == ["violation_opened", "violation_closed"]
    again = exclusions(desk).withdraw(sla_id(desk), "dispute-1", reason="once more")
    assert again.receipt == gone.receipt
    with pytest.raises(ExclusionRefused, match="its id is used up"):
        add(desk, name="dispute-1", at="03:00", minutes=60, clause="dispute")


def test_no_retroactive_maintenance_uptime_kuma_6064(desk: Desk) -> None:
    """Here there is: recorded after the fact, it counts as if it had been recorded before."""
    record(desk, log(row("a", at="2023-06-14T10:03:00Z", error_code=500), row("b", at="2023-06-14T10:30:00Z")))
    assert judge(desk).windows[10].cells[0].bad == 1
    # The clock is months past the period.
    assert desk.clock.now_ns() > desk.period.interval.end_ns
    add(desk)
    windows = judge(desk).windows
    assert (windows[10].state, windows[10].cells[0].good, windows[10].cells[0].bad) == (WindowState.OBSERVED, 1, 0)


def test_judging_again_with_the_same_exclusions_appends_nothing(desk: Desk) -> None:
    record(desk, log(row("a", at="2023-06-14T10:03:00Z", error_code=500)))
    add(desk)
    judge(desk)
    stream = windows_stream(sla_id(desk), desk.period.first)
    before = len(events(desk, stream))
    judge(desk)
    assert len(events(desk, stream)) == before


def test_a_request_in_excluded_time_is_no_evidence_of_what_is_left_of_a_violation(desk: Desk) -> None:
    for name, at in (("in", "03:10"), ("out", "03:40")):
        record(desk, log(row(name, at=f"2023-06-14T{at}:00Z", error_code=500)))
    add(desk, name="dispute-1", at="03:00", minutes=30, clause="dispute")
    judge(desk)
    (found,) = events(desk, violations_stream(sla_id(desk), desk.period.first))[-1:]
    assert [each["request_id"] for each in found.payload["evidence"]["requests"]] == ["out"]


def test_without_any_facts_an_excluded_window_is_excluded_and_the_others_are_without_data(desk: Desk) -> None:
    add(desk, name="dispute-1", at="03:00", minutes=60, clause="dispute")
    states = [window.state for window in judge(desk).windows]
    assert states[3] is WindowState.EXCLUDED
    assert set(states[:3] + states[4:]) == {WindowState.NO_DATA}


@pytest.mark.parametrize(
    ("changed", "field", "said"),
    [
        ({"clause": "picnic"}, "clause", "'picnic'; its clauses are gray-release, rotation, dispute"),
        ({"minutes": 0}, "to", "must come after"),
        ({"minutes": 367 * 1440}, "to", "at most 366 days"),
        ({"ticket": None}, "ticket", "gray-release is maintenance"),
        ({"announced_at_ns": 2**62}, "announced_at", "still to come"),
        ({"from_ns": 10**18, "to_ns": 10**18 + 1}, "from", "lies in no period"),
        ({"name": "Release 7"}, "exclusion_id", "'Release 7'"),
        ({"reason": ""}, "reason", "1 to 500"),
        ({"approved_by": "change\u202eboard"}, "approved_by", "U+202E"),
    ],
)
def test_what_cannot_be_is_refused_by_field_and_value(desk: Desk, changed: Any, field: str, said: str) -> None:
    with pytest.raises(ExclusionInvalid) as refused:
        add(desk, **changed)
    assert said in refused.value.message
    assert refused.value.data["field"] == field
    assert events(desk, exclusions_stream(sla_id(desk))) == []


def test_an_agreement_without_clauses_excludes_nothing() -> None:
    desk = make_desk()
    with pytest.raises(ExclusionInvalid, match="neither maintenance nor carve_outs"):
        add(desk)


def test_the_statement_lists_the_exclusions_that_take_something_out_and_what_was_honoured(desk: Desk) -> None:
    record(desk, log(row("a", at="2023-06-14T03:00:00Z", error_code=500)))
    add(desk, name="dispute-1", at="03:00", minutes=60, clause="dispute")
    add(desk, name="hosts", clause="rotation")
    judged, registered = judge(desk), desk.register()
    with desk.database.begin() as tx:
        issue_statement(
            tx,
            registered,
            desk.period,
            judged,
            attestor=desk.attestor,
            collector=desk.collector,
            randomness=desk.randomness,
            now_ns=desk.period.interval.end_ns,
        )
    (issued,) = events(desk, statement_stream(sla_id(desk), desk.period.first))
    assert issued.payload["excluded"] == 1
    listed = [(each["exclusion_id"], each["ruling"], each["honoured"]) for each in issued.payload["exclusions"]]
    start_ns = parse_instant_ns("2023-06-14T03:00:00Z")
    assert listed == [
        ("dispute-1", "honoured", {"from_ns": str(start_ns), "to_ns": str(start_ns + 3600 * 10**9)}),
    ]
    require_excluded(Case({"statement": {"payload": issued.payload}, "agreement": registered.agreement.document}))


def changes(desk: Desk) -> list[tuple[str, str]]:
    """(reason, fact) of what changed of the period since it was closed."""
    found = events(desk, closing_stream(sla_id(desk), desk.period.first))
    return [(event.payload["reason"], event.payload["fact"]) for event in found if event.type != "period_closed"]


def test_one_recorded_after_the_closing_has_the_period_judged_anew(desk: Desk) -> None:
    standing = add(desk)
    close(desk)
    desk.clock.now = desk.period.interval.end_ns + 86_400 * 10**9
    assert add(desk).receipt == standing.receipt
    made = add(desk, name="dispute-1", clause="dispute", at="03:00")
    gone = exclusions(desk).withdraw(sla_id(desk), "release-7", reason="called off")
    assert changes(desk) == [
        ("the exclusion dispute-1 (dispute) was recorded after the period was closed", made.receipt.event_id),
        ("the exclusion release-7 (gray-release) was withdrawn after the period was closed", gone.receipt.event_id),
    ]


def test_after_the_claim_deadline_nothing_of_a_closed_period_is_changed(desk: Desk) -> None:
    close(desk)
    desk.clock.now = desk.period.interval.end_ns + 30 * 86_400 * 10**9
    with pytest.raises(ClaimDeadlinePassed):
        add(desk)
    assert events(desk, exclusions_stream(sla_id(desk))) == []


def test_one_that_takes_nothing_out_of_a_closed_period_leaves_it_as_it_is(desk: Desk) -> None:
    close(desk)
    made = add(desk, clause="rotation")
    assert made.ruled is not None
    assert made.ruled.ruling is Ruling.ANNOUNCED_LATE
    assert changes(desk) == []


def test_an_earlier_release_that_pushes_one_of_a_closed_period_out_of_its_month_changes_that_period(desk: Desk) -> None:
    day_before = parse_instant_ns("2023-06-13T10:00:00Z")
    earlier = {"from_ns": day_before, "to_ns": day_before + 60 * 10**9}
    add(desk)
    add(desk, name="release-8", at="12:00")
    close(desk)
    desk.clock.now = desk.period.interval.end_ns + 86_400 * 10**9
    add(desk, name="release-6", **earlier)
    ((reason, _),) = changes(desk)
    assert "release-6" in reason


def test_a_retroactive_exclusion_restates_the_period_and_its_withdrawal_does_again() -> None:
    desk = restating.at_the_end(make_desk(**MEMBERS))
    restating.hand_in(desk, row("a"), restating.failed("b", 3))
    restating.close(desk)
    owed = restating.owed(desk)
    assert owed > 0
    made = add(desk, name="dispute-1", clause="dispute", at="03:00", minutes=60)
    restating.settle(desk)
    first, second = restating.statements(desk)
    assert (first["excluded"], second["excluded"], second["observed"]) == (0, 1, 23)
    assert second["restates"]["facts"] == [made.receipt.event_id]
    assert "the exclusion dispute-1 (dispute) was recorded" in second["reason"]
    assert second["credit_delta"]["new"] == "0"
    assert restating.owed(desk) == 0
    last = events(desk, violations_stream(sla_id(desk), desk.period.first))[-1]
    assert (last.type, "dispute-1" in last.payload["reason"]) == ("violation_withdrawn", True)
    exclusions(desk).withdraw(sla_id(desk), "dispute-1", reason="not agreed after all")
    restating.settle(desk)
    third = restating.statements(desk)[-1]
    assert (third["statement_version"], third["excluded"], restating.owed(desk)) == (3, 0, owed)
    assert "exclusions" not in third


RECORDED: Sequence[Any] = (
    None,
    {"name": "whole", "clause": "dispute", "at": "03:00", "minutes": 60},
    {"name": "inside", "clause": "dispute", "at": "03:20", "minutes": 10},
    {"name": "hosts", "clause": "rotation", "at": "05:00"},
)
"""Closing the period (None), and exclusions: one inside the time of another, and one that was announced too late."""


def test_the_same_exclusions_in_any_order_give_the_same_bytes() -> None:
    digests = set()
    for order in itertools.permutations(RECORDED):
        desk = restating.at_the_end(make_desk(**MEMBERS))
        restating.hand_in(desk, row("a"), restating.failed("b", 3))
        for each in order:
            if each is None:
                restating.close(desk)
            else:
                add(desk, **each)
        restating.settle(desk)
        newest = restating.statements(desk)[-1]
        assert [each["exclusion_id"] for each in newest["exclusions"]] == ["whole", "inside"]
        said = {name: newest[name] for name in ("exclusions", "excluded", "observed", "objectives", "credit", "trace")}
        digests.add(hashlib.sha256(canonical_bytes(said)).hexdigest())
    assert len(digests) == 1


def test_one_inside_the_time_of_another_is_a_version_with_the_same_figures_and_without_lines() -> None:
    desk = restating.at_the_end(make_desk(**MEMBERS))
    restating.hand_in(desk, row("a"), restating.failed("b", 3), restating.failed("c", 9))
    add(desk, **RECORDED[1])
    restating.close(desk)
    owed = restating.owed(desk)
    add(desk, **RECORDED[2])
    restating.settle(desk)
    first, second = restating.statements(desk)
    assert (first["objectives"], first["trace"]) == (second["objectives"], second["trace"])
    assert (second["objective_deltas"], second["credit_delta"]["difference"]) == ([], "0")
    assert (restating.lines(desk, second["statement_id"]), restating.owed(desk)) == ([], owed)


def test_exclusions_of_an_agreement_that_is_not_there(desk: Desk) -> None:
    with pytest.raises(NotFound):
        exclusions(desk).record("0x" + "00" * 32, asked())
    with pytest.raises(NotFound, match="no exclusion nothing"):
        exclusions(desk).withdraw(sla_id(desk), "nothing", reason="x")


def test_there_can_be_so_many(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledger.app.periods.exclusions.MAX_EXCLUSIONS", 1)
    add(desk)
    with pytest.raises(ExclusionRefused, match="the most there can be"):
        add(desk, name="release-8", at="12:00")
    assert MAX_EXCLUSIONS == 10_000


def capped(minutes: int) -> dict[str, Any]:
    return {**MEMBERS, "maintenance": {**MEMBERS["maintenance"], "cap_minutes": minutes}}


@pytest.mark.parametrize("after", ["the closing", "nothing"])
def test_of_two_at_the_same_time_one_is_over_the_cap_and_the_other_counts(after: str) -> None:
    desk = restating.at_the_end(make_desk(**capped(1)))
    first, second = asked(minutes=60, clause="rotation", announced_at_ns=0), asked("no-fault", minutes=60)
    second = replace(second, clause="dispute", ticket=None)
    restating.hand_in(desk, row("a"), restating.failed("b", 10), restating.failed("c", 11))
    exclusions(desk).record(sla_id(desk), first)
    if after == "the closing":
        restating.close(desk)
    exclusions(desk).record(sla_id(desk), second)
    restating.close(desk)
    assert restating.statements(desk)[-1]["excluded"] == 1


def test_hundreds_of_long_exclusions_are_ruled_on_in_no_time() -> None:
    year = {"effective": {"from": "1990-01-01", "until": "2071-01-01"}}
    terms = make_desk(**capped(150), **year).agreement
    day_ns, first_ns = 86_400 * 10**9, parse_instant_ns("1991-01-01T00:00:00Z")
    found = [
        {
            "exclusion_id": f"e{at:03}",
            "clause": "rotation",
            "from_ns": str(first_ns + at * 30 * day_ns),
            "to_ns": str(first_ns + (at * 30 + 366) * day_ns),
            "announced_at_ns": "0",
            "approved_by": "change board",
        }
        for at in range(400)
    ]
    started_s = time.process_time()
    rulings = rulings_by_id(terms, found)
    assert time.process_time() - started_s < 5
    for name in ("e000", "e399"):
        ruled = rulings[name]
        assert ruled.ruling is Ruling.SHORTENED
        assert ruled.honoured is not None
        assert ruled.honoured.duration_ns == 150 * 60 * 10**9
