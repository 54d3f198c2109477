"""From a closed period to its statement, stage by stage, and each of them twice."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.app.agreements.registering import load_agreement, register_agreement, registration_of
from ledger.app.chain.turns import wait_for_turn
from ledger.app.facts.observations import record_observations
from ledger.app.facts.telemetry import find_evidence
from ledger.app.periods.closing import Cause, close_period
from ledger.app.ports.evidence import Collector
from ledger.app.ports.store import Database
from ledger.app.settlement.stages import compensate_period, evaluate_period
from ledger.app.settlement.statements import issued_for
from ledger.app.work.outbox import OutboxRunner, Stage
from ledger.attest.crypto.signing import verify
from ledger.domain.credits.settlement import SettlementState
from ledger.domain.record.naming import attestation_stream
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import SECOND_NS, parse_instant_ns
from ledger.errors import AnchorRefused, CollectorUnknown, NotFound, NotYet
from tests.conformance.samples import StepClock, anchor, attestation
from tests.unit.app.conftest import Desk, find_requests, log, make_desk, read_rows, row, share_as_cap


class Held:
    """Collectors, one of whom this ledger holds the key of."""

    def __init__(self, collector: Collector | None) -> None:
        self._collector = collector

    def of(self, agreement: Agreement) -> Collector:
        if self._collector is None:
            raise CollectorUnknown("the key of this collector is not held here")
        return self._collector


def judge(desk: Desk, event_id: str, database: Database | None = None) -> None:
    """The stage that follows a closing."""
    evaluate_period(
        database or desk.database,
        event_id,
        attestor=desk.attestor,
        read_rows=read_rows,
        find_evidence=find_evidence,
        find_requests=find_requests,
        clock=desk.clock,
    )


def runner(desk: Desk, *, collector: bool = True) -> OutboxRunner:
    held = Held(desk.collector if collector else None)

    def evaluate(database: Database, event_id: str) -> None:
        judge(desk, event_id, database)

    def compensate(database: Database, event_id: str) -> None:
        compensate_period(
            database, event_id, attestor=desk.attestor, collectors=held, randomness=desk.randomness, clock=desk.clock
        )

    work = {Stage.EVALUATE: evaluate, Stage.COMPENSATE: compensate}
    return OutboxRunner(desk.database, work, desk.clock, holder="this test")


def close(desk: Desk, data: bytes = b"", *, period: str = "2023-06-14/P1D") -> str:
    registered = desk.register()
    chosen = period_named(desk.agreement, period)
    with desk.database.begin() as tx:
        if data:
            record_observations(
                tx, registered, data, read_rows=read_rows, declared_complete=chosen.interval, now_ns=desk.clock.now_ns()
            )
        return close_period(tx, registered, chosen, cause=Cause.REQUEST, now_ns=desk.clock.now_ns()).event_id


def states(desk: Desk) -> list[tuple[str, str]]:
    with desk.database.read() as tx:
        return [(each.stage, each.state) for each in tx.outbox.entries(states=["pending", "done", "parked"], limit=99)]


def test_a_closed_period_is_judged_settled_and_queued_for_its_proof(desk: Desk) -> None:
    close(desk, log(row("a"), row("b", error_code=500)))
    assert runner(desk).run_once()
    assert states(desk) == [("evaluate", "done"), ("compensate", "pending")]
    assert runner(desk).run_once()
    assert states(desk) == [("evaluate", "done"), ("compensate", "done"), ("prove", "pending")]
    # Proving is somebody else's.
    assert not runner(desk).run_once()
    with desk.database.read() as tx:
        issued = issued_for(tx, desk.register(), desk.period)
    assert issued.settlement.state is SettlementState.SETTLED
    assert (issued.settlement.objectives[0].good, issued.settlement.objectives[0].valid) == (1, 2)


def test_every_stage_may_run_twice(desk: Desk) -> None:
    event_id = close(desk, log(row("a"), row("b", error_code=500)))
    while runner(desk).run_once():
        pass
    with desk.database.read() as tx:
        before = tx.log.size()
    judge(desk, event_id)
    compensate_period(
        desk.database,
        event_id,
        attestor=desk.attestor,
        collectors=Held(desk.collector),
        randomness=desk.randomness,
        clock=desk.clock,
    )
    with desk.database.read() as tx:
        assert tx.log.size() == before
        assert tx.outbox.pending() == 1


def test_facts_that_come_after_the_judging_are_judged_before_the_statement_is_issued(desk: Desk) -> None:
    desk.clock.now = desk.period.interval.end_ns
    close(desk, log(row("a")))
    assert runner(desk).run_once()
    close(desk, log(row("late", error_code=500)))
    while runner(desk).run_once():
        pass
    with desk.database.read() as tx:
        issued = issued_for(tx, desk.register(), desk.period)
    assert (issued.version, issued.settlement.objectives[0].valid) == (1, 2)


def test_without_the_collectors_key_it_is_parked_and_says_so(desk: Desk) -> None:
    close(desk, log(row("a")))
    while runner(desk, collector=False).run_once():
        pass
    assert states(desk) == [("evaluate", "done"), ("compensate", "parked")]
    with desk.database.read() as tx:
        ((event_id, stage, _, error),) = tx.outbox.parked()
        assert error.startswith("collector_unknown")
        with pytest.raises(NotFound):
            issued_for(tx, desk.register(), desk.period)
    with desk.database.begin() as tx:
        tx.outbox.retry(event_id, stage)
    assert runner(desk).run_once()
    assert states(desk)[1:] == [("compensate", "done"), ("prove", "pending")]


def test_what_no_circuit_attests_needs_no_collector() -> None:
    desk = make_desk(compensation=share_as_cap())
    close(desk, log(row("a", error_code=500)))
    while runner(desk, collector=False).run_once():
        pass
    assert states(desk) == [("evaluate", "done"), ("compensate", "done")]


class TestTurns:
    """The registry takes the periods of an agreement one after the other."""

    @pytest.fixture
    def desk(self) -> Desk:
        desk = make_desk()
        registration = registration_of(desk.agreement, _Circuits(desk.attestor), desk.period, terms_version=1)
        with desk.database.begin() as tx:
            register_agreement(
                tx,
                desk.agreement,
                attestor=desk.attestor,
                verify=verify,
                terms_version=1,
                registration=registration,
                customer_signature=bytes(65),
                now_ns=desk.clock.now_ns(),
            )
        return desk

    def settle(self, desk: Desk, period: str, data: bytes) -> str:
        """The id of the period's statement."""
        chosen = period_named(desk.agreement, period)
        with desk.database.begin() as tx:
            registered = load_agreement(tx, desk.attestor.sla_id(desk.agreement), desk.attestor)
            record_observations(
                tx, registered, data, read_rows=read_rows, declared_complete=chosen.interval, now_ns=desk.clock.now_ns()
            )
            close_period(tx, registered, chosen, cause=Cause.REQUEST, now_ns=desk.clock.now_ns())
        while runner(desk).run_once():
            pass
        with desk.database.read() as tx:
            return issued_for(tx, registered, chosen).id

    def prove(self, desk: Desk, statement_id: str) -> str:
        with desk.database.begin() as tx:
            (receipt,) = tx.events.append(
                attestation_stream(statement_id), [attestation(statement_id)], expected_version=0
            )
        return receipt.event_id

    def record(self, desk: Desk, statement_id: str) -> None:
        with desk.database.begin() as tx:
            tx.events.append(attestation_stream(statement_id), [anchor(statement_id)], expected_version=1)

    def test_the_first_one_waits_for_nobody(self, desk: Desk) -> None:
        first = self.settle(desk, "2023-06-14/P1D", log(row("a")))
        wait_for_turn(desk.database, self.prove(desk, first), clock=desk.clock)

    def test_the_next_one_waits_until_the_one_before_is_recorded(self, desk: Desk) -> None:
        second = self.settle(desk, "2023-06-15/P1D", log(row("b", "2023-06-15T10:00:00Z")))
        proof = self.prove(desk, second)
        with pytest.raises(NotYet, match="2023-06-14/P1D") as waits:
            wait_for_turn(desk.database, proof, clock=desk.clock)
        assert waits.value.data["retry_after_s"] > 0
        first = self.settle(desk, "2023-06-14/P1D", log(row("a")))
        self.prove(desk, first)
        with pytest.raises(NotYet):
            wait_for_turn(desk.database, proof, clock=desk.clock)
        self.record(desk, first)
        wait_for_turn(desk.database, proof, clock=desk.clock)

    @pytest.mark.parametrize(("age_s", "pause_s"), [(0, 2), (20, 2), (300, 30), (3000, 300), (86400, 300), (-60, 2)])
    def test_the_longer_it_waits_the_rarer_it_looks(self, desk: Desk, age_s: int, pause_s: int) -> None:
        second = self.settle(desk, "2023-06-15/P1D", log(row("b", "2023-06-15T10:00:00Z")))
        proof = self.prove(desk, second)
        with desk.database.read() as tx:
            recorded_at_ns = tx.events.by_id(proof).recorded_at_ns
        with pytest.raises(NotYet) as waits:
            wait_for_turn(desk.database, proof, clock=StepClock(recorded_at_ns + (age_s - 1) * SECOND_NS))
        assert waits.value.data["retry_after_s"] == pause_s

    def test_behind_one_that_was_withheld_it_is_refused_and_says_what_to_do(self, desk: Desk) -> None:
        desk.clock.now = parse_instant_ns("2023-06-20T00:00:00Z")
        with desk.database.begin() as tx:
            registered = load_agreement(tx, desk.attestor.sla_id(desk.agreement), desk.attestor)
            close_period(tx, registered, desk.period, cause=Cause.REQUEST, now_ns=desk.clock.now_ns())
        second = self.settle(desk, "2023-06-15/P1D", log(row("b", "2023-06-15T10:00:00Z")))
        third = self.settle(desk, "2023-06-16/P1D", log(row("c", "2023-06-16T10:00:00Z")))
        proof = self.prove(desk, second)
        said = r"2023-06-14\.v1 before .*\.v1 has no proof to record \(it was withheld\)\. Facts of it .* until 2023"
        with pytest.raises(AnchorRefused, match=said) as gap:
            wait_for_turn(desk.database, proof, clock=desk.clock)
        assert f"`sla-ledger outbox retry {proof} anchor`" in gap.value.message
        # Those behind it wait for it, as ever.
        with pytest.raises(NotYet, match="2023-06-15/P1D"):
            wait_for_turn(desk.database, self.prove(desk, third), clock=desk.clock)
        # What came late gives the first period a version with a proof, and the second its turn.
        first = self.settle(desk, "2023-06-14/P1D", log(row("a")))
        assert first.endswith(".v2")
        with pytest.raises(NotYet, match="2023-06-14/P1D"):
            wait_for_turn(desk.database, proof, clock=desk.clock)
        self.prove(desk, first)
        self.record(desk, first)
        wait_for_turn(desk.database, proof, clock=desk.clock)


class _Circuits:
    """An attestor that names a circuit without having its key made."""

    def __init__(self, attestor: Any) -> None:
        self._attestor = attestor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._attestor, name)

    def circuit_ids(self, agreement: Agreement) -> tuple[bytes, ...]:
        return (bytes(32),)
