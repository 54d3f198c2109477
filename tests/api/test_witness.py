"""The witness over HTTP: statuses, media types and limits of C2SP tlog-witness."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from litestar.testing import TestClient

from api.witness import WitnessApp
from ledger.attest.crypto.signing import NoteKey, SigningKey, verify
from ledger.merkle.checkpoint import Checkpoint, sign_checkpoint
from ledger.merkle.cosignature import open_cosignatures
from ledger.merkle.note import parse_note, parse_signature
from ledger.merkle.witness import MAX_REQUEST_BYTES, AddCheckpoint
from tests.conformance.samples import LOG_KEY
from tests.unit.app.witnessing import Connection, Log

ORIGIN = LOG_KEY.key.name


@pytest.fixture
def watching(tmp_path: Path) -> Connection:
    return Connection(tmp_path)


@pytest.fixture
def client(watching: Connection) -> Iterator[TestClient[Any]]:
    with TestClient(WitnessApp(watching.witness), base_url="http://witness.example") as client:  # type: ignore[arg-type]
        yield client


@pytest.fixture(scope="module")
def log() -> Log:
    return Log().grow(12)


def request(log: Log, old: int, size: int, key: NoteKey = LOG_KEY, origin: str = ORIGIN) -> bytes:
    with log.database.read() as tx:
        proof = tx.log.consistency_proof(old, size) if 0 < old < size else ()
        note = sign_checkpoint(Checkpoint(origin, size, tx.log.root(size)), [key])
    return AddCheckpoint(old, proof, note).to_bytes()


def add(client: TestClient[Any], body: bytes) -> httpx.Response:
    return client.post("/add-checkpoint", content=body)


def test_each_status_of_the_specification(client: TestClient[Any], watching: Connection, log: Log) -> None:
    stranger = NoteKey(ORIGIN, SigningKey(b"\x55" * 32))
    other = NoteKey("log.example/other", SigningKey(b"\x55" * 32))
    fork = Log(seed=2).grow(12)
    good = add(client, request(log, 0, 8))
    assert good.status_code == 200
    text = parse_note(request(log, 0, 8).partition(b"\n\n")[2]).text
    lines = [parse_signature(line) for line in good.text.splitlines()]
    assert len(open_cosignatures(text, lines, [watching.key], verify)) == 1
    assert good.text.endswith("\n")
    for body, status in (
        (b"nonsense", 400),
        (request(log, 0, 8).replace(b"\n\n", b"\n", 1), 400),
        (request(log, 8, 12).replace(b"old 8", b"old 13"), 400),
        (request(log, 8, 12, other, other.key.name), 404),
        (request(log, 8, 12, stranger), 403),
        (request(log, 0, 12), 409),
        (request(fork, 8, 8), 409),
        (request(fork, 8, 12), 422),
        (request(log, 8, 12), 200),
    ):
        response = add(client, body)
        assert response.status_code == status, (body, response.text)
        assert response.headers["cache-control"] == "no-store"
        if status == 409:
            assert (response.text, response.headers["content-type"]) == ("8\n", "text/x.tlog.size")
        else:
            assert response.headers["content-type"] == "text/plain; charset=utf-8"


def test_oversize_bodies_are_not_read_to_their_end(client: TestClient[Any]) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(64):
            sent += MAX_REQUEST_BYTES // 4
            yield b"x" * (MAX_REQUEST_BYTES // 4)

    assert client.post("/add-checkpoint", content=endless()).status_code == 413
    assert add(client, b"x" * (MAX_REQUEST_BYTES + 1)).status_code == 413
    assert add(client, b"x" * MAX_REQUEST_BYTES).status_code == 400


def test_nothing_else_is_served(client: TestClient[Any]) -> None:
    for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
        response = client.request(method, "/add-checkpoint")
        assert (response.status_code, response.headers["allow"]) == (405, "POST")
    for path in ("/", "/add-checkpoint/", "/checkpoint", "/add-checkpoint/x"):
        assert client.post(path, content=b"").status_code == 404


def test_a_broken_memory_is_a_503_without_a_cosignature(client: TestClient[Any], log: Log, tmp_path: Path) -> None:
    (tmp_path / "witness1.db").write_bytes(b"not a database" * 100)
    response = add(client, request(log, 0, 5))
    assert response.status_code == 503
    assert "—" not in response.text
