"""One suite over the provers: groth16py, snarkjs, and rapidsnark by a stand-in that speaks its command line.

All prove the same tiny circuit under the same key, the outcome of a ceremony. What misbehaves are real processes.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from ledger.attest.crypto.groth16 import check_proof
from ledger.attest.crypto.verification_key import parse_verification_key
from ledger.attest.proving import limits
from ledger.attest.proving.circuits import Circuit, circuit_named
from ledger.attest.proving.limits import Limits, Watch
from ledger.attest.proving.node_toolchain import NodeToolchain
from ledger.attest.proving.proof_makers import (
    ProofMaker,
    RapidsnarkMaker,
    ResidentMaker,
    SnarkjsMaker,
    read_proof_json,
)
from ledger.attest.proving.prover import Groth16Prover
from ledger.attest.proving.prover_process import COMMAND, ProverProcess
from ledger.attest.proving.zk_keys import CircuitKey
from ledger.errors import ProofInvalid, ProverUnavailable
from ledger.resources import resource_dir
from tests.support import node_packages
from tests.support.ceremony import Ceremony, ceremony, write_circuits

MISBEHAVING = Path(__file__).resolve().parents[1] / "support/misbehaving_prover.py"
pytestmark = pytest.mark.slow
PROVERS = ("groth16py", "snarkjs", "rapidsnark")
HONEST = {"root": 9, "below": 3}


@dataclass(frozen=True)
class Signed:
    """Public signals of the tiny circuit, where the product has six."""

    values: tuple[int, ...]

    def as_tuple(self) -> tuple[int, ...]:
        return self.values


@dataclass(frozen=True)
class OneKey:
    """Keys, where there is one."""

    key: CircuitKey
    said: list[str]

    def notify(self, sentence: str) -> None:
        self.said.append(sentence)

    def ensure(self, circuit: Circuit, process: ProverProcess) -> CircuitKey:
        return self.key


@pytest.fixture(scope="session")
def held(key_cache_dir: Path, absent: Callable[[str], NoReturn]) -> Ceremony:
    try:
        return ceremony(key_cache_dir)
    except node_packages.NodePackagesMissing as missing:
        absent(str(missing))


@pytest.fixture(scope="session")
def circuit(tmp_path_factory: pytest.TempPathFactory) -> Circuit:
    template = json.loads((resource_dir("circuits") / "circuits.json").read_text())["circuits"][0]
    return circuit_named(write_circuits(tmp_path_factory.mktemp("circuits"), template), "square")


@pytest.fixture(scope="session")
def key(held: Ceremony, tmp_path_factory: pytest.TempPathFactory) -> CircuitKey:
    folder = tmp_path_factory.mktemp("key")
    (folder / "generated").mkdir()
    (folder / "square.circom").write_text((held.folder / "square.circom").read_text())
    main = folder / "generated/square.circom"
    main.write_text('pragma circom 2.1.6;\ninclude "../square.circom";\n')
    main.write_text(main.read_text() + "component main {public [root]} = Square(1, 25, 4, 4);\n")
    with ProverProcess() as process:
        proving_key = folder / "proving.key"
        made = process.request("import_zkey", 60, main=str(main), zkey=str(held.final), proving_key=str(proving_key))
    verification_key = parse_verification_key(made["verification_key"])
    return CircuitKey("square", verification_key, proving_key, {}, zkey=held.final, witness_wasm=held.wasm)


@pytest.fixture
def other_proof(held: Ceremony, key: CircuitKey, tmp_path: Path) -> Path:
    """A good proof, in JSON, that 7 has a square."""
    (tmp_path / "input.json").write_text('{"root": "7", "below": "3"}')
    arguments = ("input.json", held.wasm, held.final, "other.json", "public.json")
    done = node_packages.snarkjs("groth16", "fullprove", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    check_proof(key.verification_key, (49, 7), read_proof_json(tmp_path / "other.json"))
    return tmp_path / "other.json"


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def real_rapidsnark(folder: Path, toolchain: NodeToolchain) -> str:
    """A program that speaks rapidsnark's command line and has snarkjs make the proof."""
    command = " ".join(f"'{word}'" for word in toolchain.snarkjs("groth16", "prove"))
    return str(script(folder / "rapidsnark", f'#!/bin/sh\n[ $# = 4 ] || exit 1\nexec {command} "$@"\n'))


