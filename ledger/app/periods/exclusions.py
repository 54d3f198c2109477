"""Recording exclusions of time: what was asked for, as events of one stream for each agreement.

Nothing of what is excluded is ever rewritten: an exclusion stands until it is withdrawn, and its id is used up. It may
be recorded before, while and after it happens; a closed period of which it takes something out is judged anew. What of
it counts is worked out each time a period is judged, from the terms and all exclusions that stand
(``ledger.domain.windows.exclusions``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ledger.app.access import DEFAULT_TENANT
from ledger.app.agreements.registering import RegisteredAgreement, load_agreement, load_timeline, timeline_of
from ledger.app.periods.late_facts import facts_changed
from ledger.app.ports.evidence import Attestor
from ledger.app.ports.store import Database, Receipt, Transaction
from ledger.domain.events.event_types import EVENT_TYPES
from ledger.domain.events.exclusion_events import EXCLUSION_RECORDED, EXCLUSION_WITHDRAWN
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.domain.record.naming import exclusions_stream
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import DAY_NS, Clock, format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.domain.windows.exclusions import NOTHING_EXCLUDED, Excluded, Exclusion, Ruled, excluded_in, rule
from ledger.errors import DocumentInvalid, ExclusionInvalid, ExclusionRefused, IdempotencyConflict, NotFound

MAX_EXCLUSIONS = 10_000
"""Of one agreement, withdrawn ones among them: every judging reads them all."""
MAX_DAYS = 366
"""The longest exclusion."""


@dataclass(frozen=True, slots=True)
class AskedExclusion:
    """What is asked to be excluded: ``clause`` is a class of maintenance or a carve-out of the agreement.

    ``announced_at_ns`` is when the customer was told, ``by`` who records it.
    """

    id: str
    clause: str
    from_ns: int
    to_ns: int
    reason: str
    ticket: str | None = None
    announced_at_ns: int | None = None
    approved_by: str | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedExclusion:
    """A recorded exclusion: its payload, what becomes of it as things stand, and where its event stands."""

    payload: Mapping[str, Any]
    ruled: Ruled | None
    receipt: Receipt

    def as_row(self) -> dict[str, Any]:
        """The members of a row of ``Views.exclusions`` but ``seq``."""
        announced = self.payload["announced_at_ns"]
        return {
            "withdrawn_reason": None,
            "withdrawn_by": None,
            **self.payload,
            "state": "withdrawn" if "withdrawn_reason" in self.payload else "recorded",
            "from_ns": int(self.payload["from_ns"]),
            "to_ns": int(self.payload["to_ns"]),
            "announced_at_ns": None if announced is None else int(announced),
        }


class ExclusionDesk:
    """The exclusions of one tenant, each change in a transaction of its own.

    Every method raises ``NotFound`` for an unknown agreement, and ``VersionConflict`` where another change came
    between.
    """

    def __init__(self, database: Database, attestor: Attestor, clock: Clock, tenant: str = DEFAULT_TENANT) -> None:
        """``database`` is that of ``tenant``."""
        self._database = database
        self._attestor = attestor
        self._clock = clock
        self.tenant = tenant

    def of_tenant(self, tenant: str) -> ExclusionDesk:
        """The same for another tenant's agreements."""
        if tenant == self.tenant:
            return self
        return ExclusionDesk(self._database.of_tenant(tenant), self._attestor, self._clock, tenant)

    def record(self, sla_id: str, asked: AskedExclusion) -> RecordedExclusion:
        """See ``record_exclusion``."""
        with self._database.begin() as tx:
            found = load_timeline(tx, sla_id, self._attestor)
            # By the terms in force when the time that it excludes began.
            period = found.timeline.at(asked.from_ns)
            terms = None if period is None else found.timeline.starting(period.first)[0]
            registered = found.versions[-1] if terms is None else found.of(terms)
            return record_exclusion(tx, registered, asked, now_ns=self._clock.now_ns())

    def withdraw(self, sla_id: str, exclusion_id: str, *, reason: str, by: str | None = None) -> RecordedExclusion:
        """See ``withdraw_exclusion``."""
        with self._database.begin() as tx:
            registered = load_agreement(tx, sla_id, self._attestor)
            return withdraw_exclusion(tx, registered, exclusion_id, reason=reason, by=by, now_ns=self._clock.now_ns())


