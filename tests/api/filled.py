"""A real ledger on SQLite for the API to answer from, filled by appending the events that a settlement appends."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import yaml

from ledger.app.chain.status import ChainStatus
from ledger.app.ports.chain import ChainLook, StoredTransaction, TransactionState
from ledger.app.ports.store import Receipt
from ledger.app.reading.readiness import SchemaState
from ledger.attest.crypto.signing import NoteKey, SigningKey
from ledger.domain.record import naming
from ledger.domain.record.events import NewEvent
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import NotFound
from ledger.merkle.checkpoint import Checkpoint, sign_checkpoint
from ledger.store.database import SqliteDatabase

HOUR_NS = 3_600 * SECOND_NS
DAY_NS = 24 * HOUR_NS
FIRST = date(2023, 12, 1)
FIRST_NS = 1_701_388_800 * SECOND_NS
REGISTRY = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
LOG_KEY = NoteKey("log.example/test", SigningKey(bytes(32)))
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "agreement.yaml"


class Seconds:
    """A clock that is one second later at every look."""

    def __init__(self) -> None:
        self._now_ns = 1_703_980_800 * SECOND_NS + 123_456_789

    def now_ns(self) -> int:
        self._now_ns += SECOND_NS
        return self._now_ns


class Counted:
    """Bytes that differ at every draw and are the same in every run."""

    def __init__(self) -> None:
        self._draws = 0

    def bytes(self, count: int) -> bytes:
        self._draws += 1
        return hashlib.shake_128(self._draws.to_bytes(8, "big")).digest(count)


TRACE: dict[str, Any] = {
    "currency": "USD",
    "base": "800000",
    "tiers": [
        {
            "objective": "availability",
            "good": 999_949,
            "valid": 1_000_000,
            "target_ppb": 999_500_000,
            "tier": 1,
            "below_ppb": 999_500_000,
            "credit_bps": 1000,
        }
    ],
    "tiers_combine": "best",
    "combined_bps": 1000,
    "tier_amount": {"numerator": "80000", "denominator": "1"},
    "price_per_request": None,
    "incidents": [],
    "impact_amount": None,
    "rules_combine": "best",
    "combined_amount": {"numerator": "80000", "denominator": "1"},
    "cap": None,
    "capped_amount": {"numerator": "80000", "denominator": "1"},
    "minimum": "0",
    "payable": True,
    "rounding": "half_even",
    "credit": "80000",
}
"""The steps of the example's credit."""


