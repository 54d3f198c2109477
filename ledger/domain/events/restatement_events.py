"""Payloads about a closed period whose facts changed: what changed, which blocks were sealed anew, what a statement
that replaces another one says beside its figures, and that a statement is final.
"""

from __future__ import annotations

from collections.abc import Mapping

from ledger.domain.record.event_values import (
    CURRENCY,
    EVENT_ID,
    INSTANT_NS,
    MINOR_UNITS,
    PERIOD,
    SHA256,
    SIGNED_MINOR_UNITS,
    STATEMENT_ID,
)
from ledger.domain.schema import Integer, ListOf, Nullable, Object, OneOf, Shape, Text
from ledger.domain.terms.agreement_schema import BYTES32, FIELD_ELEMENT
from ledger.domain.terms.objective_shapes import OBJECTIVE_ID

MAX_REASON = 500
MAX_FACTS = 10_000

_LARGEST = 2**53 - 1
_COUNT = Integer()
_WINDOWS = Integer(0, 1_000_000)
_VERSION = Integer(1, 2**32 - 1)
_REASON = Text(max_length=MAX_REASON, what="why, for people", visible=True)
_STATE = Text(r"[a-z_]{1,20}", "a verdict", 20)

_COUNT_DELTA = Object(
    {"old": Nullable(_COUNT), "new": Nullable(_COUNT), "difference": Integer(-_LARGEST, _LARGEST)},
)
_OBJECTIVE_DELTA = Object(
    {
        "id": Text(OBJECTIVE_ID, "an objective id (lowercase letters, digits, - and _)", 40),
        "good": _COUNT_DELTA,
        "valid": _COUNT_DELTA,
        "state": Object({"old": Nullable(_STATE), "new": Nullable(_STATE)}),
    },
    # Where it differs.
    {"undecided": _COUNT_DELTA},
)

STATEMENT_ADDED: Mapping[str, Shape] = {
    # Until when late facts are taken, and so when the statement is final.
    "accepts_until_ns": INSTANT_NS,
    # The event of the closing's stream that it follows: facts that changed later are not in it.
    "closing_event": EVENT_ID,
    "restates": Object({"statement_id": STATEMENT_ID, "event_id": EVENT_ID, "facts": ListOf(EVENT_ID, 0, MAX_FACTS)}),
    "reason": _REASON,
    "objective_deltas": ListOf(_OBJECTIVE_DELTA, 0, 16),
    "credit_delta": Object(
        {
            "currency": CURRENCY,
            "old": Nullable(MINOR_UNITS),
            "new": Nullable(MINOR_UNITS),
            "difference": SIGNED_MINOR_UNITS,
        }
    ),
}
"""Optional members of ``statement_issued``; all from ``restates`` on stand in a restatement, and there alone."""

RESTATEMENT_PAYLOADS: Mapping[str, Mapping[str, Shape]] = {
    "period_facts_changed": {
        "sla_id": BYTES32,
        "period": PERIOD,
        "start_ns": INSTANT_NS,
        "end_ns": INSTANT_NS,
        # Of the terms that were in force when it was closed.
        "doc_sha256": SHA256,
        "cause": Text(r"[a-z][a-z_]{0,39}", "the kind of fact, such as observations", 40),
        # The event that recorded it.
        "fact": EVENT_ID,
        "reason": _REASON,
    },
    "block_resealed": {
        "sla_id": BYTES32,
        "seal_key": FIELD_ELEMENT,
        "block": Integer(0, 10_000),
        "block_hash": FIELD_ELEMENT,
        "first_window": _WINDOWS,
        "windows": _WINDOWS,
        "inputs": ListOf(SHA256, 0, 100_000),
        # The first version of the statement that the block counts for.
        "statement_version": _VERSION,
        # The event that sealed it before.
        "replaces": EVENT_ID,
        "reason": _REASON,
    },
    "statement_finalized": {
        "statement_id": STATEMENT_ID,
        "sla_id": BYTES32,
        "period": PERIOD,
        "start_ns": INSTANT_NS,
        "end_ns": INSTANT_NS,
        "statement_version": _VERSION,
        "state": OneOf(("settled", "withheld")),
        "credit": Nullable(Object({"currency": CURRENCY, "minor_units": MINOR_UNITS})),
        "accepts_until_ns": INSTANT_NS,
    },
}
