"""SQLite files with the newest schema: one is migrated in each process of the tests, and the others are copies of it.

Running all migrations takes a tenth of a second, and two thousand tests want a file of their own.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from ledger.store.database import SqliteDatabase
from ledger.wiring.clock import SystemClock, SystemRandomness


@cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory(prefix="sla-ledger-") as folder:
        path = Path(folder) / "ledger.db"
        # Closing writes the write-ahead log back, so that the file is the whole database.
        SqliteDatabase(path, SystemClock(), SystemRandomness()).close()
        return path.read_bytes()


def with_schema(path: Path) -> Path:
    """``path``, which is made as an empty database where there is no file yet."""
    if not path.exists():
        path.write_bytes(_migrated())
    return path
