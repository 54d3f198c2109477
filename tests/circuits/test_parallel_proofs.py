"""Eight periods proved at the same time by two resident provers: every proof holds, and for its own period alone."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ledger.attest.commitments.inputs import circuit_inputs
from ledger.attest.commitments.model import Evaluation, evaluate
from ledger.attest.crypto.groth16 import check_proofs
from ledger.attest.proving.circuits import circuit_named
from ledger.attest.proving.prover import Groth16Prover
from ledger.attest.proving.zk_keys import KeyCache
from ledger.errors import ProofInvalid
from ledger.resources import resource_dir
from tests.circuits.claims import random_claim

PROOFS = 8


class OwnRandomness:
    """``ledger.app.ports.store.Randomness`` of the operating system."""

    def bytes(self, count: int) -> bytes:
        return os.urandom(count)


@pytest.mark.slow
def test_eight_proofs_at_a_time_all_hold(prover: Groth16Prover, key_cache_dir: Path) -> None:
    circuits = resource_dir("circuits")
    claims = [random_claim(100 + seed) for seed in range(PROOFS)]
    found = [evaluate(claim) for claim in claims]

    with Groth16Prover(circuit_named(circuits, "compliance_25x4"), KeyCache(key_cache_dir, circuits, print)) as second:

        def prove(index: int) -> bytes:
            inputs = circuit_inputs(claims[index], found[index])
            return (prover, second)[index % 2].prove(inputs, found[index].signals)

        with ThreadPoolExecutor(PROOFS) as pool:
            proofs = list(pool.map(prove, range(PROOFS)))

    key = prover.key().verification_key
    check_proofs(key, [(of(each), proof) for each, proof in zip(found, proofs, strict=True)], OwnRandomness())
    # What came back to one thread is not what another had asked for.
    mixed = [*proofs[1:], proofs[0]]
    assert not any(prover.groth16py_holds(proof, each.signals) for each, proof in zip(found, mixed, strict=True))
    with pytest.raises(ProofInvalid):
        check_proofs(key, [(of(each), proof) for each, proof in zip(found, mixed, strict=True)], OwnRandomness())


def of(evaluation: Evaluation) -> tuple[int, ...]:
    return evaluation.signals.as_tuple()
