"""The whole check of a ceremony's key: the file, the powers of tau it started from, every step, this circuit."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger.attest.proving.ceremony import Finding, Outcome, check_file
from ledger.attest.proving.circuits import Circuit, circuit_sources
from ledger.attest.proving.limits import DEFAULT_MEMORY_MB, Notify
from ledger.attest.proving.node_toolchain import NodeToolchain
from ledger.attest.proving.powers_of_tau import PowersOfTau
from ledger.attest.proving.program import run_program
from ledger.attest.proving.zkey import Zkey
from ledger.errors import ProverUnavailable

TIMEOUT_S: Final = 4 * 3600.0
_VERIFIED: Final = "ZKey Ok!"
_STEPS: Final = "steps and circuit"


@dataclass(frozen=True, slots=True)
class Check:
    """What to check, and with what. ``ptau`` is what the file ``ptau_path`` was found to be; None: nobody gave one.

    ``accepted_ptau`` is the sha256 (hex) of powers of tau that are not among the published ones and still trusted.
    """

    path: Path
    zkey: Zkey
    circuit: Circuit
    circuits: Path
    toolchain: NodeToolchain
    notify: Notify
    ptau_path: Path | None = None
    ptau: PowersOfTau | None = None
    accepted_ptau: str = ""

    def findings(self) -> Iterator[Finding]:
        """Every check with its outcome, in order."""
        yield from check_file(self.zkey, len(self.circuit.signals))
        yield self._powers_of_tau()
        yield self._steps()

    def _powers_of_tau(self) -> Finding:
        what = "powers of tau"
        if self.ptau is None:
            return Finding(what, Outcome.NOT_CHECKED, "name the file that the ceremony started from with --ptau")
        if self.ptau.published:
            return Finding(what, Outcome.PASS, f"{self.ptau.published}, sha256 {self.ptau.sha256}")
        if self.ptau.sha256 == self.accepted_ptau:
            return Finding(what, Outcome.PASS, f"the accepted file, sha256 {self.ptau.sha256}")
        return Finding(
            what,
            Outcome.ASSUMED,
            f"sha256 {self.ptau.sha256} is none of the published files, and whoever made it alone can forge; if you "
            "trust it, say so with --accept-ptau and its sha256",
        )

    def _steps(self) -> Finding:
        if self.ptau_path is None:
            return Finding(_STEPS, Outcome.NOT_CHECKED, "this takes the powers of tau: --ptau")
        try:
            verify = self.toolchain.snarkjs("zkey", "verify")
            with tempfile.TemporaryDirectory(prefix="sla-ceremony-") as scratch:
                r1cs = self._compile(Path(scratch))
                files = [str(path.resolve()) for path in (r1cs, self.ptau_path, self.path)]
                return self._run([*verify, *files], Path(scratch))
        except ProverUnavailable as error:
            return Finding(_STEPS, Outcome.NOT_CHECKED, error.message)

    def _compile(self, folder: Path) -> Path:
        for name, text in circuit_sources(self.circuit, self.circuits).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        # circom2 sees only what is below the folder it runs in.
        main, library, out = (
            os.path.relpath(path.resolve(), "/")
            for path in (folder / self.circuit.main, self.toolchain.circomlib, folder)
        )
        command = self.toolchain.circom(main, "--r1cs", "--O2", "-l", library, "-o", out)
        self._program(command, Path("/"), f"compiling {self.circuit.name}")
        return folder / Path(self.circuit.main).with_suffix(".r1cs").name

    def _run(self, command: list[str], folder: Path) -> Finding:
        try:
            said = self._program(command, folder, f"checking every step of {self.path.name}")
        except ProverUnavailable as error:
            if "said" not in error.data:
                raise
            said = str(error.data["said"])
        if _VERIFIED in said:
            return Finding(_STEPS, Outcome.PASS, f"snarkjs: every step follows, the key is of {self.circuit.name}")
        reason = said.rsplit("snarkJS", 1)[-1].strip()[-200:]
        return Finding(
            _STEPS,
            Outcome.FAIL,
            f"snarkjs refuses the key for {self.circuit.name} and these powers of tau ({reason}): compile the circuit "
            "with --O2 and use the same powers of tau as the ceremony",
        )

    def _program(self, command: list[str], folder: Path, what: str) -> str:
        return run_program(
            command, folder, what=what, timeout_s=TIMEOUT_S, memory_mb=2 * DEFAULT_MEMORY_MB, notify=self.notify
        )


def exit_code(findings: list[Finding]) -> int:
    """0 everything passed; 1 something failed; 3 something was not checked or is assumed."""
    outcomes = {finding.outcome for finding in findings}
    if Outcome.FAIL in outcomes:
        return 1
    return 3 if outcomes & {Outcome.NOT_CHECKED, Outcome.ASSUMED} else 0
