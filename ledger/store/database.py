"""The embedded database: one SQLite file."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Connection

from ledger.app.ports.store import Randomness, Transaction
from ledger.domain.time.instant import Clock
from ledger.errors import StorageUnavailable
from ledger.store.following import Following
from ledger.store.inspection import SqlInspection
from ledger.store.migrate import SCHEMA_REVISION, current_revision, upgrade
from ledger.store.projections import rebuild
from ledger.store.restoration import SqlRestoration
from ledger.store.session import BUSY_TIMEOUT_MS, open_engine, translated_errors
from ledger.store.transactions import Session, all_events
from ledger.store.views import SqlViewWriter


class SqliteDatabase(Following):
    """``ledger.app.ports.store.Database`` in one SQLite file, which is made where it does not exist yet.

    Opening brings the schema up to date; ``migrated`` leaves it as it is. The log is one over the whole file; streams,
    batches, secrets and views are those of ``tenant``. Safe to use from several threads; several processes may open
    the same file.

    Transactions do not nest: ``begin`` inside ``begin`` in one thread waits for itself and then fails.
    Raises ``StorageUnavailable`` or ``StorageDamaged``, here and from every transaction.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        randomness: Randomness,
        tenant: str = "default",
        *,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
        migrated: bool = False,
    ) -> None:
        self._path = path
        self._session = Session(tenant, clock, randomness)
        self._wait_s = busy_timeout_ms / 1000
        self._writer = open_engine(path, writable=True, busy_timeout_ms=busy_timeout_ms)
        self._reader = open_engine(path, writable=False, busy_timeout_ms=busy_timeout_ms)
        # Threads queue here in the order they come; SQLite's own waiting is a poll that can starve one of them.
        self._one_writer = threading.Lock()
        if not migrated:
            self._migrate()

    def of_tenant(self, tenant: str) -> SqliteDatabase:
        """The same database, over the same connections, seen as this tenant. Close the first one alone."""
        other = copy(self)
        other._session = replace(self._session, tenant=tenant)
        return other

    @contextmanager
    def begin(self) -> Iterator[Transaction]:
        with self._write() as connection:
            transaction = self._session.transaction(connection)
            yield transaction
            transaction.batches.finish()

    @contextmanager
    def _snapshot(self) -> Iterator[Transaction]:
        with translated_errors(self._path, writable=False), self._reader.begin() as connection:
            transaction = self._session.transaction(connection)
            yield transaction
            transaction.batches.finish()

    @contextmanager
    def inspect(self) -> Iterator[SqlInspection]:
        """Everything stored as it lies there, in one snapshot."""
        with translated_errors(self._path, writable=False), self._reader.begin() as connection:
            inspection = SqlInspection(connection)
            # The snapshot is that of the first read.
            inspection.state()
            yield inspection

    @contextmanager
    def restore(self) -> Iterator[SqlRestoration]:
        """Fill this database, which must be empty, in one transaction."""
        with self._write() as connection:
            yield SqlRestoration(connection, self._rebuild)

    def rebuild_views(self, *, batch: int = 1000, progress: Callable[[int], None] = lambda _: None) -> int:
        """Make every view, of every tenant, anew from the events, in one transaction; the number of events read.

        ``progress`` is told how far it is.
        """
        with self._write() as connection:
            return self._rebuild(connection, batch=batch, progress=progress)

    def empty_write_ahead_log(self) -> None:
        """Write back and empty the write-ahead log, which still has what was erased."""
        with translated_errors(self._path, writable=True), self._writer.connect() as connection:
            driver = connection.connection.driver_connection
            if driver is not None:
                driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _rebuild(
        self, connection: Connection, *, batch: int = 1000, progress: Callable[[int], None] = lambda _: None
    ) -> int:
        events = all_events(self._session.events(connection))
        return rebuild(events, SqlViewWriter(connection), batch=batch, progress=progress)

    def revision(self) -> str | None:
        """The migration this database is at."""
        with translated_errors(self._path, writable=False), self._reader.connect() as connection:
            return current_revision(connection)

    def close(self) -> None:
        """Close every connection. The database can be used again; it opens new ones."""
        self._writer.dispose()
        self._reader.dispose()

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        if not self._one_writer.acquire(timeout=self._wait_s):
            raise StorageUnavailable(
                f"another transaction of this process has been writing to {self._path} for {self._wait_s:g} s; "
                "try again when it is done",
                path=str(self._path),
            )
        try:
            with translated_errors(self._path, writable=True), self._writer.begin() as connection:
                yield connection
        finally:
            self._one_writer.release()

    def _migrate(self) -> None:
        with translated_errors(self._path, writable=True), self._reader.connect() as connection:
            if current_revision(connection) == SCHEMA_REVISION:
                return
        with self._write() as connection:
            upgrade(connection)
