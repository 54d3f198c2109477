"""Statements become final: once no late fact is taken for their period, and none that was taken waits to be judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ledger.app.agreements.registering import load_timeline
from ledger.app.ports.evidence import Attestor
from ledger.app.ports.store import Database, Receipt, Transaction
from ledger.app.settlement.statements import issued_event
from ledger.app.work.outbox import Stage
from ledger.domain.credits.claims import accepts_until_ns
from ledger.domain.record.events import NewEvent
from ledger.domain.record.naming import closing_stream, finality_stream, statement_stream
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import Clock
from ledger.errors import ClosingFailed, SlaLedgerError, VersionConflict

_PAGE = 100


class Closes(Protocol):
    """Closes periods that are due; ``ledger.app.periods.closing.Schedule`` does."""

    def close_due(self) -> int: ...


class Finality:
    """Finalizes statements of all tenants whose deadline has passed.

    Two of them at a time do no harm, since a statement is finalized once. A look finds what is due by an index.
    """

    def __init__(self, database: Database, attestor: Attestor, clock: Clock) -> None:
        self._database = database
        self._attestor = attestor
        self._clock = clock

    def finalize_due(self) -> int:
        """Finalize what is due now; how many statements became final.

        One that fails holds up no other. Raises ``ClosingFailed`` when all were looked at, naming the first.
        """
        count, failed = 0, list[tuple[str, SlaLedgerError]]()
        with self._database.read() as tx:
            tenants = tx.views.tenants()
        for tenant in tenants:
            database = self._database.of_tenant(tenant)
            after: tuple[int, str] | None = None
            while page := self._page(database, after):
                for row in page:
                    after = row["due_ns"], row["statement_id"]
                    try:
                        with database.begin() as tx:
                            count += self._finalize(tx, row["statement_id"]) is not None
                    except SlaLedgerError as error:
                        failed.append((row["statement_id"], error))
        if failed:
            name, first = failed[0]
            raise ClosingFailed(
                f"the statement {name} and {len(failed) - 1} more are due to be final, and are not; mend the cause, "
                f"the next look goes on ({first.code}: {first.message})",
                failed=[{"statement_id": name, "code": error.code} for name, error in failed],
            ) from first
        return count

    def _page(self, database: Database, after: tuple[int, str] | None) -> list[Mapping[str, Any]]:
        with database.read() as tx:
            return list(tx.views.due_statements(self._clock.now_ns(), after=after, limit=_PAGE))

    def _finalize(self, tx: Transaction, statement_id: str) -> Receipt | None:
        return finalize_statement(tx, statement_id, attestor=self._attestor, now_ns=self._clock.now_ns())


class DueWork:
    """What happens to statements by the clock: periods are closed, and statements become final."""

    def __init__(self, schedule: Closes, finality: Finality) -> None:
        self._schedule = schedule
        self._finality = finality

    def close_due(self) -> int:
        """Close and finalize what is due, also where one of them fails; how many periods were closed.

        Raises ``ClosingFailed``.
        """
        try:
            return self._schedule.close_due()
        finally:
            self._finality.finalize_due()


def finalize_statement(tx: Transaction, statement_id: str, *, attestor: Attestor, now_ns: int) -> Receipt | None:
    """Append ``statement_finalized``; None where the statement was finalized or replaced before, where its deadline is
    still to come, and where facts that were taken in time wait to be judged. Raises ``NotFound``."""
    issued = issued_event(tx, statement_id).payload
    registered = load_timeline(tx, issued["sla_id"], attestor).of_document(issued["doc_sha256"])
    # No late fact comes between the look and the event: whoever records one holds the source, too.
    tx.identities.reserve(registered.sla_id, registered.agreement.source)
    period = period_named(registered.agreement, issued["period"])
    until_ns = accepts_until_ns(registered.agreement, period)
    versions = sum(1 for _ in tx.events.stream(statement_stream(registered.sla_id, period.first)))
    changes = [event.id for event in tx.events.stream(closing_stream(registered.sla_id, period.first))]
    waiting = tx.outbox.unfinished(changes, stages=(Stage.EVALUATE, Stage.COMPENSATE))
    if now_ns < until_ns or versions > issued["statement_version"] or waiting:
        return None
    members = ("statement_id", "sla_id", "period", "start_ns", "end_ns", "statement_version", "state", "credit")
    payload = {**{name: issued[name] for name in members}, "accepts_until_ns": str(until_ns)}
    try:
        (receipt,) = tx.events.append(
            finality_stream(statement_id),
            [NewEvent("statement_finalized", payload, occurred_at_ns=now_ns)],
            expected_version=0,
        )
    except VersionConflict:
        return None
    return receipt
