"""Statements that are settled by the real use cases and proved by forgery, ready to be put on a chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from eth_account import Account
from eth_utils import keccak

from ledger.anchor.verifier_key import circuit_id, constructor_words
from ledger.app.agreements.registering import load_agreement, register_agreement, registration_of
from ledger.app.chain.anchoring import anchor_statement, confirm_statement
from ledger.app.facts.observations import record_observations
from ledger.app.judgement.windows import evaluate_windows
from ledger.app.ports.evidence import Anchor, Attestation, Salts, StatementContext
from ledger.app.ports.store import Database
from ledger.app.settlement.attestations import prove_statement, proved
from ledger.app.settlement.statements import issue_statement
from ledger.attest.crypto.pair import pair_id
from ledger.attest.crypto.signing import verify
from ledger.attest.proving.attestor import CircuitAttestor
from ledger.attest.proving.circuits import load_circuits
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.calendar import Period
from ledger.domain.windows.window import Window
from ledger.resources import resource_dir
from tests.conformance.samples import SeededRandomness, StepClock
from tests.contracts.ground import ctx_of
from tests.contracts.trapdoor import Trapdoor, curve_order
from tests.unit.app.conftest import CUSTOMER, ISSUER, TestCollector, log, read_rows, row, signed_agreement

DAY = "2023-06-14/P1D"
DEPLOYER = b"\x04" * 32


class ForgingAttestor(CircuitAttestor):
    """Seals as the product does, and proves whatever it is asked to: whoever made the key can."""

    def __init__(self) -> None:
        super().__init__(load_circuits(resource_dir("circuits")), {})
        self.trapdoor, self.incidents = Trapdoor(), Trapdoor("incidents")
        self.circuit_id = circuit_id(constructor_words(self.trapdoor.verification_key))
        self.incident_circuit_id = circuit_id(constructor_words(self.incidents.verification_key))

    def circuit_ids(self, agreement: Agreement) -> tuple[bytes, ...]:
        if agreement.compensation.impact is not None:
            return (pair_id(self.circuit_id, self.incident_circuit_id),)
        return (self.circuit_id,)

    def attest(
        self,
        agreement: Agreement,
        period: Period,
        windows: Sequence[Window],
        salts: Salts,
        context: StatementContext,
    ) -> Attestation:
        ctx = ctx_of(
            context.chain_id,
            context.registry,
            bytes.fromhex(self.sla_id(agreement)[2:]),
            period.interval.start_ns,
            period.interval.end_ns,
            context.terms_version,
            context.statement_version,
            context.previous,
        )
        terms = self.terms_hash(agreement)
        signals = (0xAA | len(windows) << 8 | len(windows) << 18, 5, ctx, curve_order - 5, terms, curve_order - 7)
        proof = self.trapdoor.forge(signals)
        key = self.trapdoor.verification_key
        second = None
        if agreement.compensation.impact is not None:
            shown = (0, 7, ctx, signals[1], terms, curve_order - 9)
            other, name = self.incidents.forge(shown), self.incident_circuit_id
            known = self.incidents.verification_key
            second = Attestation("incidents_64", name, shown, other, keccak(other), known, dev_unsafe=True)
        return Attestation("compliance_25x4", self.circuit_id, signals, proof, keccak(proof), key, True, second)


@dataclass
class Settled:
    """One ledger with statements of one day, each under an agreement of its own."""

    database: Database
    attestor: ForgingAttestor = field(default_factory=ForgingAttestor)
    clock: StepClock = field(default_factory=StepClock)

    def prove(self, n: int, anchor: Anchor, *, record_each: bool = True, terms: str = "agreement.yaml") -> str:
        """Settle the ``n``-th agreement's day and prove it for a chain; the id of the proof's event."""
        agreement = _agreement(n, terms)
        period = period_named(agreement, DAY)
        registration = registration_of(agreement, self.attestor, period, terms_version=1)
        assert registration is not None
        digest = anchor.registration_digest(registration)
        with self.database.begin() as tx:
            register_agreement(
                tx,
                agreement,
                attestor=self.attestor,
                verify=verify,
                terms_version=1,
                registration=registration,
                customer_signature=bytes(Account.unsafe_sign_hash(digest, CUSTOMER).signature),
                now_ns=self.clock.now_ns(),
            )
        return self._settle(agreement, log(row("a"), row("b")), anchor, seed=n, record_each=record_each)

    def restate(self, n: int, anchor: Anchor) -> str:
        """A late fact about the ``n``-th agreement's day, and the proof of the version that follows."""
        return self._settle(_agreement(n), log(row("late", error_code=500)), anchor, seed=n + 100)

    def _settle(self, agreement: Agreement, data: bytes, anchor: Anchor, *, seed: int, record_each: bool = True) -> str:
        period = period_named(agreement, DAY)
        steps: dict[str, Any] = {"read_rows": read_rows}
        with self.database.begin() as tx:
            registered = load_agreement(tx, self.attestor.sla_id(agreement), self.attestor)
            record_observations(
                tx, registered, data, declared_complete=period.interval, now_ns=self.clock.now_ns(), **steps
            )
        with self.database.begin() as tx:
            judged = evaluate_windows(tx, registered, period, **steps)
            issued = issue_statement(
                tx,
                registered,
                period,
                judged,
                attestor=self.attestor,
                collector=TestCollector(),
                randomness=SeededRandomness(seed),
                now_ns=self.clock.now_ns(),
            )
        prove_statement(
            self.database,
            issued.receipt.event_id,
            attestor=self.attestor,
            chain_id=anchor.chain_id,
            registry=anchor.registry,
            clock=self.clock,
            record_each=record_each,
        )
        with self.database.read() as tx:
            event = proved(tx, issued.id)
        assert event is not None
        return event.id

    def anchor(self, event_id: str, anchor: Anchor) -> None:
        """The stage ANCHOR of a proof's event."""
        anchor_statement(self.database, event_id, attestor=self.attestor, anchor=anchor, clock=self.clock)

    def confirm(self, event_id: str, anchor: Anchor, confirmations: int) -> None:
        """The stage CONFIRM of the anchor of a proof's event."""
        event = self.events(event_id, "anchor_recorded")[0]
        confirm_statement(
            self.database,
            event.id,
            attestor=self.attestor,
            anchor=anchor,
            confirmations=confirmations,
            clock=self.clock,
        )

    def events(self, event_id: str, kind: str) -> list[Any]:
        """The events of a type in the stream of a proof's event."""
        with self.database.read() as tx:
            stream = tx.events.by_id(event_id).stream
            return [event for event in tx.events.stream(stream) if event.type == kind]


def _agreement(n: int, terms: str = "agreement.yaml") -> Agreement:
    return Agreement.from_document(signed_agreement(terms, nonce=f"0x{n + 1:064x}"))


ACCOUNTS = {"deployer": DEPLOYER, "issuer": ISSUER}
