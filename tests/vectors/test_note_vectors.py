"""Outside vectors for signed notes and checkpoints: C2SP, Go's note package, transparency-dev."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest

from ledger.attest.crypto.signing import verify
from ledger.errors import NoteInvalid, NoteUnverified, VerifierKeyInvalid
from ledger.merkle.checkpoint import open_checkpoint, parse_checkpoint
from ledger.merkle.hasher import leaf_hash
from ledger.merkle.note import open_note, parse_note, parse_vkey


@pytest.fixture(scope="module")
def ledger_vectors(sla_fixtures: Path) -> Path:
    return sla_fixtures / "ledger"


@pytest.fixture(scope="module")
def go(ledger_vectors: Path) -> Any:
    return json.loads((ledger_vectors / "golang_mod" / "note_vectors.json").read_text())


@pytest.fixture(scope="module")
def formats(ledger_vectors: Path) -> Path:
    return ledger_vectors / "transparency-dev_formats"


# --- Go's note package -------------------------------------------------------------------------


def test_every_go_note_case(go: Any) -> None:
    outcomes = {"malformed note": NoteInvalid, "invalid signature": NoteUnverified}
    outcomes["note has no verifiable signatures"] = NoteUnverified
    for case in go["open_cases"]:
        raw = b64decode(case["note_b64"]) if "note_b64" in case else case["note"].encode()
        keys = [parse_vkey(vkey) for vkey in case["vkeys"]]
        if case["ok"]:
            opened = open_note(raw, keys, verify)
            assert [key.name for key in opened.verified] == case["verified"], case["desc"]
            assert [signature.name for signature in opened.unverified] == case["unverified"], case["desc"]
            continue
        with pytest.raises(NoteInvalid) as caught:
            open_note(raw, keys, verify)
        assert type(caught.value) is outcomes[case["err"]], case["desc"]
    assert len(go["open_cases"]) == 13


def test_every_go_verifier_key(go: Any) -> None:
    for vkey in go["vkey_good"]:
        assert parse_vkey(vkey).vkey() == vkey
    good = go["vkey_good"][0]
    bad = list(go["vkey_bad"])
    bad += [good[start:end] for start in range(len(good)) for end in range(start, len(good) + 1)]
    bad += [good[:at] + chr(ord(good[at]) + 1) + good[at + 1 :] for at in range(len(good))]
    for vkey in bad:
        if vkey != good:
            with pytest.raises(VerifierKeyInvalid):
                parse_vkey(vkey)


def test_every_go_tree_note(go: Any) -> None:
    tree = go["tree_note"]
    checkpoint = parse_checkpoint(tree["body"])
    assert checkpoint.origin == "go.sum database tree"
    assert checkpoint.size == tree["size"]
    assert checkpoint.root == leaf_hash(tree["root_is_leafhash_of"].encode())
    assert checkpoint.text() == tree["body"]
    other_log, *malformed = tree["bad"]
    assert parse_checkpoint(other_log).origin != checkpoint.origin  # refused by open_checkpoint's origin check
    for body in malformed:
        with pytest.raises(NoteInvalid):
            parse_checkpoint(body)


# --- transparency-dev formats ------------------------------------------------------------------


def test_every_checkpoint_that_must_not_parse(formats: Path) -> None:
    bad = json.loads((formats / "checkpoint_parse.json").read_text())["bad"]
    root = b64encode(bytes(range(32))).decode()
    for case in bad:
        with pytest.raises(NoteInvalid):
            parse_checkpoint(case["m"])
        # The same fault with a proper root, so that the root's length is not what is refused.
        fault_in_root = "roothash" in case["desc"] or "lines" in case["desc"]
        if not fault_in_root:
            header, size, _, *rest = case["m"].split("\n")
            with pytest.raises(NoteInvalid):
                parse_checkpoint("\n".join([header, size, root, *rest]))
    assert len(bad) == 7


def test_checkpoints_a_lenient_parser_takes_fail_here_by_their_root_alone(formats: Path) -> None:
    good = json.loads((formats / "checkpoint_parse.json").read_text())["good"]
    root = b64encode(bytes(range(32))).decode()
    for text in good:
        with pytest.raises(NoteInvalid, match="root has"):
            parse_checkpoint(text)
        origin, size, _, *rest = text.split("\n")
        checkpoint = parse_checkpoint("\n".join([origin, size, root, *rest]))
        assert (checkpoint.origin, checkpoint.size) == (origin, int(size))
        assert list(checkpoint.extensions) == rest[:-1]
    assert len(good) == 3


def test_the_checksum_database_checkpoint(formats: Path) -> None:
    raw = (formats / "sumdb-checkpoint.txt").read_bytes()
    key = parse_vkey((formats / "sumdb-checkpoint.vkey").read_text().strip())
    opened = open_checkpoint(raw, "go.sum database tree", [key], verify)
    assert opened.checkpoint.size == 6476701
    assert opened.note.verified == (key,)
    with pytest.raises(NoteUnverified):
        open_checkpoint(raw, "sum.golang.org", [key], verify)


def test_a_certificate_transparency_checkpoint_parses_but_its_key_type_is_not_ours(formats: Path) -> None:
    raw = (formats / "rome-ct-rfc6962-checkpoint.txt").read_bytes()
    vkey = (formats / "rome-ct-rfc6962-checkpoint.vkey").read_text().strip()
    note = parse_note(raw)
    assert parse_checkpoint(note.text).size == 115474666
    assert note.to_bytes() == raw
    with pytest.raises(VerifierKeyInvalid, match="not an Ed25519 key"):
        parse_vkey(vkey)
    with pytest.raises(NoteUnverified):
        open_note(raw, [], verify)


# --- C2SP --------------------------------------------------------------------------------------


def test_the_example_note(ledger_vectors: Path) -> None:
    raw = (ledger_vectors / "c2sp" / "signed-note-example.txt").read_bytes()
    key = parse_vkey((ledger_vectors / "c2sp" / "signed-note-example.vkey").read_text().strip())
    assert open_note(raw, [key], verify).text == "This is an example message.\n"


def test_the_example_note_with_a_blank_line_in_its_text(ledger_vectors: Path) -> None:
    raw = (ledger_vectors / "c2sp" / "signed-note-quasimodo.parse-only.txt").read_bytes()
    note = parse_note(raw)
    assert note.text.endswith("\n\ned è subito sera.\n")
    assert [signature.name for signature in note.signatures] == ["quasimodo.example/salvatore"]
    assert note.to_bytes() == raw


def test_the_example_checkpoint(ledger_vectors: Path) -> None:
    raw = (ledger_vectors / "c2sp" / "tlog-checkpoint-example.parse-only.txt").read_bytes()
    note = parse_note(raw)
    checkpoint = parse_checkpoint(note.text)
    assert (checkpoint.origin, checkpoint.size) == ("example.com/behind-the-sofa", 20852163)
    assert checkpoint.text() == note.text
    with pytest.raises(NoteUnverified):
        open_checkpoint(raw, checkpoint.origin, [], verify)


def test_the_checkpoint_inside_a_witness_request(ledger_vectors: Path) -> None:
    body = (ledger_vectors / "c2sp" / "tlog-witness-add-checkpoint-body.parse-only.txt").read_bytes()
    _, _, raw = body.partition(b"\n\n")
    note = parse_note(raw)
    assert parse_checkpoint(note.text).size == 20852163
    assert len({signature.key_id for signature in note.signatures}) == 2
    with pytest.raises(NoteInvalid, match="tree size"):
        parse_checkpoint(parse_note(body).text)
