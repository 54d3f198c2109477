"""Payloads of the events about violations and credit lines.

Each event says the whole state of its violation or line, so that a view row follows from one event alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from ledger.domain.record.event_values import (
    BILLING_REFERENCE,
    CURRENCY,
    EVENT_ID,
    INSTANT_NS,
    LINE_ID,
    PERIOD,
    SHA256,
    SIGNED_MINOR_UNITS,
    STATEMENT_ID,
    VIOLATION_ID,
)
from ledger.domain.schema import Flag, Integer, ListOf, Nullable, Object, OneOf, Shape, Text
from ledger.domain.terms.agreement_schema import BYTES32, NAME
from ledger.domain.terms.indicators import INDICATORS
from ledger.domain.terms.objective_shapes import DECIMAL, OBJECTIVE_ID

_COUNT = Integer()
_WINDOWS = Integer(0, 1_000_000)
_NAME_OF_KIND = r"[a-z][a-z0-9_.-]{0,79}"
_OBJECTIVE_ID = Text(OBJECTIVE_ID, "an objective id (lowercase letters, digits, - and _)", 40)
_WHO = Nullable(Text(max_length=200, what="who asked for it"))

MAX_SHOWN_CHARS = 200
"""Of a request id; a longer one is cut."""

_BAD_REQUEST = Object(
    {
        "request_id": Text(max_length=MAX_SHOWN_CHARS, what="the id of the request", visible=True),
        "trace_id": Nullable(Text(r"[!-~]{1,128}", "a trace id", 128)),
        "at_ns": INSTANT_NS,
        "batch": SHA256,
        "line": Integer(1),
        "error_code": Nullable(Text(r"-?\d{1,20}", "a whole number", 21)),
        "latency_ns": Nullable(INSTANT_NS),
        "conflict": Flag(),
    }
)

_VIOLATION: Mapping[str, Shape] = {
    "violation_id": VIOLATION_ID,
    "sla_id": BYTES32,
    "doc_sha256": SHA256,
    "service": NAME,
    "period": PERIOD,
    "objective": _OBJECTIVE_ID,
    "indicator": OneOf(tuple(INDICATORS)),
    "target": DECIMAL,
    "revision": Integer(1, 2**32 - 1),
    "first_window": _WINDOWS,
    "windows": _WINDOWS,
    "from_ns": INSTANT_NS,
    "to_ns": INSTANT_NS,
    "good": _COUNT,
    "valid": _COUNT,
    "bad": _COUNT,
    "worst": Object({"window": _WINDOWS, "good": _COUNT, "valid": _COUNT}),
    "evidence": Object(
        {
            "inputs": ListOf(SHA256, 0, 100_000),
            "signals": ListOf(
                Object(
                    {
                        "kind": Text(_NAME_OF_KIND, "a kind of evidence such as gpu_sample", 80),
                        "event_id": EVENT_ID,
                        "at_ns": INSTANT_NS,
                        "summary": Text(max_length=500, what="what it shows"),
                    }
                ),
                0,
                100,
            ),
        },
        {"requests": ListOf(_BAD_REQUEST, 0, 100)},
    ),
}

_LINE: Mapping[str, Shape] = {
    "line_id": LINE_ID,
    "statement_id": STATEMENT_ID,
    "statement_event": EVENT_ID,
    "rule": Text(_NAME_OF_KIND, "a version of the rule that splits credits", 80),
    "sla_id": BYTES32,
    "customer": NAME,
    "period": PERIOD,
    "start_ns": INSTANT_NS,
    "objective": Nullable(_OBJECTIVE_ID),
    "violation_id": Nullable(VIOLATION_ID),
    "currency": CURRENCY,
    "minor_units": SIGNED_MINOR_UNITS,
    "status": OneOf(("issued", "applied", "void")),
    "proof_due": Flag(),
    "reverses": Nullable(LINE_ID),
    "reversed_by": Nullable(LINE_ID),
    "reason": Nullable(Text(max_length=500, what="why it was taken back or differs", visible=True)),
    "billing": Nullable(Object({"reference": BILLING_REFERENCE, "at_ns": INSTANT_NS, "by": _WHO})),
}
LINE_ADDED: Mapping[str, Shape] = {
    # Of a line that says by how much the statement differs: the statement that its own replaces.
    "restates": STATEMENT_ID,
}
"""Optional members of a line."""

_CHANGE: Mapping[str, Shape] = {
    "request": Text(max_length=150, what="the Idempotency-Key of the request", visible=True),
    "by": _WHO,
}

VIOLATION_ADDED: Mapping[str, Shape] = {
    "clause": Text(max_length=120, what="the clause of the contract, or the member of the agreement, that it breaks"),
    "unit": Text(max_length=80, what="what the counts of its windows are"),
    "undecided": _COUNT,
}
"""What events about violations may say since schema version 2."""

VIOLATION_PAYLOADS: Mapping[str, Mapping[str, Shape]] = {
    "violation_opened": _VIOLATION,
    "violation_updated": _VIOLATION,
    "violation_closed": {**_VIOLATION, "ended_by": OneOf(("met", "idle", "excluded", "no_data", "period_end"))},
    "violation_withdrawn": {**_VIOLATION, "reason": Text(max_length=500, what="why it no longer holds")},
}

CREDIT_LINE_PAYLOADS: Mapping[str, Mapping[str, Shape]] = {
    "credit_line_issued": _LINE,
    "credit_line_reversed": {**_CHANGE, "entry": Object(_LINE, LINE_ADDED), "reversed": Object(_LINE, LINE_ADDED)},
    "credit_applied": {**_CHANGE, "line": Object(_LINE, LINE_ADDED)},
}
