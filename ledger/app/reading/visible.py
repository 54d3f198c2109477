"""What a principal sees of the answers: rows of its agreements, without the members it may not see.

Every row that leaves here has ``withheld``, the names of its members that are None for that reason. Whoever answers
with rows gets them from here, so that no transport decides by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.app.access import BUNDLE_SCOPES, Principal, metric_scopes, redact, require
from ledger.app.chain.status import ChainProgress, ChainStatus
from ledger.app.paging import ANY_START, Page, Row, Starts
from ledger.app.reading.budgets import Budgets
from ledger.app.reading.explanation import visible_explanation
from ledger.app.reading.overview import Overview
from ledger.app.reading.queries import Inclusion, LoggedStatement, Queries
from ledger.domain.record.events import StoredEvent
from ledger.domain.terms.indicators import REQUESTS
from ledger.errors import NotFound

COUNTS = ("good", "valid", "undecided")
"""Members of an objective's result that need the scope of its indicator."""

_ALL_METRICS = metric_scopes(None)


@dataclass(frozen=True, slots=True)
class VisibleEvent:
    """An event of the log; ``shown``: payload and salt may be shown, too."""

    event: StoredEvent
    shown: bool


@dataclass(frozen=True, slots=True)
class VisibleEvents:
    """Events in log order, and how many leaves the log has."""

    events: tuple[VisibleEvent, ...]
    log_size: int


class VisibleQueries:
    """``Queries`` of the principal's tenant, as the principal sees them. Errors are those of ``Queries``.

    What the principal does not see is not there: ``NotFound``, in the same words as for what does not exist.
    """

    def __init__(self, queries: Queries, principal: Principal) -> None:
        self._queries = queries
        self._principal = principal

    def agreements(self, *, after: str | None, limit: int) -> Page:
        page = self._queries.agreements(after=after, limit=limit, among=self._principal.sla_ids)
        return Page([visible_agreement(row, self._principal) for row in page.rows], page.last_id)

    def agreement(self, sla_id: str) -> Row:
        self._require_agreement(sla_id)
        return visible_agreement(self._queries.agreement(sla_id), self._principal)

    def lifecycle(self, sla_id: str) -> Row:
        self._require_agreement(sla_id)
        return self._queries.lifecycle(sla_id)

    def pending(self, sla_id: str) -> tuple[Row, ...]:
        self._require_agreement(sla_id)
        return self._queries.pending(sla_id)

    def statements(
        self, sla_id: str | None, *, after: str | None, limit: int, newest: bool = True, starts: Starts = ANY_START
    ) -> Page:
        self._require_agreement(sla_id)
        among = self._principal.sla_ids
        page = self._queries.statements(sla_id, after=after, limit=limit, among=among, newest=newest, starts=starts)
        return Page(self._statements(page.rows), page.last_id)

    def statement(self, statement_id: str) -> LoggedStatement:
        found = self._statement(statement_id)
        (row,) = self._statements([found.row])
        return LoggedStatement(row, found.event)

    def explanation(self, statement_id: str, *, all_windows: bool) -> dict[str, Any]:
        """See ``ledger.app.reading.explanation``."""
        self._statement(statement_id)
        found = self._queries.explanation(statement_id, all_windows=all_windows)
        return visible_explanation(found, self._principal)

    def credits(
        self, sla_id: str | None, *, after: str | None, limit: int, newest: bool = True, starts: Starts = ANY_START
    ) -> Page:
        self._require_agreement(sla_id)
        among = self._principal.sla_ids
        page = self._queries.credits(sla_id, after=after, limit=limit, among=among, newest=newest, starts=starts)
        return Page([visible("credit", row, self._principal) for row in page.rows], page.last_id)

    def bundle(self, statement_id: str) -> bytes:
        """Raises ``AccessDenied`` where something in it may not be seen: nothing can be left out of a bundle."""
        require(self._principal, *BUNDLE_SCOPES)
        self.require_statement(statement_id)
        return self._queries.bundle(statement_id)

    def inclusion(self, statement_id: str, size: int | None) -> Inclusion:
        self.require_statement(statement_id)
        return self._queries.inclusion(statement_id, size)

    def events(self, since: int, *, limit: int) -> VisibleEvents:
        """Every event's header, which the log publishes anyway; payloads and salts of the own tenant alone."""
        found = self._queries.events(since, limit=limit)
        own = self._principal.tenant if self._principal.sla_ids is None else None
        events = tuple(VisibleEvent(event, shown=event.tenant == own) for event in found.events)
        return VisibleEvents(events, found.log_size)

    def checkpoint(self, size: int | None) -> str:
        return self._queries.checkpoint(size)

    def chain(self) -> ChainStatus:
        return self._queries.chain()

    def chain_progress(self) -> ChainProgress:
        return self._queries.chain_progress()

    def events_of_others(self, *, limit: int) -> Sequence[StoredEvent]:
        return self._queries.events_of_others(limit=limit)

    def not_replayed(self) -> Mapping[str, str]:
        return self._queries.not_replayed()

    def budgets(self, sla_id: str, *, period: str | None, over: Sequence[str]) -> Budgets:
        return self._queries.budgets(self._principal, sla_id, period=period, over=over)

    def overview(self, sla_id: str, *, period: str | None = None, after: str | None = None) -> Overview:
        return self._queries.overview(self._principal, sla_id, period=period, after=after)

    def require_statement(self, statement_id: str) -> None:
        """Raises ``NotFound`` for a statement that is not there or not seen."""
        if self._principal.sla_ids is not None:
            self._statement(statement_id)

    def _require_agreement(self, sla_id: str | None) -> None:
        if sla_id is not None and not self._principal.may_see(sla_id):
            raise NotFound(f"there is no agreement {sla_id}", agreement=sla_id)

    def _statement(self, statement_id: str) -> LoggedStatement:
        found = self._queries.statement(statement_id)
        if not self._principal.may_see(found.row["sla_id"]):
            raise NotFound(f"there is no statement {statement_id}", statement=statement_id)
        return found

    def _statements(self, rows: Sequence[Row]) -> list[Row]:
        """Rows without what is withheld. Terms are looked up only where counts may have to be."""
        if self._principal.scopes >= _ALL_METRICS:
            return [visible_statement(row, self._principal, {}) for row in rows]
        agreements = {sla_id: self._queries.agreement(sla_id) for sla_id in {row["sla_id"] for row in rows}}
        return [visible_statement(row, self._principal, _indicators(row, agreements[row["sla_id"]])) for row in rows]


