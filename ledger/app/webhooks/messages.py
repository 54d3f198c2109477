"""What a webhook message says: an event of the ledger, cut down to the scopes of the endpoint.

Messages are thin: they name what happened and where to read more. One whose resource needs a scope that the endpoint
lacks is not made at all; single members are withheld by ``ledger.app.access``, as they are over REST.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ledger.app.access import Principal, Scope, redact
from ledger.app.reading.lists import visible_violation
from ledger.domain.events.anchor_events import ANCHOR_FINALIZED, ANCHOR_UNDONE
from ledger.domain.record.events import StoredEvent
from ledger.domain.time.instant import format_instant_ns

_Payload = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MessageType:
    """A type of message: the scopes it needs, and how its data is made from an event's payload."""

    scopes: tuple[Scope, ...]
    data: Callable[[_Payload, Principal], dict[str, Any]]


def message_type_of(event: StoredEvent) -> str | None:
    """The type of the message that tells of an event; None for events nobody is told of."""
    return None if event.erased else _BY_EVENT.get(event.type)


def message(event: StoredEvent, principal: Principal) -> dict[str, Any] | None:
    """The message about an event as the principal may see it; None where it may not be told of it.

    {type, timestamp, data} as Standard Webhooks has it; ``data.withheld`` lists members that scopes keep back.
    """
    name = message_type_of(event)
    if name is None or not principal.holds(*MESSAGE_TYPES[name].scopes):
        return None
    data = MESSAGE_TYPES[name].data(event.payload, principal)
    return {
        "type": name,
        "timestamp": format_instant_ns(event.recorded_at_ns),
        "data": {**data, "event_id": event.id, "seq": event.place},
    }


def _violation(payload: _Payload, principal: Principal) -> dict[str, Any]:
    seen = _only(visible_violation(payload, principal), (*_VIOLATION, "withheld"))
    seen["withheld"] = [name for name in seen["withheld"] if name in _VIOLATION]
    return {**seen, "from": _instant(payload["from_ns"]), "to": _instant(payload["to_ns"])}


def _statement(payload: _Payload, principal: Principal) -> dict[str, Any]:
    seen, withheld = redact("statement", _only(payload, _STATEMENT), principal)
    return {**seen, "start": _instant(payload["start_ns"]), "end": _instant(payload["end_ns"]), "withheld": withheld}


def _finality(payload: _Payload, principal: Principal) -> dict[str, Any]:
    seen, withheld = redact("statement", _only(payload, _FINALITY), principal)
    span = {"start": _instant(payload["start_ns"]), "end": _instant(payload["end_ns"])}
    return {**seen, **span, "accepted_until": _instant(payload["accepts_until_ns"]), "withheld": withheld}


def _credit(payload: _Payload, _principal: Principal) -> dict[str, Any]:
    """Of the line as it stands after the event, and of the entry that takes it back, if there is one."""
    lines = {name: payload[name] for name in ("line", "reversed", "entry") if name in payload} or {"line": payload}
    return {name: _only(line, _CREDIT) for name, line in lines.items()}


def _proof(payload: _Payload, _principal: Principal) -> dict[str, Any]:
    return _only(payload, ("statement_id", "sla_id", "circuit", "chain_id", "registry", "proof_hash"))


def _anchor(payload: _Payload, _principal: Principal) -> dict[str, Any]:
    return _only(payload, ("statement_id", "sla_id", "chain_id", "tx_hash", "block_number", "block_hash"))


def _only(payload: _Payload, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: payload[name] for name in names if name in payload}


def _instant(text: str) -> str:
    return format_instant_ns(int(text))


_VIOLATION = (
    *("violation_id", "sla_id", "service", "period", "objective", "indicator", "target", "windows"),
    *("good", "valid", "bad", "clause", "unit", "ended_by", "reason"),
)
_STATEMENT = (
    *("statement_id", "sla_id", "period", "statement_version", "state", "credit", "attestable"),
    *("restates", "reason", "credit_delta"),
)
_FINALITY = ("statement_id", "sla_id", "period", "statement_version", "state", "credit")
_CREDIT = (
    *("line_id", "statement_id", "sla_id", "period", "objective", "violation_id", "currency", "minor_units"),
    *("status", "reverses", "reversed_by", "reason", "restates"),
)

MESSAGE_TYPES: Mapping[str, MessageType] = {
    **dict.fromkeys(
        ("violation.opened", "violation.updated", "violation.closed", "violation.withdrawn"),
        MessageType((Scope.READ_VIOLATIONS,), _violation),
    ),
    "statement.issued": MessageType((Scope.READ_AGREEMENTS,), _statement),
    "statement.finalized": MessageType((Scope.READ_AGREEMENTS,), _finality),
    **dict.fromkeys(
        ("credit.issued", "credit.reversed", "credit.applied"), MessageType((Scope.READ_CREDITS,), _credit)
    ),
    "proof.recorded": MessageType((Scope.READ_PROOFS,), _proof),
    **dict.fromkeys(
        ("anchor.recorded", "anchor.confirmed", "anchor.undone", "anchor.finalized"),
        MessageType((Scope.READ_PROOFS,), _anchor),
    ),
}
"""Every type of message, by name."""

_BY_EVENT: Mapping[str, str] = {
    "violation_opened": "violation.opened",
    "violation_updated": "violation.updated",
    "violation_closed": "violation.closed",
    "violation_withdrawn": "violation.withdrawn",
    "statement_issued": "statement.issued",
    "statement_finalized": "statement.finalized",
    "credit_line_issued": "credit.issued",
    "credit_line_reversed": "credit.reversed",
    "credit_applied": "credit.applied",
    "attestation_recorded": "proof.recorded",
    "anchor_recorded": "anchor.recorded",
    "anchor_confirmed": "anchor.confirmed",
    ANCHOR_UNDONE: "anchor.undone",
    ANCHOR_FINALIZED: "anchor.finalized",
}
