"""What a statement says of the one it replaces."""

from __future__ import annotations

from typing import Annotated

import msgspec

from api.rest.values import Count, Money, money
from ledger.app.paging import Row


class Restated(msgspec.Struct, frozen=True):
    """The statement that another one replaces."""

    statement_id: str
    event_id: str
    facts: Annotated[list[str], msgspec.Meta(description="Events that recorded what changed")]


class CountDelta(msgspec.Struct, frozen=True):
    """A count before and after; null where there was none."""

    old: Count | None
    new: Count | None
    difference: int


class StateDelta(msgspec.Struct, frozen=True):
    """A verdict before and after; null where there was none."""

    old: str | None
    new: str | None


class ObjectiveDelta(msgspec.Struct, frozen=True):
    """By how much the result of one objective differs."""

    id: str
    good: CountDelta
    valid: CountDelta
    state: StateDelta
    undecided: Annotated[
        CountDelta | None, msgspec.Meta(description="Counts that the data leave open; null where they do not differ")
    ] = None


class CreditDelta(msgspec.Struct, frozen=True):
    """By how much the credit differs; an amount is null where the statement was withheld."""

    old: Money | None
    new: Money | None
    difference: Money


def credit_delta(row: Row | None) -> CreditDelta | None:
    """The shape of a row's member of this name."""
    if row is None:
        return None
    amounts = {name: None if row[name] is None else money(row["currency"], row[name]) for name in ("old", "new")}
    return CreditDelta(**amounts, difference=money(row["currency"], row["difference"]))
