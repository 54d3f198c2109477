"""One database transaction as the use cases see it, over either SQL database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection

from ledger.app.ports.store import EventStore, Randomness
from ledger.domain.record.events import StoredEvent
from ledger.domain.time.instant import Clock
from ledger.store.api_keys import SqlApiKeys
from ledger.store.batches import SqlBatches
from ledger.store.chain import SqlChainLooks, SqlChainTransactions
from ledger.store.checkpoints import SqlLogRows
from ledger.store.deliveries import SqlDeliveries
from ledger.store.dialects import is_postgresql
from ledger.store.events import SqlEvents
from ledger.store.followers import SqlFollowers
from ledger.store.identities import SqlIdentities
from ledger.store.log import StoredLog
from ledger.store.outbox import SqlOutbox
from ledger.store.placing import InlinePlacing, QueuedPlacing
from ledger.store.queries import StoredViews
from ledger.store.secrets import SqlSecrets
from ledger.store.views import SqlViewReader, SqlViewWriter

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class SqlTransaction:
    """``ledger.app.ports.store.Transaction`` over one database transaction."""

    events: SqlEvents
    log: StoredLog
    batches: SqlBatches
    identities: SqlIdentities
    outbox: SqlOutbox
    chain: SqlChainTransactions
    chain_looks: SqlChainLooks
    followers: SqlFollowers
    deliveries: SqlDeliveries
    secrets: SqlSecrets
    keys: SqlApiKeys
    views: StoredViews


@dataclass(frozen=True, slots=True)
class Session:
    """Whose transactions these are, and where time and randomness come from."""

    tenant: str
    clock: Clock
    randomness: Randomness

    def transaction(self, connection: Connection) -> SqlTransaction:
        """Everything over one connection's transaction."""
        return SqlTransaction(
            events=self.events(connection),
            log=StoredLog(SqlLogRows(connection)),
            batches=SqlBatches(connection, self.tenant),
            identities=SqlIdentities(connection, self.tenant),
            outbox=SqlOutbox(connection),
            chain=SqlChainTransactions(connection),
            chain_looks=SqlChainLooks(connection),
            followers=SqlFollowers(connection),
            deliveries=SqlDeliveries(connection, self.tenant),
            secrets=SqlSecrets(connection, self.tenant),
            keys=SqlApiKeys(connection, self.tenant),
            views=StoredViews(SqlViewReader(connection, self.tenant)),
        )

    def events(self, connection: Connection) -> SqlEvents:
        """The event store alone."""
        return SqlEvents(
            connection,
            tenant=self.tenant,
            clock=self.clock,
            randomness=self.randomness,
            placing=QueuedPlacing(connection)
            if is_postgresql(connection)
            else InlinePlacing(connection, SqlViewWriter(connection)),
        )


def all_events(events: EventStore) -> Iterator[StoredEvent]:
    """The whole log in pages."""
    seq = 0
    while page := events.since(seq, limit=_PAGE):
        yield from page
        seq = page[-1].place + 1
