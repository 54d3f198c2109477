"""Pending periods, windows, rows that block settlement, charges and lives over GraphQL: what REST says of them."""

from __future__ import annotations

from typing import Any

import pytest
from litestar.testing import TestClient

from ledger.app.access import Role, Scope
from ledger.domain.record import naming
from tests.api.asking import ABOUT_A_PERIOD, World, bearer, client_of_world
from tests.api.filled import FIRST_NS

Client = TestClient[Any]
PERIOD = "2023-12-01/P1D"
FAULTS = """query ($sla: ID!, $first: Int!, $after: String, $state: String) {
  dataQuality(slaId: $sla, first: $first, after: $after, state: $state) {
    edges { node { id state source period digest reason sampleId line indicator field value message at } }
    pageInfo { hasNextPage endCursor }
  }
}"""
client = client_of_world


@pytest.fixture
def sla_id(world: World) -> str:
    """An agreement with judged hours, three rows that cannot be, and charges."""
    ledger = world.ledger
    sla_id = ledger.agreement(1)
    for index in range(3):
        ledger.window(sla_id, index, good=9, bad=index)
    rows = [
        {
            "sample_id": f"s-{number}",
            "line": number + 1,
            "indicator": indicator,
            "field": "bad",
            "value": "good 11, bad -1, undecided 0",
            "message": "counts cannot be below 0",
            "at_ns": str(FIRST_NS),
        }
        for number, indicator in enumerate(("availability", "availability", "fact_consistency"))
    ]
    said = {"source": "gateway-log", "period": PERIOD, "digest": "ef" * 32, "reason": "implausible", "rows": rows}
    ledger.append(naming.quality_stream(sla_id), "data_quality_reported", {"sla_id": sla_id, **said})
    ledger.charges(sla_id)
    return sla_id


