"""One process at a time works a data directory: its chain lives in memory, and its outbox has one worker."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from ledger.errors import DataDirectoryInUse

LOCK_FILE = "in-use.lock"


class DirectoryLock:
    """An exclusive lock on a data directory; the system gives it up when the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        """Take the lock; raises ``DataDirectoryInUse`` naming the process that has it."""
        self._descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._descriptor, 20).decode("ascii", "replace").strip() or "unknown"
            os.close(self._descriptor)
            raise DataDirectoryInUse(
                f"{folder} is in use by process {holder}; stop it first, or name another directory",
                path=str(folder),
                pid=holder,
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, str(os.getpid()).encode())

    def release(self) -> None:
        os.close(self._descriptor)
