"""What ``tests.bench.attest`` times, each part in a process of its own: ``python -m tests.bench.attest_run PART``.

A part prints its figures as JSON. It ends with an error, and no figure, where what it timed did not come out right.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from ledger.attest.commitments.inputs import circuit_inputs
from ledger.attest.commitments.model import PeriodClaim, evaluate
from ledger.attest.crypto.groth16 import check_proof
from ledger.attest.proving.circuits import circuit_named, load_circuits
from ledger.attest.proving.prover import Groth16Prover
from ledger.attest.proving.zk_keys import KeyCache
from ledger.resources import resource_dir
from tests.bench import attest_peer
from tests.bench.attest_key import zkey_of
from tests.circuits.claims import plain_claim, random_claim
from tests.support.node_packages import TOOLCHAIN, installed

DAY = "compliance_25x4"
MONTH = "compliance_750x4"
MONTH_BLOCKS = 30
ROUNDS = 3
PROOFS = 6


def month() -> dict[str, float]:
    """A proof of a month, 750 windows, on one core with the key loaded; and loading the key."""
    circuits = {circuit.name for circuit in load_circuits(resource_dir("circuits"))}
    if MONTH not in circuits:
        raise SystemExit(f"{MONTH} is not in circuits.json, so there is nothing to measure")
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with _prover(MONTH) as prover:
        prover.key()
    # A process that made the key holds it already; what counts is loading a key that is there.
    with _prover(MONTH) as prover:
        prover.key()
        started = time.perf_counter()
        prover.warm()
        loaded = time.perf_counter() - started
        taken = [_prove(prover, random_claim(seed, MONTH_BLOCKS)) for seed in range(ROUNDS)]
    return {"month_prove_s": median(taken), "month_key_load_s": loaded}


def peer() -> dict[str, float]:
    """snarkjs and ours under one key of one circuit, in turns."""
    installed(TOOLCHAIN)
    key = zkey_of(DAY, key_cache())
    claim = plain_claim()
    evaluation = evaluate(claim)
    found = attest_peer.compare(key, circuit_inputs(claim, evaluation), evaluation.signals.as_tuple())
    attest_peer.say(found, key)
    return found


def verify() -> dict[str, float]:
    """Both verifiers on one proof: py-ecc in this process, groth16py in its child."""
    claim = plain_claim()
    evaluation = evaluate(claim)
    with _prover(DAY) as prover:
        proof = prover.prove(circuit_inputs(claim, evaluation), evaluation.signals)
        key = prover.key().verification_key
        pure, fast = [], []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            check_proof(key, evaluation.signals.as_tuple(), proof)
            pure.append(time.perf_counter() - started)
            started = time.perf_counter()
            if not prover.groth16py_holds(proof, evaluation.signals):
                raise SystemExit("groth16py refuses its own proof")
            fast.append(time.perf_counter() - started)
    return {"verify_pure_s": median(pure), "verify_fast_s": median(fast)}


def worker() -> dict[str, float]:
    """A worker: says that its key is loaded, is told how many proofs to make, and says how long they took."""
    claims = [plain_claim(fee=800_000 + number) for number in range(PROOFS)]
    with _prover(DAY) as prover:
        prover.warm()
        print("ready", flush=True)
        proofs = int(sys.stdin.readline())
        taken = sum(_prove(prover, claim) for claim in claims[:proofs])
    return {"proving_s": taken}


def key_cache() -> Path:
    return Path(os.environ.get("SLA_LEDGER_KEY_CACHE") or "var/keys")


def _prover(name: str) -> Groth16Prover:
    circuits = resource_dir("circuits")
    return Groth16Prover(circuit_named(circuits, name), KeyCache(key_cache(), circuits, _say))


def _prove(prover: Groth16Prover, claim: PeriodClaim) -> float:
    """Seconds to make a proof, which is checked afterwards and not timed."""
    evaluation = evaluate(claim)
    inputs = circuit_inputs(claim, evaluation)
    return attest_peer.timed(lambda: prover.prove_unchecked(inputs), prover.key(), evaluation.signals.as_tuple())


def _say(sentence: str) -> None:
    print(f"  {sentence}", file=sys.stderr, flush=True)


PARTS: dict[str, Callable[[], dict[str, float]]] = {"month": month, "peer": peer, "verify": verify, "worker": worker}

if __name__ == "__main__":
    print(json.dumps(PARTS[sys.argv[1]]()))
