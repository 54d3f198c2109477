"""Measure attestation: ``python -m tests.bench.attest [NAME ...]`` prints a table and writes var/bench/attest.json.

Every proof that is timed is also checked; making keys is not timed. Gas is that of the embedded chain.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

from eth_utils import keccak

from ledger.attest.crypto.batch import Batch
from tests.bench.attest_run import PROOFS, ROUNDS
from tests.bench.main import ROOT, Goal, main, run_child
from tests.contracts.ground import DAY as DAY_NS
from tests.contracts.ground import FIRST_START, Ground
from tests.contracts.test_batches import checkpoint, leaves, publish
from tests.contracts.trapdoor import curve_order

RESULT = ROOT / "var/bench/attest.json"
RUN = (sys.executable, "-m", "tests.bench.attest_run")
STATEMENTS = 1000

GOALS = {
    "month_prove_s": Goal("s", "<=", 14),
    "month_key_load_s": Goal("s", "<=", 60),
    "snarkjs_ratio_25x4": Goal("x", ">=", 2),
    "two_workers_speedup": Goal("x", ">=", 1.7),
    "verify_pure_s": Goal("s", "<=", 4),
    "verify_fast_s": Goal("s", "<=", 0.3),
    "gas_per_statement_1000": Goal("gas", "<=", 75),
    "gas_verify_and_record": Goal("gas", "<=", 315_000),
}


def month() -> dict[str, float]:
    """750 windows on one core, the prover resident; loading its key apart."""
    return _run("month")


def peer() -> dict[str, float]:
    """snarkjs' time over ours for the same inputs under the same key, each as it is used."""
    found = _run("peer")
    return {"snarkjs_ratio_25x4": found["snarkjs_s"] / found["ours_s"]}


def workers() -> dict[str, float]:
    """Proofs a second of two processes at once, over those of one alone."""
    rounds = [(rate(1), rate(2)) for _ in range(ROUNDS)]
    for one, two in rounds:
        print(f"  {one:.2f} and {two:.2f} proofs a second", file=sys.stderr)
    return {"two_workers_speedup": median(two / one for one, two in rounds)}


def verifiers() -> dict[str, float]:
    """One proof checked by py-ecc alone and by groth16py."""
    return _run("verify")


def gas() -> dict[str, float]:
    """The dearest of a first batch and a later one of 1,000 statements, and of a statement and its restatements."""
    ground = Ground()
    batches = []
    for size in (10**6, 10**6 + 2 * STATEMENTS):
        batch = Batch.of(leaves(STATEMENTS, f"bench {size}"))
        batches.append(publish(ground, checkpoint("example.com/bench", size, keccak(text=str(size))), batch.root))
    sla = ground.agreement()
    first = ground.statement(sla, alter_signals=_full_width)
    second = ground.statement(sla, replaces=first, alter_signals=_full_width)
    following = ground.statement(sla, start=FIRST_START + DAY_NS, alter_signals=_full_width)
    recorded = [ground.record(statement).gas_used for statement in (first, second, following)]
    return {
        "gas_per_statement_1000": max(receipt["gasUsed"] for receipt in batches) / STATEMENTS,
        "gas_verify_and_record": max(recorded),
    }


def _full_width(signals: list[int]) -> None:
    # A scalar of full width costs the most to multiply by, and in bytes of the call.
    signals[1] = curve_order - 11


def rate(count: int, proofs: int = PROOFS) -> float:
    """Proofs a second of ``count`` workers that start together with their keys loaded."""
    running = [
        subprocess.Popen([*RUN, "worker"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    try:
        for worker in running:
            if worker.stdout is None or worker.stdout.readline().strip() != "ready":
                raise SystemExit("a worker did not load its key")
        started = time.perf_counter()
        for worker in running:
            if worker.stdin is not None:
                worker.stdin.write(f"{proofs}\n")
                worker.stdin.flush()
        answers = [worker.communicate()[0] for worker in running]
        # Checking the proofs, which is pure Python, is not what is measured: only the slowest worker's proving is.
        slowest = max(json.loads(answer)["proving_s"] for answer in answers)
        print(f"  {count} at once: {time.perf_counter() - started:.1f} s with checking", file=sys.stderr)
    finally:
        for worker in running:
            worker.kill()
            worker.wait()
    return count * proofs / slowest


def _run(part: str) -> dict[str, float]:
    found: dict[str, float] = json.loads(run_child([*RUN, part]).output)
    return found


MEASUREMENTS: dict[str, Callable[[], dict[str, float]]] = {
    "month": month,
    "peer": peer,
    "workers": workers,
    "verifiers": verifiers,
    "gas": gas,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], MEASUREMENTS, GOALS, RESULT))
