"""The port of provers and its adapters. None is trusted: :mod:`ledger.attest.proving.prover` checks what they make.

groth16py stays resident with its key loaded. snarkjs and rapidsnark are programs that start anew for each proof; they
read a ceremony's key (zkey) and the circuit as WebAssembly, which an imported key has beside it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from ledger.attest.commitments.inputs import CircuitInputs
from ledger.attest.crypto.groth16 import Proof
from ledger.attest.proving.limits import Limits, Notify, silent
from ledger.attest.proving.node_toolchain import NodeToolchain
from ledger.attest.proving.program import run_program
from ledger.attest.proving.prover_process import ProverProcess
from ledger.attest.proving.zk_keys import CircuitKey
from ledger.domain.attested import BASE_ORDER
from ledger.errors import ProofInvalid, ProverUnavailable

_LOAD_TIMEOUT_S: Final = 600.0
_WITNESS_REFUSED: Final = "Assert Failed"
"""What circom's witness calculation says of inputs that break the circuit."""
MAX_PROOF_JSON_BYTES: Final = 8192


class ProofMaker(Protocol):
    """Makes proofs under one key after another. Not safe to share between threads."""

    name: str

    def warm(self, key: CircuitKey) -> None:
        """Make ready for ``key`` what can be made ready. Raises ProverUnavailable."""

    def make(self, key: CircuitKey, inputs: CircuitInputs) -> bytes:
        """256 bytes that are said to prove ``inputs``; nobody has looked.

        Raises ProofInvalid if it was noticed that the inputs break the circuit, ProverUnavailable if there is no
        answer or none in the form of a proof.
        """

    def close(self) -> None:
        """Stop what runs."""


class ResidentMaker:
    """groth16py in the child ``process``; the key stays loaded until another is asked for or the child ends."""

    name = "groth16py"

    def __init__(self, process: ProverProcess, limits: Limits) -> None:
        self._process = process
        self._limits = limits
        self._loaded: tuple[Path, int] | None = None

    def warm(self, key: CircuitKey) -> None:
        if self._loaded == (key.proving_key, self._process.started()):
            return
        self._process.request(
            "load",
            _LOAD_TIMEOUT_S,
            f"loading the key of {key.name}",
            proving_key=str(key.proving_key),
            verification_key=key.verification_key.document(),
        )
        self._loaded = (key.proving_key, self._process.generation)

    def make(self, key: CircuitKey, inputs: CircuitInputs) -> bytes:
        self.warm(key)
        answer = self._process.request(
            "prove", self._limits.prove_timeout_s, f"proving {key.name} with groth16py", inputs=inputs
        )
        try:
            return bytes.fromhex(answer["proof"])
        except (KeyError, TypeError, ValueError) as error:
            raise ProverUnavailable("the prover's answer holds no proof", operation="prove") from error

    def close(self) -> None:
        self._process.close()


@dataclass(slots=True)
class SnarkjsMaker:
    """``snarkjs groth16 fullprove``: witness and proof in one process."""

    toolchain: NodeToolchain = field(default_factory=NodeToolchain)
    limits: Limits = field(default_factory=Limits)
    notify: Notify = silent
    name: str = "snarkjs"

    def warm(self, key: CircuitKey) -> None:
        _zkey_and_wasm(key, self.name)
        self.toolchain.snarkjs()

    def make(self, key: CircuitKey, inputs: CircuitInputs) -> bytes:
        zkey, wasm = _zkey_and_wasm(key, self.name)
        with tempfile.TemporaryDirectory(prefix="sla-snarkjs-") as scratch:
            folder = Path(scratch)
            write_inputs(folder / "input.json", inputs)
            files = ("input.json", str(wasm), str(zkey), "proof.json", "public.json")
            command = self.toolchain.snarkjs("groth16", "fullprove", *files)
            _run(command, folder, f"proving {key.name} with snarkjs", self.limits, self.notify)
            return read_proof_json(folder / "proof.json")

    def close(self) -> None:
        """Nothing runs between proofs."""


