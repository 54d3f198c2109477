"""What can be asked of a ledger: reads only, each in one transaction.

Rows are those of ``ledger.app.ports.views.Views``: instants in integer nanoseconds, money in integer minor units. A
transport turns them into its own shapes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from ledger.app.access import DEFAULT_TENANT, Principal
from ledger.app.agreements.lifecycle import read_lifecycle
from ledger.app.chain.status import ChainProgress, ChainStatus, events_of_others, read_progress, with_states
from ledger.app.facts.observations import ReadRows
from ledger.app.paging import ANY_START, Page, Row, Starts, page_of, place_of, row_of
from ledger.app.periods.pending import read_pending
from ledger.app.ports.store import Database, Transaction
from ledger.app.reading import sla_report
from ledger.app.reading.budgets import Budgets, read_budgets
from ledger.app.reading.explanation import read_explanation
from ledger.app.reading.overview import Overview, read_overview
from ledger.app.settlement.statements import issued_event
from ledger.domain.record.events import StoredEvent
from ledger.domain.time.interval import Interval
from ledger.errors import NotFound, OutsideTree

Revision: TypeAlias = tuple[int, int]
"""Which state of things an answer is of."""


class BundleSource(Protocol):
    """Where the bundle of a statement comes from: stored, or made from the ledger."""

    def get(self, statement_id: str, tenant: str = DEFAULT_TENANT) -> bytes:
        """The exact canonical bytes (docs/attestation-format.md, section 12) of a statement of one tenant.

        Raises ``NotFound``.
        """
        ...


@dataclass(frozen=True, slots=True)
class EventSlice:
    """Events of the log in order, and how many leaves the log has."""

    events: Sequence[StoredEvent]
    log_size: int


@dataclass(frozen=True, slots=True)
class LoggedStatement:
    """A statement's row, and the event that issued it."""

    row: Row
    event: StoredEvent


@dataclass(frozen=True, slots=True)
class Inclusion:
    """That a statement's event is leaf ``event.seq`` of the tree of ``size`` leaves (RFC 6962).

    ``checkpoint`` is the signed note of exactly this size, None where that size was never signed.
    """

    event: StoredEvent
    size: int
    root: bytes
    path: tuple[bytes, ...]
    checkpoint: str | None


