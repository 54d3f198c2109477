"""How ready a ledger is: whether its database answers at this version's schema, and how much waits to be done."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ledger.app.chain.status import ChainProgress, ChainStatus, read_progress
from ledger.app.ports.outbox import StageWait
from ledger.app.ports.store import Database, Transaction
from ledger.errors import SlaLedgerError


@dataclass(frozen=True, slots=True)
class SchemaState:
    """The migration a database is at, and the one this version works with."""

    current: str | None
    head: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether questions can be answered (``ready``), and what waits for an operator.

    ``database_error`` is None where the database was read. ``parked`` and ``chain_failures`` do not make it
    unready: what is stored is served all the same. Nor does ``chain_error``, why nothing is known of the chain (None:
    it is), which leaves its counts at 0. Nor do ``stages`` that wait and a log that is unsigned since
    ``unsigned_since_ns`` (None: it is signed), both as of ``at_ns``.
    """

    database_error: str | None
    schema: SchemaState | None
    log_size: int
    outbox_pending: int
    outbox_parked: int
    chain_transactions: int
    chain_failures: int
    at_ns: int = 0
    stages: Sequence[StageWait] = ()
    unsigned_since_ns: int | None = None
    chain_error: str | None = None
    progress: ChainProgress = field(default_factory=ChainProgress)

    @property
    def ready(self) -> bool:
        return self.database_error is None and self.schema is not None and self.schema.current == self.schema.head


class Health:
    """Looks whether the parts answer."""

    def __init__(
        self,
        database: Database,
        *,
        schema_state: Callable[[], SchemaState],
        chain_status: Callable[[], ChainStatus],
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._database = database
        self._schema_state = schema_state
        self._chain_status = chain_status
        self._now_ns = now_ns

    def tenants(self) -> Sequence[str]:
        """Every tenant that has an agreement. Raises ``Unavailable``."""
        with self._database.read() as tx:
            return tx.views.tenants()

    def check(self) -> Readiness:
        """Never raises for a database or a chain that does not answer: that is an answer here."""
        total, failures, chain_error = 0, 0, None
        try:
            # Of a chain that is known already what is stored is read from the database, which may be away.
            chain = self._chain_status()
            total = chain["total"]
            failures = sum(transaction["reason"] is not None for transaction in chain["transactions"])
        except SlaLedgerError as error:
            chain_error = error.message
        now_ns = self._now_ns()
        try:
            schema = self._schema_state()
            with self._database.read() as tx:
                size, pending, parked = tx.log.size(), tx.outbox.pending(), len(tx.outbox.parked())
                stages, unsigned_ns = tx.outbox.waiting(now_ns), unsigned_since_ns(tx)
                progress = read_progress(tx, now_ns)
        except SlaLedgerError as error:
            return Readiness(error.message, None, 0, 0, 0, total, failures, chain_error=chain_error)
        waiting = (now_ns, stages, unsigned_ns, chain_error, progress)
        return Readiness(None, schema, size, pending, parked, total, failures, *waiting)


def unsigned_since_ns(tx: Transaction) -> int | None:
    """When the first event was recorded that no checkpoint covers; None where all are covered."""
    signed = tx.log.checkpoint_size() or 0
    return tx.events.at(signed).recorded_at_ns if signed < tx.log.size() else None
