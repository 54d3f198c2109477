"""Payloads of the events in which finance hands in charges and customers claim credits."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.domain.credits.charges import CHARGE_LINES
from ledger.domain.record.event_values import (
    CURRENCY,
    INSTANT_NS,
    LINE_ID,
    MINOR_UNITS,
    PERIOD,
    SHA256,
    STATEMENT_ID,
    VIOLATION_ID,
)
from ledger.domain.schema import Nullable, Shape, Text
from ledger.domain.terms.agreement_schema import BYTES32
from ledger.domain.terms.objective_shapes import OBJECTIVE_ID

_WHO = Nullable(Text(max_length=200, what="who asked for it"))

CLAIM_PAYLOADS: Mapping[str, Mapping[str, Shape]] = {
    "charges_recorded": {
        "sla_id": BYTES32,
        "period": PERIOD,
        "start_ns": INSTANT_NS,
        # Of the terms they were checked by.
        "doc_sha256": SHA256,
        "lines": CHARGE_LINES,
        "by": _WHO,
    },
    "claim_filed": {
        "request": Text(max_length=150, what="the Idempotency-Key of the request", visible=True),
        "by": _WHO,
        "claim_id": Text(r"[A-Za-z0-9._-]{1,140}", "a claim id", 140),
        "sla_id": BYTES32,
        "period": PERIOD,
        "scope": Text(max_length=300, what="region and model of the objective, or all", visible=True),
        # The level of service that was missed, and the incident; null where no violation stands for the credit.
        "objective": Nullable(Text(OBJECTIVE_ID, "an objective id (lowercase letters, digits, - and _)", 40)),
        "violation_id": Nullable(VIOLATION_ID),
        "statement_id": STATEMENT_ID,
        "line_id": LINE_ID,
        "currency": CURRENCY,
        "minor_units": MINOR_UNITS,
        # The SHA-256 of the batch of facts that the customer stands on.
        "evidence": Nullable(SHA256),
        "deadline_ns": INSTANT_NS,
    },
}
