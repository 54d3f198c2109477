"""The use cases over storage in memory, with the real seals and signatures; only the prover is left out."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from ledger.app.agreements.registering import RegisteredAgreement, load_agreement, register_agreement
from ledger.app.judgement.violation_rows import RequestFinder
from ledger.app.ports.evidence import TelemetrySignature
from ledger.attest.crypto import babyjub
from ledger.attest.crypto.signing import SigningKey, verify
from ledger.attest.proving.attestor import CircuitAttestor
from ledger.attest.proving.circuits import load_circuits
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.agreement_schema import AGREEMENT
from ledger.domain.terms.log_kinds import REQUESTS, format_of
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.calendar import Period
from ledger.ingest.agreement_yaml import parse_document
from ledger.ingest.facts import read_facts
from ledger.ingest.request_log import RequestLog
from ledger.ingest.traces import trace_ids
from ledger.resources import resource_dir
from ledger.store.memory import MemoryDatabase
from tests.conformance.samples import SeededRandomness, StepClock

ISSUER, CUSTOMER, COLLECTOR = b"\x01" * 32, b"\x02" * 32, b"\x03" * 32
KEYS = {"issuer": ISSUER, "customer": CUSTOMER}


class TestCollector:
    """The holder of the collector's key."""

    __test__ = False

    def sign(self, telemetry_root: int) -> TelemetrySignature:
        signature = babyjub.sign(COLLECTOR, telemetry_root)
        return TelemetrySignature(signature.r8, signature.s)


@dataclass
class Desk:
    """One ledger and what its use cases are given."""

    database: MemoryDatabase
    attestor: CircuitAttestor
    randomness: SeededRandomness
    clock: StepClock
    collector: TestCollector
    agreement: Agreement
    period: Period

    def register(self) -> RegisteredAgreement:
        with self.database.begin() as tx:
            register_agreement(
                tx,
                self.agreement,
                attestor=self.attestor,
                verify=verify,
                terms_version=1,
                registration=None,
                customer_signature=None,
                now_ns=self.clock.now_ns(),
            )
            return load_agreement(tx, self.attestor.sla_id(self.agreement), self.attestor)


def read_rows(data: bytes) -> Iterable[Any]:
    """Row by row, of a request log or a sample log."""
    return RequestLog(io.BytesIO(data), "batch") if format_of(data) == REQUESTS else read_facts(data)


find_requests = RequestFinder(read_rows, trace_ids)


def row(name: str, at: str = "2023-06-14T10:00:00Z", **changes: Any) -> dict[str, Any]:
    """One good request of the sample service."""
    body = {"request_id": name, "started_at": at, "service": "example-chat", "ttft_s": 0.2, "e2e_s": 1.5}
    return {**body, "input_tokens": 10, "output_tokens": 20, "error_code": None, "error_msg": "", **changes}


def log(*rows: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(body).encode() + b"\n" for body in rows)


@cache
def _example(name: str) -> dict[str, Any]:
    path: Path = resource_dir("examples") / name
    return dict(parse_document(path.read_bytes(), name, AGREEMENT)[0])


@cache
def _signers() -> dict[str, dict[str, Any]]:
    """Collector and parties as an agreement names them, by keys that the tests hold."""
    x, y = babyjub.public_key(COLLECTOR)
    parties = {
        party: {
            "name": party,
            "ed25519_public_key": SigningKey(seed).public_key.hex(),
            "evm_address": Account.from_key(seed).address,
        }
        for party, seed in KEYS.items()
    }
    collector = {"name": "collector", "babyjubjub_public_key": {"x": str(x), "y": str(y)}}
    return {"collector": collector, "parties": parties}


def signed_agreement(name: str = "agreement.yaml", **changes: Any) -> dict[str, Any]:
    """An example agreement, with changed members, between keys that the tests hold."""
    document = deepcopy({**_example(name), **changes, **_signers()})
    message = Agreement.from_document(document).signing_message
    return {**document, "signatures": {party: SigningKey(seed).sign(message).hex() for party, seed in KEYS.items()}}


def share_as_cap(name: str = "agreement.yaml") -> dict[str, Any]:
    """The compensation of an example that no circuit attests: its cap is a share of the base."""
    return {**_example(name)["compensation"], "caps": {"contract": "50 %"}}


def make_desk(name: str = "agreement.yaml", **changes: Any) -> Desk:
    clock, randomness = StepClock(), SeededRandomness(7)
    agreement = Agreement.from_document(signed_agreement(name, **changes))
    return Desk(
        database=MemoryDatabase(clock, randomness),
        attestor=CircuitAttestor(load_circuits(resource_dir("circuits")), {}),
        randomness=randomness,
        clock=clock,
        collector=TestCollector(),
        agreement=agreement,
        period=period_named(agreement, "2023-06-14/P1D"),
    )


@pytest.fixture
def desk() -> Desk:
    return make_desk()
