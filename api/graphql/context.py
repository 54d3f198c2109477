"""What one request carries: who asks, where the answers come from, and what was loaded for it already."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeVar

from api.graphql.errors import forbidden, lacking
from ledger.app.access import FIELD_SCOPES, Principal, Scope, metric_scopes, redact
from ledger.app.billing.claims import Claimable, ClaimDesk
from ledger.app.facts.quality import QualityDesk
from ledger.app.paging import ANY_START, Page, Row, Starts
from ledger.app.reading.queries import Queries
from ledger.app.reading.sla_report import LatencyCache
from ledger.app.reading.visible import VisibleQueries
from ledger.app.settlement.charges import ChargeDesk, RecordedCharges
from ledger.errors import AccessDenied, NotFound, QueryInvalid

Desk = TypeVar("Desk")

_EVERY_METRIC = metric_scopes(None)


class ListsAsked(Protocol):
    """What is asked of ``ledger.app.reading.lists.Lists``; what the principal may not see is None in its rows.

    Lists raise ``NotFound`` for an agreement that is not there or not seen, and ``CursorInvalid``.
    """

    def violations(
        self,
        principal: Principal,
        *,
        sla_id: str | None,
        state: str | None,
        objective: str | None,
        after: str | None,
        limit: int,
    ) -> Page: ...

    def violation(self, principal: Principal, violation_id: str) -> Row:
        """Raises ``NotFound``."""
        ...

    def windows(self, principal: Principal, sla_id: str, period: str, *, after: str | None, limit: int) -> Page: ...

    def exclusions(self, principal: Principal, sla_id: str, *, after: str | None, limit: int) -> Page: ...

    def credit_lines(
        self,
        principal: Principal,
        *,
        sla_id: str | None,
        statement_id: str | None,
        status: str | None,
        starts: Starts = ANY_START,
        after: str | None,
        limit: int,
    ) -> Page: ...


@dataclass(frozen=True, slots=True)
class AskedDesks:
    """What else is asked of, as the principal's tenant has it; None where a deployment takes no such thing."""

    claims: ClaimDesk | None = None
    charges: ChargeDesk | None = None
    quality: QualityDesk | None = None


NO_DESKS = AskedDesks()


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the answers of one server come from. What ends in ``_for`` gives what the principal's tenant has."""

    queries_for: Callable[[Principal], Queries]
    lists_for: Callable[[Principal], ListsAsked]
    desks_for: Callable[[Principal], AskedDesks] = lambda _principal: NO_DESKS
    latency_cache: LatencyCache = field(default_factory=LatencyCache)


class RequestContext:
    """The context of one operation. Nothing in it outlives the request, and no other request sees it."""

    def __init__(
        self,
        principal: Principal,
        queries: Queries,
        lists: ListsAsked,
        *,
        now_ns: Callable[[], int],
        latency_cache: LatencyCache,
        desks: AskedDesks = NO_DESKS,
        operation_name: str | None = None,
        strict: bool = False,
    ) -> None:
        self.principal = principal
        self.queries = queries
        self.lists = lists
        self.operation_name = operation_name
        self.strict = strict
        self.denied: Mapping[int, AccessDenied] = {}
        self.now_ns = now_ns
        self.latency_cache = latency_cache
        self._desks = desks
        self._agreements: dict[str, Row] = {}
        self._sees_all: dict[str, bool] = {}

    def seen(self, resource: str, row: Row) -> Row:
        """The row with None for what the principal may not see; the row itself where that is nothing."""
        if resource not in self._sees_all:
            needed = frozenset[Scope]().union(*FIELD_SCOPES[resource].values())
            self._sees_all[resource] = self.principal.scopes >= needed
        return row if self._sees_all[resource] else redact(resource, row, self.principal)[0]

    def agreement(self, sla_id: str) -> Row:
        """The agreement in its newest terms, read once a request. Raises ``NotFound``, also for one of others."""
        if not self.principal.may_see(sla_id):
            raise NotFound(f"there is no agreement {sla_id}", agreement=sla_id)
        if sla_id not in self._agreements:
            self._agreements[sla_id] = self.queries.agreement(sla_id)
        return self._agreements[sla_id]

    @cached_property
    def seen_queries(self) -> VisibleQueries:
        """The same questions with answers from which what the principal may not see is taken already."""
        return VisibleQueries(self.queries, self.principal)

    def claims(self, statement_id: str) -> Sequence[Claimable]:
        """What can be or was claimed of a statement. Raises ``NotFound``, and ``QueryInvalid`` where none are taken."""
        return _taken(self._desks.claims, "claims").of(statement_id, self.principal)

    def charges(self, sla_id: str, period: str) -> RecordedCharges:
        """The charges of a period. Raises ``NotFound``, and ``QueryInvalid`` where none are taken."""
        return _taken(self._desks.charges, "charges").of(sla_id, period, self.principal)

    def quality(self, sla_id: str, state: str | None, *, after: str | None, limit: int) -> Page:
        """Rows that block settlement. Raises ``NotFound``, and ``QueryInvalid`` for a state that there is not."""
        if state not in (None, "open", "resolved"):
            raise QueryInvalid(f"state is {state[:20]!r}; it is open or resolved", parameter="state")
        desk = _taken(self._desks.quality, "data")
        return desk.page(sla_id, self.principal, state=state, after=after, limit=limit).page

    @cached_property
    def not_replayed(self) -> Mapping[str, str]:
        """See ``Queries.not_replayed``."""
        return self.queries.not_replayed()

    def withheld_metrics(self, statement: Row) -> Mapping[str, AccessDenied]:
        """Why the counts of some of a statement's objectives are not shown, by the objective's id.

        What an objective measures is said by the terms that the statement was made under; where those are not at hand,
        every scope of metrics is needed.
        """
        if not lacking(self.principal, _EVERY_METRIC):
            return {}
        indicators = self._indicators(statement)
        withheld = {}
        for name in (result["id"] for result in statement["objectives"]):
            denied = self.withheld_indicator(indicators.get(name, ""), f"objective_result.{name}")
            if denied is not None:
                withheld[name] = denied
        return withheld

    def withheld_indicator(self, indicator: str, what: str) -> AccessDenied | None:
        """Why counts of an indicator are not shown; None where they are. One that is not known needs every scope."""
        missing = lacking(self.principal, metric_scopes(indicator))
        return forbidden(self.principal, what, missing) if missing else None

    def _indicators(self, statement: Row) -> Mapping[str, str]:
        try:
            agreement = self.agreement(statement["sla_id"])
        except NotFound:
            return {}
        if agreement["doc_sha256"] != statement["doc_sha256"]:
            return {}
        return {found["id"]: found["indicator"] for found in agreement["document"]["objectives"]}


def _taken(desk: Desk | None, what: str) -> Desk:
    if desk is None:
        raise QueryInvalid(f"this deployment takes no {what}", parameter=what)
    return desk
