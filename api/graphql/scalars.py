"""Scalars: every figure is exact, none is a float."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NewType

import strawberry
from graphql import GraphQLError
from strawberry.types.scalar import ScalarDefinition

from ledger.domain.record.canonical import MAX_SAFE_INTEGER
from ledger.domain.time.instant import format_instant_ns, parse_instant_ns
from ledger.errors import InstantInvalid

InstantNs = NewType("InstantNs", int)
"""Nanoseconds since the epoch inside, RFC 3339 outside."""
Decimal = NewType("Decimal", str)
Count = NewType("Count", int)


def decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def instant_or_none(instant_ns: int | None) -> InstantNs | None:
    return None if instant_ns is None else InstantNs(instant_ns)


def _read_instant(value: Any) -> int:
    if not isinstance(value, str):
        raise GraphQLError("an Instant is a text such as 2023-12-19T00:00:00Z")
    try:
        return parse_instant_ns(value)
    except InstantInvalid as error:
        raise GraphQLError(error.message) from None


def _write_count(value: int) -> int:
    if not 0 <= value <= MAX_SAFE_INTEGER:
        raise ValueError(f"{value} is beyond what a JSON number carries")
    return value


SCALARS: Mapping[object, ScalarDefinition] = {
    InstantNs: strawberry.scalar(
        name="Instant",
        description="RFC 3339 with a zone and up to nine decimals; in answers always UTC.",
        serialize=format_instant_ns,
        parse_value=_read_instant,
    ),
    Decimal: strawberry.scalar(name="Decimal", description="An exact decimal number as a text.", serialize=str),
    Count: strawberry.scalar(
        name="Count", description="A whole number from 0 to 2^53 - 1, as a JSON number.", serialize=_write_count
    ),
}
