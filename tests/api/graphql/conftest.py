"""GraphQL over a real ledger on SQLite, asked by principals of every role."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from litestar import Litestar
from litestar.di import Provide
from litestar.testing import TestClient

from api.graphql.context import Sources
from api.graphql.limits import Limits
from api.graphql.route import create_graphql
from api.problems import handle_error
from ledger.app.access import ROLE_SCOPES, Principal, Role, Scope
from ledger.app.paging import Page, Row
from ledger.app.reading.queries import Queries
from ledger.errors import NotFound

NOW_NS = 1_703_980_800 * 10**9

ADMIN = Principal("key admin", "default", ROLE_SCOPES[Role.CUSTOMER_ADMIN])
VIEWER = Principal("key viewer", "default", ROLE_SCOPES[Role.OPERATIONS_VIEWER])
FINANCE = Principal("key finance", "default", ROLE_SCOPES[Role.FINANCE])
OPERATOR = Principal("key operator", "default", ROLE_SCOPES[Role.OPERATOR])
NOTHING = Principal("key nothing", "default", frozenset())


def holding(*scopes: Scope, **changes: Any) -> Principal:
    """A principal of the tenant ``default`` with some scopes."""
    return replace(Principal("key some", "default", frozenset(scopes)), **changes)


@dataclass
class Asker:
    """A client of a server that takes whoever is named for who asks."""

    client: TestClient[Any]
    who: list[Principal | None] = field(default_factory=lambda: [OPERATOR])

    def post(self, body: Any, *, by: Principal | None = OPERATOR, **options: Any) -> Any:
        """The response to a body of bytes as they are, or of anything else as JSON."""
        self.who[0] = by
        if isinstance(body, bytes):
            return self.client.post("/graphql", content=body, **options)
        return self.client.post("/graphql", json=body, **options)

    def __call__(self, query: str, *, by: Principal = OPERATOR, **members: Any) -> Any:
        """The answer to a query; anything but 200 fails the test."""
        response = self.post({"query": query, **members}, by=by)
        assert response.status_code == 200, response.text
        return response.json()


@dataclass
class Violations:
    """``ViolationLists`` over rows in memory: what the access policy withholds is taken by the types alone here."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def violations(self, _principal: Principal, *, after: str | None, limit: int, **equal: str | None) -> Page:
        found = [row for row in self.rows if all(value in (None, row[name]) for name, value in equal.items())]
        start = 0 if after is None else 1 + [row["id"] for row in found].index(after)
        page = found[start : start + limit]
        return Page(page, page[-1]["id"] if start + limit < len(found) else None)

    def violation(self, _principal: Principal, violation_id: str) -> Row:
        for row in self.rows:
            if row["id"] == violation_id:
                return row
        raise NotFound(f"there is no violation {violation_id}", violation=violation_id)


VIOLATIONS = Violations()


@dataclass
class World:
    """A ledger with one agreement of three objectives and two settled days, one of them proved and anchored."""

    ledger: Any
    sla_id: str
    statements: list[str]


@pytest.fixture
def world(ledger: Any, make_objective: Any) -> World:
    sla_id = ledger.agreement(1)
    objectives = [
        make_objective("availability", 999_949, 1_000_000, "99.95", "breached"),
        make_objective("ttft", 960, 1000, "95", "met"),
        make_objective("response", 0, 0, "99", "no_data"),
    ]
    restated = {
        "objective_deltas": [
            {
                "id": "availability",
                "good": {"old": 999_950, "new": 999_949, "difference": -1},
                "valid": {"old": None, "new": 1_000_000, "difference": 1_000_000},
                "state": {"old": "met", "new": "breached"},
            }
        ],
        "credit_delta": {"currency": "USD", "old": None, "new": "80000", "difference": "80000"},
    }
    statements = [ledger.statement(sla_id, day, objectives=objectives, **restated) for day in range(2)]
    ledger.attest(statements[0], sla_id)
    ledger.anchor(statements[0], sla_id)
    return World(ledger, sla_id, statements)


def asker_over(ledger: Any, **options: Any) -> Iterator[Asker]:
    """A server that answers from ``ledger``, each tenant from its own part."""

    def queries_for(principal: Principal) -> Queries:
        database = ledger.database
        if principal.tenant != "default":
            database = database.of_tenant(principal.tenant)
        return Queries(database, bundles=ledger, chain_status=lambda: ledger.chain, now_ns=lambda: NOW_NS)

    who: list[Principal | None] = [OPERATOR]
    sources = Sources(queries_for, lambda _: VIOLATIONS)
    app = Litestar(
        [create_graphql(lambda _request: sources, now_ns=lambda: NOW_NS, **options)],
        dependencies={"principal": Provide(lambda: who[0], sync_to_thread=False)},
        exception_handlers={Exception: handle_error},
        openapi_config=None,
        logging_config=None,
    )
    with TestClient(app) as client:
        yield Asker(client, who)


@pytest.fixture
def ask(ledger: Any) -> Iterator[Asker]:
    yield from asker_over(ledger)


@pytest.fixture
def ask_strictly(ledger: Any) -> Iterator[Asker]:
    yield from asker_over(ledger, strict=True)


@pytest.fixture
def limits() -> Limits:
    return Limits()


def codes(answer: Any) -> list[str]:
    return [error["extensions"]["code"] for error in answer.get("errors", [])]


def fill(query: str, *values: object) -> str:
    """``query`` with each ``%s`` replaced, in order: braces mean something in GraphQL."""
    for value in values:
        query = query.replace("%s", str(value), 1)
    return query
