"""groth16py and py-ecc give one verdict on every proof, and forgeable keys are refused for a reason."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.attest.groth16 import Proof, check_proof, parse_proof
from ledger.attest.prover_process import ProverProcess
from ledger.attest.verification_key import VerificationKey, parse_verification_key
from ledger.domain.attested import BASE_ORDER, SCALAR_ORDER
from ledger.errors import ProofInvalid, VerificationKeyInvalid
from tests.circuits.curve_tricks import (
    forged_where_delta_is_gamma,
    point_outside_the_subgroup,
    rerandomised,
)

pytestmark = pytest.mark.slow

VECTOR = json.loads((Path(__file__).resolve().parents[1] / "vectors" / "groth16.json").read_text())
KEY_DOCUMENT: dict[str, Any] = VECTOR["verification_key"]
SIGNALS = tuple(int(value) for value in VECTOR["signals"])
PROOF = bytes.fromhex(VECTOR["proof"])
HONEST = parse_proof(PROOF)
KEY = parse_verification_key(KEY_DOCUMENT)


@pytest.fixture(scope="module")
def process(key_cache_dir: Path) -> Iterator[ProverProcess]:
    with ProverProcess() as one:
        yield one


def groth16py_holds(process: ProverProcess, key: dict[str, Any], signals: tuple[int, ...], proof: bytes) -> bool:
    answer = process.request("verify", 60, proof=proof.hex(), signals=list(signals), verification_key=key)
    return bool(answer["holds"])


def py_ecc_holds(signals: tuple[int, ...], proof: bytes) -> bool:
    try:
        check_proof(KEY, signals, proof)
    except ProofInvalid:
        return False
    return True


def word_changed(index: int, xor: int = 1, plus: int = 0) -> bytes:
    word = int.from_bytes(PROOF[32 * index : 32 * index + 32], "big")
    return PROOF[: 32 * index] + ((word ^ xor) + plus).to_bytes(32, "big") + PROOF[32 * index + 32 :]


def signal_changed(index: int, plus: int) -> tuple[int, ...]:
    return (*SIGNALS[:index], SIGNALS[index] + plus, *SIGNALS[index + 1 :])


CASES: dict[str, tuple[tuple[int, ...], bytes, bool]] = {
    "honest": (SIGNALS, PROOF, True),
    "rerandomised": (SIGNALS, rerandomised(HONEST, 7).encode(), True),
    "rerandomised_for_another_period": (signal_changed(2, 1), rerandomised(HONEST, 7).encode(), False),
    **{f"signal_{i}_plus_one": (signal_changed(i, 1), PROOF, False) for i in range(6)},
    **{f"signal_{i}_plus_r": (signal_changed(i, SCALAR_ORDER), PROOF, False) for i in range(6)},
    "signal_missing": (SIGNALS[:5], PROOF, False),
    "signal_more": ((*SIGNALS, 0), PROOF, False),
    **{f"word_{i}_changed": (SIGNALS, word_changed(i), False) for i in range(8)},
    **{f"word_{i}_plus_q": (SIGNALS, word_changed(i, 0, BASE_ORDER), False) for i in range(8)},
    "a_negated": (SIGNALS, Proof((HONEST.a[0], BASE_ORDER - HONEST.a[1]), HONEST.b, HONEST.c).encode(), False),
    "a_and_c_swapped": (SIGNALS, Proof(HONEST.c, HONEST.b, HONEST.a).encode(), False),
    "b_outside_the_subgroup": (SIGNALS, Proof(HONEST.a, point_outside_the_subgroup(), HONEST.c).encode(), False),
    "all_zero": (SIGNALS, bytes(256), False),
    "too_short": (SIGNALS, PROOF[:-1], False),
}


@pytest.mark.parametrize("name", CASES)
def test_both_verifiers_give_the_same_verdict(process: ProverProcess, name: str) -> None:
    signals, proof, holds = CASES[name]
    assert py_ecc_holds(signals, proof) is holds
    assert groth16py_holds(process, KEY_DOCUMENT, signals, proof) is holds


def test_under_delta_equal_gamma_anything_is_provable_so_the_key_is_refused(process: ProverProcess) -> None:
    document = copy.deepcopy(KEY_DOCUMENT)
    document["vk_delta_2"] = document["vk_gamma_2"]
    invented = tuple(range(1, 7))
    weak = VerificationKey(KEY.alpha, KEY.beta, KEY.gamma, KEY.gamma, KEY.ic)
    forgery = forged_where_delta_is_gamma(weak, invented).encode()
    assert groth16py_holds(process, document, invented, forgery), "groth16py alone accepts the forgery"
    check_proof(weak, invented, forgery)
    with pytest.raises(VerificationKeyInvalid):
        parse_verification_key(document)
