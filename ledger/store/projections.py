"""Read models as a pure function of the events: ``apply`` says which rows an event sets.

Every change sets one whole row by its key and depends on that one event alone. So the rows are the same whether
events are applied one by one as they are appended or in any batches by a rebuild, and applying one twice is
harmless. Each row carries the ``seq`` of the event it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from ledger.domain.credits.restatement import Standing, final_from_ns
from ledger.domain.events.anchor_events import ANCHOR_FINALIZED, ANCHOR_UNDONE
from ledger.domain.events.batch_events import BATCH_PUBLISHED, BATCH_UNDONE
from ledger.domain.events.exclusion_events import EXCLUSION_RECORDED, EXCLUSION_WITHDRAWN
from ledger.domain.events.webhook_events import WEBHOOK_CONFIGURED
from ledger.domain.record.events import StoredEvent
from ledger.domain.rows.telemetry import BREAKER_SEVERITY, BreakerState

Place: TypeAlias = tuple[Any, ...]
"""Which row of which view: (view, tenant, key members in the view's order)."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """Set one row of a view: ``key`` finds it (with the tenant), ``columns`` are asked by, ``body`` is the rest."""

    view: str
    tenant: str
    key: Mapping[str, Any]
    columns: Mapping[str, Any]
    body: Mapping[str, Any]
    seq: int


class ViewWriter(Protocol):
    """Where row changes go."""

    def clear(self) -> None:
        """Forget every row of every view."""
        ...

    def write(self, changes: Iterable[RowChange]) -> None:
        """Set rows in the order given."""
        ...

    def remove(self, change: RowChange) -> bool:
        """Remove the row that this change set; False where a later event has set it since."""
        ...


def apply(event: StoredEvent) -> tuple[RowChange, ...]:
    """The rows this event sets; none for a type that no view shows, and none once its payload was erased."""
    handler = _HANDLERS.get(event.type)
    return tuple(handler(event)) if handler and not event.erased else ()


def sets_rows(event_type: str) -> bool:
    """Whether any view shows events of this type."""
    return event_type in _HANDLERS


def types_beside(event_type: str) -> frozenset[str]:
    """The types whose events set rows of the same views as this type's, itself included."""
    return next((group for group in _SHARING if event_type in group), frozenset({event_type}))


def forget(event: StoredEvent, earlier: Iterable[StoredEvent], views: ViewWriter) -> None:
    """Take back the rows of an event whose payload is erased, so that they are as a rebuild will make them.

    A row goes back to what the last event before set it to. ``earlier`` are the events of the same tenant before this
    one whose types set the same views (``types_beside``), newest first: no others can have set the row.
    """
    restore_rows({_place(change) for change in apply(event) if views.remove(change)}, earlier, views)


def restore_rows(lost: set[Place], earlier: Iterable[StoredEvent], views: ViewWriter) -> None:
    """Set removed rows to what the last of ``earlier``, which come newest first, set them to."""
    if not lost:
        return
    for before in earlier:
        changes = [change for change in apply(before) if _place(change) in lost]
        views.write(changes)
        lost -= {_place(change) for change in changes}
        if not lost:
            return


def rebuild(
    events: Iterator[StoredEvent],
    views: ViewWriter,
    *,
    batch: int = 1000,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Make every view anew from all events in log order; the number of events read.

    ``progress`` is told that number after every ``batch`` changes.
    """
    views.clear()
    count = 0
    changes: list[RowChange] = []
    for event in events:
        changes += apply(event)
        count += 1
        if len(changes) >= batch:
            views.write(changes)
            changes = []
            progress(count)
    views.write(changes)
    return count


def _place(change: RowChange) -> Place:
    return change.view, change.tenant, *change.key.values()


def _change(
    event: StoredEvent,
    view: str,
    key: Mapping[str, Any],
    body: Mapping[str, Any],
    columns: Mapping[str, Any] | None = None,
) -> RowChange:
    return RowChange(view, event.tenant, key, columns or {}, body, event.place)


def _agreement(event: StoredEvent) -> Iterable[RowChange]:
    payload = event.payload
    body = {
        "service": payload["document"]["service"]["name"],
        "terms_version": payload["terms_version"],
        "doc_sha256": payload["doc_sha256"],
        "document": payload["document"],
    }
    if "notice" in payload:
        body["terminated_on"] = payload["notice"]["effective"]
    yield _change(event, "view_agreement", {"sla_id": payload["sla_id"]}, body)


def _window(event: StoredEvent) -> Iterable[RowChange]:
    payload = event.payload
    key = {"sla_id": payload["sla_id"], "period": payload["period"], "window_index": payload["index"]}
    names = ("doc_sha256", "end_ns", "state", "cells", "excluded_requests", "exclusions")
    body = {name: payload[name] for name in names if name in payload}
    yield _change(event, "view_window", key, body, {"start_ns": int(payload["start_ns"])})


def _statement(event: StoredEvent) -> Iterable[RowChange]:
    payload = event.payload
    key = {"statement_id": payload["statement_id"]}
    columns = {"sla_id": payload["sla_id"], "start_ns": int(payload["start_ns"])}
    body = {name: value for name, value in payload.items() if name not in {"statement_id", "sla_id", "start_ns"}}
    yield _change(event, "view_statement", key, body, columns)
    if payload["credit"] is not None:
        yield _change(event, "view_credit", key, {"period": payload["period"], **payload["credit"]}, columns)
    yield _standing(event, payload["statement_id"], Standing.DRAFT)
    if "restates" in payload:
        replaced = payload["restates"]["statement_id"]
        yield _standing(event, replaced, Standing.RESTATED, restated_by=payload["statement_id"])


def _finality(event: StoredEvent) -> Iterable[RowChange]:
    yield _standing(event, event.payload["statement_id"], Standing.FINAL)


def _standing(event: StoredEvent, statement_id: str, standing: Standing, **body: str) -> RowChange:
    """How a statement stands after an event of its period. ``credited`` tells the newest ones that have a credit."""
    payload = event.payload
    columns = {
        "sla_id": payload["sla_id"],
        "start_ns": int(payload["start_ns"]),
        "standing": str(standing),
        "credited": int(payload["credit"] is not None),
        "due_ns": final_from_ns(payload),
    }
    return _change(event, "view_standing", {"statement_id": statement_id}, body, columns)


def _attestation(event: StoredEvent) -> Iterable[RowChange]:
    yield _of_statement(event, "view_attestation")


def _anchor(event: StoredEvent) -> Iterable[RowChange]:
    yield _of_statement(event, "view_anchor")


def _anchor_confirmation(event: StoredEvent) -> Iterable[RowChange]:
    columns = {"standing": _ANCHOR_STANDINGS[event.type], "chain_id": event.payload["chain_id"]}
    yield replace(_of_statement(event, "view_anchor_confirmation"), columns=columns)


def _root(event: StoredEvent) -> Iterable[RowChange]:
    payload = event.payload
    key = {"target": payload["target"], "number": payload["number"]}
    columns = {"from_seq": payload["from_seq"], "until_seq": payload["until_seq"]}
    body = {name: value for name, value in payload.items() if name not in {*key, *columns}}
    body |= {"undone": True} if event.type == BATCH_UNDONE else {}
    yield _change(event, "view_root", key, body, columns)


_NOT_SHOWN = frozenset({"statement_id", "sla_id", "raw_transaction"})
"""The key of a row, and where the bytes of a transaction are kept, which bundles alone show."""


def _of_statement(event: StoredEvent, view: str) -> RowChange:
    payload = event.payload
    body = {name: value for name, value in payload.items() if name not in _NOT_SHOWN}
    return _change(event, view, {"statement_id": payload["statement_id"]}, body)


def _violation(event: StoredEvent) -> Iterable[RowChange]:
    payload = event.payload
    columns = {
        "sla_id": payload["sla_id"],
        "objective": payload["objective"],
        "state": _VIOLATION_STATES[event.type],
        "start_ns": int(payload["from_ns"]),
    }
    body = {name: value for name, value in payload.items() if name not in _VIOLATION_COLUMNS}
    yield _change(event, "view_violation", {"violation_id": payload["violation_id"]}, body, columns)


def _issued_line(event: StoredEvent) -> Iterable[RowChange]:
    yield _line(event, event.payload)


def _reversed_line(event: StoredEvent) -> Iterable[RowChange]:
    yield _line(event, event.payload["reversed"])
    yield _line(event, event.payload["entry"])


def _applied_line(event: StoredEvent) -> Iterable[RowChange]:
    yield _line(event, event.payload["line"])


def _line(event: StoredEvent, line: Mapping[str, Any]) -> RowChange:
    columns = {name: line[name] for name in ("statement_id", "sla_id", "violation_id", "status")}
    body = {name: value for name, value in line.items() if name not in {"line_id", "start_ns", *columns}}
    key = {"line_id": line["line_id"]}
    return _change(event, "view_credit_line", key, body, {**columns, "start_ns": int(line["start_ns"])})


def _exclusion(event: StoredEvent) -> Iterable[RowChange]:
    payload = event.payload
    key = {"sla_id": payload["sla_id"], "exclusion_id": payload["exclusion_id"]}
    columns = {"start_ns": int(payload["from_ns"]), "state": _EXCLUSION_STATES[event.type]}
    body = {name: value for name, value in payload.items() if name not in {*key, "from_ns"}}
    yield _change(event, "view_exclusion", key, body, columns)


def _webhook(event: StoredEvent) -> Iterable[RowChange]:
    payload = event.payload
    body = {name: value for name, value in payload.items() if name not in {"endpoint_id", "state"}}
    yield _change(event, "view_webhook", {"endpoint_id": payload["endpoint_id"]}, body, {"state": payload["state"]})


_AGREEMENT_TYPES = ("agreement_registered", "agreement_terminated")
_VIOLATION_COLUMNS = frozenset({"violation_id", "sla_id", "objective", "from_ns"})
_ANCHOR_STANDINGS = {"anchor_confirmed": "confirmed", ANCHOR_UNDONE: "undone", ANCHOR_FINALIZED: "final"}
_ROOT_TYPES = (BATCH_PUBLISHED, BATCH_UNDONE)
_EXCLUSION_STATES = {EXCLUSION_RECORDED: "recorded", EXCLUSION_WITHDRAWN: "withdrawn"}
_VIOLATION_STATES = {
    "violation_opened": "open",
    "violation_updated": "open",
    "violation_closed": "closed",
    "violation_withdrawn": "withdrawn",
}


def _telemetry(event: StoredEvent) -> Iterable[RowChange]:
    payload = event.payload
    service = payload["service"]
    for place, point in enumerate(payload["points"]):
        key = {"service": service, "event_id": event.id, "point": place}
        columns = {
            "from_ns": int(point["from_ns"]),
            "to_ns": int(point["to_ns"]),
            "severity": point["severity"],
            "series": f"{point['subject']} {point['metric']}",
        }
        body = {name: point[name] for name in ("kind", "subject", "metric", "min", "max", "last", "samples")}
        yield _change(event, "view_telemetry", key, body, columns)
    body = {name: payload[name] for name in ("digest", "format", "media_type", "scraped_at_ns")}
    yield _change(event, "view_telemetry_source", {"service": service, "source": payload["source"]}, body)


def _breaker(event: StoredEvent) -> Iterable[RowChange]:
    payload = event.payload
    at_ns = int(payload["at_ns"])
    columns = {
        "from_ns": at_ns,
        "to_ns": at_ns + 1,
        "severity": BREAKER_SEVERITY[BreakerState(payload["to_state"])],
        "series": f"{payload['breaker']} {payload['to_state']}",
    }
    body = {name: payload[name] for name in ("source", "breaker", "kind", "from_state", "to_state", "failure_rate")}
    yield _change(event, "view_breaker", {"service": payload["service"], "event_id": event.id}, body, columns)


_HANDLERS: Mapping[str, Callable[[StoredEvent], Iterable[RowChange]]] = {
    **dict.fromkeys(_AGREEMENT_TYPES, _agreement),
    "window_evaluated": _window,
    "statement_issued": _statement,
    "attestation_recorded": _attestation,
    "anchor_recorded": _anchor,
    **dict.fromkeys(_VIOLATION_STATES, _violation),
    **dict.fromkeys(_EXCLUSION_STATES, _exclusion),
    "credit_line_issued": _issued_line,
    "credit_line_reversed": _reversed_line,
    "credit_applied": _applied_line,
    **dict.fromkeys(_ANCHOR_STANDINGS, _anchor_confirmation),
    **dict.fromkeys(_ROOT_TYPES, _root),
    "statement_finalized": _finality,
    "telemetry_recorded": _telemetry,
    "breaker_event_recorded": _breaker,
    WEBHOOK_CONFIGURED: _webhook,
}

_SHARING = (
    frozenset(_AGREEMENT_TYPES),
    frozenset(_VIOLATION_STATES),
    frozenset(_ANCHOR_STANDINGS),
    frozenset(_ROOT_TYPES),
    frozenset(_EXCLUSION_STATES),
    frozenset({"statement_issued", "statement_finalized"}),
    frozenset({"credit_line_issued", "credit_line_reversed", "credit_applied"}),
)
"""Types that set rows of one view together; every other view is set by one type."""

SHOWN_TYPES = frozenset(_HANDLERS)
"""Types of events that set rows of a view."""