def asked(client: Client, headers: dict[str, str], query: str, **variables: Any) -> Any:
    response = client.post("/graphql", json={"query": query, "variables": variables}, headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


def test_it_is_what_rest_says(world: World, client: Client, sla_id: str) -> None:
    headers = bearer(world.key(Role.OPERATOR))
    answer = asked(client, headers, ABOUT_A_PERIOD, sla=sla_id, period=PERIOD)
    assert "errors" not in answer
    found, path = answer["data"], f"/v1/agreements/{sla_id}"

    def rest(asked: str) -> Any:
        return client.get(asked, headers=headers).json()

    life = rest(path)["lifecycle"]
    assert found["agreement"]["lifecycle"]["state"] == life["state"]
    assert [each["what"] for each in found["agreement"]["lifecycle"]["timeline"]] == [
        each["what"] for each in life["timeline"]
    ]
    pending = rest(f"{path}/pending-periods")["periods"]
    assert pending
    assert [(each["period"], each["waitsFor"], each["start"]) for each in found["pendingPeriods"]] == [
        (each["period"], each["waits_for"], each["start"]["rfc3339"]) for each in pending
    ]
    windows = [edge["node"] for edge in found["windows"]["edges"]]
    said = rest(f"/v1/windows?sla_id={sla_id}&period={PERIOD}")["items"]
    assert [[(c["good"], c["valid"], c["attainmentPercent"]) for c in each["objectives"]] for each in windows] == [
        [(c["good"], c["valid"], c["attainment_percent"]) for c in each["objectives"]] for each in said
    ]
    assert [edge["node"]["id"] for edge in found["dataQuality"]["edges"]] == ["0.0", "0.1", "0.2"]
    charges = rest(f"{path}/charges?period={PERIOD}")
    assert found["charges"]["version"] == charges["version"] == 1
    (line,) = found["charges"]["lines"]
    assert {name: line[name] for name in ("service", "kind", "amount", "currency")} == charges["lines"][0]
    assert (line["rate"], line["life"]) == (None, None)


def test_each_role_gets_of_it_what_rest_gives_it(world: World, client: Client, sla_id: str) -> None:
    denied = {}
    for role in (Role.OPERATIONS_VIEWER, Role.FINANCE):
        answer = asked(client, bearer(world.key(role)), ABOUT_A_PERIOD, sla=sla_id, period=PERIOD)
        denied[role] = {
            (each["path"][0], each["extensions"]["code"], each["extensions"]["scope"]) for each in answer["errors"]
        }
    assert denied == {
        Role.OPERATIONS_VIEWER: {("charges", "FORBIDDEN", "sla:read:credits")},
        Role.FINANCE: {
            ("windows", "FORBIDDEN", "sla:read:uptime"),
            ("dataQuality", "FORBIDDEN", "sla:read:uptime"),
        },
    }


def test_counts_in_them_need_the_scope_of_their_indicator(world: World, client: Client, sla_id: str) -> None:
    headers = bearer(world.token(tenant="default", roles=None, scope=f"{Scope.READ_AGREEMENTS} {Scope.READ_UPTIME}"))
    answer = asked(client, headers, ABOUT_A_PERIOD, sla=sla_id, period=PERIOD)
    first = answer["data"]["windows"]["edges"][0]["node"]["objectives"]
    assert [(cell["id"], cell["good"], cell["attainmentPercent"]) for cell in first] == [
        ("availability", 9, "100.0000"),
        ("ttft", None, None),
        ("response", None, None),
    ]
    faults = [edge["node"] for edge in answer["data"]["dataQuality"]["edges"]]
    assert [each["value"] is None for each in faults] == [False, False, True]
    rest = client.get(f"/v1/agreements/{sla_id}/data-quality", headers=headers).json()["items"]
    assert [(each["value"], each["withheld"]) for each in rest][1:] == [
        ("good 11, bad -1, undecided 0", []),
        (None, ["message", "value"]),
    ]
    assert {"sla:read:latency", "sla:read:credits"} == {each["extensions"]["scope"] for each in answer["errors"]}


def test_bad_rows_go_on_by_the_cursors_of_rest(world: World, client: Client, sla_id: str) -> None:
    headers, path = bearer(world.key(Role.OPERATOR)), f"/v1/agreements/{sla_id}/data-quality"
    page = asked(client, headers, FAULTS, sla=sla_id, first=2)["data"]["dataQuality"]
    assert page["pageInfo"]["hasNextPage"]
    after = page["pageInfo"]["endCursor"]
    first = client.get(path, params={"limit": 2}, headers=headers).json()
    assert (first["open"], first["next_cursor"]) == (3, after)
    last = client.get(path, params={"limit": 2, "cursor": after}, headers=headers).json()
    (rest,) = last["items"]
    assert last["next_cursor"] is None
    (edge,) = asked(client, headers, FAULTS, sla=sla_id, first=2, after=after)["data"]["dataQuality"]["edges"]
    assert edge["node"].pop("sampleId") == rest.pop("sample_id")
    assert edge["node"].pop("at") == rest.pop("at")["rfc3339"]
    assert rest.pop("withheld") == []
    assert edge["node"] == rest
    # A cursor belongs to one list and filter.
    foreign = client.get(path, params={"cursor": after, "state": "open"}, headers=headers)
    assert (foreign.status_code, foreign.json()["code"]) == (400, "cursor_invalid")
    (error,) = asked(client, headers, FAULTS, sla=sla_id, first=2, after=after, state="open")["errors"]
    assert error["extensions"]["code"] == "CURSOR_INVALID"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ('{ charges(slaId: "$sla", period: "2023-12-02/P1D") { version } }', "NOT_FOUND"),
        ('{ charges(slaId: "0x00", period: "2023-12-01/P1D") { version } }', "NOT_FOUND"),
        ('{ charges(slaId: "$sla", period: "next month") { version } }', "CALENDAR_INVALID"),
        ('{ pendingPeriods(slaId: "0x00") { period } }', "NOT_FOUND"),
        ('{ dataQuality(slaId: "0x00") { edges { cursor } } }', "NOT_FOUND"),
        ('{ dataQuality(slaId: "$sla", state: "closed") { edges { cursor } } }', "QUERY_INVALID"),
        ('{ dataQuality(slaId: "$sla", first: 101) { edges { cursor } } }', "QUERY_INVALID"),
        ('{ windows(slaId: "0x00", period: "2023-12-01/P1D") { edges { cursor } } }', "NOT_FOUND"),
    ],
)
def test_what_cannot_be_answered_is_said_by_its_code(
    world: World, client: Client, sla_id: str, query: str, code: str
) -> None:
    (error,) = asked(client, bearer(world.key(Role.OPERATOR)), query.replace("$sla", sla_id))["errors"]
    assert error["extensions"]["code"] == code


@pytest.mark.parametrize(
    ("field", "most"),
    [
        ("dataQuality(slaId: $s) { edges { cursor } }", 9),
        ("agreements(first: 100) { edges { node { lifecycle { state } } } }", 0),
        ("agreements(first: 90) { edges { node { lifecycle { state } } } }", 1),
    ],
)
def test_what_takes_long_cannot_be_asked_many_times_at_once(
    world: World, client: Client, field: str, most: int
) -> None:
    headers = bearer(world.key(Role.OPERATOR))
    for times in (most, most + 1):
        query = " ".join(f"a{n}: {field}" for n in range(times)) or "__typename"
        declared = "query ($s: ID!) { agreement(slaId: $s) { slaId } "
        found = asked(client, headers, f"{declared}{query} }}", s="0x00")["errors"]
        codes = {each["extensions"]["code"] for each in found}
        assert codes == ({"LIMIT_EXCEEDED"} if times > most else {"NOT_FOUND"})


def test_nothing_of_another_tenant(world: World, client: Client, sla_id: str) -> None:
    headers = bearer(world.key(Role.CUSTOMER_ADMIN, tenant="alice"))
    answer = asked(client, headers, ABOUT_A_PERIOD, sla=sla_id, period=PERIOD)
    assert all(value is None for value in answer["data"].values())
    assert {each["extensions"]["code"] for each in answer["errors"]} == {"NOT_FOUND"}
