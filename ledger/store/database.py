"""The embedded database: one SQLite file."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from ledger.app.ports import EventStore, Randomness, Transaction
from ledger.domain.events import StoredEvent
from ledger.domain.instant import Clock
from ledger.errors import StorageUnavailable
from ledger.store.batches import SqlBatches
from ledger.store.chain import SqlChainTransactions
from ledger.store.checkpoints import SqlLogRows
from ledger.store.events import SqlEvents
from ledger.store.identities import SqlIdentities
from ledger.store.inspection import SqlInspection
from ledger.store.log import StoredLog
from ledger.store.migrate import SCHEMA_REVISION, current_revision, upgrade
from ledger.store.outbox import SqlOutbox
from ledger.store.projections import rebuild
from ledger.store.queries import StoredViews
from ledger.store.restoration import SqlRestoration
from ledger.store.secrets import SqlSecrets
from ledger.store.session import BUSY_TIMEOUT_MS, open_engine, translated_errors
from ledger.store.views import SqlViewReader, SqlViewWriter

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class SqlTransaction:
    """``ledger.app.ports.Transaction`` over one database transaction."""

    events: SqlEvents
    log: StoredLog
    batches: SqlBatches
    identities: SqlIdentities
    outbox: SqlOutbox
    chain: SqlChainTransactions
    secrets: SqlSecrets
    views: StoredViews


class SqliteDatabase:
    """``ledger.app.ports.Database`` in one SQLite file, which is made where it does not exist yet.

    Opening brings the schema up to date. The log is one over the whole file; streams, batches, secrets and views
    are those of ``tenant``. Safe to use from several threads; several processes may open the same file.

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
    ) -> None:
        self._path = path
        self._clock = clock
        self._randomness = randomness
        self._tenant = tenant
        self._wait_s = busy_timeout_ms / 1000
        self._writer = open_engine(path, writable=True, busy_timeout_ms=busy_timeout_ms)
        self._reader = open_engine(path, writable=False, busy_timeout_ms=busy_timeout_ms)
        # Threads queue here in the order they come; SQLite's own waiting is a poll that can starve one of them.
        self._one_writer = threading.Lock()
        self._migrate()

    @contextmanager
    def begin(self) -> Iterator[Transaction]:
        with self._write() as connection:
            yield self._transaction(connection)

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        with translated_errors(self._path, writable=False), self._reader.begin() as connection:
            yield self._transaction(connection)

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
        events = _all_events(self._transaction(connection).events)
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

    def _transaction(self, connection: Connection) -> SqlTransaction:
        return SqlTransaction(
            events=SqlEvents(
                connection,
                tenant=self._tenant,
                clock=self._clock,
                randomness=self._randomness,
                views=SqlViewWriter(connection),
            ),
            log=StoredLog(SqlLogRows(connection)),
            batches=SqlBatches(connection, self._tenant),
            identities=SqlIdentities(connection, self._tenant),
            outbox=SqlOutbox(connection),
            chain=SqlChainTransactions(connection),
            secrets=SqlSecrets(connection, self._tenant),
            views=StoredViews(SqlViewReader(connection, self._tenant)),
        )


def _all_events(events: EventStore) -> Iterator[StoredEvent]:
    seq = 0
    while page := events.since(seq, limit=_PAGE):
        yield from page
        seq = page[-1].seq + 1