@dataclass(slots=True)
class RapidsnarkMaker:
    """``rapidsnark circuit.zkey witness.wtns proof.json public.json``; the witness is worked out by snarkjs."""

    program: str = "rapidsnark"
    toolchain: NodeToolchain = field(default_factory=NodeToolchain)
    limits: Limits = field(default_factory=Limits)
    notify: Notify = silent
    name: str = "rapidsnark"

    def warm(self, key: CircuitKey) -> None:
        _zkey_and_wasm(key, self.name)
        self.toolchain.snarkjs()
        self._program()

    def make(self, key: CircuitKey, inputs: CircuitInputs) -> bytes:
        zkey, wasm = _zkey_and_wasm(key, self.name)
        program = self._program()
        with tempfile.TemporaryDirectory(prefix="sla-rapidsnark-") as scratch:
            folder = Path(scratch)
            write_inputs(folder / "input.json", inputs)
            witness = self.toolchain.snarkjs("wtns", "calculate", str(wasm), "input.json", "witness.wtns")
            _run(witness, folder, f"working out the witness of {key.name}", self.limits, self.notify)
            command = [program, str(zkey), "witness.wtns", "proof.json", "public.json"]
            _run(command, folder, f"proving {key.name} with rapidsnark", self.limits, self.notify)
            return read_proof_json(folder / "proof.json")

    def close(self) -> None:
        """Nothing runs between proofs."""

    def _program(self) -> str:
        found = shutil.which(self.program)
        if found is None:
            raise ProverUnavailable(f"{self.program} is not on PATH; install it or choose another SLA_LEDGER_PROVER")
        return found


def read_proof_json(path: Path) -> bytes:
    """The 256 bytes of a proof in snarkjs' JSON form. Raises ProverUnavailable for a file that is none."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_PROOF_JSON_BYTES + 1)
        if len(text) > MAX_PROOF_JSON_BYTES:
            raise ValueError("too long")
        document = json.loads(text)
        (ax, ay), (cx, cy) = (_pair(document[name], "1") for name in ("pi_a", "pi_c"))
        x, y = _pair(document["pi_b"], ["1", "0"])
        (bx0, bx1), (by0, by1) = x, y
        a, b, c = [(_coordinate(p), _coordinate(q)) for p, q in ((ax, ay), (bx0, bx1), (cx, cy))]
        return Proof(a, (b, (_coordinate(by0), _coordinate(by1))), c).encode()
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ProverUnavailable(f"the prover's {path.name} is no proof: {error!r}", file=path.name) from error


def _pair(point: Any, last: Any) -> tuple[Any, Any]:
    first, second, third = point
    if third != last:
        raise ValueError("a point is not affine")
    return first, second


def _coordinate(text: Any) -> int:
    if type(text) is not str or not text.isascii() or not text.isdigit() or len(text) > 78:
        raise ValueError("a coordinate is no number")
    value = int(text)
    if value >= BASE_ORDER:
        raise ValueError("a coordinate is not below q")
    return value


def _zkey_and_wasm(key: CircuitKey, prover: str) -> tuple[Path, Path]:
    if key.zkey is None or key.witness_wasm is None:
        raise ProverUnavailable(
            f"{prover} proves with a zkey and the circuit's WebAssembly, which the key of {key.name} has not: "
            "import a ceremony's with `sla-ledger keys import ... --wasm FILE` (docs/ceremony.md), or use groth16py",
            circuit=key.name,
            prover=prover,
        )
    return key.zkey, key.witness_wasm


def write_inputs(path: Path, inputs: CircuitInputs) -> None:
    """The inputs as JSON for circom's programs, which read numbers of any size from decimal strings alone."""
    path.write_text(json.dumps(_decimals(inputs)), encoding="ascii")


def _decimals(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _decimals(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_decimals(each) for each in value]
    return str(int(value))


def _run(command: list[str], folder: Path, what: str, limits: Limits, notify: Notify) -> None:
    try:
        run_program(
            command, folder, what=what, timeout_s=limits.prove_timeout_s, memory_mb=limits.memory_mb, notify=notify
        )
    except ProverUnavailable as error:
        if _WITNESS_REFUSED in str(error.data.get("said", "")):
            raise ProofInvalid(
                "the inputs do not satisfy the circuit with the signals stated, so there is no proof",
                reason="unsatisfied",
            ) from error
        raise
