"""Events and services the storage tests append: valid payloads of every type, a clock and seeded randomness."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ledger.app.log.fsck_tree import LogTrust
from ledger.app.log.log_keys import LogIdentity
from ledger.app.log.restore_guard import KnownCheckpoint
from ledger.attest.crypto.signing import NoteKey, SigningKey, verify
from ledger.domain.record.events import ERASABLE_CLASS, NewEvent
from ledger.merkle.checkpoint import Checkpoint, sign_checkpoint
from ledger.merkle.note import VerifierKey

SLA_ID = "0x" + "5a" * 32
OTHER_SLA_ID = "0x" + "6b" * 32
PERIOD = "2023-12-19/P1D"
START_NS = 1_702_944_000_000_000_000
HOUR_NS = 3_600 * 1_000_000_000
LOG_KEY = NoteKey("log.example/test", SigningKey(b"\x07" * 32))

TRUST = LogTrust(LOG_KEY.key.name, lambda _size: [LOG_KEY.key], verify)

_PARTY = {"name": "A", "ed25519_public_key": "ab" * 32, "evm_address": "0x" + "11" * 20}


class StepClock:
    """A clock that moves on by a second each time it is read; it can be set back."""

    def __init__(self, now_ns: int = START_NS) -> None:
        self.now = now_ns

    def now_ns(self) -> int:
        self.now += 1_000_000_000
        return self.now


class SeededRandomness:
    """Repeatable bytes; every test prints its seed by way of its parameters."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def state(self) -> Any:
        """What ``restore`` goes back to."""
        return self._random.getstate()

    def restore(self, state: Any) -> None:
        self._random.setstate(state)


class MemoryPin:
    """A pin (``ledger.app.log.restore_guard.Pin``) that lasts as long as the test."""

    def __init__(self) -> None:
        self.known: KnownCheckpoint | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        yield

    def read(self) -> KnownCheckpoint | None:
        return self.known

    def write(self, size: int, root: bytes, note: str) -> None:
        self.known = KnownCheckpoint(size, root, "the pin")


class LogSigner:
    """Signs checkpoints of the test's log (``ledger.app.log.checkpoints.CheckpointSigner``)."""

    identity = LogIdentity(LOG_KEY.key, verify)

    def sign(self, size: int, root: bytes, key: VerifierKey) -> str:
        return signed_checkpoint(size, root)


def erasable(event: NewEvent) -> NewEvent:
    """The same event with a payload that can be erased."""
    return replace(event, payload_class=ERASABLE_CLASS)


def window(index: int = 0, *, sla_id: str = SLA_ID, good: int = 10, bad: int = 0) -> NewEvent:
    payload = {
        "sla_id": sla_id,
        "doc_sha256": "cd" * 32,
        "period": PERIOD,
        "index": index,
        "start_ns": str(START_NS + index * HOUR_NS),
        "end_ns": str(START_NS + (index + 1) * HOUR_NS),
        "state": "observed",
        "cells": {"availability": {"good": good, "bad": bad}},
        "excluded_requests": {},
        "inputs": ["ef" * 32],
    }
    return NewEvent("window_evaluated", payload, START_NS + index)


def windows(count: int, start: int = 0) -> list[NewEvent]:
    return [window(index) for index in range(start, start + count)]


def agreement(terms_version: int = 1, *, sla_id: str = SLA_ID, service: str = "chat-7b") -> NewEvent:
    payload = {
        "sla_id": sla_id,
        "doc_sha256": f"{terms_version:064x}",
        "terms_version": terms_version,
        "document": document(service),
        "registration": None,
    }
    return NewEvent("agreement_registered", payload, START_NS)


def termination(terms_version: int = 1, *, sla_id: str = SLA_ID, service: str = "chat-7b") -> NewEvent:
    payload = {
        "sla_id": sla_id,
        "doc_sha256": f"{terms_version:064x}",
        "terms_version": terms_version,
        "effective_ns": str(START_NS),
        "notice": {
            "apiVersion": "sla-ledger/v1",
            "kind": "Termination",
            "sla_id": sla_id,
            "doc_sha256": f"{terms_version:064x}",
            "effective": "2023-12-19",
            "reason": "moved to another provider",
            "signatures": {"customer": "cd" * 64},
        },
        "document": document(service),
    }
    return NewEvent("agreement_terminated", payload, START_NS)


