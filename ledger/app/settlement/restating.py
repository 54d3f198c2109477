"""What a statement says of the one it replaces: which, why, and by how much it differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.app.agreements.registering import RegisteredAgreement
from ledger.app.ports.store import Transaction
from ledger.domain.credits.restatement import differences
from ledger.domain.credits.settlement import Settlement
from ledger.domain.events.restatement_events import MAX_FACTS, MAX_REASON
from ledger.domain.record.events import StoredEvent
from ledger.domain.record.naming import closing_stream
from ledger.domain.time.calendar import Period

_JUDGED_ANEW = "the period was judged anew"
_SHOWN_REASONS = 3


@dataclass(frozen=True, slots=True)
class Restated:
    """The members that a restatement has beside its figures (``ledger.domain.events.restatement_events``)."""

    statement_id: str
    event_id: str
    facts: tuple[str, ...]
    reason: str
    objective_deltas: tuple[Mapping[str, Any], ...]
    credit_delta: Mapping[str, Any]

    def as_members(self) -> dict[str, Any]:
        return {
            "restates": {
                "statement_id": self.statement_id,
                "event_id": self.event_id,
                "facts": list(self.facts),
            },
            "reason": self.reason,
            "objective_deltas": list(self.objective_deltas),
            "credit_delta": self.credit_delta,
        }


def last_change(tx: Transaction, registered: RegisteredAgreement, period: Period) -> StoredEvent | None:
    """The event that closed a period, or the last that says which facts of it changed since; None while it is open."""
    last = None
    for event in tx.events.stream(closing_stream(registered.sla_id, period.first)):
        last = event
    return last


def restated(
    tx: Transaction,
    registered: RegisteredAgreement,
    settlement: Settlement,
    newest: StoredEvent,
    closing: StoredEvent | None,
) -> Restated:
    """How a settlement differs from the newest statement of its period, and by which facts.

    They are those that changed after what that statement followed, up to ``closing``.
    """
    changes = _changes(tx, registered, settlement, newest, closing)
    deltas = differences(newest.payload, settlement.as_document(), settlement.currency)
    return Restated(
        statement_id=newest.payload["statement_id"],
        event_id=newest.id,
        facts=tuple(dict.fromkeys(event.payload["fact"] for event in changes))[:MAX_FACTS],
        reason=_reason([event.payload["reason"] for event in changes]),
        objective_deltas=tuple(deltas["objective_deltas"]),
        credit_delta=deltas["credit_delta"],
    )


def _changes(
    tx: Transaction,
    registered: RegisteredAgreement,
    settlement: Settlement,
    newest: StoredEvent,
    closing: StoredEvent | None,
) -> list[StoredEvent]:
    if closing is None:
        return []
    events = list(tx.events.stream(closing_stream(registered.sla_id, settlement.period.first)))
    followed = newest.payload.get("closing_event")
    since = next((event.version for event in events if event.id == followed), 0)
    return [event for event in events if since < event.version <= closing.version]


def _reason(reasons: list[str]) -> str:
    distinct = list(dict.fromkeys(reasons))
    shown = "; ".join(distinct[:_SHOWN_REASONS]) or _JUDGED_ANEW
    if len(distinct) > _SHOWN_REASONS:
        shown += f"; and {len(distinct) - _SHOWN_REASONS} more"
    return shown if len(shown) <= MAX_REASON else shown[: MAX_REASON - 3] + "..."
