"""Windows as they were judged, and the violations in them: what REST says of both, by the same policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import strawberry
from strawberry.scalars import JSON

from api.graphql.access import metric, resolves, resource, scoped
from api.graphql.amounts import Money, money_of
from api.graphql.context import RequestContext
from api.graphql.scalars import Count, Decimal, InstantNs, decimal
from api.graphql.types import Agreement, Info, agreement_of
from api.rest.values import attainment_percent
from ledger.app.paging import Row


@strawberry.type(description="One objective in one window.")
class WindowCell:
    id: strawberry.ID
    indicator: str
    good: Count | None = metric(description="How many of the valid ones are within the objective")
    bad: Count | None = metric()
    undecided: Count | None = metric(description="Valid, and good or bad: the data cannot say")
    valid: Count | None = metric(description="How many count")
    attainment_percent: Decimal | None = metric(
        description="good / valid, four decimals, rounded down; null where valid is 0"
    )


@strawberry.type(description="One window of a period, by its newest judgement.")
class Window:
    index: int = strawberry.field(description="Its place in the period, from 0")
    start: InstantNs
    end: InstantNs
    state: str = strawberry.field(description="observed, excluded or no_data")
    objectives: list[WindowCell]
    excluded_requests: JSON = strawberry.field(description="Left out, by the clause that says so")
    exclusions: JSON = strawberry.field(description="Left out, by the exclusion they start in")
    seq: Count


@strawberry.type(description="The window of a violation with the smallest share of good requests.")
class WorstWindow:
    window: int
    good: Count
    valid: Count


@strawberry.type(description="Something recorded about the same service at the same time.")
class Signal:
    kind: str
    event_id: strawberry.ID = strawberry.field(description="The event that recorded it")
    at: InstantNs
    summary: str


@strawberry.type(description="One of the worst requests of a violation: one that failed, or was too slow.")
class BadRequest:
    request_id: strawberry.ID
    trace_id: str | None
    at: InstantNs
    batch: str = strawberry.field(description="SHA-256 of the batch that holds its row")
    line: int = strawberry.field(description="Which line of it, from 1")
    error_code: str | None
    latency_ns: Decimal | None = strawberry.field(description="Where it was too slow")
    conflict: bool = strawberry.field(description="Its id was reported with two bodies, so it counts as failed")


@strawberry.type(description="A maximal run of windows that break the promise of one objective.")
class Violation:
    id: strawberry.ID
    sla_id: strawberry.ID
    service: str
    period: str
    objective: str = strawberry.field(description="Id of the objective")
    indicator: str
    state: str = strawberry.field(description="open, closed, or withdrawn: judged anew, it does not hold")
    start: InstantNs
    end: InstantNs = strawberry.field(description="The first instant after its last window so far")
    ended_by: str | None = strawberry.field(description="met, idle, excluded, no_data or period_end; null if open")
    reason: str | None = strawberry.field(description="Why it was withdrawn")
    revision: int = strawberry.field(description="How often it was opened")
    first_window: int
    windows: int
    good: Count | None = metric(description="Valid requests within the objective")
    valid: Count | None = metric(description="Requests that count")
    bad: Count | None = metric(description="Requests that failed it")
    worst: WorstWindow | None = metric(description="The window with the smallest share of good requests")
    target_percent: Decimal | None = scoped(
        "violation", "target", description="Share of valid requests that must be good"
    )
    clause: str | None = scoped(
        "violation", "clause", description="The clause it breaks: the contract's, or the member of the agreement"
    )
    unit: str | None = strawberry.field(description="What its counts are")
    inputs: list[str] = strawberry.field(description="SHA-256 of the batches of facts that reach into it")
    signals: list[Signal] = strawberry.field(description="At hand when the last event of it was recorded")
    requests: list[BadRequest] | None = metric(description="The worst ones, at most 20, the worst first")
    credit: Money | None = scoped("violation", "credit", description="Sum of its credit lines; null while it has none")
    seq: Count

    @resolves(resource("agreements", description="The agreement in its newest terms"))
    def agreement(self, info: Info) -> Agreement | None:
        return agreement_of(info.context.agreement(self.sla_id), info.context)


def window_of(row: Row, context: RequestContext) -> Window:
    return Window(
        index=row["index"],
        start=InstantNs(row["start_ns"]),
        end=InstantNs(row["end_ns"]),
        state=row["state"],
        objectives=[_cell(cell, context) for cell in row["objectives"]],
        excluded_requests=cast(JSON, dict(row["excluded_requests"])),
        exclusions=cast(JSON, dict(row["exclusions"])),
        seq=row["seq"],
    )


def _cell(cell: Row, context: RequestContext) -> WindowCell:
    # A field whose value is an error reads null and reports it.
    refusal = cast(Any, context.withheld_indicator(cell["indicator"], f"window.{cell['id']}"))
    counts = {name: refusal or cell[name] for name in ("good", "bad", "undecided")}
    valid = refusal or cell["good"] + cell["bad"] + cell["undecided"]
    return WindowCell(
        id=strawberry.ID(cell["id"]),
        indicator=cell["indicator"],
        **counts,
        valid=valid,
        attainment_percent=refusal or decimal(attainment_percent(cell["good"], valid)),
    )


def violation_of(row: Row, context: RequestContext) -> Violation:
    seen = context.seen("violation", row)
    # A field whose value is an error reads null and reports it.
    refusal = cast(Any, context.withheld_indicator(row["indicator"], "violation"))
    return Violation(
        id=strawberry.ID(row["id"]),
        sla_id=strawberry.ID(row["sla_id"]),
        service=row["service"],
        period=row["period"],
        objective=row["objective"],
        indicator=row["indicator"],
        state=row["state"],
        start=InstantNs(row["start_ns"]),
        end=InstantNs(row["end_ns"]),
        ended_by=row["ended_by"],
        reason=row["reason"],
        revision=row["revision"],
        first_window=row["first_window"],
        windows=row["windows"],
        good=refusal or row["good"],
        valid=refusal or row["valid"],
        bad=refusal or row["bad"],
        worst=refusal or (row["worst"] and WorstWindow(**row["worst"])),
        target_percent=seen["target"],
        clause=seen["clause"],
        unit=row["unit"],
        inputs=list(row["evidence"]["inputs"]),
        signals=[
            Signal(
                kind=each["kind"],
                event_id=strawberry.ID(each["event_id"]),
                at=InstantNs(int(each["at_ns"])),
                summary=each["summary"],
            )
            for each in row["evidence"]["signals"]
        ],
        requests=refusal or [_bad_request(each) for each in row["evidence"].get("requests", ())],
        credit=None if seen["credit"] is None else money_of(seen["credit"]),
        seq=row["seq"],
    )


def _bad_request(row: Mapping[str, Any]) -> BadRequest:
    return BadRequest(
        request_id=strawberry.ID(row["request_id"]),
        trace_id=row["trace_id"],
        at=InstantNs(int(row["at_ns"])),
        batch=row["batch"],
        line=row["line"],
        error_code=row["error_code"],
        latency_ns=decimal(row["latency_ns"]),
        conflict=row["conflict"],
    )