def statement(version: int = 1, *, sla_id: str = SLA_ID, day: int = 0, credit: str | None = "120000") -> NewEvent:
    start_ns = START_NS + day * 24 * HOUR_NS
    payload = {
        "statement_id": statement_id(version, sla_id=sla_id, day=day),
        "sla_id": sla_id,
        "doc_sha256": f"{1:064x}",
        "terms_version": 1,
        "statement_version": version,
        "period": f"2023-12-{19 + day}/P1D",
        "start_ns": str(start_ns),
        "end_ns": str(start_ns + 24 * HOUR_NS),
        "windows": 24,
        "observed": 24,
        "excluded": 0,
        "idle": 1,
        "state": "settled",
        "objectives": [{"id": "availability", "good": 99, "valid": 100, "target": "99.95", "state": "breached"}],
        "credit": None if credit is None else {"currency": "USD", "minor_units": credit},
        "trace": {"steps": [{"bps": 1500}]},
        "attestable": True,
        "unattested_reasons": [],
        "seal_key": "123456789",
        "telemetry_root": "987654321",
    }
    return NewEvent("statement_issued", payload, start_ns)


def unproved(version: int = 1, *, day: int = 0) -> NewEvent:
    """A statement of terms that no circuit attests."""
    event = statement(version, day=day)
    return replace(event, payload={**event.payload, "attestable": False, "unattested_reasons": ["no circuit"]})


def restatement(version: int = 2, *, sla_id: str = SLA_ID, day: int = 0, credit: str | None = "150000") -> NewEvent:
    """A version that replaces the one before it."""
    event = statement(version, sla_id=sla_id, day=day, credit=credit)
    added = {
        "accepts_until_ns": str(START_NS + (day + 31) * 24 * HOUR_NS),
        "restates": {
            "statement_id": statement_id(version - 1, sla_id=sla_id, day=day),
            "event_id": "00000000-0000-0000-0000-000000000000",
            "facts": ["00000000-0000-0000-0000-000000000001"],
        },
        "reason": "a batch came late",
        "objective_deltas": [
            {
                "id": "availability",
                "good": {"old": 99, "new": 99, "difference": 0},
                "valid": {"old": 99, "new": 100, "difference": 1},
                "state": {"old": "met", "new": "breached"},
            }
        ],
        "credit_delta": {"currency": "USD", "old": "120000", "new": credit, "difference": "30000"},
    }
    return NewEvent(event.type, {**event.payload, **added}, event.occurred_at_ns)


def finalized(version: int = 1, *, sla_id: str = SLA_ID, day: int = 0) -> NewEvent:
    names = ("statement_id", "sla_id", "period", "start_ns", "end_ns", "statement_version", "state", "credit")
    said = statement(version, sla_id=sla_id, day=day).payload
    payload = {name: said[name] for name in names} | {"accepts_until_ns": str(START_NS + (day + 31) * 24 * HOUR_NS)}
    return NewEvent("statement_finalized", payload, START_NS)


def statement_id(version: int = 1, *, sla_id: str = SLA_ID, day: int = 0) -> str:
    return f"{sla_id[2:14]}.2023-12-{19 + day}.v{version}"


def attestation(of: str, *, incidents: bool = False) -> NewEvent:
    payload: dict[str, Any] = {
        "statement_id": of,
        "sla_id": SLA_ID,
        "circuit": "compliance_25x4",
        "circuit_id": "c1" * 32,
        "chain_id": "131277322940537",
        "registry": "0x" + "Ab" * 20,
        "previous_ctx": "0",
        "signals": [str(index) for index in range(6)],
        "proof_hash": "0x" + "d2" * 32,
        "proof": "0f" * 256,
        "verification_key": "e3" * 32,
        "dev_key": True,
    }
    if incidents:
        members = ("circuit_id", "signals", "proof_hash", "proof", "verification_key", "dev_key")
        payload["incident_proof"] = {"circuit": "incidents_64", **{name: payload[name] for name in members}}
    return NewEvent("attestation_recorded", payload, START_NS)


