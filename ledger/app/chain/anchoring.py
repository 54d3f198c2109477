"""Putting terms and proved statements on chain, and waiting until they stay there.

Every stage may run twice, and in several processes at once: the registry and the stored transactions make repeats
no-ops.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ledger.app.agreements.registering import RegisteredAgreement, load_timeline
from ledger.app.chain.turns import recorded_before, wait_for_turn
from ledger.app.ports.evidence import Anchor, Anchored, Attestor, IncidentProof, Recording, StatementContext
from ledger.app.ports.store import Database, Transaction
from ledger.app.settlement.attestations import anchored, confirmed, proved
from ledger.app.settlement.statements import issued_event, proved_before
from ledger.app.work.outbox import Stage
from ledger.app.work.retrying import pause_s
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.domain.record.naming import attestation_stream
from ledger.domain.time.instant import Clock
from ledger.errors import AnchorRefused, NotFound, NotYet, VersionConflict

RETRY_S = 2.0


@dataclass(frozen=True, slots=True)
class _Material:
    """What is recorded on chain, read in one transaction."""

    recording: Recording
    verification_key: Mapping[str, Any]
    dev_unsafe: bool
    registered: RegisteredAgreement


def register_on_chain(database: Database, event_id: str, *, attestor: Attestor, anchor: Anchor) -> None:
    """Register the terms of an ``agreement_registered`` event with the customer's signature.

    The versions before are registered first where they are not yet: the registry takes them in their order, and an
    amendment only before it takes effect, while stages may be worked in any order.
    """
    with database.read() as tx:
        said = tx.events.by_id(event_id).payload
        versions = load_timeline(tx, said["sla_id"], attestor).versions
    for registered in versions[: said["terms_version"]]:
        _register(registered, anchor)


def anchor_statement(database: Database, event_id: str, *, attestor: Attestor, anchor: Anchor, clock: Clock) -> None:
    """Record the proof of an ``attestation_recorded`` event on chain, then in the log, and queue its confirmation.

    The terms are registered first where they are not yet: stages may be worked in any order.
    """
    with database.read() as tx:
        proof = tx.events.by_id(event_id).payload
        if anchored(tx, proof["statement_id"]) is not None:
            return
        material = _load(tx, proof, attestor)
    placed = _record(material, anchor)
    payload = {
        "statement_id": proof["statement_id"],
        "sla_id": proof["sla_id"],
        "chain_id": proof["chain_id"],
        "registry": proof["registry"],
        "tx_hash": placed.tx_hash,
        "block_number": placed.block_number,
        "block_hash": placed.block_hash,
        "leaf": "0x" + attestor.leaf(material.recording).hex(),
    }
    raw = _bytes_of_others(database, anchor, placed.tx_hash)
    event = NewEvent("anchor_recorded", payload, occurred_at_ns=clock.now_ns())
    _log_once(database, proof["statement_id"], event, raw, said=anchored, then=Stage.CONFIRM)


def confirm_statement(
    database: Database, event_id: str, *, attestor: Attestor, anchor: Anchor, confirmations: int, clock: Clock
) -> None:
    """Log that the anchor of an ``anchor_recorded`` or ``anchor_undone`` event has stood for so many ``confirmations``.

    Raises ``NotYet`` until then. What a reorganisation moved is awaited in its new block; what it dropped, or made
    fail, is recorded again, after what the registry takes before it: by the same bytes where they can still be
    included, by a new transaction otherwise.
    """
    with database.read() as tx:
        event = tx.events.by_id(event_id)
        recorded = event.payload
        statement_id = recorded["statement_id"]
        if confirmed(tx, statement_id) is not None:
            return
    standing = anchor.standing(recorded["tx_hash"])
    if standing is None:
        wait_for_turn(database, event_id, clock=clock)
        standing = anchor.standing(_record_again(database, statement_id, attestor, anchor).tx_hash)
    have = 0 if standing is None else standing.confirmations
    if standing is None or have < confirmations:
        raise NotYet(
            f"the anchor of {statement_id} has {have} of {confirmations} confirmations",
            statement_id=statement_id,
            confirmations=have,
            retry_after_s=pause_s(event.recorded_at_ns, clock.now_ns(), least_s=max(confirmations - have, 1)),
        )
    payload = {
        "statement_id": statement_id,
        "sla_id": recorded["sla_id"],
        "chain_id": recorded["chain_id"],
        "tx_hash": standing.placed.tx_hash,
        "block_number": standing.placed.block_number,
        "block_hash": standing.placed.block_hash,
        "confirmations": have,
    }
    confirmation = NewEvent("anchor_confirmed", payload, occurred_at_ns=clock.now_ns())
    raw = _bytes_of_others(database, anchor, standing.placed.tx_hash)
    _log_once(database, statement_id, confirmation, raw, said=confirmed)


def _load(tx: Transaction, proof: Mapping[str, Any], attestor: Attestor) -> _Material:
    statement = issued_event(tx, proof["statement_id"]).payload
    earlier = proved_before(tx, statement)
    recording = recording_of(tx, proof)
    if earlier:
        signals = _previous_signals(tx, proof, earlier[-1].payload["statement_id"])
        recording = replace(recording, previous_signals=signals)
    key = json.loads(tx.batches.get(proof["verification_key"]))
    registered = load_timeline(tx, proof["sla_id"], attestor).of_document(statement["doc_sha256"])
    return _Material(recording, key, proof["dev_key"], registered)


def recording_of(tx: Transaction, proof: Mapping[str, Any]) -> Recording:
    """What an ``attestation_recorded`` payload proves, without the signals of the statement that it replaces."""
    statement = issued_event(tx, proof["statement_id"]).payload
    return Recording(
        sla_id=proof["sla_id"],
        start_ns=int(statement["start_ns"]),
        end_ns=int(statement["end_ns"]),
        context=StatementContext(
            int(proof["chain_id"]),
            proof["registry"],
            statement["terms_version"],
            len(proved_before(tx, statement)) + 1,
            int(proof["previous_ctx"]),
        ),
        circuit_id=bytes.fromhex(proof["circuit_id"]),
        signals=tuple(int(signal) for signal in proof["signals"]),
        proof=bytes.fromhex(proof["proof"]),
        incident_proof=_incident_proof(tx, proof),
    )


def _incident_proof(tx: Transaction, proof: Mapping[str, Any]) -> IncidentProof | None:
    second = proof.get("incident_proof")
    if second is None:
        return None
    return IncidentProof(
        circuit_id=bytes.fromhex(second["circuit_id"]),
        signals=tuple(int(signal) for signal in second["signals"]),
        proof=bytes.fromhex(second["proof"]),
        verification_key=json.loads(tx.batches.get(second["verification_key"])),
        dev_unsafe=second["dev_key"],
    )


def _previous_signals(tx: Transaction, proof: Mapping[str, Any], replaced: str) -> tuple[int, ...]:
    """The signals of the statement that a proof replaces, as they were recorded before it at the same registry."""
    before = proved(tx, replaced)
    if before is None:
        raise NotYet(
            f"{replaced} is recorded before {proof['statement_id']}, and is not proved yet",
            waits_for=replaced,
            retry_after_s=RETRY_S,
        )
    for name in ("chain_id", "registry"):
        if before.payload[name] != proof[name]:
            raise AnchorRefused(
                f"{replaced} was proved for {name} {before.payload[name]}, and {proof['statement_id']} for "
                f"{proof[name]}; a restatement is recorded where the statement it replaces is",
                replaced=replaced,
            )
    incidents = before.payload.get("incident_proof")
    return tuple(int(signal) for signal in [*before.payload["signals"], *(incidents["signals"] if incidents else ())])


def _bytes_of_others(database: Database, anchor: Anchor, tx_hash: str) -> bytes | None:
    """The transaction where another party sent it: bundles show it, and nobody stored it here."""
    with database.read() as tx, suppress(NotFound):
        tx.chain.by_hash(tx_hash)
        return None
    return anchor.signed_bytes(tx_hash)


def _log_once(
    database: Database,
    statement_id: str,
    event: NewEvent,
    raw: bytes | None,
    *,
    said: Callable[[Transaction, str], StoredEvent | None],
    then: Stage | None = None,
) -> None:
    """Append an event to a statement's stream unless another worker was first, which has ``said`` the same.

    ``raw`` is the transaction that it is about, where that is not stored yet.
    """
    stream = attestation_stream(statement_id)
    try:
        with database.begin() as tx:
            # Before the look: what others say between the two is a conflict then, and is not missed.
            version = tx.events.length(stream)
            if said(tx, statement_id) is not None:
                return
            if raw is not None:
                event = replace(event, payload={**event.payload, "raw_transaction": tx.batches.put(raw)})
            (receipt,) = tx.events.append(stream, [event], expected_version=version)
            if then is not None:
                tx.outbox.add(receipt.event_id, then)
    except VersionConflict:
        with database.read() as tx:
            if said(tx, statement_id) is None:
                raise


def _record_again(database: Database, statement_id: str, attestor: Attestor, anchor: Anchor) -> Anchored:
    """Record what a reorganisation dropped. Raises ``NotYet`` where it dropped what is recorded before it as well, and
    that is not back."""
    with database.read() as tx:
        proof = proved(tx, statement_id)
        if proof is None:
            raise NotFound(f"the log holds no proof of {statement_id}", statement_id=statement_id)
        material = _load(tx, proof.payload, attestor)
        before = recorded_before(tx, statement_id)
        placed = None if before is None else confirmed(tx, before) or anchored(tx, before)
    try:
        return _record(material, anchor)
    except AnchorRefused as error:
        if placed is None or anchor.standing(placed.payload["tx_hash"]) is not None:
            raise
        raise NotYet(
            f"{before} is recorded before {statement_id}, and stands in no block any more",
            waits_for=before,
            retry_after_s=RETRY_S,
        ) from error


def _record(material: _Material, anchor: Anchor) -> Anchored:
    _register(material.registered, anchor)
    return anchor.record(material.recording, material.verification_key, dev_unsafe=material.dev_unsafe)


def _register(registered: RegisteredAgreement, anchor: Anchor) -> None:
    if registered.registration is not None and registered.customer_signature is not None:
        anchor.register(registered.registration, registered.customer_signature)
