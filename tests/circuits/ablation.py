"""Does each check of the circuit earn its place? Take it out, and a lie aimed at it must pass.

``python -m tests.circuits.ablation`` compiles the circuit once without each check and proves the
lies aimed at it: about ten seconds a check, so it is run by hand after a change of the circuits.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ledger.attest.circuits import circuit_named, circuit_sources
from ledger.resources import resource_dir
from tests.circuits.lies import LIES, Lie
from tests.circuits.lying_prover import signals_of

_CHECK = re.compile(r"^\s*((?:Zero|Boolean|Same|Excludes|Range|AtMost)\b.*;)$")


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One use of a check: its file, its line counted from 0, its text."""

    file: str
    line: int
    check: str


def check_lines(sources: dict[str, str]) -> Iterator[CheckLine]:
    """Every use of a check in circom sources."""
    for file, text in sorted(sources.items()):
        for number, line in enumerate(text.splitlines()):
            if found := _CHECK.match(line):
                yield CheckLine(file, number, found[1])


def passing_lies(sources: dict[str, str], main: str, lies: list[Lie]) -> list[str]:
    """Names of the lies that are proved under ``sources``."""
    import groth16py

    with tempfile.TemporaryDirectory() as scratch:
        for name, text in sources.items():
            path = Path(scratch, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        proving_key, key = groth16py.setup_circom(str(Path(scratch, main)), [groth16py.circomlib_path(2)])
    verifier = groth16py.Verifier(key)
    passed = []
    for lie in lies:
        inputs = lie.inputs()
        if verifier.verify(groth16py.prove(proving_key, inputs), list(signals_of(inputs).as_tuple())):
            passed.append(lie.name)
    return passed


def main() -> int:
    """Report each check; 1 if one of them could go unnoticed."""
    folder = resource_dir("circuits")
    circuit = circuit_named(folder, "compliance_25x4")
    unnoticed = 0
    for line in check_lines(circuit_sources(circuit, folder)):
        lies = [lie for lie in LIES.values() if lie.check == line.check]
        instance = replace(circuit, blocks=max(lie.blocks for lie in lies))
        sources = circuit_sources(instance, folder)
        kept = sources[line.file].splitlines()
        kept[line.line] = ""
        passed = passing_lies(sources | {line.file: "\n".join(kept)}, circuit.main, lies)
        unnoticed += not passed
        verdict = f"lets {', '.join(passed)} pass" if passed else "IS NOT MISSED by any lie"
        print(f"without {line.file}:{line.line + 1} {line.check} {verdict}", flush=True)
    return int(unnoticed > 0)


if __name__ == "__main__":
    sys.exit(main())