def record_exclusion(
    tx: Transaction, registered: RegisteredAgreement, asked: AskedExclusion, *, now_ns: int
) -> RecordedExclusion:
    """Append ``exclusion_recorded``; the same again gives the first receipt.

    What the limits of its class do not allow is recorded and not honoured, and the ruling says why. Raises
    ``ExclusionInvalid`` for what cannot be, ``IdempotencyConflict`` where the id has another exclusion,
    ``ExclusionRefused`` where it was withdrawn, and ``ClaimDeadlinePassed`` where it comes too late for a period that
    is closed.
    """
    payload = _payload(registered, asked, now_ns)
    # Nobody judges windows between the look at what is closed and this exclusion.
    tx.identities.reserve(registered.sla_id, registered.agreement.source)
    events = list(tx.events.stream(exclusions_stream(registered.sla_id)))
    before = _of_id(events, asked.id)
    if before is not None:
        if before.type == EXCLUSION_WITHDRAWN:
            raise ExclusionRefused(f"{asked.id} was withdrawn, and its id is used up; take a new one", id=asked.id)
        if any(before.payload[name] != value for name, value in payload.items() if name != "by"):
            raise IdempotencyConflict(f"{asked.id} is the id of another exclusion; take a new one", id=asked.id)
        return RecordedExclusion(before.payload, _ruled(registered, events, asked.id), Receipt.of(before))
    if len(events) >= MAX_EXCLUSIONS:
        raise ExclusionRefused(
            f"{registered.sla_id} has {MAX_EXCLUSIONS} exclusions and withdrawals, the most there can be",
            sla_id=registered.sla_id,
        )
    return _append(tx, registered, events, NewEvent(EXCLUSION_RECORDED, payload, occurred_at_ns=now_ns))


def withdraw_exclusion(
    tx: Transaction, registered: RegisteredAgreement, exclusion_id: str, *, reason: str, by: str | None, now_ns: int
) -> RecordedExclusion:
    """Append ``exclusion_withdrawn``; again, with whatever reason, gives the first receipt.

    Raises ``NotFound``, and ``ClaimDeadlinePassed`` as above.
    """
    tx.identities.reserve(registered.sla_id, registered.agreement.source)
    events = list(tx.events.stream(exclusions_stream(registered.sla_id)))
    before = _of_id(events, exclusion_id)
    if before is None:
        raise NotFound(f"there is no exclusion {exclusion_id[:40]}", exclusion=exclusion_id[:40])
    if before.type == EXCLUSION_WITHDRAWN:
        return RecordedExclusion(before.payload, None, Receipt.of(before))
    payload = {**before.payload, "withdrawn_reason": reason, "withdrawn_by": by}
    return _append(tx, registered, events, NewEvent(EXCLUSION_WITHDRAWN, payload, occurred_at_ns=now_ns))


def load_excluded(tx: Transaction, sla_id: str, agreement: Agreement, period: Period) -> Excluded:
    """What the exclusions that stand take out of a period."""
    terms = agreement.exclusion_terms
    if not terms.clauses:
        return NOTHING_EXCLUDED
    events = tx.events.stream(exclusions_stream(sla_id))
    return excluded_in(terms, _rulings(agreement, standing(events)), period.interval)