@dataclass
class Ledger:
    """Builds what a customer would ask for. ``bundles`` and ``chain`` are what the API is given beside it."""

    database: SqliteDatabase
    bundles: dict[str, bytes] = field(default_factory=dict)
    chain: ChainStatus = field(
        default_factory=lambda: {
            "kind": "embedded",
            "chain_id": 131277322940537,
            "registry": REGISTRY,
            "error": None,
            "total": 0,
            "transactions": [],
        }
    )
    schema: SchemaState = field(default_factory=lambda: SchemaState("0001", "0001"))

    def of_tenant(self, tenant: str) -> Ledger:
        """The same ledger, filled for another tenant."""
        return replace(self, database=self.database.of_tenant(tenant))

    def append(self, stream: str, kind: str, payload: dict[str, Any], at_ns: int = FIRST_NS) -> Receipt:
        with self.database.begin() as tx:
            (receipt,) = tx.events.append(stream, [NewEvent(kind, payload, at_ns)], expected_version=None)
        return receipt

    def agreement(self, number: int, terms: dict[str, Any] | None = None) -> str:
        """Register an agreement with the example's terms or others; its sla_id."""
        sla_id = "0x" + hashlib.sha256(b"sla %d" % number).hexdigest()
        document = dict(terms or yaml.safe_load(EXAMPLE.read_text()))
        document["signatures"] = {"issuer": "00" * 64, "customer": "11" * 64}
        document["effective"] = {name: str(day) for name, day in document["effective"].items()}
        payload = {
            "sla_id": sla_id,
            "doc_sha256": "ab" * 32,
            "terms_version": 1,
            "document": document,
            "registration": None,
        }
        self.append(naming.agreement_stream(sla_id), "agreement_registered", payload)
        return sla_id

    def statement(self, sla_id: str, day: int = 0, **changes: Any) -> str:
        """Issue the statement of one day; its id."""
        first, start_ns = FIRST + timedelta(days=day), FIRST_NS + day * DAY_NS
        name = naming.statement_id(sla_id, first, 1)
        payload: dict[str, Any] = {
            "statement_id": name,
            "sla_id": sla_id,
            "doc_sha256": "ab" * 32,
            "terms_version": 1,
            "statement_version": 1,
            "period": f"{first}/P1D",
            "start_ns": str(start_ns),
            "end_ns": str(start_ns + DAY_NS),
            "windows": 24,
            "observed": 23,
            "excluded": 1,
            "idle": 2,
            "state": "settled",
            "objectives": [objective("availability", 999_949, 1_000_000, "99.95", "breached")],
            "credit": {"currency": "USD", "minor_units": "80000"},
            "trace": TRACE,
            "attestable": True,
            "unattested_reasons": [],
            "seal_key": "7",
            "telemetry_root": "8",
        }
        payload |= changes
        self.append(naming.statement_stream(sla_id, first), "statement_issued", payload, start_ns + DAY_NS)
        return name

    def attest(self, statement_id: str, sla_id: str, **changes: Any) -> None:
        payload = {
            "statement_id": statement_id,
            "sla_id": sla_id,
            "circuit": "compliance_25x4",
            "circuit_id": "cd" * 32,
            "chain_id": "131277322940537",
            "registry": REGISTRY,
            "previous_ctx": "0",
            "verification_key": "dc" * 32,
            "signals": [str(2**200 + n) for n in range(6)],
            "proof_hash": "0x" + "ef" * 32,
            "proof": "01" * 256,
            "dev_key": True,
        } | changes
        self.append(naming.attestation_stream(statement_id), "attestation_recorded", payload)

    def anchor(self, statement_id: str, sla_id: str) -> None:
        payload = {
            "statement_id": statement_id,
            "sla_id": sla_id,
            "chain_id": "131277322940537",
            "registry": REGISTRY,
            "tx_hash": "0x" + "aa" * 32,
            "block_number": 5,
            "block_hash": "0x" + "bb" * 32,
            "leaf": "0x" + "cc" * 32,
        }
        self.append(naming.attestation_stream(statement_id), "anchor_recorded", payload)

    def transactions(self, *states: TransactionState) -> None:
        """Stored transactions, the first of them the anchor's."""
        with self.database.begin() as tx:
            for ordinal, state in enumerate(states):
                stored = StoredTransaction(
                    ordinal=ordinal,
                    chain_id=131277322940537,
                    sender=REGISTRY,
                    nonce=ordinal,
                    purpose="record",
                    effect=f"record/{ordinal}",
                    tx_hash="0x" + f"{170 + ordinal:02x}" * 32,
                    raw=b"\x02",
                    signed_at_s=FIRST_NS // 10**9,
                    state=state,
                )
                tx.chain.add(stored)

    def watched(self, error: str | None = None) -> None:
        """The last look of a watcher at the registry on chain 1."""
        look = ChainLook(1, REGISTRY, 21, 90, 30, 20, FIRST_NS, error, (3, 9), 2)
        with self.database.begin() as tx:
            tx.chain_looks.take(1, REGISTRY, holder="watcher", now_ns=1, until_ns=2, due_ns=1)
            tx.chain_looks.note(look, holder="watcher")

    def of_others(self, name: str, *, concerns: str, sla_id: str | None = None) -> None:
        payload = {
            "chain_id": "1",
            "registry": REGISTRY,
            "tx_hash": "0x" + "ad" * 32,
            "block_number": 8,
            "block_hash": "0x" + "bc" * 32,
            "log_index": 0,
            "name": name,
            "concerns": concerns,
            "sla_id": sla_id,
            "arguments": {"ctx": "7"},
        }
        self.append(naming.registry_stream(1, REGISTRY), "registry_event_seen", payload)

    def charges(self, sla_id: str, amount: str = "8000.00") -> None:
        """Record what was charged for the first day."""
        line = {"service": "example-chat", "kind": "recurring", "amount": amount, "currency": "USD"}
        payload = {
            "sla_id": sla_id,
            "period": f"{FIRST}/P1D",
            "start_ns": str(FIRST_NS),
            "doc_sha256": "ab" * 32,
            "lines": [line],
            "by": None,
        }
        self.append(naming.charges_stream(sla_id, FIRST), "charges_recorded", payload)

    def window(self, sla_id: str, index: int = 0, good: int = 10, bad: int = 0) -> None:
        """Judge one hour of the first day."""
        payload = {
            "sla_id": sla_id,
            "doc_sha256": "ab" * 32,
            "period": f"{FIRST}/P1D",
            "index": index,
            "start_ns": str(FIRST_NS + index * HOUR_NS),
            "end_ns": str(FIRST_NS + (index + 1) * HOUR_NS),
            "state": "observed",
            "cells": {name: {"good": good, "bad": bad} for name in ("availability", "ttft", "response")},
            "excluded_requests": {},
            "inputs": [],
        }
        self.append(naming.windows_stream(sla_id, FIRST), "window_evaluated", payload)

    def violation(
        self, sla_id: str, first_window: int = 3, *, day: int = 0, kind: str = "violation_closed", **changes: Any
    ) -> str:
        """Record a violation of one hour; its id."""
        first, start_ns = FIRST + timedelta(days=day), FIRST_NS + day * DAY_NS + first_window * HOUR_NS
        objective = changes.get("objective", "availability")
        name = naming.violation_id(sla_id, first, objective, first_window)
        signal = {"kind": "gpu_sample", "event_id": "0" * 8 + "-0000-0000-0000-" + "0" * 12, "at_ns": str(start_ns)}
        payload: dict[str, Any] = {
            "violation_id": name,
            "sla_id": sla_id,
            "doc_sha256": "ab" * 32,
            "service": "example-chat",
            "period": f"{first}/P1D",
            "objective": objective,
            "indicator": "availability",
            "target": "99.95",
            "revision": 1,
            "first_window": first_window,
            "windows": 1,
            "from_ns": str(start_ns),
            "to_ns": str(start_ns + HOUR_NS),
            "good": 7,
            "valid": 10,
            "bad": 3,
            "worst": {"window": first_window, "good": 7, "valid": 10},
            "evidence": {"inputs": ["ef" * 32], "signals": [{**signal, "summary": "DRAM_ACTIVE 0.91"}]},
        }
        self.append(naming.violations_stream(sla_id, first), kind, payload | changes, start_ns + HOUR_NS)
        return name

    def credit_line(self, sla_id: str, statement_id: str, number: int = 1, day: int = 0, **changes: Any) -> str:
        """Issue a credit line of a statement; its id."""
        name = naming.credit_line_id(statement_id, number)
        payload: dict[str, Any] = {
            "line_id": name,
            "statement_id": statement_id,
            "statement_event": "0" * 8 + "-0000-0000-0000-" + "0" * 12,
            "rule": "credit-lines-v1",
            "sla_id": sla_id,
            "customer": "Example Customer",
            "period": f"{FIRST + timedelta(days=day)}/P1D",
            "start_ns": str(FIRST_NS + day * DAY_NS),
            "objective": "availability",
            "violation_id": None,
            "currency": "USD",
            "minor_units": "80000",
            "status": "issued",
            "proof_due": True,
            "reverses": None,
            "reversed_by": None,
            "reason": None,
            "billing": None,
        }
        self.append(naming.credit_lines_stream(statement_id), "credit_line_issued", payload | changes)
        return name

    def sign_checkpoint(self) -> str:
        """Sign the present size with ``LOG_KEY``; the note."""
        with self.database.begin() as tx:
            size = tx.log.size()
            root = tx.log.root(size)
            note = sign_checkpoint(Checkpoint(LOG_KEY.key.name, size, root), [LOG_KEY]).decode()
            tx.log.save_checkpoint(size, root, note)
        return note

    def get(self, statement_id: str, tenant: str = "default") -> bytes:
        """``BundleSource.get``. Bundles here are everybody's: whose the statement is was checked before."""
        if statement_id not in self.bundles:
            raise NotFound(f"there is no bundle of {statement_id} yet", statement=statement_id)
        return self.bundles[statement_id]


def objective(name: str, good: int, valid: int, target: str, state: str) -> dict[str, Any]:
    return {"id": name, "good": good, "valid": valid, "target": target, "state": state}
