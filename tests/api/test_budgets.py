"""Error budgets over REST and GraphQL: the same figures, and neither shows what the scopes do not cover."""

from __future__ import annotations

from typing import Any

import pytest
from litestar.testing import TestClient

from ledger.app.access import Role
from tests.api.asking import World, bearer, client_of_world
from tests.api.filled import Ledger

PERIOD = "2023-12-01/P1D"
QUERY = """query ($id: ID!, $window: String) { budgets(slaId: $id, window: $window) {
    objective period counted bad allowed { numerator denominator } remaining { decimal } burnt { numerator denominator }
    exhausted burns { window bad valid rate { decimal } exhaustion exhaustedAt } } }"""
client = client_of_world


@pytest.fixture
def sla_id(ledger: Ledger) -> str:
    """Of the availability 99.95 %: 6,000 requests may have 3 bad, and have 2."""
    sla_id = ledger.agreement(1)
    ledger.window(sla_id, 0, good=3999, bad=1)
    ledger.window(sla_id, 1, good=1999, bad=1)
    ledger.statement(sla_id)
    return sla_id


def asked(client: TestClient[Any], world: World, sla_id: str, query: str = "", role: Role = Role.CUSTOMER_ADMIN) -> Any:
    return client.get(f"/v1/agreements/{sla_id}/budgets{query}", headers=bearer(world.key(role)))


def test_a_budget_with_its_burn(client: TestClient[Any], world: World, sla_id: str) -> None:
    found = asked(client, world, sla_id, f"?period={PERIOD}&window=PT1H").json()
    assert (found["sla_id"], found["period"]) == (sla_id, PERIOD)
    assert found["judged_to"]["rfc3339"] == "2023-12-01T02:00:00Z"
    budget = found["budgets"][0]
    assert (budget["id"], budget["unit"], budget["counted"], budget["bad"]) == ("availability", "requests", 6000, 2)
    assert budget["allowed"] == {"numerator": "3", "denominator": "1", "decimal": "3.000000"}
    assert budget["remaining"]["numerator"] == "1"
    assert budget["burnt"]["decimal"] == "0.666666"
    assert budget["exhausted"] is False
    (burn,) = budget["burns"]
    # 1 of 2,000 is what 99.95 % allows.
    assert (burn["bad"], burn["valid"], burn["rate"]["decimal"]) == (1, 2000, "1.000000")
    assert (burn["start"]["rfc3339"], burn["exhaustion"]) == ("2023-12-01T01:00:00Z", "never")


def test_without_a_period_it_is_of_the_newest_settled(client: TestClient[Any], world: World, sla_id: str) -> None:
    found = asked(client, world, sla_id).json()
    assert found["period"] == PERIOD
    assert [burn["window"] for burn in found["budgets"][0]["burns"]] == ["PT1H", "PT6H", "PT72H"]


def test_graphql_says_what_rest_says(client: TestClient[Any], world: World, sla_id: str) -> None:
    body = {"query": QUERY, "variables": {"id": sla_id, "window": "PT1H"}}
    answer = client.post("/graphql", json=body, headers=bearer(world.key(Role.CUSTOMER_ADMIN))).json()
    assert "errors" not in answer
    rest = asked(client, world, sla_id, "?window=PT1H").json()["budgets"]
    for ours, theirs in zip(answer["data"]["budgets"], rest, strict=True):
        assert (ours["objective"], ours["counted"], ours["bad"]) == (theirs["id"], theirs["counted"], theirs["bad"])
        assert ours["allowed"]["numerator"] == theirs["allowed"]["numerator"]
        assert ours["burns"][0]["rate"]["decimal"] == theirs["burns"][0]["rate"]["decimal"]


def test_what_may_fail_says_what_the_target_is_so_a_viewer_sees_nothing_of_it(
    client: TestClient[Any], world: World, sla_id: str
) -> None:
    for role in (Role.OPERATIONS_VIEWER, Role.FINANCE):
        refused = asked(client, world, sla_id, role=role)
        assert (refused.status_code, refused.json()["data"]) == (403, {"scope": "sla:read:thresholds"})
        body = {"query": QUERY, "variables": {"id": sla_id}}
        answer = client.post("/graphql", json=body, headers=bearer(world.key(role))).json()
        assert answer["data"] == {"budgets": None}


def test_figures_need_the_scope_of_their_indicator(client: TestClient[Any], world: World, sla_id: str) -> None:
    token = world.token(tenant="default", roles=None, scope="sla:read:thresholds sla:read:uptime")
    found = client.get(f"/v1/agreements/{sla_id}/budgets", headers=bearer(token)).json()["budgets"]
    assert [budget["bad"] for budget in found] == [2, None, None]
    assert found[0]["withheld"] == []
    assert {"allowed", "burns", "burnt", "exhausted"} <= set(found[1]["withheld"])
    assert [found[1][name] for name in found[1]["withheld"]] == [None] * len(found[1]["withheld"])
    body = {"query": QUERY, "variables": {"id": sla_id}}
    answer = client.post("/graphql", json=body, headers=bearer(token)).json()
    assert [budget["bad"] for budget in answer["data"]["budgets"]] == [2, None, None]


def test_what_cannot_be_answered_is_named(client: TestClient[Any], world: World, sla_id: str) -> None:
    assert asked(client, world, "0x" + "ab" * 32).status_code == 404
    for query, parameter in (("?window=1h", "window"), ("?window=PT0S", "window"), ("?period=today", "period")):
        refused = asked(client, world, sla_id, query)
        assert refused.status_code == 400, query
        assert parameter in refused.text
    assert asked(client, world, sla_id, "?period=2023-12-01/P1M").status_code == 400
