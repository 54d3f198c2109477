"""Error budgets: what of a period may still fail, how fast it goes, and when it will be gone."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from litestar.params import QueryParameter

from api.parameters import SlaId
from api.rest.routes import Seen, reads
from api.rest.values import Count, Instant, Ratio, Withheld, Word, instant, ratio
from ledger.app.access import RESOURCE_SCOPES
from ledger.app.paging import Row
from ledger.app.reading.budgets import Budgets, read_windows_asked

OverWindows: TypeAlias = Annotated[
    str | None,
    QueryParameter(
        pattern=r"^PT\d{1,4}[SMH](,PT\d{1,4}[SMH]){0,9}$",
        description="Windows to tell the burn over, such as PT1H or PT1H,PT6H; PT1H,PT6H,PT72H where absent",
    ),
]
OfPeriod: TypeAlias = Annotated[
    str | None,
    QueryParameter(
        pattern=r"^\d{4}-\d\d-\d\d/P\d{1,3}[DWM]$",
        description="Such as 2023-12-19/P1D; the running one if it was judged, else the newest settled, where absent",
    ),
]


class Burn(msgspec.Struct, frozen=True, kw_only=True):
    """How fast the budget went over the last part of what was judged."""

    window: Annotated[str, msgspec.Meta(description="What was asked for")]
    start: Annotated[
        Instant | None, msgspec.Meta(description="Of what was looked at: whole intervals, none before the period")
    ]
    end: Instant | None
    bad: Count
    valid: Count
    rate: Annotated[
        Ratio | None,
        msgspec.Meta(description="(bad / valid) / (1 - target); null where nothing may fail and something did"),
    ]
    exhaustion: Annotated[str, msgspec.Meta(description="exhausted, expected, or never: not in this period")]
    exhausted_at: Annotated[
        Instant | None, msgspec.Meta(description="When all of it will be gone, where that is expected")
    ]


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The error budget of one objective. Counts are in the unit of its method; what may not be seen is null."""

    id: str
    indicator: str
    method: str
    unit: Annotated[str, msgspec.Meta(description="What the counts are")]
    target_percent: str
    counted: Annotated[Count | None, msgspec.Meta(description="What was judged so far")]
    bad: Count | None
    undecided: Annotated[Count | None, msgspec.Meta(description="Of what is not bad: the data cannot say")]
    valid: Annotated[
        Count | None,
        msgspec.Meta(description="What the budget is reckoned by: as counted, or the whole period's time"),
    ]
    allowed: Annotated[Ratio | None, msgspec.Meta(description="(1 - target) of valid: how much may be bad")]
    remaining: Annotated[Ratio | None, msgspec.Meta(description="allowed - bad; below 0 where more than all is gone")]
    burnt: Annotated[
        Ratio | None, msgspec.Meta(description="bad / allowed; null also where nothing may fail and something did")
    ]
    exhausted: Annotated[bool | None, msgspec.Meta(description="More than all of it is gone")]
    burns: list[Burn] | None
    withheld: Withheld


class BudgetList(msgspec.Struct, frozen=True, kw_only=True):
    """The error budgets of one period."""

    sla_id: Word
    period: str
    start: Instant
    end: Instant
    judged_to: Annotated[Instant | None, msgspec.Meta(description="End of the last window with data")]
    assumption: Annotated[str, msgspec.Meta(description="What the forecasts assume")]
    budgets: list[Budget]


@reads(
    "/v1/agreements/{sla_id:str}/budgets",
    summary="Error budgets",
    tag="agreements",
    scopes=tuple(sorted(RESOURCE_SCOPES["budgets"])),
    problems=(400, 404, 503),
)
def list_budgets(seen: Seen, sla_id: SlaId, window: OverWindows = None, period: OfPeriod = None) -> BudgetList:
    """What of a period may still fail, how fast that goes, and when it will be gone."""
    return _list(seen.budgets(sla_id, period=period, over=read_windows_asked(window)))


def _list(found: Budgets) -> BudgetList:
    return BudgetList(
        sla_id=found.sla_id,
        period=found.period,
        start=instant(found.start_ns),
        end=instant(found.end_ns),
        judged_to=None if found.judged_to_ns is None else instant(found.judged_to_ns),
        assumption=found.assumption,
        budgets=[_budget(row) for row in found.objectives],
    )


def _budget(row: Row) -> Budget:
    same = ("id", "indicator", "method", "unit", "counted", "bad", "undecided", "valid", "exhausted", "withheld")
    burns = row["burns"]
    return Budget(
        **{name: row[name] for name in same},
        target_percent=row["target"],
        allowed=ratio(row["allowed"]),
        remaining=ratio(row["remaining"]),
        burnt=ratio(row["burnt"]),
        burns=None if burns is None else [_burn(burn) for burn in burns],
    )


def _burn(burn: Row) -> Burn:
    start_ns, end_ns, at_ns = burn["start_ns"], burn["end_ns"], burn["exhausted_at_ns"]
    return Burn(
        **{name: burn[name] for name in ("window", "bad", "valid", "exhaustion")},
        start=None if start_ns is None else instant(start_ns),
        end=None if end_ns is None else instant(end_ns),
        rate=ratio(burn["rate"]),
        exhausted_at=None if at_ns is None else instant(at_ns),
    )
