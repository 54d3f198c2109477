"""What the readers of telemetry have in common: refusals, texts cut to size, JSON in bounds."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, NoReturn

from ledger.domain.rows.telemetry import MAX_RAW_CHARS, Doubt, Refusal, SampleVerdict
from ledger.domain.terms.nesting import MAX_DEPTH, too_deep
from ledger.domain.time.instant import parse_instant_ns
from ledger.errors import InstantInvalid, TelemetryUnusable

MAX_NAME_CHARS = 200
MAX_INSTANT_NS = 2**63 - 1

# Databases refuse some of these, and none of them is part of a name.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
# RFC 9557 puts the zone's name behind the offset: 2023-12-19T05:30:00+05:30[Asia/Kolkata].
_ZONE_NAME = re.compile(r"\[[A-Za-z0-9_+/-]{1,64}\]\Z")


class ReadingProblem(Exception):
    """One sample cannot be used; becomes its ``Refusal``."""

    def __init__(
        self,
        reason: Doubt,
        field: str,
        message: str,
        raw: object = "",
        verdict: SampleVerdict = SampleVerdict.REJECTED,
    ) -> None:
        super().__init__(message)
        self.refusal = Refusal(verdict, reason, clean(field, 300), clean(str(raw), MAX_RAW_CHARS), message)


def unusable(field: str, message: str, reason: Doubt = Doubt.MALFORMED) -> TelemetryUnusable:
    """The error for a batch that cannot be read as a whole."""
    return TelemetryUnusable(f"{field}: {message}", field=field, reason=str(reason))


def clean(text: str, limit: int = MAX_NAME_CHARS) -> str:
    """``text`` without control characters and halves of surrogate pairs, cut to ``limit``."""
    return _UNPRINTABLE.sub("\ufffd", text[: limit + 1])[:limit]


def instant_ns(text: object, field: str) -> int:
    """Nanoseconds of an RFC 3339 text with a zone, optionally followed by the zone's name in brackets."""
    if not isinstance(text, str):
        raise ReadingProblem(Doubt.TIME_INVALID, field, "must be an RFC 3339 time with a zone", text)
    try:
        return parse_instant_ns(_ZONE_NAME.sub("", text[:120]))
    except InstantInvalid as error:
        raise ReadingProblem(Doubt.TIME_INVALID, field, error.message, text) from None


def read_json(data: bytes, field: str = "body") -> Any:
    """The value of a JSON document, numbers exact; raises ``TelemetryUnusable``.

    NaN and Infinity are no JSON, though many writers write them.
    """
    require_shallow(data, field)
    try:
        return json.loads(data, parse_float=Decimal, parse_constant=_no_constant)
    # A number of endless digits or exponent is a ValueError or an ArithmeticError.
    except (ValueError, ArithmeticError) as error:
        raise unusable(field, f"is no JSON: {clean(str(error))}") from None


def require_shallow(data: bytes, field: str = "body") -> None:
    """Raises ``TelemetryUnusable`` for JSON that nests deeper than any reader should follow."""
    if too_deep(data):
        raise unusable(field, f"nests deeper than {MAX_DEPTH} levels")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number; write null where nothing was measured")
