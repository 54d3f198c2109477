"""The log as a stranger audits it: over HTTP alone, with the log's key and the specifications at hand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from litestar.testing import TestClient

from ledger.attest.crypto.signing import NoteKey, verify
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.events import NewEvent
from ledger.merkle.checkpoint import Checkpoint, open_checkpoint
from ledger.merkle.cosignature import WitnessPolicy
from ledger.merkle.hasher import leaf_hash
from ledger.merkle.tlog_proof import parse_tlog_proof, verify_tlog_proof
from tests.api.test_protocol import assert_problem

Client = TestClient[Any]
IMMUTABLE = "public, max-age=31536000, immutable"


@pytest.fixture
def prefix(log_key: NoteKey) -> str:
    return "/log/" + hashlib.sha256(log_key.key.name.encode()).hexdigest()[:16]


def fill(ledger: Any, count: int) -> None:
    """Append ``count`` small events in one go."""
    payload = {
        "sla_id": "0x" + "5a" * 32,
        "doc_sha256": "cd" * 32,
        "period": "2023-12-01/P1D",
        "start_ns": "0",
        "end_ns": "1",
        "state": "observed",
        "cells": {},
        "excluded_requests": {},
        "inputs": [],
    }
    events = [NewEvent("window_evaluated", payload | {"index": index}, index) for index in range(count)]
    with ledger.database.begin() as tx:
        tx.events.append("windows/a", events, expected_version=None)


# --- a client of another house: it shares no code with the log beyond opening a signed note --------


class Auditor:
    """Downloads a whole log by C2SP tlog-tiles and works its root out again, from the specification's words."""

    def __init__(self, get: Callable[[str], Any], prefix: str, log_key: NoteKey) -> None:
        self._get = get
        self._prefix = prefix
        self._log_key = log_key

    def fetch(self, path: str) -> bytes:
        response = self._get(f"{self._prefix}/{path}")
        assert response.status_code == 200, (path, response.text)
        return bytes(response.content)

    def checkpoint(self) -> Checkpoint:
        raw = self.fetch("checkpoint")
        return open_checkpoint(raw, self._log_key.key.name, [self._log_key.key], verify).checkpoint

    def tiles(self, level: str, count: int) -> list[bytes]:
        """The tiles of a level that has ``count`` hashes or entries, the last one partial."""
        paths = [f"tile/{level}/{self.numbered(index)}" for index in range(count // 256)]
        if count % 256:
            paths.append(f"tile/{level}/{self.numbered(count // 256)}.p/{count % 256}")
        return [self.fetch(path) for path in paths]

    @staticmethod
    def numbered(index: int) -> str:
        digits = f"{index:03d}" if index < 1000 else f"{index:0{-(-len(str(index)) // 3) * 3}d}"
        groups = [digits[at : at + 3] for at in range(0, len(digits), 3)]
        return "/".join([f"x{group}" for group in groups[:-1]] + groups[-1:])

    def entries(self, size: int) -> list[bytes]:
        found = []
        for bundle in self.tiles("entries", size):
            at = 0
            while at < len(bundle):
                length = bundle[at] << 8 | bundle[at + 1]
                found.append(bundle[at + 2 : at + 2 + length])
                at += 2 + length
        return found

    def audit(self) -> list[bytes]:
        """Every entry, after tiles, entries and signed root have been found to agree."""
        checkpoint = self.checkpoint()
        entries = self.entries(checkpoint.size)
        hashes = [hashlib.sha256(b"\0" + entry).digest() for entry in entries]
        assert len(hashes) == checkpoint.size
        row, level = hashes, 0
        while row:
            assert b"".join(self.tiles(str(level), len(row))) == b"".join(row)
            row = [self.root(row[at : at + 256]) for at in range(0, len(row) // 256 * 256, 256)]
            level += 1
        assert self.root(hashes) == checkpoint.root
        return entries

    @classmethod
    def root(cls, hashes: list[bytes]) -> bytes:
        """RFC 6962, section 2.1, over leaf hashes."""
        if len(hashes) == 1:
            return hashes[0]
        split = 1
        while split * 2 < len(hashes):
            split *= 2
        return hashlib.sha256(b"\1" + cls.root(hashes[:split]) + cls.root(hashes[split:])).digest()


@pytest.mark.parametrize("count", [1, 255, 256, 257, 600])
def test_a_stranger_rebuilds_the_log_from_its_files(
    client: Client, ledger: Any, prefix: str, log_key: NoteKey, count: int
) -> None:
    fill(ledger, count)
    ledger.sign_checkpoint()
    entries = Auditor(client.get, prefix, log_key).audit()
    assert len(entries) == count
    shown = client.get("/v1/events").json()["items"]
    assert [json.loads(entry) for entry in entries[: len(shown)]] == [event["header"] for event in shown]
    assert entries[0] == canonical_bytes(shown[0]["header"])


def test_a_stranger_notices_one_changed_byte(client: Client, ledger: Any, prefix: str, log_key: NoteKey) -> None:
    fill(ledger, 300)
    ledger.sign_checkpoint()

    class Altered:
        def __init__(self, response: Any, path: str) -> None:
            self.status_code, self.text = response.status_code, ""
            self.content = response.content
            if path.endswith("tile/entries/000"):
                at = self.content.index(b'"version":7')
                self.content = self.content[:at] + b'"version":8' + self.content[at + 11 :]

    auditor = Auditor(lambda path: Altered(client.get(path), path), prefix, log_key)
    with pytest.raises(AssertionError):
        auditor.audit()


def test_partial_tiles_of_every_earlier_size_stay(client: Client, ledger: Any, prefix: str) -> None:
    fill(ledger, 3)
    ledger.sign_checkpoint()
    early = {path: client.get(f"{prefix}/{path}").content for path in ("tile/0/000.p/3", "tile/entries/000.p/3")}
    fill(ledger, 300)
    ledger.sign_checkpoint()
    whole = client.get(f"{prefix}/tile/0/000").content
    assert len(whole) == 8192
    for width in (1, 2, 3, 4, 17, 255):
        assert client.get(f"{prefix}/tile/0/000.p/{width}").content == whole[: 32 * width]
    for path, content in early.items():
        assert client.get(f"{prefix}/{path}").content == content
    bundle = client.get(f"{prefix}/tile/entries/000").content
    assert bundle.startswith(early["tile/entries/000.p/3"])


def test_nothing_beyond_the_newest_checkpoint_is_served(client: Client, ledger: Any, prefix: str) -> None:
    fill(ledger, 5)
    assert_problem(client.get(f"{prefix}/checkpoint"), 404, "not_found")
    assert_problem(client.get(f"{prefix}/tile/0/000.p/1"), 404, "not_found")
    ledger.sign_checkpoint()
    fill(ledger, 600)
    for kind in ("0", "entries"):
        assert client.get(f"{prefix}/tile/{kind}/000.p/5").status_code == 200
        for name in ("000.p/6", "000", "001", "001.p/1"):
            assert_problem(client.get(f"{prefix}/tile/{kind}/{name}"), 404, "not_found")
    assert_problem(client.get(f"{prefix}/tile/1/000.p/1"), 404, "not_found")
    ledger.sign_checkpoint()
    assert client.get(f"{prefix}/tile/1/000.p/2").status_code == 200
    assert_problem(client.get(f"{prefix}/tile/1/000.p/3"), 404, "not_found")


def test_what_may_be_kept_and_what_may_not(client: Client, ledger: Any, prefix: str) -> None:
    fill(ledger, 300)
    ledger.sign_checkpoint()
    for path in ("tile/0/000", "tile/0/001.p/44", "tile/0/000.p/9", "tile/entries/000", "tile/1/000.p/1"):
        response = client.get(f"{prefix}/{path}")
        assert response.headers["cache-control"] == IMMUTABLE
        assert response.headers["content-type"] == "application/octet-stream"
        again = client.get(f"{prefix}/{path}", headers={"if-none-match": response.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    checkpoint = client.get(f"{prefix}/checkpoint")
    assert checkpoint.headers["cache-control"] == "no-cache"
    assert checkpoint.headers["content-type"] == "text/plain; charset=utf-8"
    assert checkpoint.text == client.get("/v1/checkpoints/latest").text


@pytest.mark.parametrize(
    "spelling",
    [
        "tile/0/0",
        "tile/0/0000",
        "tile/0/x000/000",
        "tile/00/000",
        "tile/0/000/",
        "tile/0//000",
        "tile/0/000.p/256",
        "tile/0/000.p/01",
        "tile/0/000.p/0",
        "tile/0/000.p",
        "tile/0/%30%30%30",
        "tile/0%2F000",
        "tile/0/000%2Ep/5",
        "tile/entries/000.P/5",
        "tile/64/000",
        "tile/-1/000",
        "tile/1/",
        "tile/",
        "tile",
        "checkpoint/",
        "tile/checkpoint",
    ],
)
def test_a_tile_has_one_spelling(client: Client, ledger: Any, prefix: str, spelling: str) -> None:
    fill(ledger, 300)
    ledger.sign_checkpoint()
    assert_refused(client.get(f"{prefix}/{spelling}"))


def assert_refused(response: Any) -> None:
    assert response.status_code == 404, response.text
    assert response.headers["cache-control"] == "no-store"


def test_a_query_is_another_spelling_too(client: Client, ledger: Any, prefix: str) -> None:
    fill(ledger, 5)
    ledger.sign_checkpoint()
    assert_problem(client.get(f"{prefix}/tile/0/000.p/5?v=1"), 400, "query_invalid")


def test_another_log_is_not_served_here(client: Client, ledger: Any) -> None:
    fill(ledger, 5)
    ledger.sign_checkpoint()
    for path in ("checkpoint", "tile/0/000.p/5"):
        assert_problem(client.get(f"/log/{'0' * 16}/{path}"), 404, "not_found")


def test_the_log_says_where_it_is(client: Client, ledger: Any, prefix: str, log_key: NoteKey) -> None:
    fill(ledger, 5)
    ledger.sign_checkpoint()
    assert client.get("/v1/log").json() == {
        "origin": log_key.key.name,
        "log_id": prefix.removeprefix("/log/"),
        "prefix": prefix,
        "size": 5,
        "keys": [{"vkey": log_key.key.vkey(), "from_size": 0, "until_size": None}],
    }


def test_a_statement_has_a_proof_in_a_file(client: Client, ledger: Any, log_key: NoteKey) -> None:
    statement_id = ledger.statement(ledger.agreement(1))
    path = f"/v1/statements/{statement_id}/tlog-proof"
    assert_problem(client.get(path), 404, "not_found")
    ledger.sign_checkpoint()
    fill(ledger, 9)
    response = client.get(path)
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    proof = parse_tlog_proof(response.content)
    assert proof.index == 1
    assert proof.extra is not None
    assert json.loads(proof.extra)["type"] == "statement_issued"
    verify_tlog_proof(
        proof,
        leaf_hash(proof.extra),
        origin=log_key.key.name,
        log_keys=[log_key.key],
        policy=WitnessPolicy((), 0),
        verify=verify,
    )
    assert_problem(client.get("/v1/statements/nothing/tlog-proof"), 404, "not_found")
