"""Claims: where an agreement settles by claim, a credit is owed once it was asked for in time.

A claim is known by contract, period, scope, level (the objective) and incident (its violation), so the same is claimed
once, whatever version of the statement it stands on. Of an incident that broke several levels the statement credits the
best one, and that is what can be claimed. A line is issued for each claim; a later version of the statement
changes what was claimed by its differences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ledger.app.access import Principal
from ledger.app.agreements.registering import RegisteredAgreement, load_timeline
from ledger.app.judgement.windows import load_windows
from ledger.app.ports.evidence import Attestor
from ledger.app.ports.store import Database, Transaction
from ledger.app.settlement.credit_lines import Entry, credited, entry_members, line_members
from ledger.app.settlement.statements import IssuedStatement, issued_event, issued_for
from ledger.domain.credits.claims import deadline_ns
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.domain.record.naming import (
    claim_id,
    claims_stream,
    credit_line_id,
    credit_lines_stream,
    observations_stream,
    violation_id,
)
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import Clock, format_instant_ns
from ledger.domain.violations.violation import violations
from ledger.errors import ClaimRefused, IdempotencyConflict, NotFound

Filed = Mapping[str, Any]
"""A claim as its event says it (``ledger.domain.events.claim_events``)."""


class ClaimStatus(StrEnum):
    """``open``: it may be claimed until the deadline; ``filed``: it was; ``too_late``: it was not."""

    OPEN = "open"
    FILED = "filed"
    TOO_LATE = "too_late"


@dataclass(frozen=True, slots=True)
class Claimable:
    """What a statement credits for one incident, and how it stands. ``filed`` is the claim, if there is one."""

    claim_id: str
    scope: str
    objective: str | None
    violation_id: str | None
    currency: str
    minor_units: int
    deadline_ns: int
    status: ClaimStatus
    filed: Filed | None


@dataclass(frozen=True, slots=True)
class Claiming:
    """Who claims, and under which Idempotency-Key. ``evidence``: SHA-256 of the batch of facts the claim stands on."""

    request: str
    by: str | None
    evidence: str | None
    now_ns: int


@dataclass(frozen=True, slots=True)
class ClaimDesk:
    """Takes and lists the claims of one tenant. Every call raises ``NotFound`` for a statement that is not there."""

    database: Database
    attestor: Attestor
    clock: Clock

    def file(
        self,
        statement_id: str,
        *,
        violation: str | None = None,
        evidence: str | None = None,
        request: str,
        by: str | None = None,
    ) -> tuple[Filed, ...]:
        """Claim what a statement credits for one violation, or all that is still open, and issue the lines.

        The same request again gives the same claims. Raises ``ClaimRefused`` (too late, claimed before, nothing
        credited, another version of the statement, evidence that the ledger does not have), and
        ``IdempotencyConflict`` for a key that was used otherwise.
        """
        with self.database.begin() as tx:
            event, registered = self._statement(tx, statement_id)
            if not registered.agreement.settlement.by_claim:
                raise ClaimRefused(
                    "this agreement settles by itself (settlement.mode: automatic); its credits need no claim",
                    statement_id=statement_id,
                )
            # No other version of the statement comes between the look at the newest one and the lines of the claims: it
            # would neither know of them nor change them by its differences.
            tx.identities.reserve(registered.sla_id, registered.agreement.source)
            asked = Claiming(request, by, evidence, self.clock.now_ns())
            return file_claims(tx, _book(tx, registered, event), violation, asked)

    def of(self, statement_id: str, principal: Principal | None = None) -> tuple[Claimable, ...]:
        """What can be or was claimed of a statement, for a principal or whoever runs this.

        Empty where the agreement settles by itself, or the statement is withheld.
        """
        with self.database.read() as tx:
            event, registered = self._statement(tx, statement_id)
            if principal is not None and not principal.may_see(registered.sla_id):
                raise NotFound(f"there is no statement {statement_id}", statement=statement_id)
            if not registered.agreement.settlement.by_claim:
                return ()
            return _claimables(tx, _book(tx, registered, event), self.clock.now_ns())

    def _statement(self, tx: Transaction, statement_id: str) -> tuple[StoredEvent, RegisteredAgreement]:
        event = issued_event(tx, statement_id)
        found = load_timeline(tx, event.payload["sla_id"], self.attestor)
        return event, found.of_document(event.payload["doc_sha256"])


@dataclass(frozen=True, slots=True)
class _Book:
    """One period's newest statement and its claims. ``asked`` is the statement that somebody named."""

    registered: RegisteredAgreement
    asked: str
    issued: IssuedStatement
    filed: Sequence[StoredEvent]


def _book(tx: Transaction, registered: RegisteredAgreement, statement: StoredEvent) -> _Book:
    period = period_named(registered.agreement, statement.payload["period"])
    filed = list(tx.events.stream(claims_stream(registered.sla_id, period.first)))
    return _Book(registered, statement.payload["statement_id"], issued_for(tx, registered, period), filed)


