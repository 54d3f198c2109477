"""The registry of event types: every type's name, schema version and payload shape.

The store checks each new payload against this registry, and ``docs/events`` publishes the same shapes as JSON
Schema. Notation is that of docs/attestation-format.md, section 1: nanoseconds, field elements and integers that
may pass 2^53 are decimal strings; EVM addresses and 32-byte EVM words carry ``0x``, other bytes are bare
lowercase hex.

A published schema version never changes. A new shape is a new version beside the old one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.domain.agreement_schema import (
    AGREEMENT,
    BYTES32,
    DECIMAL,
    EVM_ADDRESS,
    FIELD_ELEMENT,
    NAME,
    OBJECTIVE_ID,
)
from ledger.domain.events import MAX_INSTANT_NS, NewEvent
from ledger.domain.schema import Flag, Integer, JsonSchema, ListOf, MapOf, Nullable, Object, OneOf, Shape, Text, fail
from ledger.errors import DocumentInvalid, EventInvalid

STANDARD_CLASS = "standard"
"""The one payload class there is: kept for good. Erasable classes need a store that can forget a payload."""

_DECIMAL_INTEGER = re.compile(r"0|[1-9][0-9]*")
_MAX_UINT32 = 2**32 - 1
_MAX_UINT64 = 2**64 - 1


@dataclass(frozen=True, slots=True)
class DecimalInteger:
    """A whole number written as a decimal string without leading zeros; bounds are inclusive."""

    what: str
    maximum: int
    minimum: int = 0

    def check(self, value: Any, at: str) -> None:
        digits = len(str(self.maximum))
        if not isinstance(value, str) or len(value) > digits or not _DECIMAL_INTEGER.fullmatch(value):
            raise fail(at, f"{str(value)[:80]!r} is not {self.what} as a decimal string")
        if not self.minimum <= int(value) <= self.maximum:
            raise fail(at, f"{value} must be between {self.minimum} and {self.maximum}")

    def json_schema(self) -> JsonSchema:
        bounds = f"{self.what} from {self.minimum} to {self.maximum}"
        return {
            "type": "string",
            "pattern": "^(?:0|[1-9][0-9]*)$",
            "maxLength": len(str(self.maximum)),
            "description": bounds,
        }


@dataclass(frozen=True, slots=True)
class AnyObject:
    """An object whose members another specification fixes; canonical form still bounds what it may hold."""

    what: str

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, Mapping):
            raise fail(at, f"must be a mapping ({self.what})")

    def json_schema(self) -> JsonSchema:
        return {"type": "object", "description": self.what}


@dataclass(frozen=True, slots=True)
class EventType:
    """One schema version of one event type; ``payload`` is the closed shape of its payload."""

    name: str
    schema: int
    payload: Object

    def json_schema(self) -> JsonSchema:
        """The payload's JSON Schema (draft 2020-12)."""
        head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"{self.name} v{self.schema}"}
        return head | self.payload.json_schema()


SHA256 = Text(r"[0-9a-f]{64}", "a SHA-256 digest of 64 lowercase hex digits", 64)
EVM_SIGNATURE = Text(r"[0-9a-f]{130}", "an EVM signature r, s, v of 130 lowercase hex digits", 130)
PROOF = Text(r"[0-9a-f]{512}", "a proof of 512 lowercase hex digits (256 bytes)", 512)
INSTANT_NS = DecimalInteger("nanoseconds since 1970-01-01T00:00:00Z", MAX_INSTANT_NS)
MINOR_UNITS = DecimalInteger("an amount in minor units", _MAX_UINT64)
CHAIN_ID = DecimalInteger("an EVM chain id", 2**256 - 1)
STATEMENT_ID = Text(r"[A-Za-z0-9._-]{1,120}", "a statement id", 120)
PERIOD = Text(r"\d{4}-\d\d-\d\d/P\d{1,3}[DWM]", "a period such as 2023-12-19/P1D", 16)
CURRENCY = Text(r"[A-Z]{3}", "an ISO 4217 currency code", 3)

_COUNT = Integer()
_VERSION = Integer(1, _MAX_UINT32)
_WINDOWS = Integer(0, 1_000_000)
_DIGESTS = ListOf(SHA256, 0, 100_000)
_SPAN = Nullable(Object({"from_ns": INSTANT_NS, "to_ns": INSTANT_NS}))
_CELL = Object({"good": _COUNT, "bad": _COUNT})
_REASON = r"[a-z][a-z0-9_.-]{0,79}"
_OBJECTIVE_ID = Text(OBJECTIVE_ID, "an objective id (lowercase letters, digits, - and _)", 40)
_SIGNED_AGREEMENT = Object({**AGREEMENT.required, **AGREEMENT.optional})
_CREDIT = Nullable(Object({"currency": CURRENCY, "minor_units": MINOR_UNITS}))

_RESULT = Object(
    {
        "id": _OBJECTIVE_ID,
        "good": _COUNT,
        "valid": _COUNT,
        "target": DECIMAL,
        "state": OneOf(("met", "breached", "no_data", "withheld")),
    }
)

