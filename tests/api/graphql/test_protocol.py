"""One JSON request, one JSON answer; what is none gets a problem document."""

from __future__ import annotations

from typing import Any

import pytest
from litestar.testing import TestClient

from tests.api.graphql.conftest import Asker, World, codes, holding


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "JSON"),
        (b"{", "JSON"),
        (b"\xff", "JSON"),
        (b'{"query": "{ a }", "query": "{ b }"}', "query"),
        (b'{"query": "{ a }", "variables": {"x": NaN}}', "NaN"),
        (b"[" * 1000 + b"]" * 1000, "deeper"),
        (b'[{"query": "{ __typename }"}]', "batches"),
        (b'"query"', "GraphQL request"),
        (b"{}", "query"),
        (b'{"query": " "}', "query"),
        (b'{"query": 1}', "query"),
        (b'{"query": "{ a }", "qurey": 1}', "unknown member 'qurey'"),
        (b'{"query": "{ a }", "operationName": 1}', "operationName"),
        (b'{"query": "{ a }", "variables": []}', "variables"),
        (b'{"query": "{ a }", "variables": [1]}', "variables"),
        (b'{"query": "{ a }", "extensions": "x"}', "extensions"),
        (b'{"query": "{ a }", "extensions": {"strict": 1}}', "strict"),
    ],
)
def test_a_body_that_is_no_request_is_a_problem(ask: Asker, body: bytes, says: str) -> None:
    response = ask.post(body, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["code"] == "request_unusable"
    assert says in problem["detail"]


def test_bodies_are_bounded(ask: Asker) -> None:
    response = ask.post({"query": "{ __typename }" + " " * 70_000})
    assert response.status_code == 413
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_a_page_of_another_origin_cannot_ask_without_being_asked(ask: Asker, kind: str) -> None:
    response = ask.post(b'{"query": "{ __typename }"}', headers={"content-type": kind})
    assert response.status_code == 415
    assert response.headers["content-type"] == "application/problem+json"


def test_there_are_no_queries_in_an_address(ask: Asker) -> None:
    for method in ("GET", "PUT", "DELETE"):
        response = ask.client.request(method, "/graphql?query={__typename}", headers={"accept": "text/html"})
        assert response.status_code == 405


@pytest.mark.parametrize("who", [None, holding(tenant="")])
def test_nobody_gets_no_answer(ask: Asker, world: World, who: Any) -> None:
    response = ask.post({"query": "{ __schema { types { name } } }"}, by=who)
    assert response.status_code == 401
    assert response.json()["code"] == "unauthenticated"


def test_an_answer_is_kept_by_no_cache(ask: Asker) -> None:
    response = ask.post({"query": "{ __typename }"})
    assert response.json() == {"data": {"__typename": "Query"}}
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["vary"] == "Authorization"
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize("query", ["mutation { a }", "subscription { a }"])
def test_queries_alone_are_served(ask: Asker, query: str) -> None:
    answer = ask(query)
    assert codes(answer) == ["GRAPHQL_VALIDATION_FAILED"]
    assert "data" not in answer


def test_a_query_that_is_none_says_where(ask: Asker) -> None:
    (error,) = ask("{ agreements ")["errors"]
    assert error["extensions"]["code"] == "GRAPHQL_PARSE_FAILED"
    assert error["locations"] == [{"line": 1, "column": 14}]
    (error,) = ask("# nothing\n")["errors"]
    assert error["extensions"]["code"] == "GRAPHQL_PARSE_FAILED"


def test_variables_of_the_wrong_kind_are_named(ask: Asker) -> None:
    query = "query ($n: Int!) { agreements(first: $n) { edges { cursor } } }"
    for variables in ({}, {"n": "x"}, {"n": None}):
        answer = ask(query, variables=variables)
        assert codes(answer) == ["GRAPHQL_VALIDATION_FAILED"]
        assert "data" not in answer


def test_the_whole_application_serves_it(client: TestClient[Any], ledger: Any) -> None:
    """Through ``create_app`` and the edge."""
    ledger.agreement(1)
    query = {"query": "{ agreements { edges { node { service } } } }"}
    response = client.post("/graphql", json=query)
    assert response.json() == {"data": {"agreements": {"edges": [{"node": {"service": "example-chat"}}]}}}
    assert client.post("/graphql", json=query, headers={"authorization": "Bearer nonsense"}).status_code == 401
    other = client.post("/graphql", json=query, headers={"sla-tenant": "other"})
    assert other.json() == {"data": {"agreements": {"edges": []}}}
