"""Closed shapes of bundle, opening, trust file and equivocation proof (docs/attestation-format.md, section 12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.app.bundles.building import BUNDLE_FORMAT, OPENING_FORMAT
from ledger.domain.attested import SIGNAL_COUNT
from ledger.domain.events.event_types import EVENT_TYPES
from ledger.domain.schema import Either, Flag, Integer, JsonSchema, ListOf, MapOf, Nullable, Object, OneOf, Shape, Text
from ledger.domain.terms.agreement_schema import (
    BYTES32,
    ED25519_PUBLIC_KEY,
    ED25519_SIGNATURE,
    EVM_ADDRESS,
    FIELD_ELEMENT,
    NAME,
    SIGNED_AGREEMENT,
)
from ledger.domain.terms.objective_shapes import OBJECTIVE_ID
from ledger.domain.terms.probe import PROBE_SIGNATURE, SIGNATURE
from ledger.domain.terms.termination import NOTICE
from ledger.domain.windows.window import MAX_COUNT

TRUST_FORMAT = "sla-ledger/trust/v1"
EQUIVOCATION_FORMAT = "sla-ledger/equivocation/v1"

MAX_BUNDLE_BYTES = 4 * 1024 * 1024
MAX_TRUST_BYTES = 64 * 1024
MAX_BLOCKS = 30
MAX_VERSIONS = 1000
MAX_ROOTS = 50
MAX_SIBLINGS = 64

HASH = Text(r"[0-9a-f]{64}", "64 lowercase hex digits", 64)
UINT = Text(r"0|[1-9]\d{0,77}", "a decimal integer", 78)
_NS = Text(r"-?(0|[1-9]\d{0,18})", "nanoseconds as a decimal string", 20)
_VKEY = Text(r"[^\s+]+\+[0-9a-f]{8}\+[A-Za-z0-9+/=]+", "a verifier key name+hash+key", 300)
_G1 = ListOf(FIELD_ELEMENT, 3, 3)
_G2 = ListOf(ListOf(FIELD_ELEMENT, 2, 2), 3, 3)

HEADER = Object(
    {
        "class": NAME,
        "id": NAME,
        "occurred_at_ns": _NS,
        "payload_commitment": HASH,
        "recorded_at_ns": _NS,
        "schema": Integer(1, 1000),
        "stream": Text(max_length=300),
        "tenant": NAME,
        "type": NAME,
        "version": Integer(),
    }
)


def _event(event_type: str) -> Object:
    """A logged event with the evidence that it is in the log."""
    payload = EVENT_TYPES[event_type].payload
    return Object(
        {"seq": Integer(), "header": HEADER, "payload": payload, "salt": HASH, "inclusion": ListOf(HASH, 0, 63)}
    )


def _seal() -> Object:
    """``block_sealed`` or ``block_resealed``, which says more; ``checks`` tells which it has to be."""
    event, resealed = _event("block_sealed"), EVENT_TYPES["block_resealed"].payload.required
    sealed = EVENT_TYPES["block_sealed"].payload.required
    more = {name: shape for name, shape in resealed.items() if name not in sealed}
    return Object({**event.required, "payload": Object(sealed, more)})


_PLACED: Mapping[str, Shape] = {
    "raw_transaction": Text(r"([0-9a-f]{2})+", "a signed transaction in hex", 20_000),
    "tx_hash": BYTES32,
    "block_number": Integer(),
    "block_hash": BYTES32,
}

ROOT = Object(
    {
        "chain_id": UINT,
        "registry": EVM_ADDRESS,
        "issuer": EVM_ADDRESS,
        # Of the ledger's checkpoint that is anchored with the batch, and the statement's audit path to it.
        "size": Integer(1),
        "root": HASH,
        "inclusion": ListOf(HASH, 0, 63),
        "batch_root": BYTES32,
        # From the leaf to batch_root; a statement without a proof has no leaf.
        "siblings": Nullable(ListOf(BYTES32, 0, MAX_SIBLINGS)),
        **_PLACED,
    }
)
"""A batch that covers the statement, as it was published on one chain."""

VERIFICATION_KEY = Object(
    {
        "protocol": OneOf(("groth16",)),
        "curve": OneOf(("bn128",)),
        "nPublic": Integer(SIGNAL_COUNT, SIGNAL_COUNT),
        "vk_alpha_1": _G1,
        "vk_beta_2": _G2,
        "vk_gamma_2": _G2,
        "vk_delta_2": _G2,
        "IC": ListOf(_G1, SIGNAL_COUNT + 1, SIGNAL_COUNT + 1),
    }
)

_PROOF: Mapping[str, Shape] = {
    "circuit": NAME,
    "signals": ListOf(FIELD_ELEMENT, SIGNAL_COUNT, SIGNAL_COUNT),
    "proof": Text(r"[0-9a-f]{512}", "a proof of 512 lowercase hex digits", 512),
    "verification_key": VERIFICATION_KEY,
    "manifest": Object({"circuit": NAME, "circuit_id": HASH, "dev_unsafe": Flag()}),
}

BUNDLE = Object(
    {
        "format": OneOf((BUNDLE_FORMAT,)),
        "agreement": SIGNED_AGREEMENT,
        "statement": _event("statement_issued"),
        "seals": ListOf(_seal(), 0, MAX_BLOCKS),
        "log": Object({"vkey": _VKEY, "checkpoint": Text(max_length=20_000)}),
        "context": Nullable(
            Object(
                {"chain_id": UINT, "registry": EVM_ADDRESS, "prev_ctx": FIELD_ELEMENT},
                # Of the proof it replaces.
                {
                    name: ListOf(FIELD_ELEMENT, SIGNAL_COUNT, SIGNAL_COUNT)
                    for name in ("prev_signals", "prev_incident_signals")
                },
            )
        ),
        "telemetry": Nullable(
            Object(
                {
                    "root": FIELD_ELEMENT,
                    "windows": Integer(1, 1023),
                    "blocks": ListOf(FIELD_ELEMENT, 1, MAX_BLOCKS),
                    "signature": SIGNATURE,
                },
                # Of the customer's probe, where the terms name one and it signed.
                {"probe_signature": SIGNATURE},
            )
        ),
        "base": Nullable(Object({"salt": FIELD_ELEMENT})),
        "credit_salt": Nullable(FIELD_ELEMENT),
        "proof": Nullable(Object(_PROOF)),
        "anchor": Nullable(Object(_PLACED)),
        "issuer_signature": ED25519_SIGNATURE,
    },
    {
        # The second proof, of a credit that incidents add to; the salt opens it where it is committed.
        "incident_proof": Object({**_PROOF, "credit_salt": Nullable(FIELD_ELEMENT)}),
        # What logged the exclusions for maintenance that the statement lists.
        "announcements": ListOf(_event("exclusion_recorded"), 1, MAX_VERSIONS),
        # The earlier versions of a restatement.
        "previous": ListOf(_event("statement_issued"), 1, MAX_VERSIONS),
        # Batch roots, one of each chain, by chain id.
        "roots": ListOf(ROOT, 1, MAX_ROOTS),
        # What ended the terms inside a period: without it, no part of a period is accepted.
        "ended_by": Either("kind", {"Agreement": SIGNED_AGREEMENT, "Termination": NOTICE}),
        # What logged the notice that ended them.
        "notice": _event("agreement_terminated"),
    },
    title="sla-ledger bundle v1",
)

_COUNTS = Object({"good": Integer(0, MAX_COUNT), "bad": Integer(0, MAX_COUNT)})

OPENING = Object(
    {
        "format": OneOf((OPENING_FORMAT,)),
        "statement_id": NAME,
        "windows": ListOf(
            Object(
                {
                    "state": OneOf(("observed", "excluded", "no_data")),
                    "cells": MapOf(OBJECTIVE_ID, _COUNTS, 16),
                }
            ),
            1,
            1023,
        ),
        "salts": ListOf(FIELD_ELEMENT, 1, MAX_BLOCKS),
    },
    title="sla-ledger opening v1",
)

TRUST = Object(
    {
        "format": OneOf((TRUST_FORMAT,)),
        "log": Object({"origin": NAME, "vkey": _VKEY}),
        "issuer_ed25519_public_key": ED25519_PUBLIC_KEY,
        "customer_ed25519_public_key": ED25519_PUBLIC_KEY,
        "circuits": ListOf(Object({"circuit_id": HASH, "dev_unsafe": Flag()}), 0, 100),
        "chain_id": UINT,
        "registry": EVM_ADDRESS,
    },
    {
        "tenant": NAME,
        "log_keys": ListOf(Object({"vkey": _VKEY, "from_size": Integer(), "until_size": Nullable(Integer(1))}), 1, 100),
        "witnesses": Object({"quorum": Integer(1, 50), "vkeys": ListOf(_VKEY, 1, 50)}),
        # Chains beside ``chain_id`` whose roots count; without ``issuer`` those that the agreement's issuer sent.
        "root_chains": ListOf(
            Object({"chain_id": UINT, "registry": EVM_ADDRESS}, {"issuer": EVM_ADDRESS}), 1, MAX_ROOTS
        ),
    },
    title="sla-ledger trust file v1",
)


EQUIVOCATION = Object(
    {
        "format": OneOf((EQUIVOCATION_FORMAT,)),
        "leaves": ListOf(
            Object(
                {
                    "seq": Integer(),
                    "header": HEADER,
                    "inclusion": ListOf(HASH, 0, 63),
                    "vkey": _VKEY,
                    "checkpoint": Text(max_length=20_000),
                }
            ),
            2,
            2,
        ),
    },
    title="sla-ledger equivocation proof v1",
)


def document_schemas() -> Mapping[str, JsonSchema]:
    """The published JSON Schemas by file name, for the generated files under docs/."""
    shapes: Mapping[str, Any] = {
        "bundle": BUNDLE,
        "opening": OPENING,
        "trust": TRUST,
        "equivocation": EQUIVOCATION,
        "probe-signature": PROBE_SIGNATURE,
    }
    return {f"{name}.schema.json": shape.json_schema() for name, shape in shapes.items()}