@pytest.fixture
def make(tmp_path: Path, held: Ceremony) -> Callable[..., ProofMaker]:
    """The adapter of a name, with its real program or, given a ``kind``, one that misbehaves so."""

    def maker(name: str, kind: str | None = None, other: Path = Path("none"), **limits: Any) -> ProofMaker:
        bounds = Limits(**limits)
        wrong = (sys.executable, str(MISBEHAVING), str(kind), str(other))
        toolchain = NodeToolchain(node_packages.installed(node_packages.TOOLCHAIN))
        if name == "groth16py":
            process = ProverProcess(COMMAND if kind is None else wrong, memory_mb=bounds.memory_mb)
            return ResidentMaker(process, bounds)
        if name == "snarkjs":
            if kind is not None:
                act = (
                    f"const [program, ...words] = {json.dumps(wrong)};\n"
                    "const done = require('child_process').spawnSync(program, [...words, ...process.argv.slice(2)]);\n"
                    "if (done.signal) process.kill(process.pid, done.signal);\n"
                )
                script(tmp_path / "modules/snarkjs/build/cli.cjs", act)
                toolchain = NodeToolchain(tmp_path / "modules")
            return SnarkjsMaker(toolchain, bounds)
        if kind is None:
            return RapidsnarkMaker(real_rapidsnark(tmp_path, toolchain), toolchain, bounds)
        command = " ".join(f"'{word}'" for word in wrong)
        program = script(tmp_path / "rapidsnark", f'#!/bin/sh\nexec {command} "$@"\n')
        return RapidsnarkMaker(str(program), toolchain, bounds)

    return maker


@pytest.fixture
def prover(key: CircuitKey, circuit: Circuit) -> Iterator[Callable[[ProofMaker], Groth16Prover]]:
    opened: list[Groth16Prover] = []

    def of(maker: ProofMaker) -> Groth16Prover:
        opened.append(Groth16Prover(circuit, OneKey(key, []), maker))
        return opened[-1]

    yield of
    for one in opened:
        one.close()


Make = Callable[..., ProofMaker]
Prover = Callable[[ProofMaker], Groth16Prover]


@pytest.mark.parametrize("name", PROVERS)
def test_a_proof_is_made_and_holds(name: str, make: Make, prover: Prover, key: CircuitKey) -> None:
    one = prover(make(name))
    one.warm()
    proof = one.prove(HONEST, Signed((81, 9)))
    check_proof(key.verification_key, (81, 9), proof)
    assert len(proof) == 256


@pytest.mark.parametrize("name", PROVERS)
def test_a_lie_has_no_proof(name: str, make: Make, prover: Prover) -> None:
    one = prover(make(name))
    with pytest.raises(ProofInvalid) as refused:
        one.prove(HONEST | {"below": 10}, Signed((81, 9)))
    assert refused.value.data["reason"] == "unsatisfied"
    with pytest.raises(ProofInvalid) as refused:
        one.prove(HONEST, Signed((82, 9)))
    assert refused.value.data["reason"] == "unsatisfied"
    assert one.prove(HONEST, Signed((81, 9)))


@pytest.mark.parametrize("name", PROVERS)
def test_a_proof_of_something_else_is_refused(name: str, make: Make, prover: Prover, other_proof: Path) -> None:
    one = prover(make(name, "other", other_proof))
    assert one.prove_unchecked(HONEST) == read_proof_json(other_proof)
    with pytest.raises(ProofInvalid):
        one.prove(HONEST, Signed((81, 9)))


