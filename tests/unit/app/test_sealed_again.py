"""Versions of a statement of which some are beyond every circuit: what is sealed, and what that is worked out from."""

from __future__ import annotations

from typing import Any

from ledger.app.judgement.windows import load_windows
from ledger.app.periods.exclusions import AskedExclusion, ExclusionDesk
from ledger.app.settlement.sealing import load_salts, seals_of
from ledger.app.settlement.statements import issued_event
from ledger.domain.credits.restatement import carries_proof
from tests.unit.app.conftest import Desk, make_desk, row
from tests.unit.app.test_restating import HOUR_NS, at_the_end, close, hand_in, late, settle, statements

OBJECTIVES = [
    {"id": "uptime", "method": "total_ratio", "indicator": "availability", "target": "99"},
    {"id": "memory", "method": "total_ratio", "indicator": "oom_avoidance", "target": "98"},
]


def desk_for(**terms: Any) -> Desk:
    compensation = dict(make_desk().agreement.document["compensation"])
    tiers = {"uptime": [{"below": "99", "credit_percent": "10"}], "memory": [{"below": "98", "credit_percent": "20"}]}
    rules = [{"kind": "tiered", "method": "tiered-v1", "tiers": tiers}]
    return at_the_end(make_desk(objectives=OBJECTIVES, compensation={**compensation, "rules": rules}, **terms))


def sample(name: str, hour: int, **counts: int) -> dict[str, Any]:
    said = {"sample_id": name, "at": f"2023-06-14T{hour:02}:00:00Z", "service": "example-chat"}
    return {**said, "indicator": "oom_avoidance", **counts}


def require_sealed(desk: Desk, said: dict[str, Any]) -> None:
    """The seals of a version are those of its windows, under the salts that are kept for it."""
    registered = desk.register()
    with desk.database.read() as tx:
        event = issued_event(tx, said["statement_id"])
        windows = load_windows(tx, registered, desk.period, before_seq=event.place).windows
        seal = desk.attestor.seal(registered.agreement, desk.period, windows, load_salts(tx, said).blocks)
        sealed = [each.payload["block_hash"] for each in seals_of(tx, seal.seal_key, said["statement_version"])]
    assert str(seal.root) == said["telemetry_root"]
    assert [str(each) for each in seal.blocks] == sealed


def test_what_no_circuit_proved_at_first_is_sealed_once_one_can() -> None:
    desk = desk_for()
    hand_in(desk, row("a"))
    hand_in(desk, sample("s", 3, good=90, bad=0), sample("t", 4, good=1, bad=0, undecided=5))
    close(desk)
    late(desk, sample("t", 4, good=6, bad=0))
    first, second = statements(desk)
    assert (carries_proof(first), carries_proof(second)) == (False, True)
    require_sealed(desk, second)


def test_what_went_beyond_the_circuits_and_came_back_is_sealed_anew_where_it_differs_from_what_was_sealed() -> None:
    desk = desk_for()
    hand_in(desk, row("a"))
    hand_in(desk, sample("s", 3, good=90, bad=0))
    close(desk)
    late(desk, sample("t", 4, good=1, bad=0, undecided=5))
    late(desk, sample("t", 4, good=6, bad=0))
    found = statements(desk)
    assert [carries_proof(each) for each in found] == [True, False, True]
    assert [each["seal_key"] is None for each in found] == [False, True, False]
    require_sealed(desk, found[0])
    require_sealed(desk, found[2])
    assert found[2]["telemetry_root"] != found[0]["telemetry_root"]


def test_what_came_back_to_what_was_sealed_keeps_its_seal() -> None:
    """Time that a dispute takes out leaves nothing open, and the windows are those of the first version again."""
    dispute = [{"id": "dispute", "kind": "dispute", "reason": "both agree"}]
    desk = desk_for(carve_outs=dispute)
    hand_in(desk, row("a"))
    hand_in(desk, sample("s", 3, good=90, bad=0))
    close(desk)
    late(desk, sample("t", 4, good=1, bad=0, undecided=5))
    from_ns = desk.period.interval.start_ns + 4 * HOUR_NS
    asked = AskedExclusion("d1", "dispute", from_ns, from_ns + 60 * 10**9, "both agree", approved_by="board")
    ExclusionDesk(desk.database, desk.attestor, desk.clock).record(desk.attestor.sla_id(desk.agreement), asked)
    settle(desk)
    first, _, third = statements(desk)
    assert third["telemetry_root"] == first["telemetry_root"]
    require_sealed(desk, third)
    with desk.database.read() as tx:
        old, new = load_salts(tx, first), load_salts(tx, third)
    assert old.blocks == new.blocks
    assert len({old.base, new.base, old.credit, new.credit}) == 4