def file_claims(tx: Transaction, book: _Book, violation: str | None, asked: Claiming) -> tuple[Filed, ...]:
    """See ``ClaimDesk.file``."""
    before = [event.payload for event in book.filed if event.payload["request"] == asked.request]
    if before:
        return _same(before, book, violation, asked)
    _require_newest(book)
    _require_evidence(tx, book.registered, asked.evidence)
    chosen = _chosen(_claimables(tx, book, asked.now_ns), violation, book.asked)
    registered, issued, period = book.registered, book.issued, book.issued.settlement.period
    stream = credit_lines_stream(issued.id)
    lines_before = list(tx.events.stream(stream))
    number = 1 + sum(event.type == "credit_line_issued" for event in lines_before)
    claims, lines = [], []
    common = line_members(registered, issued.settlement, issued.id, issued.receipt.event_id)
    for at, each in enumerate(chosen, number):
        line_id = credit_line_id(issued.id, at)
        lines.append(common | entry_members(Entry(each.objective, each.violation_id, each.minor_units), line_id))
        claims.append(_payload(each, line_id, registered.sla_id, str(period), issued.id, asked))
    tx.events.append(
        claims_stream(registered.sla_id, period.first),
        [NewEvent("claim_filed", claim, occurred_at_ns=asked.now_ns) for claim in claims],
        expected_version=len(book.filed),
        # Held over all periods: the look above sees those of this one alone.
        idempotency_key=f"claim/{asked.request}",
    )
    tx.events.append(
        stream,
        [NewEvent("credit_line_issued", line, occurred_at_ns=asked.now_ns) for line in lines],
        expected_version=len(lines_before),
    )
    return tuple(claims)


def _same(before: Sequence[Filed], book: _Book, violation: str | None, asked: Claiming) -> tuple[Filed, ...]:
    """The claims of an earlier request, if it asked for the same."""
    fits = all(claim["evidence"] == asked.evidence and claim["statement_id"] == book.asked for claim in before)
    if not fits or (violation is not None and [claim["violation_id"] for claim in before] != [violation]):
        raise IdempotencyConflict(
            "the idempotency key was used for another claim of this period; take a new one", request=asked.request
        )
    return tuple(before)


def _require_newest(book: _Book) -> None:
    if book.asked != book.issued.id:
        raise ClaimRefused(
            f"{book.asked} was replaced by {book.issued.id}; claim what that one credits",
            statement_id=book.asked,
            newest=book.issued.id,
        )


def _require_evidence(tx: Transaction, registered: RegisteredAgreement, evidence: str | None) -> None:
    """Raises ``ClaimRefused`` for a digest of which nobody could look at what it is of."""
    if evidence is None:
        return
    stream = observations_stream(registered.sla_id, registered.agreement.source)
    if not any(event.payload["digest"] == evidence for event in tx.events.stream(stream)):
        raise ClaimRefused(
            f"evidence: {evidence} is no batch of facts about this agreement; hand it in first, or claim without it",
            evidence=evidence,
        )


def _chosen(found: Sequence[Claimable], violation: str | None, statement_id: str) -> list[Claimable]:
    """What is claimed; raises ``ClaimRefused`` where none of it can be."""
    asked = [each for each in found if violation is None or each.violation_id == violation]
    if not asked:
        raise ClaimRefused(
            f"{statement_id} credits nothing"
            + ("" if violation is None else f" for {violation}; of one incident only the best level is paid"),
            statement_id=statement_id,
            violation_id=violation,
        )
    chosen = [each for each in asked if each.status is ClaimStatus.OPEN]
    if chosen:
        return chosen
    first = asked[0]
    deadline = format_instant_ns(first.deadline_ns)
    if first.filed is not None:
        raise ClaimRefused(
            f"{first.claim_id} was filed before, and {first.filed['line_id']} is its credit line; claims "
            f"are taken until {deadline}",
            claim_id=first.claim_id,
            line_id=first.filed["line_id"],
            deadline=deadline,
        )
    raise ClaimRefused(
        f"{first.claim_id} comes too late: claims were taken until {deadline}",
        claim_id=first.claim_id,
        deadline=deadline,
    )


def _claimables(tx: Transaction, book: _Book, now_ns: int) -> tuple[Claimable, ...]:
    registered, settlement = book.registered, book.issued.settlement
    agreement, period = registered.agreement, settlement.period
    newest = book.issued.receipt.seq
    windows = load_windows(tx, registered, period, before_seq=newest).windows
    ends = {
        violation_id(registered.sla_id, period.first, each.objective.id, each.first_window): each.interval.end_ns
        for each in violations(agreement, windows)
    }
    scopes = {objective.id: str(objective.scope) for objective in agreement.objectives}
    filed = {event.payload["violation_id"]: event.payload for event in book.filed}
    found = []
    for entry in credited(registered, settlement, windows):
        claim = filed.get(entry.violation_id)
        if not entry.minor_units and claim is None:
            continue
        until_ns = deadline_ns(agreement, period, ends.get(entry.violation_id or "", period.interval.end_ns))
        status = ClaimStatus.OPEN if now_ns < until_ns else ClaimStatus.TOO_LATE
        found.append(
            Claimable(
                claim_id=claim_id(registered.sla_id, period.first, entry.violation_id),
                scope=scopes.get(entry.objective or "", "all"),
                objective=entry.objective,
                violation_id=entry.violation_id,
                currency=settlement.currency,
                minor_units=entry.minor_units,
                deadline_ns=until_ns,
                status=status if claim is None else ClaimStatus.FILED,
                filed=claim,
            )
        )
    return tuple(found)


def _payload(
    each: Claimable, line_id: str, sla_id: str, period: str, statement: str, asked: Claiming
) -> dict[str, Any]:
    return {
        "request": asked.request,
        "by": asked.by,
        "claim_id": each.claim_id,
        "sla_id": sla_id,
        "period": period,
        "scope": each.scope,
        "objective": each.objective,
        "violation_id": each.violation_id,
        "statement_id": statement,
        "line_id": line_id,
        "currency": each.currency,
        "minor_units": str(each.minor_units),
        "evidence": asked.evidence,
        "deadline_ns": str(each.deadline_ns),
    }
