"""Values as every answer spells them: instants, money, attainment.

No JSON number exceeds 2^53 and none is a float. Nanoseconds and minor units are decimal strings, beside a text for
people.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeAlias

import msgspec

from ledger.domain.money import format_floored, format_minor_units
from ledger.domain.time.instant import format_instant_ns

Digest: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", description="32 bytes in lowercase hex")]
Word: TypeAlias = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-f]{64}$", description="An EVM word of 32 bytes")]
Address: TypeAlias = Annotated[
    str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{40}$", description="An EVM address with its EIP-55 checksum")
]
Decimal: TypeAlias = Annotated[
    str, msgspec.Meta(pattern="^(?:0|[1-9][0-9]*)$", description="A whole number as a decimal string")
]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Seq: TypeAlias = Annotated[int, msgspec.Meta(ge=0, description="Position in the log, counted from 0")]

Withheld: TypeAlias = Annotated[
    list[str], msgspec.Meta(description="Members that are null because the caller's scopes do not cover them")
]

_PERCENT_DECIMALS = 4


class Instant(msgspec.Struct, frozen=True):
    """A point in time, twice."""

    rfc3339: Annotated[str, msgspec.Meta(description="RFC 3339 in UTC, with nine decimals unless they are all zero")]
    ns: Annotated[str, msgspec.Meta(description="Nanoseconds since 1970-01-01T00:00:00Z, as a decimal string")]


class Money(msgspec.Struct, frozen=True):
    """An amount of money, twice."""

    currency: Annotated[str, msgspec.Meta(description="ISO 4217 code")]
    minor_units: Annotated[str, msgspec.Meta(description="Whole minor units (USD: cents), as a decimal string")]
    amount: Annotated[str, msgspec.Meta(description="The same in the currency's major unit, such as 12.50")]


class Ratio(msgspec.Struct, frozen=True):
    """An exact fraction in lowest terms, and a text of it."""

    numerator: Annotated[str, msgspec.Meta(description="A whole number as a decimal string, maybe below 0")]
    denominator: Decimal
    decimal: Annotated[str, msgspec.Meta(description="The same with six decimals, rounded down, for display")]


def instant(instant_ns: int) -> Instant:
    return Instant(format_instant_ns(instant_ns), str(instant_ns))


def money(currency: str, minor_units: int) -> Money:
    return Money(currency, str(minor_units), format_minor_units(minor_units, currency))


def ratio(row: Mapping[str, str] | None) -> Ratio | None:
    return None if row is None else Ratio(row["numerator"], row["denominator"], decimal_floored(row))


def decimal_floored(row: Mapping[str, str]) -> str:
    """A fraction {numerator, denominator} with six decimals, rounded down."""
    return format_floored(int(row["numerator"]), int(row["denominator"]))


def attainment_percent(good: int, valid: int) -> str | None:
    """good / valid in percent with four decimals, rounded down: 100.0000 stands only where nothing failed.

    None where nothing was valid: no data is neither 0 nor 100 percent.
    """
    if valid == 0:
        return None
    whole, fraction = divmod(good * 100 * 10**_PERCENT_DECIMALS // valid, 10**_PERCENT_DECIMALS)
    return f"{whole}.{fraction:0{_PERCENT_DECIMALS}}"
