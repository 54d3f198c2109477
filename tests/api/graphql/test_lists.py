"""Lists are Relay connections over keyset cursors."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.graphql.conftest import Asker, World, codes, fill


def walk(ask: Asker, query: str, first: int, **variables: Any) -> list[list[dict[str, Any]]]:
    """The nodes of every page."""
    pages, after = [], None
    while True:
        answer = ask(query, variables={"first": first, "after": after, **variables})
        (page,) = answer["data"].values()
        pages.append([edge["node"] for edge in page["edges"]])
        info = page["pageInfo"]
        assert info["hasPreviousPage"] == (after is not None)
        if not info["hasNextPage"]:
            return pages
        assert info["endCursor"] == page["edges"][-1]["cursor"]
        assert info["startCursor"] == page["edges"][0]["cursor"]
        after = info["endCursor"]


STATEMENTS = """query ($first: Int!, $after: String, $sla: ID) { statements(first: $first, after: $after, slaId: $sla) {
    edges { cursor node { id } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }"""
CREDITS = STATEMENTS.replace("statements", "credits").replace("id }", "id: statementId }")
AGREEMENTS = """query ($first: Int!, $after: String) { agreements(first: $first, after: $after) {
    edges { cursor node { slaId } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }"""


@pytest.mark.parametrize("first", [1, 3, 7, 100])
def test_a_walk_sees_every_item_once_in_order(ask: Asker, ledger: Any, first: int) -> None:
    sla_ids = [ledger.agreement(number) for number in range(3)]
    named = [ledger.statement(sla_id, day) for day in range(2) for sla_id in sorted(sla_ids)]
    for query in (STATEMENTS, CREDITS):
        pages = walk(ask, query, first)
        assert [node["id"] for page in pages for node in page] == named
        assert all(len(page) == first for page in pages[:-1])
    of_one = walk(ask, STATEMENTS, first, sla=sla_ids[0])
    assert [node["id"] for page in of_one for node in page] == [
        name for name in named if name.startswith(sla_ids[0][2:14])
    ]
    assert [node["slaId"] for page in walk(ask, AGREEMENTS, first) for node in page] == sorted(sla_ids)


def test_bounds_and_their_cursors_are_those_of_rest(ask: Asker, client: Any, ledger: Any) -> None:
    sla_id = ledger.agreement(1)
    named = [ledger.statement(sla_id, day) for day in range(4)]
    query = """query ($after: String,
        $from: Instant = "2023-12-02T00:00:00Z", $to: Instant = "2023-12-04T08:00:00+08:00") {
      statements(first: 1, after: $after, from: $from, to: $to) { edges { cursor node { id } } }
      credits(from: $from, to: $to) { edges { node { statementId } } } }"""
    found = ask(query)["data"]
    (first,) = found["statements"]["edges"]
    assert first["node"]["id"] == named[1]
    assert [edge["node"]["statementId"] for edge in found["credits"]["edges"]] == named[1:3]
    bounds = {"from": "2023-12-02", "to": "2023-12-04"}
    cursor = client.get("/v1/statements", params={"limit": 1, **bounds}).json()["next_cursor"]
    assert first["cursor"] == cursor
    rest = ask(query, variables={"after": cursor})["data"]["statements"]["edges"]
    assert [edge["node"]["id"] for edge in rest] == [named[2]]
    refused = ask(query, variables={"to": "2023-12-02T00:00:00Z"})
    assert codes(refused) == ["QUERY_INVALID", "QUERY_INVALID"]


def test_a_list_without_items_is_a_page(ask: Asker) -> None:
    query = "{ statements { edges { cursor } pageInfo { hasNextPage startCursor endCursor } } }"
    assert ask(query)["data"]["statements"] == {
        "edges": [],
        "pageInfo": {"hasNextPage": False, "startCursor": None, "endCursor": None},
    }


@pytest.mark.parametrize(("first", "code"), [(0, "QUERY_INVALID"), (-1, "QUERY_INVALID"), (101, "QUERY_INVALID")])
def test_a_page_has_1_to_100_items(ask: Asker, first: int, code: str) -> None:
    answer = ask(fill("{ agreements(first: %s) { edges { cursor } } }", first))
    assert answer["data"] == {"agreements": None}
    assert codes(answer) == [code]


def test_a_cursor_continues_the_list_it_was_made_for(ask: Asker, world: World) -> None:
    cursor = ask("{ statements(first: 1) { edges { cursor } } }")["data"]["statements"]["edges"][0]["cursor"]
    for query in (
        fill('{ credits(after: "%s") { edges { cursor } } }', cursor),
        fill('{ statements(slaId: "%s", after: "%s") { edges { cursor } } }', world.sla_id, cursor),
        fill('{ statements(after: "%sA") { edges { cursor } } }', cursor),
        '{ statements(after: "") { edges { cursor } } }',
    ):
        assert codes(ask(query)) == ["CURSOR_INVALID"]


def test_a_cursor_of_rest_is_one_of_graphql(ask: Asker, client: Any, world: World) -> None:
    cursor = client.get("/v1/statements?limit=1").json()["next_cursor"]
    answer = ask(fill('{ statements(after: "%s") { edges { node { id } } } }', cursor))
    assert [edge["node"]["id"] for edge in answer["data"]["statements"]["edges"]] == world.statements[1:]


def test_single_resources(ask: Asker, client: Any, world: World) -> None:
    name = world.statements[0]
    query = """query ($id: ID!, $sla: ID!) {
      statement(id: $id) { id slaId period start end termsVersion statementVersion docSha256 state attestable
        unattestedReasons windows { total observed excluded idle } credit { currency minorUnits amount } seq
        objectives { id state good valid targetPercent attainmentPercent } trace
        attestation { circuit signals proofHash devKey } anchor { txHash blockNumber notReplayed } agreement { slaId } }
      agreement(slaId: $sla) { slaId service issuer customer objectives document period window }
    }"""
    found = ask(query, variables={"id": name, "sla": world.sla_id})["data"]
    rest = client.get(f"/v1/statements/{name}").json()
    statement = rest["statement"]
    assert found["statement"]["start"] == statement["start"]["rfc3339"]
    assert found["statement"]["credit"] == {"currency": "USD", "minorUnits": "80000", "amount": "800.00"}
    assert found["statement"]["trace"] == rest["trace"]
    assert found["statement"]["windows"] == statement["windows"]
    assert found["statement"]["attestation"]["signals"] == statement["attestation"]["signals"]
    assert [objective["attainmentPercent"] for objective in found["statement"]["objectives"]] == [
        objective["attainment_percent"] for objective in statement["objectives"]
    ]
    assert found["statement"]["agreement"] == {"slaId": world.sla_id}
    summary = client.get(f"/v1/agreements/{world.sla_id}").json()
    assert found["agreement"]["document"] == summary["document"]
    assert found["agreement"]["issuer"] == summary["summary"]["issuer"]


def test_what_is_not_there_is_null_and_named(ask: Asker, world: World) -> None:
    answer = ask('{ statement(id: "x") { id } agreement(slaId: "0x00") { slaId } }')
    assert answer["data"] == {"statement": None, "agreement": None}
    assert codes(answer) == ["NOT_FOUND", "NOT_FOUND"]
    assert answer["errors"][0]["extensions"]["data"] == {"statement": "x"}
