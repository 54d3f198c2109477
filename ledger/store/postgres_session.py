"""Connections to PostgreSQL: least rights by role, isolation by purpose, and its errors in this product's words."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, cast

import psycopg
from psycopg import errors as postgres_errors
from psycopg import sql
from psycopg.pq import TransactionStatus
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ledger.errors import (
    BadInput,
    LogInconsistent,
    ReadOnlyTransaction,
    SettingInvalid,
    StorageDamaged,
    StorageUnavailable,
)

POOL_SIZE = 10
POOL_OVERFLOW = 20
_CONNECT_TIMEOUT_S = 10


class Role(StrEnum):
    """The group roles that migration 0003 makes; their names begin with a prefix."""

    OWNER = "owner"
    APP = "app"
    SEQUENCER = "sequencer"


def postgres_url(text: str) -> URL:
    """A URL for psycopg from ``postgresql://...``; raises ``SettingInvalid``, which does not repeat a password."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise SettingInvalid(
            "the database URL cannot be read; write postgresql://USER:PASSWORD@HOST:PORT/NAME", setting="database"
        ) from error
    if url.get_backend_name() not in {"postgresql", "postgres"} or not url.database:
        raise SettingInvalid(
            f"the database URL begins with {url.drivername[:20]!r}; write postgresql://USER:PASSWORD@HOST:PORT/NAME",
            setting="database",
        )
    return url.set(drivername="postgresql+psycopg")


def open_engine(url: URL, role: str | None, *, autocommit: bool = False) -> Engine:
    """An engine whose connections have the rights of ``role`` alone (None: those of the user who logs in).

    With ``autocommit`` every statement is a transaction of its own.
    """
    engine = create_engine(
        url,
        pool_size=POOL_SIZE,
        max_overflow=POOL_OVERFLOW,
        isolation_level="AUTOCOMMIT" if autocommit else "READ COMMITTED",
        pool_reset_on_return=None if autocommit else "rollback",
        connect_args={
            "connect_timeout": _CONNECT_TIMEOUT_S,
            "application_name": "sla-ledger",
            # ledger.store.prepared sends texts as they are.
            "client_encoding": "utf8",
        },
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: psycopg.Connection[Any], _record: Any) -> None:
        if role is not None:
            before = connection.autocommit
            connection.autocommit = True
            connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
            connection.autocommit = before

    return engine


class HeldConnections:
    """Connections of an autocommit engine that stay checked out between their uses: for a single append, taking one
    from the pool and giving it back costs as much as making the event."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._idle: deque[Connection] = deque()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """One for this thread alone. The last one given back is the first one taken."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._engine.connect()
        try:
            yield connection
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Close those that nobody uses."""
        while self._idle:
            self._idle.pop().close()

    def _give_back(self, connection: Connection) -> None:
        if connection.in_transaction():
            # SQLAlchemy begins one with its first statement; the server knows nothing of it.
            connection.rollback()
        driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
        if driver.pgconn.transaction_status != TransactionStatus.IDLE:
            # Broken, or in the middle of a statement. What ended this one may have ended the others.
            for each in [connection, *self._take_all()]:
                each.invalidate()
                each.close()
        elif len(self._idle) < POOL_SIZE:
            self._idle.append(connection)
        else:
            connection.close()

    def _take_all(self) -> list[Connection]:
        return [self._idle.pop() for _ in range(len(self._idle))]


_UNAVAILABLE: dict[type[Exception], str] = {
    postgres_errors.DiskFull: "has no room left; free some disk space",
    postgres_errors.OutOfMemory: "is out of memory; try again",
    postgres_errors.TooManyConnections: "has no connection left; try again, or raise max_connections",
    postgres_errors.ReadOnlySqlTransaction: "is read-only; connect to the primary server",
    postgres_errors.InsufficientPrivilege: "does not allow this to the user; grant it the roles of docs/postgresql.md",
    postgres_errors.UniqueViolation: "was written by somebody else at the same moment; try again",
    postgres_errors.SerializationFailure: "was written by somebody else at the same moment; try again",
    postgres_errors.DeadlockDetected: "had two transactions that waited for each other; try again",
    postgres_errors.LockNotAvailable: "is locked by another transaction; try again when it is done",
    postgres_errors.QueryCanceled: "took too long; try again",
    postgres_errors.UndefinedTable: "has no schema of this product; open it with a user who may migrate it",
    postgres_errors.InvalidParameterValue: "lacks the role; open it with a user who may migrate it",
}
_DAMAGED = (postgres_errors.DataCorrupted, postgres_errors.IndexCorrupted)


@contextmanager
def translated_errors(url: URL, *, writable: bool) -> Iterator[None]:
    """Turn the driver's errors into this product's, as ``ledger.store.session`` does for SQLite.

    ``StorageUnavailable`` also where two transactions were in each other's way: what was refused can be tried
    again. ``LogInconsistent`` where a guard or constraint of the log refused a change, ``BadInput`` for the one
    character that PostgreSQL takes in no text.
    """
    where = f"the database {url.database} on {url.host or 'this machine'}"
    try:
        yield
    except PoolTimeout as error:
        raise StorageUnavailable(
            f"{where}: all connections of this process are busy; try again", url=_shown(url)
        ) from (error)
    except (DBAPIError, psycopg.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        if isinstance(cause, postgres_errors.ReadOnlySqlTransaction) and not writable:
            raise ReadOnlyTransaction("this transaction only reads; begin one that writes") from error
        for kind, words in _UNAVAILABLE.items():
            if isinstance(cause, kind):
                raise StorageUnavailable(
                    f"{where} {words}. Nothing of this transaction was written.", url=_shown(url), reason=str(cause)
                ) from error
        if isinstance(cause, psycopg.DataError) and "NUL (0x00)" in str(cause):
            # The driver's own refusal, which has no class of its own. SQLite looks for such a name and finds nothing.
            raise BadInput(
                "a text with the character U+0000 is no name of anything here, and is not recorded"
            ) from error
        if isinstance(cause, _DAMAGED):
            raise StorageDamaged(f"{where} is damaged ({cause}); restore it from a backup", url=_shown(url)) from error
        if isinstance(cause, psycopg.IntegrityError):
            raise LogInconsistent(f"the database refused to contradict itself: {cause}", url=_shown(url)) from error
        if isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
            # A connection that breaks during COMMIT leaves open whether it took place.
            raise StorageUnavailable(
                f"{where} did not answer or broke the connection. Unless the append has an idempotency key, read its "
                "stream before trying again: the last transaction may have been written.",
                url=_shown(url),
                reason=str(cause),
            ) from error
        raise


def _shown(url: URL) -> str:
    return url.render_as_string(hide_password=True)
