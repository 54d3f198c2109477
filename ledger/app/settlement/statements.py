"""Settling a closed period: seal its windows, settle it, and issue the statement, or the next version of it.

A statement that is issued is never edited. Where the facts of its period changed later and what follows from them is
something else, another version says so: what it replaces, why, and by how much it differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.app.agreements.registering import RegisteredAgreement
from ledger.app.judgement.windows import JudgedPeriod, load_windows
from ledger.app.periods.exclusions import excluded_members, load_excluded
from ledger.app.ports.evidence import Attestor, Collector, Seal
from ledger.app.ports.store import Randomness, Receipt, Transaction
from ledger.app.settlement.charges import load_charges
from ledger.app.settlement.credit_lines import issue_credit_lines
from ledger.app.settlement.restating import Restated, last_change, restated
from ledger.app.settlement.sealing import Sealing, seal_period
from ledger.app.work.outbox import Stage
from ledger.domain.credits.claims import accepts_until_ns
from ledger.domain.credits.restatement import carries_proof
from ledger.domain.credits.settlement import Settlement, SettlementState, settle
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.domain.record.naming import statement_id, statement_stream
from ledger.domain.time.calendar import Period, first_date, tzdata_version
from ledger.domain.violations.violation import violations
from ledger.errors import NotFound


@dataclass(frozen=True, slots=True)
class IssuedStatement:
    """A statement in the log. ``settlement`` is what it says."""

    id: str
    version: int
    settlement: Settlement
    receipt: Receipt

    @property
    def proof_due(self) -> bool:
        """Whether a proof and its anchor follow."""
        return not self.settlement.not_attestable and self.settlement.state is SettlementState.SETTLED


def issue_statement(
    tx: Transaction,
    registered: RegisteredAgreement,
    period: Period,
    judged: JudgedPeriod,
    *,
    attestor: Attestor,
    collector: Collector,
    randomness: Randomness,
    now_ns: int,
) -> IssuedStatement:
    """Seal, settle and issue with credit lines; a settled, attestable statement is queued for its proof.

    Where the newest statement of the period says and pays the same, violation by violation, that one is given back and
    nothing is written; where it does not, the next version is issued. ``judged`` has in it every fact that the stream
    of the period's closing tells of. Raises ``VersionConflict`` where another version was issued meanwhile.
    """
    closing = last_change(tx, registered, period)
    earlier = list(tx.events.stream(statement_stream(registered.sla_id, period.first)))
    settlement = settle(registered.agreement, period, judged.windows, load_charges(tx, registered, period))
    sealing = Sealing(attestor, collector, randomness, now_ns)
    if not earlier:
        seal = None if settlement.not_attestable else seal_period(tx, registered, period, judged, sealing, version=1)
        return _issue(tx, registered, settlement, judged, seal, earlier, None, closing)
    newest = earlier[-1]
    before = load_windows(tx, registered, period, before_seq=newest.place)
    excluded = excluded_members(load_excluded(tx, registered.sla_id, registered.agreement, period))
    if not _differs(registered, newest, before, settlement, judged, excluded):
        return IssuedStatement(newest.payload["statement_id"], len(earlier), settlement, Receipt.of(newest))
    replaced = restated(tx, registered, settlement, newest, closing)
    seal = None
    if not settlement.not_attestable:
        version = len(earlier) + 1
        seal = seal_period(tx, registered, period, judged, sealing, version=version, reason=replaced.reason)
    return _issue(tx, registered, settlement, judged, seal, earlier, replaced, closing)


def _issue(
    tx: Transaction,
    registered: RegisteredAgreement,
    settlement: Settlement,
    judged: JudgedPeriod,
    seal: Seal | None,
    earlier: Sequence[StoredEvent],
    replaced: Restated | None,
    closing: StoredEvent | None,
) -> IssuedStatement:
    period, version = settlement.period, len(earlier) + 1
    name = statement_id(registered.sla_id, period.first, version)
    payload = {
        "statement_id": name,
        "sla_id": registered.sla_id,
        "doc_sha256": registered.agreement.doc_sha256.hex(),
        "terms_version": registered.terms_version,
        "statement_version": version,
        "period": str(period),
        "start_ns": str(period.interval.start_ns),
        "end_ns": str(period.interval.end_ns),
        "tzdata": tzdata_version(),
        "accepts_until_ns": str(accepts_until_ns(registered.agreement, period)),
        **({} if closing is None else {"closing_event": closing.id}),
        **settlement.as_document(),
        **_provable(settlement, seal),
        **excluded_members(load_excluded(tx, registered.sla_id, registered.agreement, period)),
        **({} if replaced is None else replaced.as_members()),
    }
    (receipt,) = tx.events.append(
        statement_stream(registered.sla_id, period.first),
        [NewEvent("statement_issued", payload, occurred_at_ns=period.interval.end_ns)],
        expected_version=version - 1,
    )
    issue_credit_lines(
        tx,
        registered,
        settlement,
        judged.windows,
        statement_id=name,
        statement_event=receipt.event_id,
        earlier=[event.payload["statement_id"] for event in earlier],
        reason=None if replaced is None else replaced.reason,
    )
    issued = IssuedStatement(name, version, settlement, receipt)
    if issued.proof_due:
        tx.outbox.add(receipt.event_id, Stage.PROVE)
    return issued


def _provable(settlement: Settlement, seal: Seal | None) -> dict[str, Any]:
    """Whether a proof can follow, why not, and the seal that it would open."""
    return {
        "attestable": not settlement.not_attestable,
        "unattested_reasons": list(settlement.not_attestable),
        "seal_key": None if seal is None else str(seal.seal_key),
        "telemetry_root": None if seal is None else str(seal.root),
    }


def _differs(
    registered: RegisteredAgreement,
    newest: StoredEvent,
    before: JudgedPeriod,
    settlement: Settlement,
    judged: JudgedPeriod,
    excluded: Mapping[str, Any],
) -> bool:
    """Whether the newest statement says something else, names other exclusions, or pays for other violations.

    A statement of an older release may say less: what it does not say is not compared.
    """
    said, figures = newest.payload, settlement.as_document()
    if any(said[name] != value for name, value in figures.items() if name in said):
        return True
    if _exclusions(said) != _exclusions(excluded):
        return True
    return violations(registered.agreement, before.windows) != violations(registered.agreement, judged.windows)


def _exclusions(members: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The exclusions that take something out; statements of an older release list others, too."""
    return [each for each in members.get("exclusions", ()) if each["honoured"]]


