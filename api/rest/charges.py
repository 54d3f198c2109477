"""Charges of a period: what finance hands in, where the base of credits is what was charged."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar.di import NamedDependency
from litestar.params import JSONBody

from api.parameters import PeriodName, SlaId
from api.rest.routes import reads, writes
from api.rest.values import Word
from api.rest.writing import Told, Written, written
from ledger.app.access import Principal, Scope
from ledger.app.settlement.charges import RecordedCharges

_Lines = Annotated[
    list[dict[str, Any]],
    msgspec.Meta(
        min_length=1,
        max_length=1000,
        description="service, kind (recurring, one_time, tax or credit), amount, currency; optional region, model, "
        "rate {rate, source, date} to the currency of credits, life {from, until}",
    ),
]


class ChargesWrite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The charges of one period, all of them: they replace what was recorded for it before."""

    period: Annotated[
        str,
        msgspec.Meta(
            pattern=r"^\d{4}-\d\d-\d\d/P\d{1,3}[DWM]$",
            description="First local date and length of the period that was charged, such as 2023-12-01/P1M",
        ),
    ]
    lines: _Lines


class ChargesOfPeriod(msgspec.Struct, frozen=True, kw_only=True):
    """The charges of a period as they stand."""

    sla_id: Word
    period: str
    version: Annotated[int, msgspec.Meta(ge=1, description="Counted from 1; a later one replaces those before")]
    lines: _Lines
    receipt: Written


@writes(
    "/v1/agreements/{sla_id:str}/charges",
    summary="Hand in charges",
    tag="credits",
    scopes=(Scope.WRITE_CREDITS,),
    status=202,
    problems=(400, 404, 409, 413, 503),
)
def record_charges(
    commands: Told, principal: NamedDependency[Principal], sla_id: SlaId, data: JSONBody[ChargesWrite]
) -> ChargesOfPeriod:
    """Record the charges that a period's credits are a share of. The same again gives the first receipt.

    A closed period that waits for them is settled, one that was settled by others is restated.
    """
    return _shown(commands.charges.record(sla_id, data.period, data.lines, by=principal.subject))


@reads(
    "/v1/agreements/{sla_id:str}/charges",
    summary="Charges of a period",
    tag="credits",
    scopes=(Scope.READ_CREDITS,),
    problems=(400, 404, 503),
)
def get_charges(
    commands: Told, principal: NamedDependency[Principal], sla_id: SlaId, period: PeriodName
) -> ChargesOfPeriod:
    """The newest charges that were handed in for a period."""
    return _shown(commands.charges.of(sla_id, period, principal))


HANDLERS = (record_charges, get_charges)


def _shown(recorded: RecordedCharges) -> ChargesOfPeriod:
    return ChargesOfPeriod(
        sla_id=recorded.sla_id,
        period=recorded.period,
        version=recorded.version,
        lines=[dict(line) for line in recorded.lines],
        receipt=written(recorded.receipt),
    )