def anchor(of: str) -> NewEvent:
    payload = {
        "statement_id": of,
        "sla_id": SLA_ID,
        "chain_id": "131277322940537",
        "registry": "0x" + "Ab" * 20,
        "tx_hash": "0x" + "a1" * 32,
        "block_number": 7,
        "block_hash": "0x" + "b2" * 32,
        "leaf": "0x" + "c3" * 32,
    }
    return NewEvent("anchor_recorded", payload, START_NS)


BAD_REQUEST = {
    "request_id": "r-17",
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "at_ns": str(START_NS),
    "batch": "ef" * 32,
    "line": 17,
    "error_code": "500",
    "latency_ns": None,
    "conflict": False,
}


def violation(
    kind: str = "opened", hour: int = 3, *, name: str | None = None, sla_id: str = SLA_ID, **changes: Any
) -> NewEvent:
    """``violation_opened``, ``updated``, ``closed`` or ``withdrawn`` of one hour."""
    payload: dict[str, Any] = {
        "violation_id": name or f"{sla_id[2:14]}.2023-12-19.availability.w{hour}",
        "sla_id": sla_id,
        "doc_sha256": "cd" * 32,
        "service": "chat-7b",
        "period": PERIOD,
        "objective": "availability",
        "indicator": "availability",
        "target": "99.95",
        "revision": 1,
        "first_window": hour,
        "windows": 1,
        "from_ns": str(START_NS + hour * HOUR_NS),
        "to_ns": str(START_NS + (hour + 1) * HOUR_NS),
        "good": 7,
        "valid": 10,
        "bad": 3,
        "worst": {"window": hour, "good": 7, "valid": 10},
        "evidence": {"inputs": ["ef" * 32], "signals": [], "requests": [BAD_REQUEST]},
        "clause": "objectives[0]",
        "unit": "requests",
        **{"closed": {"ended_by": "met"}, "withdrawn": {"reason": "judged anew"}}.get(kind, {}),
        **changes,
    }
    return NewEvent(f"violation_{kind}", payload, START_NS)


def exclusion(name: str = "release-7", kind: str = "recorded", hour: int = 3, *, sla_id: str = SLA_ID) -> NewEvent:
    """``exclusion_recorded`` or ``withdrawn`` of one hour."""
    payload = {
        "exclusion_id": name,
        "sla_id": sla_id,
        "clause": "gray-release",
        "ticket": "CHG-7",
        "from_ns": str(START_NS + hour * HOUR_NS),
        "to_ns": str(START_NS + (hour + 1) * HOUR_NS),
        "announced_at_ns": str(START_NS),
        "approved_by": "change board",
        "reason": "a new version",
        "by": None,
        **({"withdrawn_reason": "called off", "withdrawn_by": None} if kind == "withdrawn" else {}),
    }
    return NewEvent(f"exclusion_{kind}", payload, START_NS)


def credit_line(number: int = 1, *, of: str | None = None, **changes: Any) -> dict[str, Any]:
    """What the events of a credit line say of it."""
    statement_name = of or statement_id()
    return {
        "line_id": f"{statement_name}.l{number:04}",
        "statement_id": statement_name,
        "statement_event": "00000000-0000-0000-0000-000000000000",
        "rule": "credit-lines-v1",
        "sla_id": SLA_ID,
        "customer": "A",
        "period": PERIOD,
        "start_ns": str(START_NS),
        "objective": "availability",
        "violation_id": f"{SLA_ID[2:14]}.2023-12-19.availability.w3",
        "currency": "USD",
        "minor_units": "1200",
        "status": "issued",
        "proof_due": True,
        "reverses": None,
        "reversed_by": None,
        "reason": None,
        "billing": None,
        **changes,
    }