class Queries:
    """The questions about one tenant's data, and about the log that all share.

    Every method raises ``Unavailable`` where the database cannot be read.
    """

    def __init__(
        self,
        database: Database,
        *,
        bundles: BundleSource,
        chain_status: Callable[[], ChainStatus],
        tenant: str = DEFAULT_TENANT,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """``database`` is that of ``tenant``."""
        self._now_ns = now_ns
        self._database = database
        self._bundles = bundles
        self._chain_status = chain_status
        self.tenant = tenant

    @property
    def database(self) -> Database:
        """What the questions are put to, as the tenant sees it."""
        return self._database

    def of_tenant(self, tenant: str) -> Queries:
        """The same questions about another tenant."""
        if tenant == self.tenant:
            return self
        database = self._database.of_tenant(tenant)
        return Queries(
            database, bundles=self._bundles, chain_status=self._chain_status, tenant=tenant, now_ns=self._now_ns
        )

    def revision(self) -> Revision:
        """What was answered before stays so until this changes: the size of the log, and when chains were looked at."""
        with self._database.read() as tx:
            return tx.log.size(), sum(look.looked_at_ns for look in tx.chain_looks.all())

    def agreements(self, *, after: str | None, limit: int, among: frozenset[str] | None = None) -> Page:
        """Agreements in their newest terms, by sla_id, which an amendment does not change.

        Lists have rows of the agreements ``among`` alone, None: of all.
        """
        with self._database.read() as tx:
            if after is not None:
                row_of(after, tx.views.agreement, among)
            rows = tx.views.agreements_page(sla_ids=among, after=after, limit=limit + 1)
        return page_of(rows, limit, "sla_id")

    def agreement(self, sla_id: str) -> Row:
        """Raises ``NotFound``."""
        with self._database.read() as tx:
            return tx.views.agreement(sla_id)

    def statements(
        self,
        sla_id: str | None,
        *,
        after: str | None,
        limit: int,
        among: frozenset[str] | None = None,
        newest: bool = True,
        starts: Starts = ANY_START,
    ) -> Page:
        """Statements by start of their period and id, of each period the newest version unless all are asked for.

        Raises ``NotFound`` for an unknown agreement.
        """
        with self._database.read() as tx:
            known = _known(tx, sla_id, among)
            place = starts.place(place_of(after, tx.views.statement, known))
            rows = tx.views.statements_page(
                sla_ids=known, after=place, before_ns=starts.to_ns, newest=newest, limit=limit + 1
            )
            rows = with_states(tx, rows)
        return page_of(rows, limit, "id")

    def statement(self, statement_id: str) -> LoggedStatement:
        """Raises ``NotFound``."""
        with self._database.read() as tx:
            (row,) = with_states(tx, [tx.views.statement(statement_id)])
            return LoggedStatement(row, issued_event(tx, row["id"]))

    def explanation(self, statement_id: str, *, all_windows: bool) -> dict[str, Any]:
        """All of it; raises ``NotFound``."""
        with self._database.read() as tx:
            return read_explanation(tx, statement_id, all_windows=all_windows)

    def credits(
        self,
        sla_id: str | None,
        *,
        after: str | None,
        limit: int,
        among: frozenset[str] | None = None,
        newest: bool = True,
        starts: Starts = ANY_START,
    ) -> Page:
        """Credits by start of their statement's period, of the newest versions unless all are asked for.

        Raises ``NotFound`` for an unknown agreement.
        """
        with self._database.read() as tx:
            # Every credit is of a statement, and stands where that does.
            known = _known(tx, sla_id, among)
            place = starts.place(place_of(after, tx.views.statement, known))
            rows = tx.views.credits(sla_ids=known, after=place, before_ns=starts.to_ns, newest=newest, limit=limit + 1)
        return page_of(rows, limit, "statement_id")

    def uptime(self, within: Interval, *, may_see: Callable[[str], bool]) -> sla_report.Uptime:
        """See ``ledger.app.reading.sla_report.uptime``."""
        with self._database.read() as tx:
            return sla_report.uptime(tx, within, may_see=may_see)

    def response_latency(
        self, within: Interval, *, read_rows: ReadRows, may_see: Callable[[str], bool], cache: sla_report.LatencyCache
    ) -> sla_report.Latency:
        """See ``ledger.app.reading.sla_report.response_latency``."""
        with self._database.read() as tx:
            return sla_report.response_latency(tx, within, read_rows=read_rows, may_see=may_see, cache=cache)

    def bundle(self, statement_id: str) -> bytes:
        """The exact bytes of a statement's bundle; raises ``NotFound``."""
        with self._database.read() as tx:
            tx.views.statement(statement_id)
        return self._bundles.get(statement_id, self.tenant)

    def checkpoint(self, size: int | None) -> str:
        """The signed checkpoint of a size, or the newest; raises ``NotFound`` where none was signed."""
        with self._database.read() as tx:
            note = tx.log.checkpoint(size)
        if note is None:
            which = "no checkpoint was signed yet" if size is None else f"no checkpoint of size {size} was signed"
            raise NotFound(which, size=size)
        return note

    def events(self, since: int, *, limit: int) -> EventSlice:
        """Up to ``limit`` events from log position ``since`` on; none past the end."""
        with self._database.read() as tx:
            return EventSlice(tx.events.since(since, limit=limit), tx.log.size())

    def inclusion(self, statement_id: str, size: int | None) -> Inclusion:
        """Where the log holds a statement, under the tree of ``size`` leaves.

        Without a size: the newest signed checkpoint's if that covers the statement, else the present size.
        Raises ``NotFound``, and ``OutsideTree`` for a size the statement is not under.
        """
        with self._database.read() as tx:
            event = issued_event(tx, statement_id)
            current = tx.log.size()
            chosen = _covering_size(tx, event.place, current) if size is None else size
            if not event.place < chosen <= current:
                raise OutsideTree(
                    f"the statement is leaf {event.place} of {current}: "
                    f"ask for a size from {event.place + 1} to {current}",
                    seq=event.place,
                    size=chosen,
                    log_size=current,
                )
            path = tx.log.inclusion_proof(event.place, chosen)
            return Inclusion(event, chosen, tx.log.root(chosen), path, tx.log.checkpoint(chosen))

    def lifecycle(self, sla_id: str) -> Row:
        """See ``ledger.app.agreements.lifecycle.read_lifecycle``."""
        with self._database.read() as tx:
            return read_lifecycle(tx, sla_id, now_ns=self._now_ns())

    def pending(self, sla_id: str) -> tuple[Row, ...]:
        """See ``ledger.app.periods.pending.read_pending``."""
        with self._database.read() as tx:
            return read_pending(tx, sla_id, now_ns=self._now_ns())

    def budgets(self, principal: Principal, sla_id: str, *, period: str | None, over: Sequence[str]) -> Budgets:
        """See ``ledger.app.reading.budgets.read_budgets``."""
        with self._database.read() as tx:
            return read_budgets(tx, principal, sla_id, period=period, over=over, now_ns=self._now_ns())

    def overview(
        self, principal: Principal, sla_id: str, *, period: str | None = None, after: str | None = None
    ) -> Overview:
        """What the dashboard shows of an agreement to this principal; raises ``NotFound`` and ``CursorInvalid``."""
        with self._database.read() as tx:
            return read_overview(tx, principal, sla_id, period=period, after=after)

    def chain(self) -> ChainStatus:
        """The chain, the transactions stored for it, and which of an embedded one could not be replayed."""
        return self._chain_status()

    def chain_progress(self) -> ChainProgress:
        """How far the transactions of all chains have come, and the last look at every contract."""
        with self._database.read() as tx:
            return read_progress(tx, self._now_ns())

    def events_of_others(self, *, limit: int) -> Sequence[StoredEvent]:
        """See ``ledger.app.chain.status``."""
        with self._database.read() as tx:
            return events_of_others(tx, limit)

    def not_replayed(self) -> dict[str, str]:
        """The reason of every transaction that does not stand as it stood before, by its hash."""
        return {
            transaction["tx_hash"]: transaction["reason"]
            for transaction in self._chain_status()["transactions"]
            if transaction["reason"] is not None
        }


def _known(tx: Transaction, sla_id: str | None, among: frozenset[str] | None) -> frozenset[str] | None:
    """The agreements that a list is about; None: all."""
    if sla_id is None:
        return among
    # An empty list for a misspelt id would read as "no statements".
    tx.views.agreement(sla_id)
    only = frozenset({sla_id})
    return only if among is None else only & among


def _covering_size(tx: Transaction, seq: int, current: int) -> int:
    signed = tx.log.checkpoint_size()
    return signed if signed is not None and signed > seq else current