def excluded_members(excluded: Excluded) -> dict[str, Any]:
    """What a statement says of the exclusions that take something out of its period, by start; nothing where none does.

    What is not honoured changes no statement, so one cannot tell of it: it would depend on whether it was recorded
    before the closing.
    """
    found = [
        {
            "exclusion_id": each.exclusion.id,
            "clause": each.exclusion.clause,
            "from_ns": str(each.exclusion.interval.start_ns),
            "to_ns": str(each.exclusion.interval.end_ns),
            "announced_at_ns": _text(each.exclusion.announced_at_ns),
            "approved_by": each.exclusion.approved_by,
            "ruling": str(each.ruling),
            "honoured": {"from_ns": str(each.honoured.start_ns), "to_ns": str(each.honoured.end_ns)},
        }
        for each in excluded.rulings
        if each.honoured
    ]
    return {"exclusions": found} if found else {}


def standing(events: Iterable[StoredEvent]) -> list[Mapping[str, Any]]:
    """The payloads of the exclusions that were not withdrawn."""
    last = {event.payload["exclusion_id"]: event for event in events}
    return [event.payload for event in last.values() if event.type == EXCLUSION_RECORDED]


def exclusion_of(payload: Mapping[str, Any]) -> Exclusion:
    """The exclusion of an ``exclusion_recorded`` payload, or of a row with its members."""
    announced = payload["announced_at_ns"]
    return Exclusion(
        payload["exclusion_id"],
        payload["clause"],
        Interval(int(payload["from_ns"]), int(payload["to_ns"])),
        None if announced is None else int(announced),
        payload["approved_by"],
    )


def rulings_by_id(agreement: Agreement, payloads: Sequence[Mapping[str, Any]]) -> Mapping[str, Ruled]:
    """What becomes of each exclusion, the cap of the period in which it starts among the limits."""
    rulings = _rulings(agreement, payloads)
    found = {each.exclusion.id: each for each in rulings}
    if agreement.exclusion_terms.cap_ns is None:
        return found
    starts = [each.exclusion.interval.start_ns for each in rulings]
    for period in _periods(agreement, [Interval(start_ns, start_ns + 1) for start_ns in starts]):
        first, end = period.interval.start_ns, period.interval.end_ns
        near = rulings[bisect_left(starts, first - MAX_DAYS * DAY_NS) : bisect_left(starts, end)]
        for each in excluded_in(agreement.exclusion_terms, near, period.interval).rulings:
            capped = each.ruling is not found[each.exclusion.id].ruling
            if capped and each.exclusion.interval.start_ns in period.interval:
                found[each.exclusion.id] = each
    return found


def _append(
    tx: Transaction, registered: RegisteredAgreement, events: list[StoredEvent], event: NewEvent
) -> RecordedExclusion:
    payload, recorded = event.payload, event.type == EXCLUSION_RECORDED
    before = standing(events)
    after = [each for each in before if each["exclusion_id"] != payload["exclusion_id"]]
    if recorded:
        after.append(payload)
    (receipt,) = tx.events.append(exclusions_stream(registered.sla_id), [event], expected_version=len(events))
    changed = (
        (terms.agreement, period)
        for terms in timeline_of(tx, registered.sla_id).terms
        for period in _changed(terms.agreement, before, after)
    )
    for agreement, period in changed:
        facts_changed(
            tx,
            replace(registered, agreement=agreement),
            period,
            cause="exclusion",
            reason=f"the exclusion {payload['exclusion_id']} ({payload['clause']}) was "
            f"{'recorded' if recorded else 'withdrawn'} after the period was closed",
            fact=receipt.event_id,
            now_ns=event.occurred_at_ns,
        )
    ruled = rulings_by_id(registered.agreement, after).get(payload["exclusion_id"])
    return RecordedExclusion(payload, ruled, receipt)


