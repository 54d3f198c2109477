"""Amounts of money, and by how much a statement differs from the one it replaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import strawberry

from api.graphql.scalars import Count, Decimal
from ledger.domain.money import format_minor_units


@strawberry.type(description="An amount of money.")
class Money:
    currency: str = strawberry.field(description="ISO 4217 code")
    minor_units: Decimal = strawberry.field(description="Whole minor units (USD: cents)")
    amount: Decimal = strawberry.field(description="The same in the currency's major unit, such as 12.50")


@strawberry.type(description="A count before and after; null where there was none.")
class CountDelta:
    old: Count | None
    new: Count | None
    difference: Decimal = strawberry.field(description="A whole number, below zero where it is less")


@strawberry.type(description="By how much the result of one objective differs.")
class ObjectiveDelta:
    id: strawberry.ID
    good: CountDelta
    valid: CountDelta
    undecided: CountDelta | None = strawberry.field(
        description="Counts that the data leave open; null where they do not differ"
    )
    old_state: str | None
    new_state: str | None


@strawberry.type(description="By how much the credit differs; an amount is null where the statement was withheld.")
class CreditDelta:
    old: Money | None
    new: Money | None
    difference: Money


def deltas_of(rows: list[Mapping[str, Any]]) -> list[ObjectiveDelta]:
    return [
        ObjectiveDelta(
            id=strawberry.ID(row["id"]),
            good=_count_delta(row["good"]),
            valid=_count_delta(row["valid"]),
            undecided=_count_delta(row["undecided"]) if "undecided" in row else None,
            old_state=row["state"]["old"],
            new_state=row["state"]["new"],
        )
        for row in rows
    ]


def _count_delta(row: Mapping[str, Any]) -> CountDelta:
    return CountDelta(old=row["old"], new=row["new"], difference=Decimal(str(row["difference"])))


def credit_delta_of(row: Mapping[str, Any]) -> CreditDelta:
    def amount(minor_units: int) -> Money:
        return money_of({"currency": row["currency"], "minor_units": minor_units})

    return CreditDelta(
        old=None if row["old"] is None else amount(row["old"]),
        new=None if row["new"] is None else amount(row["new"]),
        difference=amount(row["difference"]),
    )


def money_of(row: Mapping[str, Any]) -> Money:
    minor_units, currency = row["minor_units"], row["currency"]
    return Money(
        currency=currency,
        minor_units=Decimal(str(minor_units)),
        amount=Decimal(format_minor_units(minor_units, currency)),
    )
