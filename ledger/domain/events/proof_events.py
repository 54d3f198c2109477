"""The event that holds the proof of a statement; notation as in ``ledger.domain.events.event_types``."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.domain.attested import SIGNAL_COUNT
from ledger.domain.record.event_values import CHAIN_ID, PROOF, SHA256, STATEMENT_ID
from ledger.domain.schema import Flag, ListOf, Object, Shape, Text
from ledger.domain.terms.agreement_schema import BYTES32, EVM_ADDRESS, FIELD_ELEMENT

_PROOF: Mapping[str, Shape] = {
    "circuit": Text(r"[a-z][a-z0-9_]{0,63}", "a circuit name such as compliance_25x4", 64),
    "circuit_id": SHA256,
    "signals": ListOf(FIELD_ELEMENT, SIGNAL_COUNT, SIGNAL_COUNT),
    "proof_hash": BYTES32,
    "proof": PROOF,
    "verification_key": SHA256,
    "dev_key": Flag(),
}

PROOF_PAYLOADS: Mapping[str, Mapping[str, Shape]] = {
    "attestation_recorded": {
        "statement_id": STATEMENT_ID,
        "sla_id": BYTES32,
        "chain_id": CHAIN_ID,
        "registry": EVM_ADDRESS,
        "previous_ctx": FIELD_ELEMENT,
        **_PROOF,
    },
}

PROOF_ADDED: Mapping[str, Shape] = {"incident_proof": Object(_PROOF)}
"""What version 2 may say besides: the second proof, of the credit, where incidents pay beside the tiers. It is in the
same event, so that no statement is half proved."""
