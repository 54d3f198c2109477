"""Outside vectors for tlog-proof, cosignatures and witness requests."""

from __future__ import annotations

import json
import struct
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from ledger.errors import TlogProofInvalid, WitnessRequestInvalid
from ledger.merkle.checkpoint import parse_checkpoint
from ledger.merkle.cosignature import cosigned_message
from ledger.merkle.entry_bundle import decode_bundle, encode_bundle
from ledger.merkle.note import parse_note
from ledger.merkle.tile import BundleId, parse_log_path
from ledger.merkle.tlog_proof import TlogProof, parse_tlog_proof
from ledger.merkle.witness import parse_add_checkpoint


@pytest.fixture(scope="module")
def ledger_vectors(sla_fixtures: Path) -> Path:
    return sla_fixtures / "ledger"


@pytest.fixture(scope="module")
def proofs(ledger_vectors: Path) -> Any:
    return json.loads((ledger_vectors / "transparency-dev_formats" / "tlog_proof.json").read_text())


def test_every_proof_is_written_and_read_as_expected(proofs: Any) -> None:
    for case in proofs["marshal"]:
        path = tuple(b64decode(step) for step in case["hashes"])
        extra = None if case["extra"] is None else case["extra"].encode()
        proof = TlogProof(case["index"], path, case["checkpoint"].encode(), extra)
        assert proof.to_bytes() == case["want"].encode()
        assert parse_tlog_proof(case["want"].encode()) == proof
    assert len(proofs["marshal"]) == 3


def test_every_proof_that_must_not_parse(proofs: Any) -> None:
    for case in proofs["unmarshal_errors"]:
        with pytest.raises(TlogProofInvalid):
            parse_tlog_proof(case["m"].encode())
    assert len(proofs["unmarshal_errors"]) == 8


def test_the_message_that_a_witness_signs(ledger_vectors: Path) -> None:
    text = parse_note((ledger_vectors / "c2sp" / "tlog-checkpoint-example.parse-only.txt").read_bytes()).text
    message = (ledger_vectors / "c2sp" / "tlog-cosignature-signed-message.txt").read_bytes()
    assert cosigned_message(text, 1679315147) == message


def test_the_example_of_a_witness_request(ledger_vectors: Path) -> None:
    body = (ledger_vectors / "c2sp" / "tlog-witness-add-checkpoint-body.parse-only.txt").read_bytes()
    request = parse_add_checkpoint(body)
    assert (request.old_size, len(request.proof)) == (20852014, 4)
    assert parse_checkpoint(parse_note(request.checkpoint).text).size == 20852163
    assert request.to_bytes() == body
    for altered in (
        body.replace(b"old 2", b"old 02"),
        body.replace(b"old 2", b"old  2"),
        body.replace(b"old 2", b"new 2"),
        body.replace(b"old 20852014\n", b""),
        body.replace(b"PlRN", b"PlR"),
        body.replace(b"Pl", b" Pl"),
        body.replace(b"aw=\n", b"ax=\n"),
        body.replace(b"\n", b"\r\n"),
        body.partition(b"\n\n")[0] + b"\n",
    ):
        with pytest.raises(WitnessRequestInvalid):
            parse_add_checkpoint(altered)


def test_the_entry_bundles_of_a_tessera_log(ledger_vectors: Path) -> None:
    log = ledger_vectors / "transparency-dev_tessera" / "testdata" / "log"
    for width in range(1, 16):
        bundle = (log / "tile" / "entries" / "000.p" / str(width)).read_bytes()
        entries = decode_bundle(bundle)
        assert len(entries) == width
        assert encode_bundle(entries) == bundle
        assert bundle.startswith(struct.pack(">H", len(entries[0])))
        assert parse_log_path(f"tile/entries/000.p/{width}") == BundleId(0, width)
