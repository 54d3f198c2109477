"""The shape of the Agreement v1 document (``apiVersion: sla-ledger/v1``, ``kind: Agreement``).

Amounts, percentages, quantiles and thresholds are decimal strings; ``agreement.py`` gives them meaning.
"""

from __future__ import annotations

from ledger.domain.schema import Integer, ListOf, Object, OneOf, Text
from ledger.domain.terms.compensation_terms import COMPENSATION
from ledger.domain.terms.exclusion_terms import CLAUSE_ID, EXCLUSION_MEMBERS
from ledger.domain.terms.objective_shapes import DECIMAL, MAX_OBJECTIVES, OBJECTIVE
from ledger.domain.terms.settlement_terms import CLOSING, SETTLEMENT

API_VERSION = "sla-ledger/v1"

NAME = Text(max_length=120, what="a name")
VISIBLE_NAME = Text(max_length=120, what="a name", visible=True)
ED25519_PUBLIC_KEY = Text(r"[0-9a-f]{64}", "an Ed25519 public key of 64 lowercase hex digits", 64)
ED25519_SIGNATURE = Text(r"[0-9a-f]{128}", "an Ed25519 signature of 128 lowercase hex digits", 128)
EVM_ADDRESS = Text(r"0x[0-9a-fA-F]{40}", "an EVM address (0x and 40 hex digits)", 42)
BYTES32 = Text(r"0x[0-9a-f]{64}", "0x and 64 lowercase hex digits", 66)
FIELD_ELEMENT = Text(r"0|[1-9]\d{0,76}", "a decimal field element", 77)
DATE = Text(r"\d{4}-\d\d-\d\d", "a date YYYY-MM-DD", 10)

COMPLETE_LOG, HEARTBEAT = "complete_log", "heartbeat"
COVERAGES = (COMPLETE_LOG, HEARTBEAT)
"""How a source shows that nothing is missing: by spans that it declares complete, or by heartbeats as well."""

PROBE_REQUIRED, PROBE_SHOWN = "required", "shown"

_DURATION = Text(r"PT\d{1,4}[SMH]", "a duration such as PT72H", 7)
_PARTY = Object({"name": VISIBLE_NAME, "ed25519_public_key": ED25519_PUBLIC_KEY, "evm_address": EVM_ADDRESS})
_POINT = Object({"x": FIELD_ELEMENT, "y": FIELD_ELEMENT})

_EXCLUSION = Object(
    {
        "id": CLAUSE_ID,
        "error_codes": ListOf(Integer(-(2**31), 2**31 - 1), 1, 100),
        "reason": Text(max_length=500, what="the reason both parties agreed on", visible=True),
    }
)

_SIGNATURES = Object({"issuer": ED25519_SIGNATURE, "customer": ED25519_SIGNATURE})

AGREEMENT = Object(
    required={
        "apiVersion": OneOf((API_VERSION,)),
        "kind": OneOf(("Agreement",)),
        "nonce": BYTES32,
        "parties": Object({"issuer": _PARTY, "customer": _PARTY}),
        "collector": Object({"name": VISIBLE_NAME, "babyjubjub_public_key": _POINT}),
        "service": Object({"name": VISIBLE_NAME, "class": OneOf(("text-generation", "multimodal"))}),
        "tier": OneOf(("gold", "silver", "bronze")),
        "business_level": OneOf(("L1", "L2", "L3", "L4")),
        "effective": Object({"from": DATE, "until": DATE}),
        "timezone": Text(max_length=64, what="an IANA time zone"),
        "period": Text(r"P\d{1,3}[DWM]", "a period such as P1D, P1W or P1M", 5),
        "window": Text(r"PT\d{1,4}[SMH]", "a window length such as PT1H or PT5M", 7),
        "source": Object({"name": VISIBLE_NAME, "coverage": OneOf(COVERAGES)}, {"heartbeat": _DURATION}),
        "missing_windows": OneOf(("ignore",)),
        "coverage_floor": DECIMAL,
        "grace": _DURATION,
        "objectives": ListOf(OBJECTIVE, 1, MAX_OBJECTIVES),
        "exclusions": ListOf(_EXCLUSION, 0, 50),
        "compensation": COMPENSATION,
    },
    optional={
        "anchor": DATE,
        "step": Text(r"P\d{1,3}[DWM]", "the step of rolling periods, such as P1D", 5),
        "day_start": Text(r"\d\d:\d\d", "a time of day such as 08:00", 5),
        "partial_periods": OneOf(("drop", "prorate")),
        # Of a draft one may be missing.
        "signatures": Object({}, dict(_SIGNATURES.required)),
        "settlement": SETTLEMENT,
        "closing": CLOSING,
        "probe": Object(
            {
                "name": VISIBLE_NAME,
                "babyjubjub_public_key": _POINT,
                "signature": OneOf((PROBE_REQUIRED, PROBE_SHOWN)),
            }
        ),
        **EXCLUSION_MEMBERS,
    },
    title="sla-ledger Agreement v1",
)

SIGNED_AGREEMENT = Object(
    {**AGREEMENT.required, "signatures": _SIGNATURES},
    {key: shape for key, shape in AGREEMENT.optional.items() if key != "signatures"},
)
"""The same document where both parties must have signed it."""
