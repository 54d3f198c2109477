"""A real ledger on SQLite for the API to answer from, filled by appending the events that a settlement appends."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from litestar.testing import TestClient

from api.app import create_app
from api.edge import Edge
from ledger.app.log_keys import LogIdentity
from ledger.app.ports import Receipt
from ledger.app.queries import ChainStatus, Health, Queries, SchemaState
from ledger.app.tlog import PublicLog
from ledger.attest.signing import NoteKey, SigningKey, verify
from ledger.domain import naming
from ledger.domain.events import NewEvent
from ledger.domain.instant import SECOND_NS
from ledger.errors import NotFound
from ledger.merkle.checkpoint import Checkpoint, sign_checkpoint
from ledger.store.database import SqliteDatabase

DAY_NS = 86_400 * SECOND_NS
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

    def append(self, stream: str, kind: str, payload: dict[str, Any], at_ns: int = FIRST_NS) -> Receipt:
        with self.database.begin() as tx:
            (receipt,) = tx.events.append(stream, [NewEvent(kind, payload, at_ns)], expected_version=None)
        return receipt

    def agreement(self, number: int) -> str:
        """Register an agreement; its sla_id."""
        sla_id = "0x" + hashlib.sha256(b"sla %d" % number).hexdigest()
        document = yaml.safe_load(EXAMPLE.read_text()) | {"signatures": {"issuer": "00" * 64, "customer": "11" * 64}}
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
            "trace": {"steps": ["10 % of 8000.00"]},
            "attestable": True,
            "unattested_reasons": [],
            "seal_key": "7",
            "telemetry_root": "8",
        }
        payload |= changes
        self.append(naming.statement_stream(sla_id, first), "statement_issued", payload, start_ns + DAY_NS)
        return name

    def attest(self, statement_id: str, sla_id: str) -> None:
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
        }
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

    def sign_checkpoint(self) -> str:
        """Sign the present size with ``LOG_KEY``; the note."""
        with self.database.begin() as tx:
            size = tx.log.size()
            root = tx.log.root(size)
            note = sign_checkpoint(Checkpoint(LOG_KEY.key.name, size, root), [LOG_KEY]).decode()
            tx.log.save_checkpoint(size, root, note)
        return note

    def get(self, statement_id: str) -> bytes:
        """``BundleSource.get``."""
        if statement_id not in self.bundles:
            raise NotFound(f"there is no bundle of {statement_id} yet", statement=statement_id)
        return self.bundles[statement_id]


def objective(name: str, good: int, valid: int, target: str, state: str) -> dict[str, Any]:
    return {"id": name, "good": good, "valid": valid, "target": target, "state": state}


@pytest.fixture
def make_objective() -> Callable[..., dict[str, Any]]:
    return objective


@pytest.fixture
def log_key() -> NoteKey:
    return LOG_KEY


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    database = SqliteDatabase(tmp_path / "ledger.db", Seconds(), Counted())
    yield Ledger(database)
    database.close()


def app_over(ledger: Ledger) -> Edge:
    queries = Queries(ledger.database, bundles=ledger, chain_status=lambda: ledger.chain)
    health = Health(ledger.database, schema_state=lambda: ledger.schema, chain_status=lambda: ledger.chain)
    public_log = PublicLog(ledger.database, LogIdentity(LOG_KEY.key, verify))
    return create_app(queries, health=health, public_log=public_log)


@pytest.fixture
def app(ledger: Ledger) -> Edge:
    return app_over(ledger)


@pytest.fixture(scope="session")
def empty_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient[Any]]:
    """A client of a ledger without events, for what every answer has in common."""
    database = SqliteDatabase(tmp_path_factory.mktemp("empty") / "ledger.db", Seconds(), Counted())
    with TestClient(app_over(Ledger(database)), base_url="http://127.0.0.1") as client:
        yield client
    database.close()


@pytest.fixture
def client(app: Edge) -> Iterator[TestClient[Any]]:
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client
