"""A whole ceremony in miniature: own powers of tau, two contributions, a beacon. Made once and cached.

The circuit is tiny. Its powers of tau come from this machine alone, so nothing made here is more than a test key.
"""

from __future__ import annotations

import fcntl
import hashlib
import inspect
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ledger.attest.proving.node_toolchain import NodeToolchain
from tests.support import node_packages

POWER = 8
BEACON = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
CIRCUIT = """pragma circom 2.1.6;
include "comparators.circom";
template Square(A, B, C, D) {
    signal input root;
    signal input below;
    signal output square;
    square <== root * root;
    component less = LessThan(16);
    less.in[0] <== below;
    less.in[1] <== root;
    less.out === 1;
}
"""
MAIN = """pragma circom 2.1.6;

include "../square.circom";

component main {public [root]} =
    Square(1, 25, 4, 4);
"""


@dataclass(frozen=True, slots=True)
class Ceremony:
    """``initial`` has no contribution, ``contributed`` two and no beacon, ``final`` both."""

    folder: Path

    @property
    def ptau(self) -> Path:
        return self.folder / "final.ptau"

    @property
    def r1cs(self) -> Path:
        return self.folder / "square.r1cs"

    @property
    def wasm(self) -> Path:
        return self.folder / "square_js/square.wasm"

    @property
    def initial(self) -> Path:
        return self.folder / "initial.zkey"

    @property
    def contributed(self) -> Path:
        return self.folder / "bob.zkey"

    @property
    def final(self) -> Path:
        return self.folder / "final.zkey"


def ceremony(cache: Path) -> Ceremony:
    """The ceremony under ``cache``, held now if it was not. Raises ``NodePackagesMissing``."""
    lock = (node_packages.TOOLCHAIN / "package-lock.json").read_text()
    recipe = json.dumps([CIRCUIT, MAIN, POWER, BEACON, lock, inspect.getsource(_hold)])
    folder = cache / "tests" / f"ceremony-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
    cache.joinpath("tests").mkdir(parents=True, exist_ok=True)
    with (cache / "tests" / ".ceremony.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache / "tests", prefix=".ceremony-") as scratch:
                made = Path(scratch, "made")
                made.mkdir()
                _hold(made)
                made.rename(folder)
    return Ceremony(folder)


def compile_circuit(main: Path, out: Path, level: str = "--O2") -> None:
    """Write the circuit's r1cs and WebAssembly with circom2 below ``out``."""
    modules = node_packages.installed(node_packages.TOOLCHAIN)
    circomlib = NodeToolchain(modules).circomlib
    # circom2 sees nothing that is not below its folder.
    names = [os.path.relpath(path.resolve(), "/") for path in (main, circomlib, out)]
    command = [names[0], "--r1cs", "--wasm", level, "-l", names[1], "-o", names[2]]
    done = node_packages.circom2(*command, cwd=Path("/"))
    assert done.returncode == 0, done.stdout + done.stderr


def snarkjs(folder: Path, *arguments: str) -> str:
    done = node_packages.snarkjs(*arguments, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def write_circuits(folder: Path, template: dict[str, object]) -> Path:
    """A circuit folder with the one instance `square`, in the form of circuits/circuits.json."""
    (folder / "square.circom").write_text(CIRCUIT)
    entry = template | {
        "name": "square",
        "source": "square.circom",
        "template": "Square",
        "outputs": ["square"],
        "public_inputs": ["root"],
        "main": "generated/square.circom",
    }
    (folder / "circuits.json").write_text(json.dumps({"format": "sla-ledger/circuits/v1", "circuits": [entry]}))
    return folder


def _hold(folder: Path) -> None:
    (folder / "generated").mkdir()
    (folder / "square.circom").write_text(CIRCUIT)
    (folder / "generated/square.circom").write_text(MAIN)
    compile_circuit(folder / "generated/square.circom", folder)
    shutil.rmtree(folder / "generated")
    snarkjs(folder, "powersoftau", "new", "bn128", str(POWER), "0.ptau")
    snarkjs(folder, "powersoftau", "contribute", "0.ptau", "1.ptau", "--name=first", f"-e={os.urandom(32).hex()}")
    snarkjs(folder, "powersoftau", "beacon", "1.ptau", "2.ptau", BEACON, "10")
    snarkjs(folder, "powersoftau", "prepare", "phase2", "2.ptau", "final.ptau")
    snarkjs(folder, "groth16", "setup", "square.r1cs", "final.ptau", "initial.zkey")
    for before, name in (("initial", "alice"), ("alice", "bob")):
        entropy = f"-e={os.urandom(32).hex()}"
        snarkjs(folder, "zkey", "contribute", f"{before}.zkey", f"{name}.zkey", f"--name={name}", entropy)
    snarkjs(folder, "zkey", "beacon", "bob.zkey", "final.zkey", BEACON, "10", "-n=the beacon")
