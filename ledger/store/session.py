"""SQLite connections: how they are opened, when transactions begin, and what their errors mean.

Writers begin with BEGIN IMMEDIATE, so that a transaction that has read never finds out at its first write that
it must be thrown away. Readers use connections of their own that cannot write at all.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from ledger.errors import LogInconsistent, ReadOnlyTransaction, StorageDamaged, StorageUnavailable

BUSY_TIMEOUT_MS = 10_000
"""How long a writer waits for another process before it gives up."""

PAGE_BYTES = 8192
_CHECKPOINT_BYTES = 32 * 1024 * 1024
_RETRY_S = 0.01
_PRIMARY_CODE = 0xFF
_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: "is locked by another process; try again when it is done",
    sqlite3.SQLITE_LOCKED: "is locked by another connection; try again when it is done",
    sqlite3.SQLITE_READONLY: "is read-only; make the file and its folder writable for this user",
    sqlite3.SQLITE_FULL: "has no room left; free some disk space",
    sqlite3.SQLITE_IOERR: "could not be read or written; check the disk",
    sqlite3.SQLITE_CANTOPEN: "could not be opened; check that its folder exists and is writable for this user",
    sqlite3.SQLITE_PERM: "may not be opened by this user",
    sqlite3.SQLITE_AUTH: "may not be opened by this user",
}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def open_engine(path: Path, *, writable: bool, busy_timeout_ms: int) -> Engine:
    """An engine over one SQLite file. Transactions of a writable one begin with BEGIN IMMEDIATE."""
    engine = create_engine(URL.create("sqlite", database=str(path)), connect_args={"timeout": busy_timeout_ms / 1000})

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _record: Any) -> None:
        # The driver would begin transactions by itself, late and deferred.
        connection.isolation_level = None
        if writable:
            # Of a new file: an event of 500 bytes takes almost 1,000 of them, and few fit into 4,096.
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            _use_write_ahead_log(connection, busy_timeout_ms / 1000)
            # A commit that was acknowledged survives a power cut.
            connection.execute("PRAGMA synchronous = FULL")
            # Moving pages from the WAL into the file waits for the disk twice: after 32 MiB instead of 4.
            (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_BYTES // page_bytes}")
            # Where a table has triggers, each statement keeps copies of the pages it changes: not in a file.
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("PRAGMA cache_size = -65536")
            # INSERT OR REPLACE fires the DELETE triggers only so.
            connection.execute("PRAGMA recursive_triggers = ON")
        else:
            connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writable else "BEGIN")

    return engine


def _use_write_ahead_log(connection: sqlite3.Connection, wait_s: float) -> None:
    """Where two make a file at once, SQLite refuses the second at once instead of waiting for the first."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & _PRIMARY_CODE != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
        time.sleep(_RETRY_S)


@contextmanager
def translated_errors(path: Path, *, writable: bool) -> Iterator[None]:
    """Turn the driver's errors into this product's.

    ``StorageUnavailable`` for a locked, read-only, full or unreachable database, ``ReadOnlyTransaction`` for a
    write in a read transaction, ``StorageDamaged`` for a file that is no sound database, ``LogInconsistent``
    where a constraint or an append-only trigger refused a write.
    """
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        # What fails while a connection is prepared comes without SQLAlchemy's wrapping.
        cause = error.orig if isinstance(error, DBAPIError) else error
        if not isinstance(cause, sqlite3.Error):
            raise
        code = getattr(cause, "sqlite_errorcode", 0) & _PRIMARY_CODE
        if code == sqlite3.SQLITE_READONLY and not writable:
            raise ReadOnlyTransaction("this transaction only reads; begin one that writes") from error
        if code in _UNAVAILABLE:
            raise StorageUnavailable(
                f"the database {path} {_UNAVAILABLE[code]}. Nothing of this transaction was written.",
                path=str(path),
                reason=str(cause),
            ) from error
        if code in _DAMAGED:
            raise StorageDamaged(
                f"{path} is damaged or not a database of this product ({cause}); restore it from a backup",
                path=str(path),
            ) from error
        if code == sqlite3.SQLITE_CONSTRAINT:
            raise LogInconsistent(f"the database refused to contradict itself: {cause}", path=str(path)) from error
        raise
