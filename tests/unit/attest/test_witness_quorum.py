"""What a reader's trust file says about witnesses and about older keys of the log, held against forged bundles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ledger.attest.checks.verification import (
    WITNESS_QUORUM,
    Exit,
    Outcome,
    Report,
    read_bundle,
    read_trust,
    verify_bundle,
)
from ledger.attest.crypto.signing import NoteKey, SigningKey
from ledger.domain.record.canonical import canonical_bytes
from ledger.errors import DocumentInvalid
from ledger.merkle.checkpoint import parse_checkpoint, sign_checkpoint
from ledger.merkle.cosignature import WitnessKey, cosign
from ledger.merkle.note import SignedNote, parse_note
from tests.support import examples
from tests.support.forging import Forger

TIME_S = 1_703_000_000
SECRETS = [SigningKey(bytes([60 + number]) * 32) for number in range(3)]
KEYS = [WitnessKey(f"witness.example/w{number}", secret.public_key) for number, secret in enumerate(SECRETS)]
ANYONE = "that the log shows everyone the same entries"


def trust(quorum: int, keys: list[WitnessKey], **members: Any) -> Any:
    witnesses = {"quorum": quorum, "vkeys": [key.vkey() for key in keys]}
    return read_trust(canonical_bytes({**examples.trust(), "witnesses": witnesses, **members}))


def cosigned(*numbers: int) -> Forger:
    """The withheld example, cosigned by these witnesses."""
    forged = examples.forger("bundle_withheld")
    note = parse_note(forged.bundle["log"]["checkpoint"].encode())
    lines = tuple(cosign(note.text, KEYS[number], TIME_S, SECRETS[number].sign) for number in numbers)
    forged.bundle["log"]["checkpoint"] = SignedNote(note.text, note.signatures + lines).to_bytes().decode()
    return forged


def report(forged: Forger, trusted: Any) -> Report:
    return verify_bundle(read_bundle(forged.sign()), trusted)


def quorum_of(found: Report) -> Outcome:
    (line,) = (line for line in found.lines if line.check == WITNESS_QUORUM)
    return line.outcome


def test_a_quorum_is_a_line_of_its_own_and_settles_what_no_bundle_does_alone() -> None:
    found = report(cosigned(0, 2), trust(2, KEYS))
    assert quorum_of(found) is Outcome.PASS
    assert found.exit_code(accept_dev=False) is Exit.HOLDS
    assert ANYONE not in found.not_established
    detail = next(line.detail for line in found.lines if line.check == WITNESS_QUORUM)
    assert "2 of 3" in detail
    assert "w0" in detail


def test_without_pinned_witnesses_cosignatures_say_nothing() -> None:
    found = report(cosigned(0, 1, 2), examples.trust())
    assert WITNESS_QUORUM not in {line.check for line in found.lines}
    assert ANYONE in found.not_established


@pytest.mark.parametrize(("numbers", "pinned"), [((), [0]), ((0,), [1]), ((0, 0), [0, 1]), ((0, 2), [0, 1])])
def test_too_few_pinned_witnesses(numbers: tuple[int, ...], pinned: list[int]) -> None:
    found = report(cosigned(*numbers), trust(len(pinned), [KEYS[number] for number in pinned]))
    assert quorum_of(found) is Outcome.FAIL
    assert found.exit_code(accept_dev=True) is Exit.FAILED
    assert ANYONE in found.not_established


def test_a_cosignature_of_another_tree_is_false() -> None:
    """The issuer moves a real cosignature under a checkpoint of a log that it made up."""
    honest = parse_note(cosigned(0).bundle["log"]["checkpoint"].encode())
    forged = examples.forger("bundle_withheld")
    shown = parse_checkpoint(honest.text)
    forged.checkpoint(replace(shown, size=shown.size + 1))
    note = parse_note(forged.bundle["log"]["checkpoint"].encode())
    moved = SignedNote(note.text, note.signatures + honest.signatures[-1:])
    forged.bundle["log"]["checkpoint"] = moved.to_bytes().decode()
    assert quorum_of(report(forged, trust(1, KEYS))) is Outcome.FAIL


def test_the_log_cannot_cosign_itself() -> None:
    forged = examples.forger("bundle_withheld")
    log_key = forged.secrets.key("log")
    posing = WitnessKey(KEYS[0].name, log_key.public_key)
    note = parse_note(forged.bundle["log"]["checkpoint"].encode())
    line = cosign(note.text, posing, TIME_S, log_key.sign)
    forged.bundle["log"]["checkpoint"] = SignedNote(note.text, (*note.signatures, line)).to_bytes().decode()
    assert quorum_of(report(forged, trust(1, KEYS))) is Outcome.FAIL


@pytest.mark.parametrize("vkeys", [["nonsense+00000000+AA=="], [KEYS[0].vkey(), KEYS[0].vkey()]])
def test_pins_that_make_no_sense_never_pass(vkeys: list[str]) -> None:
    trusted = read_trust(canonical_bytes({**examples.trust(), "witnesses": {"quorum": 1, "vkeys": vkeys}}))
    assert quorum_of(report(cosigned(0), trusted)) is Outcome.FAIL


@pytest.mark.parametrize("witnesses", [{}, {"quorum": 0, "vkeys": [KEYS[0].vkey()]}, {"quorum": 1, "vkeys": []}, None])
def test_a_trust_file_without_a_real_quorum_is_refused(witnesses: Any) -> None:
    with pytest.raises(DocumentInvalid):
        read_trust(canonical_bytes({**examples.trust(), "witnesses": witnesses}))


# --- older keys --------------------------------------------------------------------------------


def pin(found: Report) -> Outcome:
    (line,) = (line for line in found.lines if line.check == "pin: log")
    return line.outcome


def rotated(from_size: int, until_size: int | None) -> Any:
    """A reader who knows a newer key of the log, and the old one for a range of sizes."""
    old = examples.trust()["log"]
    new = NoteKey(old["origin"], SigningKey(b"\x44" * 32)).key.vkey()
    keys = [{"vkey": old["vkey"], "from_size": from_size, "until_size": until_size}]
    return read_trust(canonical_bytes({**examples.trust(), "log": {**old, "vkey": new}, "log_keys": keys}))


def test_an_old_key_counts_for_its_sizes_only() -> None:
    forged = examples.forger("bundle_withheld")
    size = parse_checkpoint(parse_note(forged.bundle["log"]["checkpoint"].encode()).text).size
    for trusted, outcome in (
        (rotated(0, size + 1), Outcome.PASS),
        (rotated(size, None), Outcome.PASS),
        (rotated(0, size), Outcome.FAIL),
        (rotated(size + 1, None), Outcome.FAIL),
    ):
        assert pin(report(forged, trusted)) is outcome


def test_a_range_binds_the_present_key_too() -> None:
    forged = examples.forger("bundle_withheld")
    log = examples.trust()["log"]
    for from_size, outcome in ((0, Outcome.PASS), (10**6, Outcome.FAIL)):
        keys = [{"vkey": log["vkey"], "from_size": from_size, "until_size": None}]
        trusted = read_trust(canonical_bytes({**examples.trust(), "log_keys": keys}))
        assert pin(report(forged, trusted)) is outcome


def test_a_stolen_old_key_signs_nothing_new() -> None:
    """Whoever holds the old key makes a larger tree of it: the size is outside the range that the reader knows."""
    forged = examples.forger("bundle_withheld")
    shown = parse_checkpoint(parse_note(forged.bundle["log"]["checkpoint"].encode()).text)
    trusted = rotated(0, shown.size + 1)
    stolen = NoteKey(forged.origin, forged.secrets.key("log"))
    larger = sign_checkpoint(replace(shown, size=shown.size + 1), [stolen])
    forged.bundle["log"]["checkpoint"] = larger.decode()
    assert pin(report(forged, trusted)) is Outcome.FAIL
