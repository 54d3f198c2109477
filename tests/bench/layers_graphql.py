"""``graphql_access_ratio``: a page of 100 statements with six fields, with access checks and without any.

Both execute the same types and rows in this process, with the parsed and validated document at hand, so that nothing
but the checks differs: the gate, the permissions of scoped fields and the redaction of rows.
"""

from __future__ import annotations

import copy
import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import msgspec
import strawberry
from strawberry.extensions import ParserCache, ValidationCache
from strawberry.schema.config import StrawberryConfig

from api.graphql.context import RequestContext
from api.graphql.query import Query
from api.graphql.route import GraphQLRequest, run
from api.graphql.scalars import SCALARS
from api.graphql.schema import Schemas
from ledger.app.access import ROLE_SCOPES, Principal, Role
from ledger.app.paging import ANY_START, Page, Starts
from ledger.app.reading.queries import Queries
from ledger.app.reading.sla_report import LatencyCache

STATEMENTS = 100
ROUNDS = 60
QUERY = "{ statements(first: 100) { edges { node { id period state start seq credit { amount } } } } }"
_PRINCIPAL = Principal("key bench", "default", ROLE_SCOPES[Role.CUSTOMER_ADMIN])


class _Prepared(Queries):
    """A page that costs nothing to read."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def statements(
        self,
        sla_id: str | None,
        *,
        after: str | None,
        limit: int,
        among: frozenset[str] | None = None,
        newest: bool = True,
        starts: Starts = ANY_START,
    ) -> Page:
        return Page(self._rows[:limit], None)


class _Open(strawberry.Schema):
    """The same types without directives and permissions."""

    def get_fields(self, type_definition: Any) -> list[Any]:
        fields = [copy.copy(found) for found in type_definition.fields]
        for found in fields:
            found.extensions, found.directives = [], []
        return fields


def graphql_access_ratio() -> dict[str, float]:
    """Time of the page with checks over the time without, rounds taking turns; the ratio of the medians."""
    rows = [_row(number) for number in range(STATEMENTS)]
    guarded = Schemas().of(_PRINCIPAL.scopes)
    bare = _Open(Query, extensions=[ParserCache, ValidationCache], config=StrawberryConfig(scalar_map=SCALARS))
    asked = GraphQLRequest(QUERY, None, {}, strict=False)

    def with_checks() -> bytes:
        return msgspec.json.encode(run(guarded, asked, _context(rows)))

    def without() -> bytes:
        return msgspec.json.encode({"data": bare.execute_sync(QUERY, context_value=_context(rows)).data})

    with _no_redaction():
        expected = without()
    if with_checks() != expected or len(msgspec.json.decode(expected)["data"]["statements"]["edges"]) != STATEMENTS:
        raise SystemExit("the two answers differ; the figure would mean nothing")
    ours, theirs = [], []
    gc.collect()
    for _ in range(ROUNDS):
        ours.append(_seconds(with_checks))
        with _no_redaction():
            theirs.append(_seconds(without))
    for who, times in (("with checks", ours), ("without", theirs)):
        print(f"  graphql page {who}: {statistics.median(times) * 1000:.2f} ms", file=sys.stderr)
    return {"graphql_access_ratio": statistics.median(ours) / statistics.median(theirs)}


@contextmanager
def _no_redaction() -> Iterator[None]:
    seen = RequestContext.seen
    RequestContext.seen = lambda _self, _resource, row: row  # type: ignore[method-assign]
    try:
        yield
    finally:
        RequestContext.seen = seen  # type: ignore[method-assign]


def _context(rows: list[dict[str, Any]]) -> RequestContext:
    return RequestContext(
        _PRINCIPAL, _Prepared(rows), cast(Any, None), now_ns=time.time_ns, latency_cache=LatencyCache()
    )


def _seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _row(number: int) -> dict[str, Any]:
    objective = {"id": "availability", "good": 999, "valid": 1000, "target": "99.95", "state": "breached"}
    return {
        "id": f"1f0c3a9b7e21.2023-12-19.v{number}",
        "sla_id": "0x" + "ab" * 32,
        "period": "2023-12-19/P1D",
        "start_ns": 1_702_944_000 * 10**9,
        "end_ns": 1_703_030_400 * 10**9,
        "terms_version": 1,
        "statement_version": 1,
        "standing": "draft",
        "restated_by": None,
        "accepts_until_ns": 1_705_622_400 * 10**9,
        "restates": None,
        "reason": None,
        "objective_deltas": None,
        "credit_delta": None,
        "doc_sha256": "ab" * 32,
        "state": "settled",
        "windows": 24,
        "observed": 24,
        "excluded": 0,
        "idle": 0,
        "objectives": [objective, {**objective, "id": "ttft"}, {**objective, "id": "response"}],
        "credit": {"currency": "USD", "minor_units": 80_000 + number},
        "trace": {"steps": []},
        "seal_key": "1234567890" * 7,
        "telemetry_root": "9876543210" * 7,
        "attestable": True,
        "unattested_reasons": [],
        "attestation": None,
        "anchor": None,
        "roots": [],
        "seq": number,
    }
