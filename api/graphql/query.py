"""The root: lists, single resources and the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

import strawberry

from api.graphql.access import resolves, resource
from api.graphql.budgets import Budget, budgets_of
from api.graphql.context import RequestContext
from api.graphql.pending import (
    Charges,
    PendingPeriod,
    QualityFault,
    charges_of,
    fault_of,
    pending_of,
)
from api.graphql.report import SlaReport, TimeWindow, sla_report
from api.graphql.scalars import InstantNs
from api.graphql.settlement import (
    Claim,
    CreditLine,
    Exclusion,
    Explanation,
    claims_of,
    credit_line_of,
    exclusion_of,
    explanation_of,
)
from api.graphql.types import (
    Agreement,
    Connection,
    Credit,
    Edge,
    Info,
    PageInfo,
    Statement,
    agreement_of,
    credit_of,
    statement_of,
)
from api.graphql.violations import Violation, Window, violation_of, window_of
from api.parameters import MAX_PAGE, decode_cursor, encode_cursor, listing_of, starts_within
from ledger.app.access import Principal
from ledger.app.paging import Page, Row
from ledger.errors import NotFound, QueryInvalid

DEFAULT_PAGE = 50

Shape = TypeVar("Shape")
First = Annotated[int, strawberry.argument(description=f"Items on the page, 1 to {MAX_PAGE}")]
After = Annotated[
    str | None, strawberry.argument(description="`cursor` or `endCursor` of the page before; absent for the first")
]
OfSla = Annotated[strawberry.ID | None, strawberry.argument(description="Only of this agreement")]
AllVersions = Annotated[bool, strawberry.argument(description="Also the versions that another one replaced")]
OfState = Annotated[str | None, strawberry.argument(description="Only open, closed or withdrawn ones")]
StartsFrom = Annotated[
    InstantNs | None, strawberry.argument(name="from", description="Only of periods that start then or later")
]
StartsTo = Annotated[InstantNs | None, strawberry.argument(description="Only of periods that start before")]
OfFaultState = Annotated[str | None, strawberry.argument(description="Only open or resolved ones")]
Named = Annotated[str, strawberry.argument(description="First local date and length, such as 2023-12-19/P1D")]
OfObjective = Annotated[str | None, strawberry.argument(description="Only of the objective of this id")]
OfStatement = Annotated[strawberry.ID | None, strawberry.argument(description="Only of this statement")]
OfStatus = Annotated[str | None, strawberry.argument(description="Only draft, issued, applied or void ones")]
Listed = Annotated[
    str, strawberry.argument(description="Which windows are listed: lost (the telling ones, at most 50), or all")
]
OfPeriod = Annotated[
    str | None,
    strawberry.argument(description="Such as 2023-12-19/P1D; the running one if judged, else the newest settled"),
]
OverWindows = Annotated[
    str | None, strawberry.argument(description="Windows to tell the burn over, such as PT1H or PT1H,PT6H")
]


@strawberry.type
class Query:
    @resolves(resource("agreements", description="Agreements in their newest terms, by slaId"))
    def agreements(self, info: Info, first: First = DEFAULT_PAGE, after: After = None) -> Connection[Agreement] | None:
        context = info.context

        def fetch(last: str | None, limit: int) -> Page:
            return context.queries.agreements(after=last, limit=limit, among=context.principal.sla_ids)

        return _connection("agreements", "sla_id", first, after, fetch, agreement_of, context)

    @resolves(resource("agreements", description="One agreement"))
    def agreement(self, info: Info, sla_id: strawberry.ID) -> Agreement | None:
        return agreement_of(info.context.agreement(sla_id), info.context)

    @resolves(resource("statements", description="Statements by start of their period, the newest version of each"))
    def statements(
        self,
        info: Info,
        sla_id: OfSla = None,
        all_versions: AllVersions = False,
        from_: StartsFrom = None,
        to: StartsTo = None,
        first: First = DEFAULT_PAGE,
        after: After = None,
    ) -> Connection[Statement] | None:
        context, starts = info.context, starts_within(from_, to)
        listing = listing_of(f"statements/{sla_id or ''}/{'all' if all_versions else 'newest'}", starts)
        _require_visible(context.principal, sla_id)

        def fetch(last: str | None, limit: int) -> Page:
            among = context.principal.sla_ids
            return context.queries.statements(
                sla_id, after=last, limit=limit, among=among, newest=not all_versions, starts=starts
            )

        return _connection(listing, "id", first, after, fetch, statement_of, context)

    @resolves(resource("statements", description="One statement"))
    def statement(self, info: Info, id: strawberry.ID) -> Statement | None:  # noqa: A002
        row = info.context.queries.statement(id).row
        if not info.context.principal.may_see(row["sla_id"]):
            raise NotFound(f"there is no statement {id}", statement=id)
        return statement_of(row, info.context)

    @resolves(resource("credits", description="Credits of the newest statements, by start of their period"))
    def credits(
        self,
        info: Info,
        sla_id: OfSla = None,
        all_versions: AllVersions = False,
        from_: StartsFrom = None,
        to: StartsTo = None,
        first: First = DEFAULT_PAGE,
        after: After = None,
    ) -> Connection[Credit] | None:
        context, starts = info.context, starts_within(from_, to)
        listing = listing_of(f"credits/{sla_id or ''}/{'all' if all_versions else 'newest'}", starts)
        _require_visible(context.principal, sla_id)

        def fetch(last: str | None, limit: int) -> Page:
            among = context.principal.sla_ids
            return context.queries.credits(
                sla_id, after=last, limit=limit, among=among, newest=not all_versions, starts=starts
            )

        return _connection(listing, "statement_id", first, after, fetch, credit_of, context)

    @resolves(resource("windows", description="The judged windows of one period, by index"))
    def windows(
        self, info: Info, sla_id: strawberry.ID, period: Named, first: First = DEFAULT_PAGE, after: After = None
    ) -> Connection[Window] | None:
        context = info.context

        def fetch(last: str | None, limit: int) -> Page:
            return context.lists.windows(context.principal, sla_id, period, after=last, limit=limit)

        return _connection(f"windows/{sla_id}/{period}", "index", first, after, fetch, window_of, context)

    @resolves(resource("violations", description="Violations by their start"))
    def violations(
        self,
        info: Info,
        sla_id: OfSla = None,
        state: OfState = None,
        objective: OfObjective = None,
        first: First = DEFAULT_PAGE,
        after: After = None,
    ) -> Connection[Violation] | None:
        context, listing = info.context, f"violations/{sla_id or ''}/{state or ''}/{objective or ''}"

        def fetch(last: str | None, limit: int) -> Page:
            return context.lists.violations(
                context.principal, sla_id=sla_id, state=state, objective=objective, after=last, limit=limit
            )

        return _connection(listing, "id", first, after, fetch, violation_of, context)

    @resolves(resource("violations", description="One violation"))
    def violation(self, info: Info, id: strawberry.ID) -> Violation | None:  # noqa: A002
        return violation_of(info.context.lists.violation(info.context.principal, id), info.context)

    @resolves(resource("budgets", description="The error budgets of an agreement's period, objective by objective"))
    def budgets(
        self, info: Info, sla_id: strawberry.ID, period: OfPeriod = None, window: OverWindows = None
    ) -> list[Budget] | None:
        return budgets_of(info.context, sla_id, period, window)

    @resolves(resource("agreements", description="Periods that began and are not closed, and what each waits for"))
    def pending_periods(self, info: Info, sla_id: strawberry.ID) -> list[PendingPeriod] | None:
        return [pending_of(row) for row in info.context.seen_queries.pending(sla_id)]

    @resolves(resource("data_quality", description="Rows that cannot be and so block their period, as they came"))
    def data_quality(
        self,
        info: Info,
        sla_id: strawberry.ID,
        state: OfFaultState = None,
        first: First = DEFAULT_PAGE,
        after: After = None,
    ) -> Connection[QualityFault] | None:
        context = info.context

        def fetch(last: str | None, limit: int) -> Page:
            return context.quality(sla_id, state, after=last, limit=limit)

        return _connection(f"data-quality/{sla_id}/{state or ''}", "id", first, after, fetch, fault_of, context)

    @resolves(resource("credits", description="What was charged for a period, where credits are a share of that"))
    def charges(self, info: Info, sla_id: strawberry.ID, period: Named) -> Charges | None:
        return charges_of(info.context.charges(sla_id, period))

    @resolves(resource("exclusions", description="What is excluded from the counts of an agreement, by start"))
    def exclusions(
        self, info: Info, sla_id: strawberry.ID, first: First = DEFAULT_PAGE, after: After = None
    ) -> Connection[Exclusion] | None:
        context = info.context

        def fetch(last: str | None, limit: int) -> Page:
            return context.lists.exclusions(context.principal, sla_id, after=last, limit=limit)

        return _connection(f"exclusions/{sla_id}", "id", first, after, fetch, exclusion_of, context)

    @resolves(resource("statements", description="Every number of a statement down to windows and clauses"))
    def explanation(self, info: Info, statement_id: strawberry.ID, windows: Listed = "lost") -> Explanation | None:
        return explanation_of(info.context, statement_id, windows)

    @resolves(resource("credits", description="Credit lines and reversal entries, by the start of their period"))
    def credit_lines(
        self,
        info: Info,
        sla_id: OfSla = None,
        statement_id: OfStatement = None,
        status: OfStatus = None,
        from_: StartsFrom = None,
        to: StartsTo = None,
        first: First = DEFAULT_PAGE,
        after: After = None,
    ) -> Connection[CreditLine] | None:
        context, starts = info.context, starts_within(from_, to)

        def fetch(last: str | None, limit: int) -> Page:
            return context.lists.credit_lines(
                context.principal,
                sla_id=sla_id,
                statement_id=statement_id,
                status=status,
                starts=starts,
                after=last,
                limit=limit,
            )

        listing = listing_of(f"credit-lines/{sla_id or ''}/{statement_id or ''}/{status or ''}", starts)
        return _connection(listing, "id", first, after, fetch, credit_line_of, context)

    @resolves(resource("credits", description="What can be or was claimed of a statement, incident by incident"))
    def claims(self, info: Info, statement_id: strawberry.ID) -> list[Claim] | None:
        return claims_of(info.context, statement_id)

    @resolves(strawberry.field(description="What was measured in a time window. customerId is the tenant"))
    def sla_report(self, info: Info, customer_id: strawberry.ID, time_window: TimeWindow) -> SlaReport | None:
        return sla_report(customer_id, time_window, info.context)


def _connection(
    listing: str,
    id_name: str,
    first: int,
    after: str | None,
    fetch: Callable[[str | None, int], Page],
    shape: Callable[[Row, RequestContext], Shape],
    context: RequestContext,
) -> Connection[Shape]:
    """A page as a Relay connection. Its cursors are those of REST, and name the list they were made for."""
    if not 1 <= first <= MAX_PAGE:
        raise QueryInvalid(f"first is {first}; a page has 1 to {MAX_PAGE} items", parameter="first")
    page = fetch(decode_cursor(after, listing), first)
    edges = [
        Edge(cursor=encode_cursor(listing, str(row[id_name])) or "", node=shape(row, context)) for row in page.rows
    ]
    info = PageInfo(
        has_next_page=page.last_id is not None,
        has_previous_page=after is not None,
        start_cursor=edges[0].cursor if edges else None,
        end_cursor=edges[-1].cursor if edges else None,
    )
    return Connection(edges=edges, page_info=info)


def _require_visible(principal: Principal, sla_id: str | None) -> None:
    if sla_id is not None and not principal.may_see(sla_id):
        raise NotFound(f"there is no agreement {sla_id}", agreement=sla_id)
