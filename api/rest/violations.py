"""Windows as they were judged, and the violations in them."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from api.parameters import (
    AgreementId,
    CursorText,
    Limit,
    ObjectiveFilter,
    PeriodName,
    SlaFilter,
    ViolationId,
    decode_cursor,
    encode_cursor,
)
from api.rest.routes import reads
from api.rest.values import Digest, Instant, Money, Seq, Word, attainment_percent, instant, money
from ledger.app.access import Principal, Scope
from ledger.app.paging import Row
from ledger.app.reading.lists import Lists

State: TypeAlias = Annotated[
    Literal["open", "closed", "withdrawn"] | None, QueryParameter(name="state", description="Only of this state")
]


class WindowCell(msgspec.Struct, frozen=True, kw_only=True):
    """One objective in one window; counts are null where the principal lacks the scope for them."""

    id: str
    indicator: str
    good: int | None
    bad: int | None
    undecided: Annotated[int | None, msgspec.Meta(description="Valid, and good or bad: the data cannot say")]
    valid: int | None
    attainment_percent: Annotated[
        str | None, msgspec.Meta(description="good / valid, four decimals, rounded down; null where valid is 0 or null")
    ]


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """One window of a period, by its newest judgement."""

    index: Annotated[int, msgspec.Meta(ge=0, description="Its place in the period, from 0")]
    start: Instant
    end: Instant
    state: Annotated[str, msgspec.Meta(description="observed, excluded or no_data")]
    objectives: list[WindowCell]
    excluded_requests: Annotated[dict[str, int], msgspec.Meta(description="Left out, by the clause that says so")]
    exclusions: Annotated[dict[str, int], msgspec.Meta(description="Left out, by the exclusion they start in")]
    seq: Seq


class WindowPage(msgspec.Struct, frozen=True):
    """Windows by index; ``next_cursor`` is null on the last page."""

    items: list[Window]
    next_cursor: str | None


class WorstWindow(msgspec.Struct, frozen=True):
    """The window with the smallest share of good requests."""

    window: int
    good: int
    valid: int


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """Something recorded about the same service at the same time."""

    kind: str
    event_id: Annotated[str, msgspec.Meta(description="The event that recorded it")]
    at: Instant
    summary: str


class BadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One of the worst requests of a violation: one that failed, or was too slow."""

    request_id: str
    trace_id: Annotated[str | None, msgspec.Meta(description="Of the row's trace_id or traceparent, if it has one")]
    at: Instant
    batch: Annotated[Digest, msgspec.Meta(description="The batch that holds its row")]
    line: Annotated[int, msgspec.Meta(ge=1, description="Which line of it")]
    error_code: Annotated[str | None, msgspec.Meta(description="As reported; null where it succeeded")]
    latency_ns: Annotated[str | None, msgspec.Meta(description="Where it was too slow; nanoseconds, decimal")]
    conflict: Annotated[bool, msgspec.Meta(description="Its id was reported with two bodies, so it counts as failed")]


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A maximal run of windows that break the promise of one objective. What may not be seen is null."""

    id: str
    sla_id: Word
    service: str
    period: str
    objective: str
    indicator: str
    target_percent: Annotated[str | None, msgspec.Meta(description="Share of valid requests that must be good")]
    clause: Annotated[
        str | None, msgspec.Meta(description="The clause it breaks: the contract's, or the member of the agreement")
    ]
    unit: Annotated[
        str | None, msgspec.Meta(description="What its counts are; null where an early version recorded it")
    ]
    state: Annotated[str, msgspec.Meta(description="open, closed, or withdrawn: judged anew, it does not hold")]
    revision: Annotated[int, msgspec.Meta(ge=1, description="How often it was opened")]
    start: Instant
    end: Annotated[Instant, msgspec.Meta(description="The first instant after its last window so far")]
    ended_by: Annotated[
        str | None, msgspec.Meta(description="met, idle, excluded, no_data or period_end; null if open")
    ]
    reason: Annotated[str | None, msgspec.Meta(description="Why it was withdrawn")]
    first_window: int
    windows: int
    good: int | None
    valid: int | None
    bad: int | None
    worst: WorstWindow | None
    inputs: Annotated[list[Digest], msgspec.Meta(description="Batches of facts that reach into it")]
    signals: Annotated[list[Signal], msgspec.Meta(description="At hand when the last event of it was recorded")]
    requests: Annotated[
        list[BadRequest],
        msgspec.Meta(description="The worst ones, at most 20, the worst first; they need the scope of the indicator"),
    ]
    credit: Annotated[Money | None, msgspec.Meta(description="Sum of its credit lines; null while it has none")]
    withheld: Annotated[list[str], msgspec.Meta(description="Members that the principal may not see")]
    seq: Seq


class ViolationPage(msgspec.Struct, frozen=True):
    """Violations by start; ``next_cursor`` is null on the last page."""

    items: list[Violation]
    next_cursor: str | None


@reads("/v1/windows", summary="List windows", tag="violations", scopes=(Scope.READ_UPTIME,), problems=(400, 404, 503))
def list_windows(
    lists: NamedDependency[Lists],
    principal: NamedDependency[Principal],
    sla_id: AgreementId,
    period: PeriodName,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> WindowPage:
    """The judged windows of one period, by index; none where nothing was judged yet."""
    listing = f"windows/{sla_id}/{period}"
    page = lists.windows(principal, sla_id, period, after=decode_cursor(cursor, listing), limit=limit)
    return WindowPage([_window(row) for row in page.rows], encode_cursor(listing, page.last_id))


@reads(
    "/v1/violations",
    summary="List violations",
    tag="violations",
    scopes=(Scope.READ_VIOLATIONS,),
    problems=(400, 404, 503),
)
def list_violations(
    lists: NamedDependency[Lists],
    principal: NamedDependency[Principal],
    sla_id: SlaFilter = None,
    of_state: State = None,
    objective: ObjectiveFilter = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> ViolationPage:
    """Violations of one agreement or of all, by start."""
    listing = f"violations/{sla_id or ''}/{of_state or ''}/{objective or ''}"
    page = lists.violations(
        principal,
        sla_id=sla_id,
        state=of_state,
        objective=objective,
        after=decode_cursor(cursor, listing),
        limit=limit,
    )
    return ViolationPage([_violation(row) for row in page.rows], encode_cursor(listing, page.last_id))


@reads(
    "/v1/violations/{violation_id:str}",
    summary="One violation",
    tag="violations",
    scopes=(Scope.READ_VIOLATIONS,),
    problems=(400, 404, 503),
)
def get_violation(
    lists: NamedDependency[Lists], principal: NamedDependency[Principal], violation_id: ViolationId
) -> Violation:
    """A violation with its evidence."""
    return _violation(lists.violation(principal, violation_id))


def _window(row: Row) -> Window:
    return Window(
        index=row["index"],
        start=instant(row["start_ns"]),
        end=instant(row["end_ns"]),
        state=row["state"],
        objectives=[_cell(cell) for cell in row["objectives"]],
        excluded_requests=dict(row["excluded_requests"]),
        exclusions=dict(row["exclusions"]),
        seq=row["seq"],
    )


def _cell(cell: Row) -> WindowCell:
    good, bad, undecided = cell["good"], cell["bad"], cell["undecided"]
    valid = None if good is None else good + bad + undecided
    return WindowCell(
        id=cell["id"],
        indicator=cell["indicator"],
        good=good,
        bad=bad,
        undecided=undecided,
        valid=valid,
        attainment_percent=None if valid is None else attainment_percent(good, valid),
    )


def _violation(row: Row) -> Violation:
    credit, evidence, worst = row["credit"], row["evidence"], row["worst"]
    same = (
        "id",
        "sla_id",
        "service",
        "period",
        "objective",
        "indicator",
        "clause",
        "unit",
        "state",
        "revision",
        "ended_by",
        "reason",
    )
    counts = ("first_window", "windows", "good", "valid", "bad", "seq")
    return Violation(
        **{name: row[name] for name in (*same, *counts)},
        target_percent=row["target"],
        start=instant(row["start_ns"]),
        end=instant(row["end_ns"]),
        worst=None if worst is None else WorstWindow(**worst),
        inputs=list(evidence["inputs"]),
        signals=[
            Signal(
                kind=each["kind"], event_id=each["event_id"], at=instant(int(each["at_ns"])), summary=each["summary"]
            )
            for each in evidence["signals"]
        ],
        requests=[
            BadRequest(
                **{name: each[name] for name in ("request_id", "trace_id", "batch", "line", "error_code")},
                at=instant(int(each["at_ns"])),
                latency_ns=each["latency_ns"],
                conflict=each["conflict"],
            )
            for each in evidence.get("requests", ())
        ],
        credit=None if credit is None else money(credit["currency"], credit["minor_units"]),
        withheld=list(row["withheld"]),
    )
