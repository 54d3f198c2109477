"""Exclusions, explanations, credit lines and claims over GraphQL: what REST says of them, by the same policy."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from litestar.testing import TestClient

from ledger.app.access import Role
from ledger.store.database import SqliteDatabase
from tests.api.asking import ABOUT_ONE, World, bearer, body_of, client_of_world
from tests.api.filled import EXAMPLE
from tests.support.canaries import canary_document

Client = TestClient[Any]
LINES = """query ($first: Int!, $after: String) {
  creditLines(first: $first, after: $after) {
    edges { node { id statementId credit { minorUnits } status billing { reference } } }
    pageInfo { hasNextPage endCursor }
  }
}"""
client = client_of_world


@pytest.fixture
def about(world: World, client: Client) -> dict[str, str]:
    """A settled day with a judged hour, a violation, twelve credit lines and an exclusion that is cut short."""
    ledger = world.ledger
    sla_id = ledger.agreement(1, canary_document(yaml.safe_load(EXAMPLE.read_text())))
    ledger.window(sla_id, 0, good=7, bad=3)
    missed = ledger.violation(sla_id, 0, ended_by="met", clause="Annex 2, 3.1", unit="requests")
    name = ledger.statement(sla_id)
    for number in range(1, 13):
        ledger.credit_line(sla_id, name, number, violation_id=missed)
    path = "/v1/agreements/{sla_id}/exclusions"
    headers = bearer(world.key(Role.OPERATOR))
    recorded = client.post(path.format(sla_id=sla_id), json=body_of(path, {}).content, headers=headers)
    assert recorded.status_code == 200, recorded.text
    return {"sla": sla_id, "statement": name}


def asked(client: Client, headers: dict[str, str], query: str, **variables: Any) -> Any:
    response = client.post("/graphql", json={"query": query, "variables": variables}, headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


def test_it_is_what_rest_says(world: World, client: Client, about: dict[str, str]) -> None:
    headers = bearer(world.key(Role.OPERATOR))
    answer = asked(client, headers, ABOUT_ONE, **about)
    assert "errors" not in answer
    found = answer["data"]
    said = client.get(f"/v1/statements/{about['statement']}/explanation?windows=all", headers=headers).json()
    assert found["explanation"] == {
        "creditLines" if name == "credit_lines" else name: said[name]
        for name in ("statement", "coverage", "objectives", "credit", "exclusions", "violations", "credit_lines")
    } | {"restatement": said["restatement"]}
    (rest,) = client.get(f"/v1/agreements/{about['sla']}/exclusions", headers=headers).json()["items"]
    (node,) = [edge["node"] for edge in found["exclusions"]["edges"]]
    assert (node["id"], node["ruling"], node["why"]) == (rest["id"], "shortened", rest["why"])
    assert node["honoured"]["start"] == rest["honoured"]["from"]["rfc3339"]
    assert found["claims"] == []


def test_a_viewer_gets_what_rest_gives_it_and_is_told_the_rest(
    world: World, client: Client, about: dict[str, str]
) -> None:
    answer = asked(client, bearer(world.key(Role.OPERATIONS_VIEWER)), ABOUT_ONE, **about)
    found, denied = answer["data"], {".".join(map(str, each["path"])) for each in answer["errors"]}
    assert {each["extensions"]["code"] for each in answer["errors"]} == {"FORBIDDEN"}
    assert denied == {
        "explanation.credit",
        "explanation.creditLines",
        "exclusions.edges.0.node.why",
        "claims",
        "budgets",
    }
    explanation = found["explanation"]
    assert (explanation["credit"], explanation["creditLines"]) == (None, None)
    assert explanation["coverage"]["floor"] is None
    assert explanation["violations"][0]["target"] is None
    assert found["exclusions"]["edges"][0]["node"]["ruling"] == "shortened"


def test_pages_go_on_by_the_cursors_of_rest(world: World, client: Client, about: dict[str, str]) -> None:
    headers = bearer(world.key(Role.FINANCE))
    page = asked(client, headers, LINES, first=5)["data"]["creditLines"]
    assert page["pageInfo"]["hasNextPage"]
    asked_next = {"limit": "5", "cursor": page["pageInfo"]["endCursor"]}
    rest = client.get("/v1/credit-lines", params=asked_next, headers=headers).json()["items"]
    following = asked(client, headers, LINES, first=5, after=page["pageInfo"]["endCursor"])["data"]["creditLines"]
    assert [edge["node"]["id"] for edge in following["edges"]] == [item["id"] for item in rest]
    assert following["edges"][0]["node"]["credit"] == {"minorUnits": "80000"}


def test_a_longer_page_asks_the_database_no_more_often(
    world: World, client: Client, about: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, read = [], SqliteDatabase.read

    def counted(self: SqliteDatabase) -> Any:
        reads.append(1)
        return read(self)

    monkeypatch.setattr(SqliteDatabase, "read", counted)
    headers, spent = bearer(world.key(Role.FINANCE)), []
    for first in (1, 12):
        reads.clear()
        found = asked(client, headers, LINES, first=first)["data"]["creditLines"]["edges"]
        assert len(found) == first
        spent.append(len(reads))
    assert spent[0] == spent[1]


@pytest.mark.parametrize("field", ["explanation(statementId: $s) { coverage }", "claims(statementId: $s) { status }"])
def test_what_takes_long_cannot_be_asked_many_times_at_once(world: World, client: Client, field: str) -> None:
    headers = bearer(world.key(Role.OPERATOR))
    for times, refused in ((9, False), (10, True)):
        query = "query ($s: ID!) {" + " ".join(f"a{n}: {field}" for n in range(times)) + "}"
        codes = {each["extensions"]["code"] for each in asked(client, headers, query, s="x.y.v1")["errors"]}
        assert codes == ({"LIMIT_EXCEEDED"} if refused else {"NOT_FOUND"})


def test_an_unknown_choice_of_windows_is_refused(world: World, client: Client, about: dict[str, str]) -> None:
    query = 'query ($s: ID!) { explanation(statementId: $s, windows: "some") { coverage } }'
    (error,) = asked(client, bearer(world.key(Role.OPERATOR)), query, s=about["statement"])["errors"]
    assert error["extensions"]["code"] == "QUERY_INVALID"
    assert "lost, all" in error["message"]