def visible(resource: str, row: Row, principal: Principal) -> dict[str, Any]:
    """A row of a resource of the policy, without what is withheld."""
    seen, withheld = redact(resource, row, principal)
    return {**seen, "withheld": withheld}


def visible_agreement(row: Row, principal: Principal) -> dict[str, Any]:
    """An agreement. Of a document that is withheld there is what names the parties, the service and the time."""
    seen = visible("agreement", row, principal)
    if "document" in seen["withheld"]:
        seen["document"] = public_terms(row["document"])
    return seen


def visible_statement(row: Row, principal: Principal, indicators: Mapping[str, str]) -> dict[str, Any]:
    """A statement with its objectives' results. ``indicators`` of the terms it was made under, by objective; the
    counts of an objective that is not among them need the scopes of all indicators."""
    seen = visible("statement", row, principal)
    seen["objectives"] = [
        visible_result(result, principal, indicators.get(result["id"])) for result in row["objectives"]
    ]
    return seen


def visible_result(result: Row, principal: Principal, indicator: str | None) -> dict[str, Any]:
    """The result of one objective: its counts by the scope of its indicator, its target by that of thresholds."""
    seen = {"unit": REQUESTS, "undecided": 0, **visible("objective_result", result, principal)}
    if not principal.holds(*metric_scopes(indicator)):
        seen.update(dict.fromkeys(COUNTS))
        seen["withheld"] = [*seen["withheld"], *COUNTS]
    return seen


def public_terms(document: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an agreement that hold no threshold, no target, and nothing about money."""
    return {
        "service": {"name": document["service"]["name"]},
        "parties": {role: {"name": party["name"]} for role, party in document["parties"].items()},
        "effective": dict(document["effective"]),
        "timezone": document["timezone"],
        "period": document["period"],
        "window": document["window"],
        "objectives": [{"id": each["id"], "indicator": each["indicator"]} for each in document["objectives"]],
    }


def _indicators(statement: Row, agreement: Row) -> Mapping[str, str]:
    """Of the statement's own terms; none where the agreement has been amended since."""
    if agreement["doc_sha256"] != statement["doc_sha256"]:
        return {}
    return {each["id"]: each["indicator"] for each in agreement["document"]["objectives"]}
