"""Proving a statement: load what it was settled from, prove outside any transaction, record what was proved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.app.agreements.registering import RegisteredAgreement, load_timeline
from ledger.app.judgement.windows import load_windows
from ledger.app.ports.evidence import Attestation, Attestor, Salts, StatementContext
from ledger.app.ports.store import Database, Transaction
from ledger.app.settlement.sealing import load_salts
from ledger.app.settlement.statements import proved_before
from ledger.app.work.outbox import Stage
from ledger.domain.events.anchor_events import ANCHOR_UNDONE
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.domain.record.naming import attestation_stream
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import Clock
from ledger.domain.windows.window import Window


@dataclass(frozen=True, slots=True)
class _Material:
    """What a proof is made from, read in one transaction."""

    statement: Mapping[str, Any]
    registered: RegisteredAgreement
    period: Period
    windows: tuple[Window, ...]
    salts: Salts
    proofs_before: int
    """Earlier versions of the statement that carry a proof."""


def prove_statement(
    database: Database,
    event_id: str,
    *,
    attestor: Attestor,
    chain_id: int,
    registry: str,
    clock: Clock,
    record_each: bool = True,
) -> None:
    """Prove the statement of an event for a chain and registry, and queue its anchoring unless that is on demand.

    Safe to run twice: the context of a statement is recorded once, and a second proof of the same signals changes
    nothing. Raises ``Refused`` where no honest proof exists.
    """
    with database.read() as tx:
        material = _load(tx, event_id, attestor)
        if proved(tx, material.statement["statement_id"]) is not None:
            return
    statement = material.statement
    context = _context(material, attestor, chain_id, registry)
    attestation = attestor.attest(
        material.registered.agreement, material.period, material.windows, material.salts, context
    )
    with database.begin() as tx:
        recorded = _record(tx, statement, context, attestation, clock.now_ns())
        if recorded is not None and record_each:
            tx.outbox.add(recorded, Stage.ANCHOR)


def proved(tx: Transaction, statement_id: str) -> StoredEvent | None:
    """The ``attestation_recorded`` event of a statement, if there is one."""
    return _find(tx, statement_id, "attestation_recorded")


def anchored(tx: Transaction, statement_id: str) -> StoredEvent | None:
    """The ``anchor_recorded`` event of a statement; None while there is none, or while its anchor is undone."""
    found, undone = None, False
    for event in tx.events.stream(attestation_stream(statement_id)):
        if event.type == ANCHOR_UNDONE:
            undone = True
        elif event.type == "anchor_recorded":
            found, undone = event, False
        elif event.type == "anchor_confirmed":
            undone = False
    return None if found is None or undone else found


def confirmed(tx: Transaction, statement_id: str) -> StoredEvent | None:
    """The newest ``anchor_confirmed`` event of a statement; None while there is none, or while its anchor is undone."""
    found = None
    for event in tx.events.stream(attestation_stream(statement_id)):
        if event.type == "anchor_confirmed":
            found = event
        elif event.type == ANCHOR_UNDONE:
            found = None
    return found


def proved_circuits(tx: Transaction) -> list[dict[str, Any]]:
    """The circuits whose proofs this ledger holds, as a trust file pins them."""
    proofs = [row["attestation"] for row in tx.views.statements() if row["attestation"] is not None]
    proofs += [proof["incident_proof"] for proof in proofs if "incident_proof" in proof]
    found = {(proof["circuit_id"], proof["dev_key"]) for proof in proofs}
    return [{"circuit_id": circuit_id, "dev_unsafe": dev_key} for circuit_id, dev_key in sorted(found)]


def _find(tx: Transaction, statement_id: str, event_type: str) -> StoredEvent | None:
    return next((e for e in tx.events.stream(attestation_stream(statement_id)) if e.type == event_type), None)


def _load(tx: Transaction, event_id: str, attestor: Attestor) -> _Material:
    event = tx.events.by_id(event_id)
    statement = event.payload
    registered = load_timeline(tx, statement["sla_id"], attestor).of_document(statement["doc_sha256"])
    period = period_named(registered.agreement, statement["period"])
    windows = load_windows(tx, registered, period, before_seq=event.place).windows
    return _Material(
        statement, registered, period, windows, load_salts(tx, statement), len(proved_before(tx, statement))
    )


def _context(material: _Material, attestor: Attestor, chain_id: int, registry: str) -> StatementContext:
    """The context of a statement: each version's names that of the version before, so all follow from the first."""
    previous, terms_version = 0, material.statement["terms_version"]
    for version in range(1, material.proofs_before + 1):
        before = StatementContext(chain_id, registry, terms_version, version, previous)
        previous = attestor.context(material.registered.agreement, material.period, before)
    return StatementContext(chain_id, registry, terms_version, material.proofs_before + 1, previous)


def _record(
    tx: Transaction,
    statement: Mapping[str, Any],
    context: StatementContext,
    attestation: Attestation,
    now_ns: int,
) -> str | None:
    """The id of the event; None where the statement is proved already."""
    statement_id = statement["statement_id"]
    if proved(tx, statement_id) is not None:
        return None
    payload = {
        "statement_id": statement_id,
        "sla_id": statement["sla_id"],
        "chain_id": str(context.chain_id),
        "registry": context.registry,
        "previous_ctx": str(context.previous),
        **_proof_members(tx, attestation),
    }
    if attestation.incident_proof is not None:
        payload["incident_proof"] = _proof_members(tx, attestation.incident_proof)
    (receipt,) = tx.events.append(
        attestation_stream(statement_id),
        [NewEvent("attestation_recorded", payload, occurred_at_ns=now_ns)],
        expected_version=0,
    )
    return receipt.event_id


def _proof_members(tx: Transaction, attestation: Attestation) -> dict[str, Any]:
    return {
        "circuit": attestation.circuit,
        "circuit_id": attestation.circuit_id.hex(),
        "signals": [str(signal) for signal in attestation.signals],
        "proof_hash": "0x" + attestation.proof_hash.hex(),
        "proof": attestation.proof.hex(),
        "verification_key": tx.batches.put(canonical_bytes(attestation.verification_key)),
        "dev_key": attestation.dev_unsafe,
    }
