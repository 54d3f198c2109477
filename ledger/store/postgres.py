"""PostgreSQL: many writers at a time, and one sequencer that gives their events a place in the log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Self

from sqlalchemy import URL, Connection, Engine, func, select, text

from ledger.app.ports.store import WAIT_TIMEOUT_S, Randomness, Receipt, Transaction
from ledger.domain.events.event_types import PAYLOAD_ERASED
from ledger.domain.record.events import NewEvent
from ledger.domain.time.instant import Clock
from ledger.errors import NotSequencedYet
from ledger.store import tables
from ledger.store.dialects import hold_log
from ledger.store.following import Following
from ledger.store.inbox import sequence_inbox
from ledger.store.inspection import SqlInspection
from ledger.store.migrate import SCHEMA_REVISION, current_revision, upgrade
from ledger.store.postgres_session import HeldConnections, Role, open_engine, postgres_url, translated_errors
from ledger.store.projections import rebuild
from ledger.store.restoration import SqlRestoration
from ledger.store.transactions import Session, all_events
from ledger.store.views import SqlViewWriter

_NAME_TENANT = text("SELECT set_config('sla_ledger.tenant', :tenant, true)")
_MIGRATION_LOCK = 0x534C414D
_POLL_S = 0.05
_QUEUED_ERASURES = (
    select(func.count())
    .select_from(tables.inbox)
    .join(tables.event, tables.event.c.id == tables.inbox.c.event_id)
    .where(tables.event.c.type == PAYLOAD_ERASED)
)


class PostgresDatabase(Following):
    """``ledger.app.ports.store.Database`` on PostgreSQL; see the module.

    An append is durable once it is committed, and in the log once ``sequence_once`` has run somewhere:
    ``ledger.store.inbox.Sequencer`` does that in a thread, in as many processes as there are.

    Connections act as the group roles ``<role_prefix>_app`` and ``<role_prefix>_sequencer``, which the user of
    the URL must have been granted; a process that never sequences does without the second.
    ``migrated`` leaves the schema as it is; see ``revision``.
    Safe to use from several threads. Raises ``StorageUnavailable``, here and from every transaction.
    """

    def __init__(
        self,
        url: str,
        clock: Clock,
        randomness: Randomness,
        tenant: str = "default",
        *,
        role_prefix: str | None = None,
        migrated: bool = False,
    ) -> None:
        self._url = postgres_url(url)
        self._session = Session(tenant, clock, randomness)
        self._clock = clock
        self._walled = False
        prefix = role_prefix or self._url.database
        if not migrated:
            migrate(url, role_prefix=role_prefix)
        self._app = open_engine(self._url, f"{prefix}_{Role.APP}")
        self._single = open_engine(self._url, f"{prefix}_{Role.APP}", autocommit=True)
        self._singles = HeldConnections(self._single)
        self._snapshots = self._app.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        self._sequencer = open_engine(self._url, f"{prefix}_{Role.SEQUENCER}")

    def of_tenant(self, tenant: str) -> Self:
        """The same database, over the same connections, seen as this tenant. Close the first one alone.

        Its transactions meet no row of another tenant's, whatever their statements say (row-level security).
        """
        other = copy(self)
        other._session = replace(self._session, tenant=tenant)
        other._walled = True
        return other

    @contextmanager
    def begin(self) -> Iterator[Transaction]:
        with translated_errors(self._url, writable=True), self._app.begin() as connection:
            self._wall(connection)
            transaction = self._session.transaction(connection)
            yield transaction
            transaction.batches.finish()

    @contextmanager
    def _snapshot(self) -> Iterator[Transaction]:
        with translated_errors(self._url, writable=False), self._snapshots.begin() as connection:
            self._wall(connection)
            transaction = self._session.transaction(connection)
            yield transaction
            transaction.batches.finish()

    def _wall(self, connection: Connection) -> None:
        """Name the tenant for this transaction alone: the connection goes back to a pool that all tenants share."""
        if self._walled:
            connection.execute(_NAME_TENANT, {"tenant": self._session.tenant})

    def append(
        self,
        stream: str,
        events: Sequence[NewEvent],
        *,
        expected_version: int | None,
        idempotency_key: str | None = None,
    ) -> tuple[Receipt, ...]:
        # Of any version: the head stays locked from reading it to writing, which takes a transaction.
        transaction = self._app.begin if expected_version is None else self._singles.connection
        with translated_errors(self._url, writable=True), transaction() as connection:
            return self._session.events(connection).append(
                stream, events, expected_version=expected_version, idempotency_key=idempotency_key
            )

    def sequence_once(self) -> int:
        """Give the next waiting events their place; how many. None where another sequencer is at it."""
        with translated_errors(self._url, writable=True), self._sequencer.begin() as connection:
            return sequence_inbox(connection, self._clock.now_ns())

    @contextmanager
    def inspect(self, *, timeout_s: float = WAIT_TIMEOUT_S) -> Iterator[SqlInspection]:
        """Everything stored as it lies there, in one snapshot.

        Between the erasure of a payload and its record's place in the log the two say different things, so this waits
        until no record of an erasure is queued. Raises ``NotSequencedYet`` where none comes to its place.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            with translated_errors(self._url, writable=False), self._snapshots.begin() as connection:
                waiting: int = connection.scalar(_QUEUED_ERASURES) or 0
                if not waiting:
                    yield SqlInspection(connection)
                    return
            if time.monotonic() >= deadline:
                raise NotSequencedYet(
                    f"the records of {waiting} erasures had no place in the log after {timeout_s:g} s; check that a "
                    "sequencer runs, and ask again",
                    waiting=waiting,
                )
            time.sleep(_POLL_S)

    @contextmanager
    def restore(self) -> Iterator[SqlRestoration]:
        """Fill this database, which must be empty, in one transaction.

        It takes the rights of app and sequencer together, so it is done as the user of the URL.
        """
        engine = open_engine(self._url, None)
        try:
            with translated_errors(self._url, writable=True), engine.begin() as connection:
                hold_log(connection)
                yield SqlRestoration(connection, self._rebuild)
        finally:
            engine.dispose()

    def rebuild_views(self, *, batch: int = 1000, progress: Callable[[int], None] = lambda _: None) -> int:
        """Make every view, of every tenant, anew from the events, in one transaction; the number of events read.

        ``progress`` is told how far it is. Nothing is sequenced meanwhile.
        """
        with translated_errors(self._url, writable=True), self._sequencer.begin() as connection:
            hold_log(connection)
            return self._rebuild(connection, batch=batch, progress=progress)

    def revision(self) -> str | None:
        """The migration this database is at."""
        with translated_errors(self._url, writable=False), self._app.connect() as connection:
            return current_revision(connection)

    def _rebuild(
        self, connection: Connection, *, batch: int = 1000, progress: Callable[[int], None] = lambda _: None
    ) -> int:
        events = all_events(self._session.events(connection))
        return rebuild(events, SqlViewWriter(connection), batch=batch, progress=progress)

    def close(self) -> None:
        """Close every connection. The database can be used again; it opens new ones."""
        self._app.dispose()
        self._singles.close()
        self._single.dispose()
        self._sequencer.dispose()


def migrate(url: str, *, role_prefix: str | None = None) -> None:
    """Bring a database to the newest schema, as the user of the URL; nothing where it is there already."""
    parsed = postgres_url(url)
    engine = open_engine(parsed, None)
    try:
        with translated_errors(parsed, writable=True), engine.begin() as connection:
            if not _is_newest(connection):
                _upgrade(engine, parsed, role_prefix)
    finally:
        engine.dispose()


def _upgrade(engine: Engine, url: URL, role_prefix: str | None) -> None:
    with translated_errors(url, writable=True), engine.begin() as connection:
        # Two processes that open a new database at once do not meet.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        upgrade(connection, role_prefix=role_prefix)


def _is_newest(connection: Connection) -> bool:
    """True also for a user who may not look: what such a user lacks is said where it is needed."""
    found = text("SELECT has_table_privilege(to_regclass('alembic_version'), 'SELECT')")
    return connection.scalar(found) is False or current_revision(connection) == SCHEMA_REVISION
