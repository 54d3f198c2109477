"""Values that payloads of several event types hold; notation as in ``ledger.domain.events.event_types``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.domain.record.events import MAX_INSTANT_NS
from ledger.domain.schema import JsonSchema, Nullable, Object, Test, Text, fail

_DECIMAL_INTEGER = re.compile(r"0|[1-9][0-9]*")
_MAX_UINT64 = 2**64 - 1


@dataclass(frozen=True, slots=True)
class DecimalInteger:
    """A whole number written as a decimal string without leading zeros; bounds are inclusive."""

    what: str
    maximum: int
    minimum: int = 0

    def check(self, value: Any, at: str) -> None:
        digits = len(str(self.maximum))
        if not isinstance(value, str) or len(value) > digits or not _DECIMAL_INTEGER.fullmatch(value):
            raise fail(at, f"{str(value)[:80]!r} is not {self.what} as a decimal string")
        if not self.minimum <= int(value) <= self.maximum:
            raise fail(at, f"{value} must be between {self.minimum} and {self.maximum}")

    def quick(self) -> Test:
        low, high, digits, whole = self.minimum, self.maximum, len(str(self.maximum)), _DECIMAL_INTEGER.fullmatch

        def test(values: Sequence[Any]) -> bool:
            if not all(type(value) is str for value in values):
                return False
            return all(
                len(text) <= digits and whole(text) is not None and low <= int(text) <= high for text in set(values)
            )

        return test

    def json_schema(self) -> JsonSchema:
        bounds = f"{self.what} from {self.minimum} to {self.maximum}"
        return {
            "type": "string",
            "pattern": "^(?:0|[1-9][0-9]*)$",
            "maxLength": len(str(self.maximum)),
            "description": bounds,
        }


@dataclass(frozen=True, slots=True)
class AnyObject:
    """An object whose members another specification fixes; canonical form still bounds what it may hold."""

    what: str

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, Mapping):
            raise fail(at, f"must be a mapping ({self.what})")

    def quick(self) -> Test:
        # Whether its members are plain only a walk through all of them tells, which ``canonical_bytes`` does.
        return lambda values: not values

    def json_schema(self) -> JsonSchema:
        return {"type": "object", "description": self.what}


SHA256 = Text(r"[0-9a-f]{64}", "a SHA-256 digest of 64 lowercase hex digits", 64)
EVM_SIGNATURE = Text(r"[0-9a-f]{130}", "an EVM signature r, s, v of 130 lowercase hex digits", 130)
PROOF = Text(r"[0-9a-f]{512}", "a proof of 512 lowercase hex digits (256 bytes)", 512)
INSTANT_NS = DecimalInteger("nanoseconds since 1970-01-01T00:00:00Z", MAX_INSTANT_NS)
SPAN = Nullable(Object({"from_ns": INSTANT_NS, "to_ns": INSTANT_NS}))
REASON = r"[a-z][a-z0-9_.-]{0,79}"
MINOR_UNITS = DecimalInteger("an amount in minor units", _MAX_UINT64)
SIGNED_MINOR_UNITS = Text(r"0|-?[1-9][0-9]{0,19}", "an amount in minor units, below 0 where it is taken back", 21)
BILLING_REFERENCE = Text(max_length=200, what="the reference under which billing booked it", visible=True)
CHAIN_ID = DecimalInteger("an EVM chain id", 2**256 - 1)
STATEMENT_ID = Text(r"[A-Za-z0-9._-]{1,120}", "a statement id", 120)
VIOLATION_ID = Text(r"[A-Za-z0-9._-]{1,120}", "a violation id", 120)
LINE_ID = Text(r"[A-Za-z0-9._-]{1,140}", "a credit line id", 140)
PERIOD = Text(r"\d{4}-\d\d-\d\d/P\d{1,3}[DWM]", "a period such as 2023-12-19/P1D", 16)
CURRENCY = Text(r"[A-Z]{3}", "an ISO 4217 currency code", 3)
EVENT_ID = Text(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "an event id (UUID in lowercase)", 36)
