"""snarkjs beside ours: the same circuit, key and inputs, on the same cores, in turns.

Each is timed as it is used and as the other is used: snarkjs' command starts anew for each proof and the product's
prover stays, and both the other way round. The figure is the first pair; the table says all four.

A prover of ours that starts anew spends two thirds of its time on its key, where snarkjs spends next to none: groth16py
looks at every point that it loads, and whether one of G2 is in the subgroup takes 0.15 ms of processor time. At 25x4
there are 12,621 of them (1.91 of the 1.96 s that loading takes: with those points at infinity it takes 0.05 s), at
750x4 201,841 (31 s). Its API cannot leave that out. From a zkey it takes points as they are (0.03 s at 25x4), but then
works out no witness unless it compiles the circuit again (5.5 s). A WebAssembly engine beside it could, its compiled
module kept on disk, for the keys of ceremonies alone: those that are made here are in no zkey. It was not taken in for
a time that a prover which stays does not spend.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from ledger.attest.commitments.inputs import CircuitInputs
from ledger.attest.crypto.groth16 import check_proof
from ledger.attest.proving.limits import Limits
from ledger.attest.proving.node_toolchain import NodeToolchain
from ledger.attest.proving.proof_makers import ResidentMaker, SnarkjsMaker, read_proof_json, write_inputs
from ledger.attest.proving.prover_process import ProverProcess
from ledger.attest.proving.zk_keys import CircuitKey

ROUNDS = 3
RESIDENT = Path(__file__).with_name("snarkjs_resident.cjs")
Make = Callable[[], bytes]
NAMES = {
    "snarkjs_s": "snarkjs fullprove, a process for each proof",
    "snarkjs_kept_s": "snarkjs, its process kept",
    "ours_s": "ours, the prover kept with its key loaded",
    "ours_anew_s": "ours, a prover process for each proof",
}


def compare(key: CircuitKey, inputs: CircuitInputs, signals: tuple[int, ...], rounds: int = ROUNDS) -> dict[str, float]:
    """The median seconds of each in ``NAMES``. Raises ProofInvalid if one made a proof that does not hold."""
    taken: dict[str, list[float]] = {name: [] for name in NAMES}
    with ExitStack() as stack:
        makers: dict[str, Make] = {
            "snarkjs_s": lambda: SnarkjsMaker().make(key, inputs),
            "snarkjs_kept_s": stack.enter_context(_snarkjs_kept(key, inputs)),
            "ours_s": stack.enter_context(_ours_kept(key, inputs)),
            "ours_anew_s": lambda: _ours_anew(key, inputs),
        }
        # What is kept has proved once before it counts; so has the file cache seen every file.
        for make in makers.values():
            timed(make, key, signals)
        for _ in range(rounds):
            for name, make in makers.items():
                taken[name].append(timed(make, key, signals))
    return {name: median(each) for name, each in taken.items()}


def say(found: dict[str, float], key: CircuitKey) -> None:
    """The table, to standard error."""
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(f"  {key.name}, seconds for a proof on {cores} cores (load average {load:.1f})", file=sys.stderr)
    for name, what in NAMES.items():
        print(f"    {what:<45}{found[name]:>6.2f}", file=sys.stderr)


def timed(make: Make, key: CircuitKey, signals: tuple[int, ...]) -> float:
    """Seconds to make a proof, which is checked afterwards and not timed."""
    started = time.perf_counter()
    proof = make()
    taken = time.perf_counter() - started
    check_proof(key.verification_key, signals, proof)
    return taken


@contextmanager
def _ours_kept(key: CircuitKey, inputs: CircuitInputs) -> Iterator[Make]:
    with ProverProcess() as process:
        maker = ResidentMaker(process, Limits())
        maker.warm(key)
        yield lambda: maker.make(key, inputs)


def _ours_anew(key: CircuitKey, inputs: CircuitInputs) -> bytes:
    with _ours_kept(key, inputs) as make:
        return make()


@contextmanager
def _snarkjs_kept(key: CircuitKey, inputs: CircuitInputs) -> Iterator[Make]:
    toolchain = NodeToolchain()
    node = toolchain.snarkjs()[0]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_inputs(folder / "input.json", inputs)
        files = [str(toolchain.modules), str(folder / "input.json"), str(key.witness_wasm), str(key.zkey)]
        process = subprocess.Popen(
            [node, str(RESIDENT), *files], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

        def make() -> bytes:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            (folder / "proof.json").write_text(process.stdout.readline())
            return read_proof_json(folder / "proof.json")

        try:
            yield make
        finally:
            process.kill()
            process.wait()