def line_issued(number: int = 1, *, of: str | None = None, **changes: Any) -> NewEvent:
    return NewEvent("credit_line_issued", credit_line(number, of=of, **changes), START_NS)


def line_applied(number: int = 1) -> NewEvent:
    billing = {"reference": "INV-7", "at_ns": str(START_NS), "by": None}
    line = credit_line(number, status="applied", billing=billing)
    return NewEvent("credit_applied", {"request": "k", "by": None, "line": line}, START_NS)


def line_reversed(number: int = 1) -> NewEvent:
    line = credit_line(number, status="void")
    entry = {**line, "line_id": f"{line['line_id']}.r", "minor_units": "-1200", "reverses": line["line_id"]}
    gone = {**line, "reversed_by": entry["line_id"]}
    payload = {"request": "k", "by": None, "entry": {**entry, "reason": "counted in error"}, "reversed": gone}
    return NewEvent("credit_line_reversed", payload, START_NS)


def anchor_confirmation(of: str) -> NewEvent:
    """After a reorganisation: the same transaction in another block."""
    payload = {
        "statement_id": of,
        "sla_id": SLA_ID,
        "chain_id": "131277322940537",
        "tx_hash": "0x" + "a1" * 32,
        "block_number": 9,
        "block_hash": "0x" + "b4" * 32,
        "confirmations": 12,
    }
    return NewEvent("anchor_confirmed", payload, START_NS)


def batch(number: int = 0, *, target: str = "home", from_seq: int = 0, until_seq: int = 3) -> NewEvent:
    """A batch with one leaf over some places of the log."""
    return NewEvent(
        "batch_formed", {**_batch(number, target, from_seq, until_seq), "leaves": ["0x" + "e1" * 32]}, START_NS
    )


def published(
    number: int = 0, *, target: str = "home", chain_id: str = "31337", from_seq: int = 0, until_seq: int = 3
) -> NewEvent:
    payload = {
        **_batch(number, target, from_seq, until_seq),
        "batch_event": f"00000000-0000-7000-8000-{number:012x}",
        "chain_id": chain_id,
        "registry": "0x" + "11" * 20,
        "issuer": "0x" + "22" * 20,
        "tx_hash": "0x" + f"{number + 160:02x}" * 32,
        "block_number": 11 + number,
        "block_hash": "0x" + "b5" * 32,
        "confirmations": 1,
    }
    return NewEvent("batch_published", payload, START_NS)


def batch_undone(number: int = 0, **where: Any) -> NewEvent:
    payload = {name: value for name, value in published(number, **where).payload.items() if name != "confirmations"}
    return NewEvent("batch_undone", payload, START_NS)


def batch_finalized(number: int = 0, **where: Any) -> NewEvent:
    return NewEvent("batch_finalized", {**published(number, **where).payload, "confirmations": 70}, START_NS)


def _batch(number: int, target: str, from_seq: int, until_seq: int) -> dict[str, Any]:
    return {
        "target": target,
        "number": number,
        "from_seq": from_seq,
        "until_seq": until_seq,
        "origin": "log.example/test",
        "size": until_seq,
        "root": "c3" * 32,
        "batch_root": "0x" + "e1" * 32,
        "node": "0x" + "e2" * 32,
    }


def anchor_undone(of: str) -> NewEvent:
    payload = {name: value for name, value in anchor_confirmation(of).payload.items() if name != "confirmations"}
    return NewEvent("anchor_undone", payload, START_NS)


def anchor_finalized(of: str) -> NewEvent:
    return NewEvent("anchor_finalized", {**anchor_confirmation(of).payload, "confirmations": 70}, START_NS)


def registry_event() -> NewEvent:
    """The customer recorded a statement first."""
    payload = {
        "chain_id": "1",
        "registry": "0x" + "Ab" * 20,
        "name": "StatementRecorded",
        "concerns": "statement",
        "sla_id": SLA_ID,
        "arguments": {"slaId": SLA_ID, "ctx": "7"},
        "tx_hash": "0x" + "a7" * 32,
        "block_number": 9,
        "block_hash": "0x" + "b4" * 32,
        "log_index": 2,
    }
    return NewEvent("registry_event_seen", payload, START_NS)


