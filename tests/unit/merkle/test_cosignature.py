"""Witnesses' cosignatures and the policy over them, mostly lies."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.attest.crypto.signing import NoteKey, SigningKey, verify
from ledger.errors import CosignatureInvalid, NoteInvalid, QuorumUnmet, VerifierKeyInvalid
from ledger.merkle.checkpoint import Checkpoint, open_checkpoint, sign_checkpoint
from ledger.merkle.cosignature import (
    MAX_CLOCK_SKEW_S,
    MAX_TIMESTAMP_S,
    WitnessKey,
    WitnessPolicy,
    cosign,
    cosigned_message,
    open_cosignature,
    open_cosignatures,
    parse_witness_vkey,
    require_quorum,
)
from ledger.merkle.note import NoteSignature, SignedNote, parse_note, parse_signature, parse_vkey

NOW_S = 1_780_000_000
SECRETS = [SigningKey(bytes([number]) * 32) for number in range(1, 4)]
KEYS = [WitnessKey(f"witness.example/w{at}", secret.public_key) for at, secret in enumerate(SECRETS, 1)]
TEXT = Checkpoint("log.example/a", 7, bytes(range(32))).text()


def cosigned(at: int = 0, text: str = TEXT, time_s: int = NOW_S) -> NoteSignature:
    return cosign(text, KEYS[at], time_s, SECRETS[at].sign)


def test_a_cosignature_survives_its_line() -> None:
    line = cosigned()
    again = parse_signature(line.line().removesuffix("\n"))
    opened = open_cosignature(TEXT, again, KEYS[0], verify, now_s=NOW_S)
    assert (opened.key, opened.timestamp_s) == (KEYS[0], NOW_S)
    assert parse_witness_vkey(KEYS[0].vkey()) == KEYS[0]


def test_a_cosignature_is_under_the_whole_text_and_its_time() -> None:
    line = cosigned()
    for text in (
        Checkpoint("log.example/b", 7, bytes(range(32))).text(),
        Checkpoint("log.example/a", 8, bytes(range(32))).text(),
        Checkpoint("log.example/a", 7, bytes(32)).text(),
        Checkpoint("log.example/a", 7, bytes(range(32)), ("extension",)).text(),
    ):
        with pytest.raises(CosignatureInvalid, match="false"):
            open_cosignature(text, line, KEYS[0], verify)
    later = (NOW_S + 1).to_bytes(8, "big") + line.signature[8:]
    with pytest.raises(CosignatureInvalid, match="false"):
        open_cosignature(TEXT, replace(line, signature=later), KEYS[0], verify)


@given(st.integers(0, 71), st.integers(0, 7))
def test_one_flipped_bit_makes_it_false(byte: int, bit: int) -> None:
    line = cosigned()
    altered = bytearray(line.signature)
    altered[byte] ^= 1 << bit
    with pytest.raises(CosignatureInvalid):
        open_cosignature(TEXT, replace(line, signature=bytes(altered)), KEYS[0], verify)


@pytest.mark.parametrize("time_s", [0, -1, MAX_TIMESTAMP_S + 1, 1 << 64])
def test_times_that_no_cosignature_has(time_s: int) -> None:
    with pytest.raises(CosignatureInvalid, match="no time"):
        cosigned(time_s=time_s)


@pytest.mark.parametrize("time_s", [0, MAX_TIMESTAMP_S + 1])
def test_a_signed_time_that_no_cosignature_has_is_refused_all_the_same(time_s: int) -> None:
    signature = SECRETS[0].sign(cosigned_message(TEXT, time_s))
    line = NoteSignature(KEYS[0].name, KEYS[0].key_id, time_s.to_bytes(8, "big") + signature)
    with pytest.raises(CosignatureInvalid, match="no time"):
        open_cosignature(TEXT, line, KEYS[0], verify)


def test_the_future_is_refused_where_there_is_a_clock() -> None:
    line = cosigned(time_s=NOW_S + MAX_CLOCK_SKEW_S + 1)
    with pytest.raises(CosignatureInvalid, match="future"):
        open_cosignature(TEXT, line, KEYS[0], verify, now_s=NOW_S)
    open_cosignature(TEXT, line, KEYS[0], verify, now_s=NOW_S + 1)
    open_cosignature(TEXT, line, KEYS[0], verify)
    open_cosignature(TEXT, cosigned(time_s=MAX_TIMESTAMP_S), KEYS[0], verify)


def test_wrong_lengths_and_wrong_names() -> None:
    line = cosigned()
    for signature in (line.signature[:-1], line.signature + b"\0", line.signature[8:]):
        with pytest.raises(CosignatureInvalid, match="bytes"):
            open_cosignature(TEXT, replace(line, signature=signature), KEYS[0], verify)
    with pytest.raises(CosignatureInvalid, match="not one of"):
        open_cosignature(TEXT, line, KEYS[1], verify)


def test_a_log_key_is_no_witness_key_although_the_bytes_are_the_same() -> None:
    log_key = NoteKey(KEYS[0].name, SECRETS[0])
    assert log_key.key.key_id != KEYS[0].key_id
    with pytest.raises(VerifierKeyInvalid, match="type 0x04"):
        parse_witness_vkey(log_key.key.vkey())
    with pytest.raises(VerifierKeyInvalid, match="type 0x01"):
        parse_vkey(KEYS[0].vkey())
    note = parse_note(sign_checkpoint(Checkpoint("log.example/a", 7, bytes(range(32))), [log_key]))
    assert open_cosignatures(note.text, note.signatures, KEYS, verify) == ()
    # And a witness that signs the bare text in the log's way gains nothing.
    posing = NoteSignature(KEYS[0].name, KEYS[0].key_id, SECRETS[0].sign(TEXT.encode()))
    with pytest.raises(CosignatureInvalid):
        open_cosignatures(TEXT, [posing], KEYS, verify)


def test_a_witness_does_not_speak_for_the_log() -> None:
    raw = SignedNote(TEXT, (cosigned(0), cosigned(1))).to_bytes()
    log_key = NoteKey("log.example/a", SECRETS[0]).key
    with pytest.raises(NoteInvalid):
        open_checkpoint(raw, "log.example/a", [log_key], verify)


def test_a_quorum_counts_known_witnesses_once() -> None:
    policy = WitnessPolicy(tuple(KEYS), 2)
    assert len(require_quorum(TEXT, [cosigned(0), cosigned(2)], policy, verify)) == 2
    twice = [cosigned(0), cosigned(0, time_s=NOW_S + 1), cosigned(0, time_s=NOW_S - 1)]
    with pytest.raises(QuorumUnmet, match="1 of the 2"):
        require_quorum(TEXT, twice, policy, verify)
    (newest,) = open_cosignatures(TEXT, twice, KEYS, verify)
    assert newest.timestamp_s == NOW_S + 1


def test_an_unknown_witness_counts_for_nothing() -> None:
    stranger = SigningKey(b"\x09" * 32)
    line = cosign(TEXT, WitnessKey("witness.example/w9", stranger.public_key), NOW_S, stranger.sign)
    posing = cosign(TEXT, WitnessKey(KEYS[1].name, stranger.public_key), NOW_S, stranger.sign)
    with pytest.raises(QuorumUnmet):
        require_quorum(TEXT, [cosigned(0), line, posing], WitnessPolicy(tuple(KEYS), 2), verify)


def test_one_false_line_of_a_known_witness_condemns_the_note() -> None:
    false = replace(cosigned(2), signature=cosigned(2).signature[:8] + bytes(64))
    with pytest.raises(CosignatureInvalid):
        require_quorum(TEXT, [cosigned(0), cosigned(1), false], WitnessPolicy(tuple(KEYS), 2), verify)


def test_policies_that_make_no_sense() -> None:
    one_key_two_names = (KEYS[0], WitnessKey("witness.example/other", KEYS[0].public_key))
    for keys, quorum in ((one_key_two_names, 1), (tuple(KEYS), 4), (tuple(KEYS), -1), ((), 1)):
        with pytest.raises(VerifierKeyInvalid):
            WitnessPolicy(keys, quorum)
    assert require_quorum(TEXT, [], WitnessPolicy((), 0), verify) == ()
