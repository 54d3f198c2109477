"""Payloads of the events about exclusions of time.

Each event says the whole of its exclusion, so that a view row follows from one event alone. It says what was asked for;
what of it counts follows from the terms and all other exclusions (``ledger.domain.windows.exclusions``).
"""

from __future__ import annotations

from collections.abc import Mapping

from ledger.domain.record.event_values import INSTANT_NS
from ledger.domain.schema import ListOf, Nullable, Object, OneOf, Shape, Text
from ledger.domain.terms.agreement_schema import BYTES32
from ledger.domain.terms.exclusion_terms import CLAUSE_ID
from ledger.domain.terms.objective_shapes import OBJECTIVE_ID
from ledger.domain.windows.exclusions import Ruling

EXCLUSION_RECORDED = "exclusion_recorded"
EXCLUSION_WITHDRAWN = "exclusion_withdrawn"

EXCLUSION_ID = Text(OBJECTIVE_ID, "an exclusion's id (lowercase letters, digits, - and _)", 40)
TICKET = Text(max_length=200, what="the ticket it was approved under", visible=True)
APPROVED_BY = Text(max_length=200, what="who approved it", visible=True)
REASON = Text(max_length=500, what="what happened in it, for people", visible=True)
WITHDRAWN_REASON = Text(max_length=500, what="why it no longer stands", visible=True)
_WHO = Nullable(Text(max_length=200, what="who asked for it"))

_EXCLUSION: Mapping[str, Shape] = {
    "exclusion_id": EXCLUSION_ID,
    "sla_id": BYTES32,
    "clause": CLAUSE_ID,
    "ticket": Nullable(TICKET),
    "from_ns": INSTANT_NS,
    "to_ns": INSTANT_NS,
    "announced_at_ns": Nullable(INSTANT_NS),
    "approved_by": Nullable(APPROVED_BY),
    "reason": REASON,
    "by": _WHO,
}

EXCLUSION_PAYLOADS: Mapping[str, Mapping[str, Shape]] = {
    EXCLUSION_RECORDED: _EXCLUSION,
    EXCLUSION_WITHDRAWN: {**_EXCLUSION, "withdrawn_reason": WITHDRAWN_REASON, "withdrawn_by": _WHO},
}

_SPAN = Object({"from_ns": INSTANT_NS, "to_ns": INSTANT_NS})

STATEMENT_EXCLUSIONS: Mapping[str, Shape] = {
    "exclusions": ListOf(
        Object(
            {
                **{name: _EXCLUSION[name] for name in ("exclusion_id", "clause", "from_ns", "to_ns")},
                **{name: _EXCLUSION[name] for name in ("announced_at_ns", "approved_by")},
                "ruling": OneOf(tuple(str(ruling) for ruling in Ruling)),
                "honoured": Nullable(_SPAN),
            }
        ),
        1,
        10_000,
    )
}
"""What a statement says of the exclusions that take something out of its period: enough to hold them to the terms.
Those of an older release list what touches it and was not honoured, too."""
