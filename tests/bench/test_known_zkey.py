"""A key made from known secrets is a key like any other: provers prove under it, verifiers accept, and only truth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from py_ecc.optimized_bn128 import G1, G2, multiply, normalize

from ledger.attest.crypto.groth16 import check_proof
from ledger.attest.crypto.verification_key import parse_verification_key
from ledger.attest.proving.limits import Limits
from ledger.attest.proving.proof_makers import ResidentMaker, SnarkjsMaker
from ledger.attest.proving.prover_process import ProverProcess
from ledger.attest.proving.zk_keys import CircuitKey
from ledger.attest.proving.zkey import read_zkey
from ledger.domain.attested import SCALAR_ORDER as R
from ledger.errors import ProofInvalid
from tests.bench import attest_peer
from tests.bench.fixed_base import multiples_g1, multiples_g2
from tests.bench.known_zkey import Secrets, lagrange_at, write_zkey
from tests.circuits.compiled import read_constraints
from tests.support import node_packages
from tests.support.ceremony import MAIN, Ceremony, ceremony
from tests.support.verifiers import Snarkjs

SCALARS = (0, 1, 2, 255, 256, 257, R - 1, R, R + 3, 3 << 250, 0x1234_5678_9ABC_DEF0 << 64)
SECRETS = Secrets(*(pow(7, 1000 + number, R) for number in range(5)))
SIGNALS = (81, 9)
"""That 9 squared is 81."""
INPUTS = {"root": 9, "below": 3}


def test_multiples_of_the_generators_are_those_of_py_ecc() -> None:
    for scalar, first, second in zip(SCALARS, multiples_g1(SCALARS), multiples_g2(SCALARS), strict=True):
        if scalar % R == 0:
            assert first is None is second
            continue
        x, y = normalize(multiply(G1, scalar % R))
        assert first == (int(x), int(y))
        u, v = normalize(multiply(G2, scalar % R))
        assert second == (tuple(map(int, u.coeffs)), tuple(map(int, v.coeffs)))


def test_lagrange_values_interpolate() -> None:
    """Any polynomial of lower degree than the roots are many has its value at a point from those at the roots."""
    point, power, coefficients = 12345, 4, [pow(3, number, R) for number in range(16)]

    def value(at: int) -> int:
        return sum(each * pow(at, degree, R) for degree, each in enumerate(coefficients)) % R

    root = pow(5, (R - 1) >> power, R)
    at_roots = [value(pow(root, place, R)) for place in range(16)]
    assert sum(a * b for a, b in zip(at_roots, lagrange_at(point, power), strict=True)) % R == value(point)


@pytest.fixture(scope="module")
def held(key_cache: Path, absent: Callable[[str], NoReturn]) -> Ceremony:
    """The tiny circuit, compiled."""
    try:
        return ceremony(key_cache)
    except node_packages.NodePackagesMissing as missing:
        absent(str(missing))


@pytest.fixture(scope="module")
def key(held: Ceremony, tmp_path_factory: pytest.TempPathFactory) -> CircuitKey:
    folder = tmp_path_factory.mktemp("known")
    write_zkey(folder / "key.zkey", read_constraints(held.r1cs.read_bytes()), SECRETS)
    (folder / "circuits/generated").mkdir(parents=True)
    (folder / "circuits/square.circom").write_text((held.folder / "square.circom").read_text())
    main = folder / "circuits/generated/square.circom"
    main.write_text(MAIN)
    files = {"main": str(main), "zkey": str(folder / "key.zkey"), "proving_key": str(folder / "proving.key")}
    with ProverProcess() as process:
        made = process.request("import_zkey", 60, **files)
    own = read_zkey(folder / "key.zkey").verification_key_document()
    verification_key = parse_verification_key(own)
    assert verification_key == parse_verification_key(made["verification_key"])
    return CircuitKey("square", verification_key, folder / "proving.key", {}, folder / "key.zkey", held.wasm)


@pytest.mark.slow
def test_proofs_under_it_hold_for_every_verifier_and_for_nothing_else(key: CircuitKey) -> None:
    with ProverProcess() as process:
        ours = ResidentMaker(process, Limits()).make(key, INPUTS)
        unsquared = process.request(
            "verify", 60, proof=ours.hex(), signals=[80, 9], verification_key=key.verification_key.document()
        )
        assert unsquared["holds"] is False
        proofs = [ours, SnarkjsMaker().make(key, INPUTS)]
        for proof in proofs:
            check_proof(key.verification_key, SIGNALS, proof)
            for wrong in ((80, 9), (81, 8)):
                with pytest.raises(ProofInvalid):
                    check_proof(key.verification_key, wrong, proof)
    document = key.verification_key.document()
    snarkjs = Snarkjs([(document, signals, proof) for signals in (SIGNALS, (80, 9)) for proof in proofs])
    assert [snarkjs.alone(document, SIGNALS, proof) for proof in proofs] == [True, True]
    assert [snarkjs.alone(document, (80, 9), proof) for proof in proofs] == [False, False]


@pytest.mark.slow
def test_the_comparison_times_each_prover(key: CircuitKey) -> None:
    found = attest_peer.compare(key, INPUTS, SIGNALS, rounds=1)
    assert found.keys() == attest_peer.NAMES.keys()
    assert all(seconds > 0 for seconds in found.values())
