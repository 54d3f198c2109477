"""What follows a closed period, or facts about it that came later: judge its windows, then issue its statement or the
next version of it. Proof and anchor follow that. Of facts that came in quick succession the last one settles all.

Each stage is one transaction and may run twice: what it appends is bound to its place, so that the second time
changes nothing.
"""

from __future__ import annotations

from typing import Protocol

from ledger.app.facts.observations import ReadRows
from ledger.app.facts.telemetry import FindEvidence
from ledger.app.judgement.violation_rows import FindRequests
from ledger.app.judgement.violations import record_violations
from ledger.app.judgement.windows import evaluate_windows, load_windows
from ledger.app.periods.closing import Closing, load_closing
from ledger.app.ports.evidence import Attestor, Collector, TelemetrySignature
from ledger.app.ports.store import Database, Randomness, Transaction
from ledger.app.settlement.statements import issue_statement
from ledger.app.work.outbox import Stage
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.instant import Clock


class Collectors(Protocol):
    """The keys that seal what was reported."""

    def of(self, agreement: Agreement) -> Collector:
        """The holder of the key that the agreement names; raises ``CollectorUnknown``."""
        ...


def evaluate_period(
    database: Database,
    event_id: str,
    *,
    attestor: Attestor,
    read_rows: ReadRows,
    find_evidence: FindEvidence,
    find_requests: FindRequests,
    clock: Clock,
) -> None:
    """Judge the windows of the period that an event is about, record its violations, and queue its settlement."""
    with database.begin() as tx:
        closing = _held(tx, event_id, attestor)
        if closing.superseded:
            return
        registered, period = closing.registered, closing.period
        judged = evaluate_windows(tx, registered, period, read_rows=read_rows)
        record_violations(
            tx,
            registered,
            period,
            judged,
            find_evidence=find_evidence,
            find_requests=find_requests,
            now_ns=clock.now_ns(),
        )
        tx.outbox.add(event_id, Stage.COMPENSATE)


def compensate_period(
    database: Database,
    event_id: str,
    *,
    attestor: Attestor,
    collectors: Collectors,
    randomness: Randomness,
    clock: Clock,
) -> None:
    """Issue the statement of the period that an event is about, or its next version, from its judged windows.

    Raises ``CollectorUnknown`` where it must be sealed and the collector's key is not held here.
    """
    with database.begin() as tx:
        closing = _held(tx, event_id, attestor)
        if closing.superseded:
            return
        registered, period = closing.registered, closing.period
        judged = load_windows(tx, registered, period)
        issue_statement(
            tx,
            registered,
            period,
            judged,
            attestor=attestor,
            collector=_Named(collectors, registered.agreement),
            randomness=randomness,
            now_ns=clock.now_ns(),
        )


def _held(tx: Transaction, event_id: str, attestor: Attestor) -> Closing:
    """The period that an event is about. Nobody judges it, and no fact of it comes, until the transaction ends."""
    registered = load_closing(tx, event_id, attestor).registered
    tx.identities.reserve(registered.sla_id, registered.agreement.source)
    # What others said of it before they let go of the source.
    return load_closing(tx, event_id, attestor)


class _Named:
    """The collector of an agreement, looked for when there is something to sign."""

    def __init__(self, collectors: Collectors, agreement: Agreement) -> None:
        self._collectors = collectors
        self._agreement = agreement

    def sign(self, telemetry_root: int) -> TelemetrySignature:
        return self._collectors.of(self._agreement).sign(telemetry_root)
