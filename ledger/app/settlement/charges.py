"""Charges that finance hands in: recorded as facts of a period, and the base of the credits that stand on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ledger.app.access import Principal
from ledger.app.agreements.registering import RegisteredAgreement, RegisteredTimeline, load_timeline
from ledger.app.periods.late_facts import facts_changed
from ledger.app.ports.evidence import Attestor
from ledger.app.ports.store import Database, Receipt, Transaction
from ledger.domain.credits.charges import (
    CHARGE_LINES,
    Charges,
    chargeable_period,
    charges_for,
    charges_period,
    paid_by,
    read_charges,
    require_payable,
)
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.domain.record.naming import charges_stream
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import Clock
from ledger.errors import CalendarInvalid, ChargesRefused, DocumentInvalid, NotFound


@dataclass(frozen=True, slots=True)
class RecordedCharges:
    """The charges of a period as they stand; ``version`` counts from 1, a later one replaces those before."""

    sla_id: str
    period: str
    version: int
    lines: Sequence[Mapping[str, Any]]
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class ChargeDesk:
    """Takes and shows the charges of one tenant's agreements."""

    database: Database
    attestor: Attestor
    clock: Clock

    def record(
        self, sla_id: str, period: str, lines: Sequence[Mapping[str, Any]], *, by: str | None = None
    ) -> RecordedCharges:
        """Record the charges of a period, in place of those recorded before; the same again changes nothing.

        A statement that stands on them follows, or is restated. Raises ``NotFound``, ``DocumentInvalid`` naming line
        and field, ``ChargesRefused``, and ``ClaimDeadlinePassed`` for a closed period that has its
        charges and takes no facts any more.
        """
        CHARGE_LINES.check(lines, "lines")
        with self.database.begin() as tx:
            found = load_timeline(tx, sla_id, self.attestor)
            return record_charges(tx, found, period, lines, by=by, now_ns=self.clock.now_ns())

    def of(self, sla_id: str, period: str, principal: Principal | None = None) -> RecordedCharges:
        """The newest charges of a period, for a principal or whoever runs this; raises ``NotFound`` where none are
        recorded, or not to be seen."""
        if principal is not None and not principal.may_see(sla_id):
            raise NotFound(f"there is no agreement {sla_id}", agreement=sla_id)
        with self.database.read() as tx:
            registered = _charged(load_timeline(tx, sla_id, self.attestor), period)
            events = _events(tx, sla_id, chargeable_period(registered.agreement, period))
        if not events:
            raise NotFound(f"no charges of {period} are recorded for {sla_id}", sla_id=sla_id, period=period)
        return _recorded(events)


def record_charges(
    tx: Transaction,
    found: RegisteredTimeline,
    period_name: str,
    lines: Sequence[Mapping[str, Any]],
    *,
    by: str | None,
    now_ns: int,
) -> RecordedCharges:
    """See ``ChargeDesk.record``; ``lines`` are checked by shape."""
    registered = _charged(found, period_name)
    sla_id, agreement = registered.sla_id, registered.agreement
    _require_charged(registered)
    period = chargeable_period(agreement, period_name)
    paid = list(_paid(found, period))
    # No statement is issued between the place of these charges in the log and the end of this transaction: it would
    # stand after charges that it does not follow.
    tx.identities.reserve(sla_id, agreement.source)
    for each in [terms for terms, _ in paid] or [registered]:
        require_payable(each.agreement, read_charges(each.agreement, period, lines))
    events = _events(tx, sla_id, period)
    if events and events[-1].payload["lines"] == list(lines):
        return _recorded(events)
    payload = {
        "sla_id": sla_id,
        "period": str(period),
        "start_ns": str(period.interval.start_ns),
        "doc_sha256": agreement.doc_sha256.hex(),
        "lines": list(lines),
        "by": by,
    }
    stream = charges_stream(sla_id, period.first)
    (receipt,) = tx.events.append(
        stream,
        [NewEvent("charges_recorded", payload, occurred_at_ns=now_ns)],
        expected_version=sum(1 for _ in tx.events.stream(stream)),
    )
    for terms, settled in paid:
        facts_changed(
            tx,
            terms,
            settled,
            cause="charges",
            reason=f"the charges of {period} were recorded" + (" anew" if events else ""),
            fact=receipt.event_id,
            now_ns=now_ns,
            # Nobody escapes a credit by handing in late what it is a share of.
            awaited=not events,
        )
    return RecordedCharges(sla_id, str(period), len(events) + 1, list(lines), receipt)


def _require_charged(registered: RegisteredAgreement) -> None:
    if registered.agreement.compensation.charges is None:
        raise ChargesRefused(
            "the base of this agreement is agreed on (compensation.base), and no charges are taken for it",
            sla_id=registered.sla_id,
        )


def load_charges(
    tx: Transaction, registered: RegisteredAgreement, period: Period, *, before_seq: int | None = None
) -> Charges | None:
    """The charges that a period is settled by; None where the base is agreed on, or they are not recorded yet.

    ``before_seq``: as they stood at this place of the log.
    """
    agreement = registered.agreement
    if agreement.compensation.charges is None:
        return None
    of = charges_period(agreement, period)
    events = [
        event
        for event in _events(tx, registered.sla_id, of)
        if before_seq is None or (event.seq is not None and event.seq < before_seq)
    ]
    return charges_for(agreement, period, events[-1].payload["lines"]) if events else None


def _paid(found: RegisteredTimeline, charged: Period) -> Iterator[tuple[RegisteredAgreement, Period]]:
    """The periods that are settled by the charges of a whole one, with their terms: of one that an amendment split each
    part, and the first of an amendment may be by those of the last before it."""
    for terms in found.timeline.terms:
        if terms.agreement.compensation.charges is not None:
            settled = paid_by(terms.agreement, charged)
            if settled is not None:
                yield found.of(terms), settled


def _charged(found: RegisteredTimeline, period: str) -> RegisteredAgreement:
    """The terms that charges of a period are checked by: the first under which something is settled by them. Else the
    terms of the period, or the newest where none has it."""
    for terms in found.timeline.terms:
        with suppress(DocumentInvalid, CalendarInvalid):
            charged = chargeable_period(terms.agreement, period)
            if terms.agreement.compensation.charges is not None and paid_by(terms.agreement, charged) is not None:
                return found.of(terms)
    try:
        return found.of(found.timeline.named(period)[0])
    except (DocumentInvalid, CalendarInvalid):
        return found.versions[-1]


def _events(tx: Transaction, sla_id: str, period: Period) -> list[StoredEvent]:
    """What was recorded of one period; terms of other periods may have one that starts on the same day."""
    events = tx.events.stream(charges_stream(sla_id, period.first))
    return [event for event in events if event.payload["period"] == str(period)]


def _recorded(events: Sequence[StoredEvent]) -> RecordedCharges:
    newest = events[-1]
    payload = newest.payload
    return RecordedCharges(payload["sla_id"], payload["period"], len(events), payload["lines"], Receipt.of(newest))
