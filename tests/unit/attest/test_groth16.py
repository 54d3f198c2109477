"""The independent verifier, mostly on proofs that must not pass. The proof in groth16.json is a real one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger.attest.crypto.groth16 import Proof, check_proof, parse_proof
from ledger.attest.crypto.verification_key import VerificationKey, parse_verification_key
from ledger.domain.attested import BASE_ORDER, SCALAR_ORDER
from ledger.errors import ProofInvalid
from tests.circuits.curve_tricks import point_outside_the_subgroup, rerandomised

pytestmark = pytest.mark.slow

VECTOR = json.loads((Path(__file__).resolve().parents[2] / "vectors" / "groth16.json").read_text())
SIGNALS = tuple(int(value) for value in VECTOR["signals"])
PROOF = bytes.fromhex(VECTOR["proof"])


@pytest.fixture(scope="module")
def key() -> VerificationKey:
    return parse_verification_key(VECTOR["verification_key"])


def refusal(key: VerificationKey, signals: tuple[Any, ...], proof: bytes) -> str:
    with pytest.raises(ProofInvalid) as caught:
        check_proof(key, signals, proof)
    return str(caught.value.data["reason"])


def with_word(index: int, change: Callable[[int], int]) -> bytes:
    """The proof with one of its eight 32-byte words changed."""
    words = [int.from_bytes(PROOF[i : i + 32], "big") for i in range(0, 256, 32)]
    words[index] = change(words[index])
    return b"".join(word.to_bytes(32, "big") for word in words)


def test_the_real_proof_holds(key: VerificationKey) -> None:
    check_proof(key, SIGNALS, PROOF)


def test_circuit_id_is_the_one_recorded(key: VerificationKey) -> None:
    assert key.circuit_id().hex() == VECTOR["circuit_id"]


def test_encoding_a_parsed_proof_gives_its_bytes() -> None:
    assert parse_proof(PROOF).encode() == PROOF


def test_a_rerandomised_proof_holds_too_so_proof_bytes_identify_nothing(key: VerificationKey) -> None:
    other = rerandomised(parse_proof(PROOF), 12345).encode()
    assert other != PROOF
    check_proof(key, SIGNALS, other)


def test_a_rerandomised_proof_does_not_hold_under_another_period(key: VerificationKey) -> None:
    other = rerandomised(parse_proof(PROOF), 12345).encode()
    moved = (*SIGNALS[:2], SIGNALS[2] + 1, *SIGNALS[3:])
    assert refusal(key, moved, other) == "pairing"


@pytest.mark.parametrize("index", range(6), ids=["summary", "credit", "ctx", "root", "terms", "base"])
def test_every_signal_is_bound(key: VerificationKey, index: int) -> None:
    changed = [*SIGNALS]
    changed[index] ^= 1
    assert refusal(key, tuple(changed), PROOF) == "pairing"


@pytest.mark.parametrize("index", range(6))
def test_a_signal_plus_r_is_another_text_of_it_and_refused(key: VerificationKey, index: int) -> None:
    changed = [*SIGNALS]
    changed[index] += SCALAR_ORDER
    assert refusal(key, tuple(changed), PROOF) == "signal_range"


@pytest.mark.parametrize("value", [-1, SCALAR_ORDER, True, "1", 1.0, None], ids=repr)
def test_signals_are_canonical_integers(key: VerificationKey, value: object) -> None:
    assert refusal(key, (value, *SIGNALS[1:]), PROOF) == "signal_range"


@pytest.mark.parametrize("signals", [(), SIGNALS[:5], (*SIGNALS, 0)], ids=["none", "missing", "extra"])
def test_the_number_of_signals_is_exact(key: VerificationKey, signals: tuple[int, ...]) -> None:
    assert refusal(key, signals, PROOF) == "signal_count"


@pytest.mark.parametrize("data", [b"", PROOF[:-1], PROOF + b"\0", bytearray(PROOF)], ids=["0", "255", "257", "type"])
def test_a_proof_has_256_bytes(key: VerificationKey, data: bytes) -> None:
    assert refusal(key, SIGNALS, data) == "proof_length"


@pytest.mark.parametrize("index", range(8))
def test_a_coordinate_plus_q_is_refused(key: VerificationKey, index: int) -> None:
    assert refusal(key, SIGNALS, with_word(index, lambda w: w + BASE_ORDER)) == "coordinate_range"


@pytest.mark.parametrize("index", range(8))
def test_a_changed_coordinate_is_off_its_curve(key: VerificationKey, index: int) -> None:
    expected = "off_subgroup" if 2 <= index < 6 else "off_curve"
    assert refusal(key, SIGNALS, with_word(index, lambda w: w ^ 1)) == expected


def test_all_zero_points_are_not_infinity_but_off_the_curve(key: VerificationKey) -> None:
    assert refusal(key, SIGNALS, bytes(256)) == "off_curve"


def test_b_outside_the_subgroup_is_refused(key: VerificationKey) -> None:
    honest = parse_proof(PROOF)
    stray = Proof(honest.a, point_outside_the_subgroup(), honest.c).encode()
    assert refusal(key, SIGNALS, stray) == "off_subgroup"


@pytest.mark.parametrize("member", ["a", "c"])
def test_a_negated_point_does_not_hold(key: VerificationKey, member: str) -> None:
    index = {"a": 1, "c": 7}[member]
    assert refusal(key, SIGNALS, with_word(index, lambda y: BASE_ORDER - y)) == "pairing"


def test_swapped_points_do_not_hold(key: VerificationKey) -> None:
    honest = parse_proof(PROOF)
    assert refusal(key, SIGNALS, Proof(honest.c, honest.b, honest.a).encode()) == "pairing"


def test_a_proof_under_another_key_does_not_hold(key: VerificationKey) -> None:
    swapped = VerificationKey(key.alpha, key.beta, key.gamma, key.delta, (*key.ic[1:], key.ic[0]))
    assert refusal(swapped, SIGNALS, PROOF) == "pairing"