def _changed(
    agreement: Agreement, before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> list[Period]:
    """The periods of which something else is taken out, or the same by other exclusions.

    One exclusion can move others: it is one of so many of its month, and takes from the cap of its period.
    """
    terms, was, will = agreement.exclusion_terms, _rulings(agreement, before), _rulings(agreement, after)

    def honoured(rulings: Sequence[Ruled]) -> set[tuple[str, Interval]]:
        # Each by its name: of two at the same time one may be under the cap, and the other not.
        return {(each.exclusion.id, each.honoured) for each in rulings if each.honoured}

    touched = [interval for _, interval in honoured(was) ^ honoured(will)]

    def taken_out(rulings: Sequence[Ruled], period: Period) -> set[tuple[str, Interval]]:
        return honoured(excluded_in(terms, rulings, period.interval).rulings)

    return [each for each in _periods(agreement, touched) if taken_out(was, each) != taken_out(will, each)]


def _periods(agreement: Agreement, intervals: Iterable[Interval]) -> list[Period]:
    """The agreement's periods that share an instant with any of these, in order: rolling ones overlap."""
    found = {period for interval in intervals for period in agreement.periods.touching(interval)}
    return sorted(found, key=lambda period: period.interval.start_ns)


def _payload(registered: RegisteredAgreement, asked: AskedExclusion, now_ns: int) -> dict[str, Any]:
    terms = registered.agreement.exclusion_terms
    if asked.clause not in terms.clauses:
        known = ", ".join(terms.clauses) or "none: it has neither maintenance nor carve_outs"
        raise ExclusionInvalid(
            f"clause: the agreement has no {asked.clause[:40]!r}; its clauses are {known}", field="clause"
        )
    if not asked.from_ns < asked.to_ns <= asked.from_ns + MAX_DAYS * DAY_NS:
        raise ExclusionInvalid(
            f"to: {format_instant_ns(asked.to_ns)} must come after from {format_instant_ns(asked.from_ns)}, by at most "
            f"{MAX_DAYS} days",
            field="to",
        )
    if not _periods(registered.agreement, [Interval(asked.from_ns, asked.to_ns)]):
        raise ExclusionInvalid(
            f"from: {format_instant_ns(asked.from_ns)} to {format_instant_ns(asked.to_ns)} lies in no period of the "
            "agreement",
            field="from",
        )
    if asked.announced_at_ns is not None and asked.announced_at_ns > now_ns:
        raise ExclusionInvalid(
            f"announced_at: {format_instant_ns(asked.announced_at_ns)} is still to come; say when it was announced",
            field="announced_at",
        )
    if asked.ticket is None and asked.clause in terms.classes:
        raise ExclusionInvalid(f"ticket: {asked.clause} is maintenance; name its ticket", field="ticket")
    payload = {
        "exclusion_id": asked.id,
        "sla_id": registered.sla_id,
        "clause": asked.clause,
        "ticket": asked.ticket,
        "from_ns": str(asked.from_ns),
        "to_ns": str(asked.to_ns),
        "announced_at_ns": _text(asked.announced_at_ns),
        "approved_by": asked.approved_by,
        "reason": asked.reason,
        "by": asked.by,
    }
    _check(EXCLUSION_RECORDED, payload)
    return payload


def _check(kind: str, payload: Mapping[str, Any]) -> None:
    """What a person wrote is refused as such, and not as a fault of the program."""
    try:
        EVENT_TYPES[kind].payload.check(payload, "")
    except DocumentInvalid as error:
        raise ExclusionInvalid(error.message, **error.data) from error


def _text(instant_ns: int | None) -> str | None:
    return None if instant_ns is None else str(instant_ns)


def _rulings(agreement: Agreement, payloads: Sequence[Mapping[str, Any]]) -> tuple[Ruled, ...]:
    return rule(agreement.exclusion_terms, agreement.timezone, map(exclusion_of, payloads))


def _ruled(registered: RegisteredAgreement, events: Sequence[StoredEvent], exclusion_id: str) -> Ruled | None:
    return rulings_by_id(registered.agreement, standing(events)).get(exclusion_id)


def _of_id(events: Sequence[StoredEvent], exclusion_id: str) -> StoredEvent | None:
    return next((each for each in reversed(events) if each.payload["exclusion_id"] == exclusion_id), None)
