"""Closing a period: the one event that everything which settles it follows from, and when it comes by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from ledger.app.agreements.registering import RegisteredAgreement, RegisteredTimeline, load_timeline
from ledger.app.periods.watermarks import watermark_ns
from ledger.app.ports.evidence import Attestor
from ledger.app.ports.store import Database, Receipt, Transaction
from ledger.app.work.outbox import Stage
from ledger.domain.facts.watermark import closes_by_ns, closes_from_ns, grace_over_ns
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.domain.record.naming import closing_stream
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.lifecycle import Terms
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import Clock, format_instant_ns
from ledger.errors import ClosingFailed, PeriodNotOver, SlaLedgerError, VersionConflict


class Cause(StrEnum):
    """Why a period is closed. Somebody who asks knows that the facts are in; the schedule waits for the grace."""

    SCHEDULE = "schedule"
    REQUEST = "request"


@dataclass(frozen=True, slots=True)
class Closing:
    """A closed period and the terms that were in force when it was closed.

    With ``superseded`` facts of it changed after the event it was loaded by, and what follows from that change takes in
    everything before.
    """

    registered: RegisteredAgreement
    period: Period
    superseded: bool


def close_period(
    tx: Transaction, registered: RegisteredAgreement, period: Period, *, cause: Cause, now_ns: int
) -> Receipt:
    """Append ``period_closed`` and queue the judging of its windows.

    A period is closed once: closing it again, whatever the cause, gives the first receipt. Raises ``PeriodNotOver``
    before its end, and for the schedule before the end of the grace that the terms give to late facts, or while the
    source that the terms wait for has not got past its end (``ledger.domain.facts.watermark``).
    """
    closed = closing_of(tx, registered.sla_id, period)
    if closed is not None:
        return Receipt.of(closed)
    agreement = registered.agreement
    from_ns = period.interval.end_ns
    if cause is Cause.SCHEDULE:
        from_ns = _scheduled_ns(tx, registered.sla_id, agreement, period, now_ns)
    if now_ns < from_ns:
        raise PeriodNotOver(
            f"the period {period} cannot be closed before {format_instant_ns(from_ns)}; ask again after that",
            period=str(period),
            from_ns=from_ns,
        )
    payload = {
        "sla_id": registered.sla_id,
        "period": str(period),
        "start_ns": str(period.interval.start_ns),
        "end_ns": str(period.interval.end_ns),
        "doc_sha256": agreement.doc_sha256.hex(),
        "cause": str(cause),
    }
    stream = closing_stream(registered.sla_id, period.first)
    try:
        (receipt,) = tx.events.append(
            stream, [NewEvent("period_closed", payload, occurred_at_ns=now_ns)], expected_version=0
        )
    except VersionConflict:
        # Somebody else closed it since the look at the top.
        closed = closing_of(tx, registered.sla_id, period)
        if closed is None:
            raise
        return Receipt.of(closed)
    tx.outbox.add(receipt.event_id, Stage.EVALUATE)
    return receipt


def _scheduled_ns(tx: Transaction, sla_id: str, agreement: Agreement, period: Period, now_ns: int) -> int:
    """The instant from which the schedule closes a period; only where that may be now the source is looked at."""
    by_ns = closes_by_ns(agreement, period)
    if agreement.closes_at_latest_s is None or not grace_over_ns(agreement, period) <= now_ns < by_ns:
        return by_ns
    return closes_from_ns(agreement, period, watermark_ns(tx, sla_id, agreement))


def closing_of(tx: Transaction, sla_id: str, period: Period) -> StoredEvent | None:
    """The event that closed a period, if it is closed."""
    return next(iter(tx.events.stream(closing_stream(sla_id, period.first))), None)


def load_closing(tx: Transaction, event_id: str, attestor: Attestor) -> Closing:
    """The period that a ``period_closed`` or ``period_facts_changed`` event is about, under the terms it names.

    Raises ``NotFound``.
    """
    found = tx.events.by_id(event_id)
    payload = found.payload
    registered = load_timeline(tx, payload["sla_id"], attestor).of_document(payload["doc_sha256"])
    period = period_named(registered.agreement, payload["period"])
    following = tx.events.stream(closing_stream(registered.sla_id, period.first))
    superseded = any(event.version > found.version for event in following)
    return Closing(registered, period, superseded)


class Schedule:
    """Closes periods of all tenants whose grace has passed, and with it what else their terms wait for.

    A period that ended before its agreement was registered is closed by request alone: its facts are still to be
    handed in, and nobody can say when they are complete. Two schedules at a time do no harm, since a period is
    closed once. Each remembers which period of an agreement comes next, so that a look costs little.
    """

    def __init__(self, database: Database, attestor: Attestor, clock: Clock) -> None:
        self._database = database
        self._attestor = attestor
        self._clock = clock
        self._next: dict[tuple[str, str], _Next] = {}

    def close_due(self) -> int:
        """Close what is due now; how many periods are closed that were not known to be.

        An agreement that fails holds up no other. Raises ``ClosingFailed`` when all were looked at, naming each that
        failed; the next look tries it again.
        """
        count, failed = 0, dict[tuple[str, str], SlaLedgerError]()
        with self._database.read() as tx:
            tenants = tx.views.tenants()
        for tenant in tenants:
            database = self._database.of_tenant(tenant)
            with database.read() as tx:
                known = {str(row["sla_id"]): int(row["seq"]) for row in tx.views.agreements()}
            for sla_id, seq in known.items():
                try:
                    count += self._close_of(tenant, database, sla_id, seq)
                except SlaLedgerError as error:
                    failed[tenant, sla_id] = error
        if failed:
            raise _closing_failed(failed)
        return count

    def _close_of(self, tenant: str, database: Database, sla_id: str, seq: int) -> int:
        count, coming = 0, self._next.get((tenant, sla_id))
        if coming is None or coming.seq != seq:
            coming = self._next[tenant, sla_id] = self._look(database, sla_id, seq)
        while coming.following is not None and self._is_due(database, sla_id, *coming.following):
            terms, period = coming.following
            with database.begin() as tx:
                now_ns = self._clock.now_ns()
                close_period(tx, coming.of.of(terms), period, cause=Cause.SCHEDULE, now_ns=now_ns)
            count += 1
            coming = self._next[tenant, sla_id] = replace(coming, following=coming.of.timeline.after(period))
        return count

    def _look(self, database: Database, sla_id: str, seq: int) -> _Next:
        """The period in which an agreement was registered, or its first one where that is later."""
        with database.read() as tx:
            found = load_timeline(tx, sla_id, self._attestor)
        return _Next(seq, found, found.timeline.ending_after(found.registered_at_ns))

    def _is_due(self, database: Database, sla_id: str, terms: Terms, period: Period) -> bool:
        now_ns = self._clock.now_ns()
        if now_ns < grace_over_ns(terms.agreement, period):
            return False
        with database.read() as tx:
            return _scheduled_ns(tx, sla_id, terms.agreement, period, now_ns) <= now_ns


@dataclass(frozen=True, slots=True)
class _Next:
    """The next period to close of the terms that stand at ``seq``; None where all are over or closed."""

    seq: int
    of: RegisteredTimeline
    following: tuple[Terms, Period] | None


def _closing_failed(failed: Mapping[tuple[str, str], SlaLedgerError]) -> ClosingFailed:
    (tenant, sla_id), first = next(iter(failed.items()))
    others = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
    error = ClosingFailed(
        f"due periods of agreement {sla_id} of tenant {tenant}{others} were not closed; mend the cause, the next look "
        f"closes them ({first.code}: {first.message})",
        failed=[
            {"tenant": tenant, "sla_id": sla_id, "code": error.code, "message": error.message}
            for (tenant, sla_id), error in failed.items()
        ],
    )
    error.__cause__ = first
    return error
