"""Error budgets: the same figures as over REST, by the same policy."""

from __future__ import annotations

from typing import Any, cast

import strawberry

from api.graphql.access import metric
from api.graphql.context import RequestContext
from api.graphql.scalars import Count, Decimal, InstantNs, instant_or_none
from api.rest.values import decimal_floored
from ledger.app.paging import Row
from ledger.app.reading.budgets import read_windows_asked


@strawberry.type(description="An exact fraction in lowest terms.")
class Ratio:
    numerator: str = strawberry.field(description="A whole number, maybe below 0")
    denominator: str
    decimal: str = strawberry.field(description="The same with six decimals, rounded down, for display")


@strawberry.type(description="How fast a budget went over the last part of what was judged.")
class Burn:
    window: str
    start: InstantNs | None = strawberry.field(description="Of what was looked at: whole intervals of the period")
    end: InstantNs | None
    bad: Count
    valid: Count
    rate: Ratio | None = strawberry.field(
        description="(bad / valid) / (1 - target); null where nothing may fail and something did"
    )
    exhaustion: str = strawberry.field(description="exhausted, expected, or never: not in this period")
    exhausted_at: InstantNs | None


@strawberry.type(description="The error budget of one objective of one period, in the unit of its method.")
class Budget:
    objective: strawberry.ID
    period: str
    indicator: str
    method: str
    unit: str
    target_percent: Decimal
    judged_to: InstantNs | None = strawberry.field(description="End of the last window with data")
    counted: Count | None = metric(description="What was judged so far")
    bad: Count | None = metric(description="What of it was bad")
    valid: Count | None = metric(description="What the budget is reckoned by")
    allowed: Ratio | None = metric(description="How much may be bad")
    remaining: Ratio | None = metric(description="allowed - bad; below 0 where more than all is gone")
    burnt: Ratio | None = metric(description="bad / allowed; null also where nothing may fail and something did")
    exhausted: bool | None = metric(description="More than all of it is gone")
    burns: list[Burn] | None = metric(description="How fast it goes, and when it will be gone")


def budgets_of(context: RequestContext, sla_id: str, period: str | None, window: str | None) -> list[Budget]:
    found = context.queries.budgets(context.principal, sla_id, period=period, over=read_windows_asked(window))
    return [_budget(row, found.period, found.judged_to_ns, context) for row in found.objectives]


def _budget(row: Row, period: str, judged_to_ns: int | None, context: RequestContext) -> Budget:
    # A field whose value is an error reads null and reports it.
    refusal = cast(Any, context.withheld_indicator(row["indicator"], "budget"))
    return Budget(
        objective=strawberry.ID(row["id"]),
        period=period,
        indicator=row["indicator"],
        method=row["method"],
        unit=row["unit"],
        target_percent=Decimal(row["target"]),
        judged_to=instant_or_none(judged_to_ns),
        **{name: refusal or row[name] for name in ("counted", "bad", "valid", "exhausted")},
        allowed=refusal or _ratio(row["allowed"]),
        remaining=refusal or _ratio(row["remaining"]),
        burnt=refusal or _ratio(row["burnt"]),
        burns=refusal or [_burn(burn) for burn in row["burns"]],
    )


def _burn(burn: Row) -> Burn:
    return Burn(
        **{name: burn[name] for name in ("window", "bad", "valid", "exhaustion")},
        start=instant_or_none(burn["start_ns"]),
        end=instant_or_none(burn["end_ns"]),
        rate=_ratio(burn["rate"]),
        exhausted_at=instant_or_none(burn["exhausted_at_ns"]),
    )


def _ratio(row: Row | None) -> Ratio | None:
    return (
        None
        if row is None
        else Ratio(numerator=row["numerator"], denominator=row["denominator"], decimal=decimal_floored(row))
    )
