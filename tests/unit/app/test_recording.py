"""Recording on demand: what is asked for is queued with what the registry takes before it, once, and nothing else."""

from __future__ import annotations

import pytest

from ledger.app.chain.recording import demand_recording
from ledger.app.work.outbox import Stage
from ledger.errors import NotFound, Refused, SettingInvalid
from ledger.settings import Record, read_record
from tests.conformance.samples import agreement, anchor, attestation, statement, statement_id, unproved
from tests.unit.app.test_roots import Ledger

pytestmark = pytest.mark.slow


def queued(ledger: Ledger) -> list[str]:
    with ledger.database.read() as tx:
        entries = tx.outbox.entries(states=["pending", "done"], limit=100)
        waiting = [entry.event_id for entry in entries if entry.stage == Stage.ANCHOR]
        return [str(tx.events.by_id(event_id).payload["statement_id"]) for event_id in waiting]


def test_nothing_is_recorded_before_somebody_asks() -> None:
    ledger = Ledger()
    proof = ledger.settled.prove(1, ledger.chain.anchor, record_each=False)
    assert queued(ledger) == []
    with ledger.database.read() as tx:
        name = tx.events.by_id(proof).payload["statement_id"]
    for _ in range(2):
        assert demand_recording(ledger.database, name) == (name,)
        assert queued(ledger) == [name]
    ledger.settled.anchor(proof, ledger.chain.anchor)
    assert demand_recording(ledger.database, name) == ()


def test_each_is_recorded_unless_it_is_left_to_a_demand() -> None:
    ledger = Ledger()
    name = ledger.prove(1)
    assert queued(ledger) == [name]


def test_a_restatement_is_recorded_after_the_version_that_it_replaces() -> None:
    ledger = Ledger()
    first, second = statement_id(), statement_id(2)
    with ledger.database.begin() as tx:
        tx.events.append(f"agreement/{statement().payload['sla_id']}", [agreement()], expected_version=0)
        stream = f"statement/{statement().payload['sla_id']}/2023-12-19"
        tx.events.append(stream, [statement(), statement(2)], expected_version=0)
        tx.events.append(f"attestation/{second}", [attestation(second)], expected_version=0)
    with pytest.raises(Refused, match=f"{first} is recorded before {second}, and is not proved yet"):
        demand_recording(ledger.database, second)
    assert queued(ledger) == []
    with ledger.database.begin() as tx:
        tx.events.append(f"attestation/{first}", [attestation(first), anchor(first)], expected_version=0)
    assert demand_recording(ledger.database, second) == (second,)


def test_what_has_no_proof_is_refused_and_what_is_unknown_is_not_found() -> None:
    ledger = Ledger()
    with ledger.database.begin() as tx:
        stream = f"statement/{statement().payload['sla_id']}/2023-12-19"
        tx.events.append(stream, [unproved()], expected_version=0)
    with pytest.raises(Refused, match="has no proof"):
        demand_recording(ledger.database, statement_id())
    with pytest.raises(NotFound):
        demand_recording(ledger.database, "nothing")


def test_the_setting_is_one_of_two_words() -> None:
    assert read_record({}) is Record.EACH
    assert read_record({"SLA_LEDGER_RECORD": "on-demand"}) is Record.ON_DEMAND
    with pytest.raises(SettingInvalid, match="SLA_LEDGER_RECORD='never' must be each or on-demand"):
        read_record({"SLA_LEDGER_RECORD": "never"})