_PAYLOADS_V1: Mapping[str, Mapping[str, Shape]] = {
    "agreement_registered": {
        "sla_id": BYTES32,
        "doc_sha256": SHA256,
        "terms_version": _VERSION,
        "document": _SIGNED_AGREEMENT,
        "registration": Nullable(
            Object(
                {
                    "first_start_ns": INSTANT_NS,
                    "effective_from_ns": INSTANT_NS,
                    "circuit_ids": ListOf(SHA256, 1, 100),
                    "customer_signature": EVM_SIGNATURE,
                }
            )
        ),
    },
    "observations_recorded": {
        "sla_id": BYTES32,
        "source": NAME,
        "digest": SHA256,
        "bytes": _COUNT,
        "rows": Object({"accepted": _COUNT, "duplicate": _COUNT, "conflict": _COUNT, "rejected": _COUNT}),
        "rejected_reasons": MapOf(_REASON, _COUNT),
        "span": _SPAN,
        "declared_complete": _SPAN,
    },
    "window_evaluated": {
        "sla_id": BYTES32,
        "doc_sha256": SHA256,
        "period": PERIOD,
        "index": _WINDOWS,
        "start_ns": INSTANT_NS,
        "end_ns": INSTANT_NS,
        "state": OneOf(("observed", "excluded", "no_data")),
        "cells": MapOf(OBJECTIVE_ID, _CELL, 16),
        "excluded_requests": MapOf(OBJECTIVE_ID, _COUNT, 50),
        "inputs": _DIGESTS,
    },
    "block_sealed": {
        "sla_id": BYTES32,
        "seal_key": FIELD_ELEMENT,
        "block": Integer(0, 10_000),
        "block_hash": FIELD_ELEMENT,
        "first_window": _WINDOWS,
        "windows": _WINDOWS,
        "inputs": _DIGESTS,
    },
    "telemetry_signed": {
        "sla_id": BYTES32,
        "seal_key": FIELD_ELEMENT,
        "telemetry_root": FIELD_ELEMENT,
        "r8": Object({"x": FIELD_ELEMENT, "y": FIELD_ELEMENT}),
        "s": FIELD_ELEMENT,
    },
    "statement_issued": {
        "statement_id": STATEMENT_ID,
        "sla_id": BYTES32,
        "doc_sha256": SHA256,
        "terms_version": _VERSION,
        "statement_version": _VERSION,
        "period": PERIOD,
        "start_ns": INSTANT_NS,
        "end_ns": INSTANT_NS,
        "windows": _WINDOWS,
        "observed": _WINDOWS,
        "excluded": _WINDOWS,
        "idle": _WINDOWS,
        "state": OneOf(("settled", "withheld")),
        "objectives": ListOf(_RESULT, 0, 16),
        "credit": _CREDIT,
        "trace": AnyObject("the steps that lead to the credit"),
        "attestable": Flag(),
        "unattested_reasons": ListOf(Text(max_length=500, what="why no circuit attests this"), 0, 20),
        "seal_key": Nullable(FIELD_ELEMENT),
        "telemetry_root": Nullable(FIELD_ELEMENT),
    },
    "attestation_recorded": {
        "statement_id": STATEMENT_ID,
        "sla_id": BYTES32,
        "circuit": Text(r"[a-z][a-z0-9_]{0,63}", "a circuit name such as compliance_25x4", 64),
        "circuit_id": SHA256,
        "chain_id": CHAIN_ID,
        "registry": EVM_ADDRESS,
        "previous_ctx": FIELD_ELEMENT,
        "signals": ListOf(FIELD_ELEMENT, 6, 6),
        "proof_hash": BYTES32,
        "proof": PROOF,
        "verification_key": SHA256,
        "dev_key": Flag(),
    },
    "anchor_recorded": {
        "statement_id": STATEMENT_ID,
        "sla_id": BYTES32,
        "chain_id": CHAIN_ID,
        "registry": EVM_ADDRESS,
        "tx_hash": BYTES32,
        "block_number": _COUNT,
        "block_hash": BYTES32,
        "leaf": BYTES32,
    },
}

EVENT_TYPES: Mapping[str, EventType] = {
    name: EventType(name, 1, Object(members)) for name, members in _PAYLOADS_V1.items()
}
"""The current schema version of every event type, by name."""


def check_event(event: NewEvent) -> None:
    """Refuse an event that is not of a registered type, schema version, payload shape and class.

    Raises ``EventInvalid`` naming type and field.
    """
    known = EVENT_TYPES.get(event.type)
    if known is None:
        raise EventInvalid(
            f"{event.type!r} is not an event type; known are {', '.join(sorted(EVENT_TYPES))}", type=event.type
        )
    if event.schema != known.schema:
        raise EventInvalid(
            f"{event.type} is written in schema version {known.schema}, not {event.schema}",
            type=event.type,
            schema=event.schema,
        )
    if event.payload_class != STANDARD_CLASS:
        raise EventInvalid(
            f"{event.type}: the payload class must be {STANDARD_CLASS!r}, not {event.payload_class!r}",
            type=event.type,
            payload_class=event.payload_class,
        )
    if not 0 <= event.occurred_at_ns <= MAX_INSTANT_NS:
        raise EventInvalid(
            f"{event.type}: occurred_at_ns {event.occurred_at_ns} is not between 0 and {MAX_INSTANT_NS}",
            type=event.type,
            occurred_at_ns=event.occurred_at_ns,
        )
    try:
        known.payload.check(event.payload, "")
    except DocumentInvalid as error:
        raise EventInvalid(f"{event.type}: {error.message}", type=event.type, **error.data) from error


def event_schemas() -> dict[str, JsonSchema]:
    """The published JSON Schema of every event type by file name, for ``docs/events``."""
    return {f"{kind.name}.v{kind.schema}.json": kind.json_schema() for kind in EVENT_TYPES.values()}