def telemetry(*points: dict[str, Any], source: str = "gpu-1", digest: str = "ab" * 32) -> NewEvent:
    """A recorded batch of the service ``chat-7b``; ``point`` makes its points."""
    payload = {
        "service": "chat-7b",
        "source": source,
        "format": "dcgm",
        "media_type": "text/plain",
        "digest": digest,
        "bytes": 10,
        "scraped_at_ns": str(START_NS),
        "samples": {"accepted": len(points), "duplicate": 0, "conflict": 0, "quarantined": 0, "rejected": 0},
        "reasons": {},
        "refused": [],
        "resets": 0,
        "transitions": 0,
        "span": None,
        "points": list(points),
    }
    return NewEvent("telemetry_recorded", payload, START_NS)


def point(metric: str = "DRAM_ACTIVE", *, from_s: int = 0, to_s: int = 1, severity: int = 10) -> dict[str, Any]:
    return {
        "kind": "gpu_sample",
        "subject": "GPU-1",
        "metric": metric,
        "min": "0.5",
        "max": "0.9",
        "last": "0.7",
        "from_ns": str(START_NS + from_s * 10**9),
        "to_ns": str(START_NS + to_s * 10**9),
        "samples": 4,
        "severity": severity,
    }


def breaker(to_state: str = "open", *, at_s: int = 0, name: str = "upstream") -> NewEvent:
    at_ns = START_NS + at_s * 10**9
    payload = {
        "service": "chat-7b",
        "source": "gateway",
        "digest": "cd" * 32,
        "breaker": name,
        "kind": "state_transition",
        "from_state": "closed",
        "to_state": to_state,
        "at_ns": str(at_ns),
        "failure_rate": "62.5",
    }
    return NewEvent("breaker_event_recorded", payload, at_ns)


def signed_checkpoint(size: int, root: bytes) -> str:
    return sign_checkpoint(Checkpoint("log.example/test", size, root), [LOG_KEY]).decode()


def naive_root(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, word for word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    middle = 1
    while middle * 2 < len(leaves):
        middle *= 2
    return hashlib.sha256(b"\x01" + naive_root(leaves[:middle]) + naive_root(leaves[middle:])).digest()


def document(service: str) -> dict[str, Any]:
    """A document of the agreement's shape; what it says is no matter of storage."""
    return {
        "apiVersion": "sla-ledger/v1",
        "kind": "Agreement",
        "nonce": "0x" + "01" * 32,
        "parties": {"issuer": _PARTY, "customer": _PARTY},
        "collector": {"name": "collector", "babyjubjub_public_key": {"x": "1", "y": "2"}},
        "service": {"name": service, "class": "text-generation"},
        "tier": "gold",
        "business_level": "L1",
        "effective": {"from": "2023-01-01", "until": "2024-01-01"},
        "timezone": "UTC",
        "period": "P1D",
        "window": "PT1H",
        "source": {"name": "gateway", "coverage": "complete_log"},
        "missing_windows": "ignore",
        "coverage_floor": "99",
        "grace": "PT72H",
        "objectives": [{"id": "availability", "method": "total_ratio", "indicator": "availability", "target": "99.95"}],
        "exclusions": [],
        "compensation": {
            "currency": "USD",
            "base": "8000.00",
            "rules": [
                {
                    "kind": "tiered",
                    "method": "tiered-v1",
                    "tiers": {"availability": [{"below": "99.95", "credit_percent": "10"}]},
                }
            ],
            "tiers_combine": "best",
            "rules_combine": "best",
            "caps": {},
            "minimum": "0",
            "rounding": "half_even",
            "credit_visibility": "public",
        },
        "signatures": {"issuer": "ab" * 64, "customer": "cd" * 64},
    }
