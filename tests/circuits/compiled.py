"""The circuits as circom compiles them: constraints, names of signals and witnesses, read from circom's own files.

circom2 compiles in a copy of the sources; what it made is kept beside the cached keys.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import struct
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ledger.attest.commitments.inputs import CircuitInputs
from ledger.attest.proving.circuits import circuit_named, circuit_sources
from ledger.attest.proving.proof_makers import write_inputs
from ledger.domain.attested import SCALAR_ORDER as R
from ledger.resources import resource_dir
from tests.support import node_packages

COMPILE_TIMEOUT_S = 900
Terms = tuple[tuple[int, int], ...]
"""(wire, coefficient) of a linear combination."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """a * b = c for each triple; ``public`` counts public signals, which are wires 1 and up."""

    wires: int
    public: int
    triples: tuple[tuple[Terms, Terms, Terms], ...]

    def broken(self, witness: Sequence[int], among: Sequence[int] | None = None) -> bool:
        """Whether some constraint, or one of those numbered, does not hold."""
        chosen = self.triples if among is None else [self.triples[at] for at in among]
        return any((_value(a, witness) * _value(b, witness) - _value(c, witness)) % R for a, b, c in chosen)

    def of_wires(self) -> list[list[int]]:
        """The constraints that each wire stands in."""
        found: list[list[int]] = [[] for _ in range(self.wires)]
        for at, triple in enumerate(self.triples):
            for wire in {wire for side in triple for wire, _ in side}:
                found[wire].append(at)
        return found


@dataclass(frozen=True, slots=True)
class Compiled:
    """What one compilation wrote."""

    folder: Path
    name: str

    def constraints(self) -> Constraints:
        return read_constraints((self.folder / f"{self.name}.r1cs").read_bytes())

    def names(self) -> dict[int, list[str]]:
        """Names of each wire that is left, ``main.`` taken off."""
        found: dict[int, list[str]] = {}
        for line in (self.folder / f"{self.name}.sym").read_text().splitlines():
            _, wire, _, name = line.split(",")
            if wire != "-1":
                found.setdefault(int(wire), []).append(name.removeprefix("main."))
        return found

    def public_signals(self) -> tuple[str, ...]:
        """Names of the public signals in the order of the proof."""
        names = self.names()
        # A wire may be known by inner names as well; a signal of main has no dot.
        return tuple(
            next(name for name in names[wire] if "." not in name) for wire in range(1, self.constraints().public + 1)
        )

    def witness(self, inputs: CircuitInputs) -> list[int]:
        """The witness that circom's own program computes."""
        with tempfile.TemporaryDirectory() as scratch:
            path, out = Path(scratch, "input.json"), Path(scratch, "witness.wtns")
            write_inputs(path, inputs)
            js = self.folder / f"{self.name}_js"
            done = node_packages.node(
                "node", js / "generate_witness.js", js / f"{self.name}.wasm", path, out, cwd=self.folder
            )
            if done.returncode:
                raise ValueError(f"no witness: {done.stdout[-300:]}{done.stderr[-300:]}")
            return read_witness(out.read_bytes())


def compiled(name: str, level: str, cache: Path, *, blocks: int | None = None) -> Compiled:
    """A shipped circuit, or with other ``blocks``, compiled at ``O0`` or ``O2``, now or before.

    Raises ``NodePackagesMissing``.
    """
    folder = resource_dir("circuits")
    circuit = circuit_named(folder, name)
    circuit = circuit if blocks is None else replace(circuit, blocks=blocks)
    sources = circuit_sources(circuit, folder)
    lock = (node_packages.TOOLCHAIN / "package-lock.json").read_text()
    recipe = hashlib.sha256(json.dumps([sources, level, lock], sort_keys=True).encode()).hexdigest()
    home = cache / "tests" / f"circom-{name}-{level}-{recipe[:16]}"
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / f".circom-{name}-{level}.lock").open("a") as lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        if not home.is_dir():
            with tempfile.TemporaryDirectory(dir=home.parent, prefix=".circom-") as scratch:
                _compile(sources, circuit.main, level, Path(scratch))
                Path(scratch, "made").rename(home)
    return Compiled(home, name)


def _compile(sources: dict[str, str], main: str, level: str, work: Path) -> None:
    for name, text in sources.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    # The compiler runs as WebAssembly and reads only below its own folder.
    shutil.copytree(node_packages.installed(node_packages.TOOLCHAIN) / "circomlib/circuits", work / "circomlib")
    (work / "made").mkdir()
    flags = ["--r1cs", "--sym", "--wasm", f"--{level}", "-l", "circomlib", "-o", "made"]
    done = node_packages.circom2(main, *flags, cwd=work, timeout_s=COMPILE_TIMEOUT_S)
    if done.returncode:
        raise ValueError(f"circom2 refuses {main}: {done.stdout[-600:]}")


def read_constraints(data: bytes) -> Constraints:
    """An r1cs file of version 1 (iden3's format). Raises ValueError."""
    sections = dict(_sections(data, b"r1cs"))
    header = sections[1]
    size = struct.unpack_from("<I", header)[0]
    if int.from_bytes(header[4 : 4 + size], "little") != R:
        raise ValueError("not over the field of BN254")
    wires, outputs, inputs, _, _, count = struct.unpack_from("<IIIIQI", header, 4 + size)
    body, at, triples = sections[2], 0, []
    for _ in range(count):
        sides = []
        for _ in range(3):
            terms = struct.unpack_from("<I", body, at)[0]
            at += 4
            side = []
            for _ in range(terms):
                wire = struct.unpack_from("<I", body, at)[0]
                side.append((wire, int.from_bytes(body[at + 4 : at + 4 + size], "little")))
                at += 4 + size
            sides.append(tuple(side))
        triples.append((sides[0], sides[1], sides[2]))
    return Constraints(wires, outputs + inputs, tuple(triples))


def read_witness(data: bytes) -> list[int]:
    """A wtns file. Raises ValueError."""
    sections = dict(_sections(data, b"wtns"))
    size, count = struct.unpack_from("<I", sections[1])[0], struct.unpack_from("<I", sections[1][-4:])[0]
    return [int.from_bytes(sections[2][at * size : (at + 1) * size], "little") for at in range(count)]


def _sections(data: bytes, magic: bytes) -> Iterator[tuple[int, bytes]]:
    if data[:4] != magic:
        raise ValueError(f"not a {magic.decode()} file")
    at = 12
    for _ in range(struct.unpack_from("<I", data, 8)[0]):
        kind, length = struct.unpack_from("<IQ", data, at)
        yield kind, data[at + 12 : at + 12 + length]
        at += 12 + length


def _value(side: Terms, witness: Sequence[int]) -> int:
    return sum(coefficient * witness[wire] for wire, coefficient in side)
