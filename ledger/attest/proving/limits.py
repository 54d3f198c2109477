"""What bounds a prover's process: time, memory, and saying what is going on while it takes long."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ledger.errors import ProverUnavailable

PROGRESS_S: Final = 5.0
"""After how long, and how often from then on, a line says what is being done."""
LOOK_S: Final = 0.2
"""How often the memory of a process is looked at."""
DEFAULT_MEMORY_MB: Final = 6144
DEFAULT_PROVE_TIMEOUT_S: Final = 300
_MB: Final = 1 << 20

Notify = Callable[[str], None]


def silent(_: str) -> None:
    """Says nothing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one proof may take. Memory is what a process and its children hold resident, in MiB."""

    prove_timeout_s: float = DEFAULT_PROVE_TIMEOUT_S
    memory_mb: int = DEFAULT_MEMORY_MB


@dataclass(slots=True)
class Watch:
    """One piece of work of the process ``pid``: call :meth:`look` at least every ``LOOK_S`` seconds.

    ``what`` names the work for people. Memory is read from /proc: where there is none, it is not bounded here.
    """

    pid: int
    what: str
    timeout_s: float
    memory_mb: int
    notify: Notify
    progress_s: float = PROGRESS_S
    started: float = field(default_factory=time.monotonic)
    _said: int = 0

    def look(self) -> None:
        """Say what is going on if it is time to; raises ProverUnavailable if a limit is passed."""
        elapsed = time.monotonic() - self.started
        if elapsed > self.timeout_s:
            raise ProverUnavailable(
                f"the prover did not finish {self.what} within {self.timeout_s:g} s and was stopped; "
                "try again with a longer limit (SLA_LEDGER_PROVE_TIMEOUT_S) or on a less busy machine",
                operation=self.what,
                timeout_s=self.timeout_s,
            )
        resident = resident_bytes(self.pid)
        if resident > self.memory_mb * _MB:
            raise ProverUnavailable(
                f"the prover took {resident // _MB} MiB for {self.what}, {self.memory_mb} MiB are allowed, and was "
                "stopped; raise SLA_LEDGER_PROVER_MEMORY_MB if the machine has more to give",
                operation=self.what,
                memory_mb=self.memory_mb,
            )
        if elapsed >= self.progress_s * (self._said + 1):
            self._said = int(elapsed / self.progress_s)
            self.notify(f"{self.what}: {elapsed:.0f} s so far, {resident // _MB} MiB")

    def wait_s(self) -> float:
        """How long to wait for the process before looking again."""
        return max(0.0, min(LOOK_S, self.started + self.timeout_s - time.monotonic() + 0.01))


def resident_bytes(pid: int) -> int:
    """Memory that the process and its descendants hold; 0 for one that is gone, or where there is no /proc."""
    total = 0
    for each in _family(pid):
        with contextlib.suppress(OSError, ValueError, IndexError):
            total += int(Path(f"/proc/{each}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    return total


def _family(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError, ValueError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _family(int(child))


def kill_group(pid: int) -> None:
    """Kill a process that leads a group, and everything in it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
