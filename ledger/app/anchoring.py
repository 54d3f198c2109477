"""Putting terms and proved statements on chain. Both stages may run twice: the registry makes repeats no-ops."""

from __future__ import annotations

import json

from ledger.app.agreements import RegisteredAgreement, load_agreement, registered_agreement
from ledger.app.attestations import anchored
from ledger.app.evidence import Anchor, Attestor, Recording, StatementContext
from ledger.app.ports import Database
from ledger.app.statements import issued_event
from ledger.domain.events import NewEvent
from ledger.domain.instant import Clock
from ledger.domain.naming import attestation_stream


def register_on_chain(database: Database, event_id: str, *, attestor: Attestor, anchor: Anchor) -> None:
    """Register the terms of an ``agreement_registered`` event with the customer's signature."""
    with database.read() as tx:
        registered = registered_agreement(tx.events.by_id(event_id).payload, attestor)
    _register(registered, anchor)


def anchor_statement(database: Database, event_id: str, *, attestor: Attestor, anchor: Anchor, clock: Clock) -> None:
    """Record the proof of an ``attestation_recorded`` event on chain, then in the log.

    The terms are registered first where they are not yet: stages may be worked in any order.
    """
    with database.read() as tx:
        proof = tx.events.by_id(event_id).payload
        statement = issued_event(tx, proof["statement_id"]).payload
        key = json.loads(tx.batches.get(proof["verification_key"]))
        if anchored(tx, proof["statement_id"]) is not None:
            return
        registered = load_agreement(tx, proof["sla_id"], attestor)
    _register(registered, anchor)
    recording = Recording(
        sla_id=proof["sla_id"],
        start_ns=int(statement["start_ns"]),
        end_ns=int(statement["end_ns"]),
        context=StatementContext(
            int(proof["chain_id"]),
            proof["registry"],
            statement["terms_version"],
            statement["statement_version"],
            int(proof["previous_ctx"]),
        ),
        circuit_id=bytes.fromhex(proof["circuit_id"]),
        signals=tuple(int(signal) for signal in proof["signals"]),
        proof=bytes.fromhex(proof["proof"]),
    )
    placed = anchor.record(recording, key, dev_unsafe=proof["dev_key"])
    payload = {
        "statement_id": proof["statement_id"],
        "sla_id": proof["sla_id"],
        "chain_id": proof["chain_id"],
        "registry": proof["registry"],
        "tx_hash": placed.tx_hash,
        "block_number": placed.block_number,
        "block_hash": placed.block_hash,
        "leaf": "0x" + attestor.leaf(recording).hex(),
    }
    with database.begin() as tx:
        if anchored(tx, proof["statement_id"]) is None:
            tx.events.append(
                attestation_stream(proof["statement_id"]),
                [NewEvent("anchor_recorded", payload, occurred_at_ns=clock.now_ns())],
                expected_version=1,
            )


def _register(registered: RegisteredAgreement, anchor: Anchor) -> None:
    if registered.registration is not None and registered.customer_signature is not None:
        anchor.register(registered.registration, registered.customer_signature)
