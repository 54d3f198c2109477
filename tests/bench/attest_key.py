"""A zkey for measuring: powers of tau of this machine's own, one contribution, a beacon. Worth nothing but its speed.

Preparing powers of tau takes many minutes of processor time at 2^14, once: they stay in the cache of keys.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
import tempfile
from pathlib import Path

from ledger.attest.circuits import circuit_named, circuit_sources
from ledger.attest.prover_process import ProverProcess
from ledger.attest.verification_key import parse_verification_key
from ledger.attest.zk_keys import CircuitKey
from ledger.resources import resource_dir
from tests.support import ceremony

POWER = 14
BEACON = ceremony.BEACON


def zkey_of(name: str, cache: Path) -> CircuitKey:
    """The key of a circuit of at most 2^14 constraints, made now if it is not in the cache."""
    circuits = resource_dir("circuits")
    circuit = circuit_named(circuits, name)
    sources = circuit_sources(circuit, circuits)
    digest = hashlib.sha256(repr(sorted(sources.items())).encode()).hexdigest()[:16]
    folder = cache / "tests" / f"bench-{name}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        main = folder / "circuits" / circuit.main
        if not (folder / "final.zkey").exists():
            for path, text in sources.items():
                (folder / "circuits" / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / "circuits" / path).write_text(text)
            ceremony.compile_circuit(main, folder)
            _hold(folder, main.stem, powers_of_tau(cache))
        proving_key = folder / "proving.key"
        with ProverProcess() as process:
            arguments = {"main": str(main), "zkey": str(folder / "final.zkey"), "proving_key": str(proving_key)}
            made = process.request("import_zkey", 600, "importing the zkey", **arguments)
    key = parse_verification_key(made["verification_key"])
    wasm = folder / f"{main.stem}_js" / f"{main.stem}.wasm"
    return CircuitKey(name, key, proving_key, {}, zkey=folder / "final.zkey", witness_wasm=wasm)


def powers_of_tau(cache: Path) -> Path:
    """Prepared powers of tau, made now if they are not in the cache."""
    path = cache / "tests" / f"own-powers-of-tau-{POWER}.ptau"
    if path.exists():
        return path
    print(f"  preparing powers of tau at 2^{POWER}, once: this takes many minutes", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=cache / "tests") as scratch:
        folder = Path(scratch)
        ceremony.snarkjs(folder, "powersoftau", "new", "bn128", str(POWER), "0.ptau")
        ceremony.snarkjs(folder, "powersoftau", "contribute", "0.ptau", "1.ptau", "--name=own", _entropy())
        ceremony.snarkjs(folder, "powersoftau", "beacon", "1.ptau", "2.ptau", BEACON, "10")
        ceremony.snarkjs(folder, "powersoftau", "prepare", "phase2", "2.ptau", "final.ptau")
        (folder / "final.ptau").rename(path)
    return path


def _hold(folder: Path, stem: str, ptau: Path) -> None:
    ceremony.snarkjs(folder, "groth16", "setup", f"{stem}.r1cs", str(ptau), "initial.zkey")
    ceremony.snarkjs(folder, "zkey", "contribute", "initial.zkey", "one.zkey", "--name=own", _entropy())
    ceremony.snarkjs(folder, "zkey", "beacon", "one.zkey", "last.zkey", BEACON, "10")
    (folder / "last.zkey").rename(folder / "final.zkey")


def _entropy() -> str:
    return f"-e={os.urandom(32).hex()}"
