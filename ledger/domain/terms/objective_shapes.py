"""The shape of an agreement's ``objectives`` member: which members an objective of each method has.

What a member means, and what the members have to be to each other, is read in ``ledger.domain.terms.objective``.
"""

from __future__ import annotations

from collections.abc import Mapping

from ledger.domain.schema import Either, Integer, ListOf, Object, OneOf, Shape, Text
from ledger.domain.terms.indicators import LATENCIES, REQUEST_INDICATORS, SAMPLE_INDICATORS
from ledger.domain.terms.objective_sources import SOURCE_MEMBERS
from ledger.domain.terms.where import WHERE

MAX_OBJECTIVES, MAX_GRADES = 16, 8
OBJECTIVE_ID = r"[a-z][a-z0-9_-]{0,39}"
OBJECTIVE_ID_TEXT = Text(OBJECTIVE_ID, "an objective id (lowercase letters, digits, - and _)", 40)
DECIMAL = Text(r"(0|[1-9]\d{0,19})(\.\d{1,9})?", "a plain decimal number in quotes, such as '99.95'", 32)
WINDOW = Text(r"PT\d{1,4}[SMH]", "a window length such as PT1H or PT5M", 7)

_ANY_INDICATOR = OneOf((*REQUEST_INDICATORS, *SAMPLE_INDICATORS))
_VOLUME = Integer(1, 2**53 - 1)
DENOMINATOR = OneOf(("scheduled", "full"))
"""Scheduled time leaves out what is excluded; the full period keeps it in."""
ALIGNMENT: Mapping[str, Shape] = {"aligned": OneOf(("period", "day", "utc")), "partial": OneOf(("drop", "none"))}
"""Of an objective that is judged by intervals or minutes; without them ``period`` and ``drop``."""
_PLACE = Text(max_length=120, what="a name as it stands in the charges", visible=True)
_COMMON: Mapping[str, Shape] = {
    "clause": Text(max_length=120, what="where the contract says so", visible=True),
    "minimum_valid": _VOLUME,
    "confidence": OneOf(("wilson-95",)),
    "window": WINDOW,
    "threshold_ms": DECIMAL,
    "measure": Object({}, {"at_least": DECIMAL, "at_most": DECIMAL, "score_of": DECIMAL}),
    "scope": Object({}, {"region": _PLACE, "model": _PLACE}),
    "where": WHERE,
    "evaluator": Text(max_length=120, what="name and version of the evaluator", visible=True),
    "tokenizer": Text(max_length=120, what="the tokenizer that tokens are counted by", visible=True),
    "resource": Text(max_length=120, what="the resource whose samples count, such as a context length", visible=True),
    **SOURCE_MEMBERS,
}


def _shape(method: str, required: Mapping[str, Shape], optional: Mapping[str, Shape], indicator: OneOf) -> Object:
    return Object(
        {
            "id": OBJECTIVE_ID_TEXT,
            "method": OneOf((method,)),
            "indicator": indicator,
            "target": DECIMAL,
            **required,
        },
        {key: shape for key, shape in {**_COMMON, **optional}.items() if key not in required},
    )


_DOWN: Mapping[str, Shape] = {"error_rate": DECIMAL, "boundary": OneOf(("above", "at_or_above"))}
_SLICE = Object(
    {"window": WINDOW, "target": DECIMAL},
    {
        "step": WINDOW,
        "minimum_valid": _VOLUME,
        "consecutive": Integer(1, 10_000),
        "only_with": OBJECTIVE_ID_TEXT,
    },
)
_GRADES = ListOf(Object({"at_most_ms": DECIMAL, "score": DECIMAL}), 1, MAX_GRADES)

OBJECTIVE = Either(
    "method",
    {
        "total_ratio": _shape("total_ratio", {}, {"repeat_window": WINDOW}, _ANY_INDICATOR),
        "exact_quantile": _shape(
            "exact_quantile", {"quantile": DECIMAL, "threshold_ms": DECIMAL}, {}, OneOf(LATENCIES)
        ),
        "graded_score-v1": _shape("graded_score-v1", {"grades": _GRADES}, {}, OneOf(("response_latency",))),
        "interval_mean-v1": _shape("interval_mean-v1", {"interval": WINDOW}, ALIGNMENT, _ANY_INDICATOR),
        "downtime_minutes-v1": _shape(
            "downtime_minutes-v1",
            _DOWN,
            {"minimum_run": Integer(1, 10_000), "denominator": DENOMINATOR, **ALIGNMENT},
            _ANY_INDICATOR,
        ),
        "interval_threshold-v1": _shape(
            "interval_threshold-v1",
            {"interval": WINDOW, **_DOWN},
            {"denominator": DENOMINATOR, **ALIGNMENT},
            _ANY_INDICATOR,
        ),
        "deployment_minutes-v1": _shape(
            "deployment_minutes-v1", {}, {"denominator": DENOMINATOR}, OneOf(("deployment_up",))
        ),
        "attainment-v1": _shape("attainment-v1", {"slice": _SLICE}, {}, _ANY_INDICATOR),
    },
)
