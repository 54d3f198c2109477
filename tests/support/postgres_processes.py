"""Writers and sequencers as processes of their own: ``python -m tests.support.postgres_processes append|sequence``."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import psycopg
from sqlalchemy import event

from ledger.store.inbox import Sequencer
from ledger.store.postgres import PostgresDatabase
from tests.conformance.samples import SeededRandomness, StepClock, windows
from tests.support.postgres import ROLE_PREFIX

ROOT = Path(__file__).resolve().parents[2]


def open_postgres(url: str, seed: int = 1) -> PostgresDatabase:
    """A database whose ids follow from the seed; two of one seed would make the same ids."""
    return PostgresDatabase(url, StepClock(), SeededRandomness(seed), role_prefix=ROLE_PREFIX)


def start(*arguments: str) -> Popen[bytes]:
    """Run this module in a process."""
    command = [sys.executable, "-m", "tests.support.postgres_processes", *arguments]
    return Popen(command, cwd=ROOT, stderr=PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)})


def append(url: str, seed: str, count: str) -> None:
    """Single appends: half of them to a stream of this writer, half to one that all writers share."""
    database = open_postgres(url, int(seed))
    for serial in range(int(count)):
        if serial % 2:
            database.append("windows/shared", windows(1), expected_version=None)
        else:
            database.append(f"windows/{seed}", windows(1), expected_version=serial // 2)
    database.close()


def sequence(url: str) -> None:
    """Sequence until the process is told to stop."""
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stop.append(number))
    database = open_postgres(url)
    sequencer = Sequencer(database.sequence_once, lambda text: print(text, file=sys.stderr), period_s=0.001)
    sequencer.start()
    while not stop:
        time.sleep(0.05)
    sequencer.stop()
    database.close()


def sequence_and_die(url: str, boundary: int) -> int:
    """Fork a sequencer that kills itself (SIGKILL) at that boundary before or after a statement; its signal, or 0."""
    child = os.fork()
    if child:
        return os.WTERMSIG(os.waitpid(child, 0)[1])
    try:
        database = open_postgres(url)
        event.listen(database._sequencer, "connect", lambda connection, _record: _arm(connection, boundary))
        database.sequence_once()
    finally:
        os._exit(0)


def _arm(connection: psycopg.Connection[Any], boundary: int) -> None:
    passed = 0

    def step() -> None:
        nonlocal passed
        passed += 1
        if passed == boundary:
            os.kill(os.getpid(), signal.SIGKILL)

    class Dying(psycopg.Cursor[Any]):
        def execute(self, *args: Any, **options: Any) -> Any:
            step()
            done = super().execute(*args, **options)
            step()
            return done

        def executemany(self, *args: Any, **options: Any) -> None:
            step()
            super().executemany(*args, **options)
            step()

        def copy(self, *args: Any, **options: Any) -> Any:
            step()
            return super().copy(*args, **options)

    commit = connection.commit

    def dying_commit() -> None:
        step()
        commit()
        step()

    connection.cursor_factory = Dying
    connection.commit = dying_commit  # type: ignore[method-assign]


if __name__ == "__main__":
    {"append": append, "sequence": sequence}[sys.argv[1]](*sys.argv[2:])