def issued_event(tx: Transaction, statement_id: str) -> StoredEvent:
    """The event that issued a statement; raises ``NotFound``."""
    row = tx.views.statement(statement_id)
    first = first_date(row["period"])
    for event in tx.events.stream(statement_stream(row["sla_id"], first)):
        if event.payload["statement_id"] == statement_id:
            return event
    raise NotFound(f"the log holds no event that issued {statement_id}", statement_id=statement_id)


def issued_for(tx: Transaction, registered: RegisteredAgreement, period: Period) -> IssuedStatement:
    """The newest statement of a period; raises ``NotFound`` where none was issued."""
    newest: StoredEvent | None = None
    for event in tx.events.stream(statement_stream(registered.sla_id, period.first)):
        newest = event
    if newest is None:
        raise NotFound(f"no statement of {period} was issued for {registered.sla_id}", sla_id=registered.sla_id)
    settlement = settle(
        registered.agreement,
        period,
        load_windows(tx, registered, period, before_seq=newest.seq).windows,
        load_charges(tx, registered, period, before_seq=newest.seq),
    )
    payload = newest.payload
    return IssuedStatement(payload["statement_id"], payload["statement_version"], settlement, Receipt.of(newest))


def earlier_versions(tx: Transaction, statement: Mapping[str, Any]) -> list[StoredEvent]:
    """The events of the versions before a statement (its payload), oldest first."""
    events = tx.events.stream(statement_stream(statement["sla_id"], first_date(statement["period"])))
    return [event for event in events if event.payload["statement_version"] < statement["statement_version"]]


def proved_before(tx: Transaction, statement: Mapping[str, Any]) -> list[StoredEvent]:
    """The events of the earlier versions of a statement (its payload) that carry a proof, oldest first.

    A proof counts its versions without those that were withheld: the registry never hears of them.
    """
    return [event for event in earlier_versions(tx, statement) if carries_proof(event.payload)]
