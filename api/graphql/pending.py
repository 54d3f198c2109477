"""What a settlement waits for: the end of its period and the word of its source, usable rows, charges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import strawberry

from api.graphql.access import metric
from api.graphql.context import RequestContext
from api.graphql.scalars import Count, Decimal, InstantNs, instant_or_none
from ledger.app.paging import Row
from ledger.app.settlement.charges import RecordedCharges
from ledger.domain.time.instant import parse_instant_ns


@strawberry.type(description="A period that began and is not closed.")
class PendingPeriod:
    period: str
    start: InstantNs
    end: InstantNs
    terms_version: int
    watermark: InstantNs | None = strawberry.field(
        description="Up to where the source declared its facts complete; null where it never did"
    )
    waits_for: str = strawberry.field(
        description="end, grace, watermark (its source), schedule (it is due), or request (it ended before its "
        "agreement was registered)"
    )
    until: InstantNs | None = strawberry.field(
        description="When that comes at the latest; null where it is up to the schedule or a person"
    )


@strawberry.type(
    description="A row that cannot be and so blocks its period (open), or did until a usable row stood in its place "
    "(resolved)."
)
class QualityFault:
    id: strawberry.ID = strawberry.field(description="Names it within its agreement")
    state: str = strawberry.field(description="open or resolved")
    source: str
    period: str
    digest: str = strawberry.field(description="SHA-256 of the batch that the row stands in")
    reason: str
    sample_id: strawberry.ID
    line: int
    indicator: str
    field: str = strawberry.field(description="The member that is wrong")
    value: str | None = metric(description="What the row says")
    message: str | None = metric(description="What is wrong with that")
    at: InstantNs


@strawberry.type(description="The rate that a line in another currency is converted by, exactly.")
class ExchangeRate:
    rate: Decimal
    source: str
    date: str


@strawberry.type(description="When the resource that a line is for was there.")
class Life:
    start: InstantNs
    end: InstantNs


@strawberry.type(description="A line of what was charged, as finance handed it in.")
class ChargeLine:
    service: str
    kind: str = strawberry.field(description="recurring, one_time, tax or credit; only recurring ones are a base")
    amount: Decimal = strawberry.field(description="In the line's own currency")
    currency: str
    region: str | None
    model: str | None
    rate: ExchangeRate | None = strawberry.field(description="Null where it is in the currency of credits")
    life: Life | None = strawberry.field(description="Null: all of the period")


@strawberry.type(description="The charges of a period as they stand.")
class Charges:
    sla_id: strawberry.ID
    period: str
    version: int = strawberry.field(description="Counted from 1; a later one replaces those before")
    lines: list[ChargeLine]
    event_id: strawberry.ID = strawberry.field(description="The event that recorded them")
    seq: Count | None = strawberry.field(description="Its place in the log; null until it has one")


def pending_of(row: Row) -> PendingPeriod:
    return PendingPeriod(
        **{name: row[name] for name in ("period", "terms_version", "waits_for")},
        start=InstantNs(row["start_ns"]),
        end=InstantNs(row["end_ns"]),
        watermark=instant_or_none(row["watermark_ns"]),
        until=instant_or_none(row["until_ns"]),
    )


def fault_of(row: Row, context: RequestContext) -> QualityFault:
    # A field whose value is an error reads null and reports it.
    refusal = cast(Any, context.withheld_indicator(row["indicator"], "quality_fault"))
    same = ("state", "source", "period", "digest", "reason", "line", "indicator", "field")
    return QualityFault(
        id=strawberry.ID(row["id"]),
        sample_id=strawberry.ID(row["sample_id"]),
        **{name: row[name] for name in same},
        value=refusal or row["value"],
        message=refusal or row["message"],
        at=InstantNs(row["at_ns"]),
    )


def charges_of(found: RecordedCharges) -> Charges:
    return Charges(
        sla_id=strawberry.ID(found.sla_id),
        period=found.period,
        version=found.version,
        lines=[_line(line) for line in found.lines],
        event_id=strawberry.ID(found.receipt.event_id),
        seq=None if found.receipt.seq is None else Count(found.receipt.seq),
    )


def _line(line: Mapping[str, Any]) -> ChargeLine:
    rate, life = line.get("rate"), line.get("life")
    return ChargeLine(
        **{name: line[name] for name in ("service", "kind", "amount", "currency")},
        region=line.get("region"),
        model=line.get("model"),
        rate=rate and ExchangeRate(**rate),
        life=life
        and Life(start=InstantNs(parse_instant_ns(life["from"])), end=InstantNs(parse_instant_ns(life["until"]))),
    )
