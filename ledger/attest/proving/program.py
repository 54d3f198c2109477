"""Run a prover's program to its end within limits: snarkjs, rapidsnark."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ledger.attest.proving.limits import Notify, Watch, kill_group
from ledger.errors import ProverUnavailable

_SAID_BYTES: Final = 4000


def run_program(
    command: Sequence[str], folder: Path, *, what: str, timeout_s: float, memory_mb: int, notify: Notify
) -> str:
    """What ``command``, run in ``folder``, wrote to both its outputs, the last few thousand bytes.

    Raises ProverUnavailable for a status other than 0 (``data`` has ``status`` and what it ``said``), or if it cannot
    be started or passes a limit; then it is killed with every process it started.
    """
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise ProverUnavailable(f"{command[0]} cannot be started: {error}", command=command[0]) from error
        watch = Watch(process.pid, what, timeout_s, memory_mb, notify)
        try:
            _wait(process, watch)
        finally:
            kill_group(process.pid)
            process.wait()
        output.seek(max(0, output.seek(0, 2) - _SAID_BYTES))
        said = output.read().decode("utf-8", "replace").strip()
    if process.returncode != 0:
        raise ProverUnavailable(
            f"{Path(command[0]).name} ended {what} with status {process.returncode}; its last words: {said or 'none'}",
            status=process.returncode,
            said=said,
        )
    return said


def _wait(process: subprocess.Popen[bytes], watch: Watch) -> None:
    while True:
        try:
            process.wait(watch.wait_s())
        except subprocess.TimeoutExpired:
            watch.look()
        else:
            return