@pytest.mark.parametrize("kind", ["garbage", "not_a_proof", "long", "off_curve", "unreduced", "silent"])
@pytest.mark.parametrize("name", PROVERS)
def test_an_answer_that_is_no_proof_is_refused(
    name: str, kind: str, make: Make, prover: Prover, other_proof: Path
) -> None:
    with pytest.raises((ProverUnavailable, ProofInvalid)):
        prover(make(name, kind, other_proof)).prove(HONEST, Signed((81, 9)))


@pytest.mark.parametrize("name", PROVERS)
def test_a_prover_that_is_late_is_stopped(name: str, make: Make, key: CircuitKey) -> None:
    maker = make(name, "sleep", prove_timeout_s=3)
    if name == "groth16py":
        with pytest.raises(ProverUnavailable, match=r"within 3 s"):
            maker._process.request("prove", 3)  # type: ignore[attr-defined]
    else:
        with pytest.raises(ProverUnavailable, match=r"within 3 s"):
            maker.make(key, HONEST)
    maker.close()


@pytest.mark.parametrize("name", PROVERS)
def test_a_prover_that_is_killed_is_told(name: str, make: Make, key: CircuitKey) -> None:
    maker = make(name, "die")
    with pytest.raises(ProverUnavailable, match="status -9"):
        maker.make(key, HONEST)
    maker.close()


@pytest.mark.parametrize("name", PROVERS)
def test_a_prover_that_takes_too_much_memory_is_stopped(name: str, make: Make, key: CircuitKey) -> None:
    maker = make(name, "hog", memory_mb=400)
    with pytest.raises(ProverUnavailable, match="400 MiB are allowed"):
        maker.make(key, HONEST)
    maker.close()


@pytest.mark.parametrize("name", PROVERS)
def test_threads_share_one_prover(name: str, make: Make, prover: Prover) -> None:
    """Eight proofs for the resident one; two for programs, which take a second each."""
    one = prover(make(name))
    proofs: dict[int, bytes] = {}

    def run(root: int) -> None:
        proofs[root] = one.prove({"root": root, "below": 3}, Signed((root * root, root)))

    threads = [threading.Thread(target=run, args=(root,)) for root in range(4, 12 if name == "groth16py" else 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(proofs.values())) == len(threads)


@pytest.mark.parametrize("name", ["snarkjs", "rapidsnark"])
def test_a_development_key_is_not_for_programs(name: str, make: Make, key: CircuitKey) -> None:
    bare = CircuitKey("square", key.verification_key, key.proving_key, {})
    with pytest.raises(ProverUnavailable, match="groth16py"):
        make(name).warm(bare)


def test_a_program_that_is_not_there_says_so(key: CircuitKey, tmp_path: Path) -> None:
    with pytest.raises(ProverUnavailable, match="not on PATH"):
        RapidsnarkMaker("no-such-rapidsnark").make(key, HONEST)
    with pytest.raises(ProverUnavailable, match="SLA_LEDGER_NODE_MODULES"):
        SnarkjsMaker(NodeToolchain(tmp_path)).warm(key)


def test_a_key_that_a_maker_loaded_is_loaded_again_by_the_next_child(make: Make, key: CircuitKey) -> None:
    maker = make("groth16py")
    proof = maker.make(key, HONEST)
    maker.close()
    assert maker.make(key, HONEST) != proof
    maker.close()


def test_long_work_is_told_of_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    with ProverProcess((sys.executable, "-c", "import time; time.sleep(60)")) as process:
        watch = Watch(process._running().pid, "proving x", 60, 1000, said.append, progress_s=5, started=0.0)
        for elapsed_s in (1, 4.9, 5.1, 7, 10.2, 10.3):
            monkeypatch.setattr(limits, "time", SimpleNamespace(monotonic=lambda elapsed_s=elapsed_s: elapsed_s))
            watch.look()
    assert [sentence.split(",")[0] for sentence in said] == ["proving x: 5 s so far", "proving x: 10 s so far"]
    assert all(sentence.endswith("MiB") for sentence in said)
