"""Tenant A never sees B: the same addresses, asked in turn, with warm caches and with what the other was given."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from litestar.testing import TestClient

from ledger.app.access import Role
from tests.api.asking import World, ask, bearer, every_route, public_paths

Client = TestClient[Any]


@pytest.fixture
def clients(world: World) -> Iterator[list[Client]]:
    """Two servers over one database."""
    other = World(world.ledger, world.folder)
    with world.client() as first, other.client() as second:
        yield [first, second]


def filled(world: World, tenant: str, number: int) -> dict[str, str]:
    """A tenant with an agreement, three statements, a violation, a credit line and a webhook; the ids of the first."""
    ledger = world.ledger.of_tenant(tenant)
    sla_id = ledger.agreement(number)
    names = [ledger.statement(sla_id, day) for day in range(3)]
    for name in names:
        ledger.attest(name, sla_id)
        ledger.bundles[name] = f'{{"of":"{name}"}}'.encode()
    missed = ledger.violation(sla_id, ended_by="met")
    ledger.window(sla_id)
    line = ledger.credit_line(sla_id, names[0], violation_id=missed)
    with world.client() as client:
        headers = bearer(world.key(Role.CUSTOMER_ADMIN, tenant), **{"idempotency-key": "first"})
        asked = {"url": f"https://{tenant}.example/hook", "types": ["statement.issued"]}
        endpoint = client.post("/v1/webhooks", json=asked, headers=headers).json()["id"]
    return {
        "sla_id": sla_id,
        "statement_id": names[0],
        "violation_id": missed,
        "line_id": line,
        "endpoint_id": endpoint,
        "first": "2023-12-01",
        "period": "2023-12-01/P1D",
    }


QUERIES = ("", "?sla_id={sla_id}", "?sla_id={sla_id}&period={period}", "?statement_id={statement_id}")


def named_in(text: str, ids: dict[str, str]) -> bool:
    """Whether an answer names anything of a tenant. Its ids begin with those of its agreement."""
    return any(mark in text for mark in (ids["sla_id"], ids["sla_id"][2:14], ids["endpoint_id"]))


def test_alternating_requests_never_meet_the_other_tenant(world: World, clients: list[Client]) -> None:
    ids = {"alice": filled(world, "alice", 1), "bob": filled(world, "bob", 2)}
    world.ledger.sign_checkpoint()
    keys = {tenant: world.key(Role.CUSTOMER_ADMIN, tenant) for tenant in ids}
    finance = {tenant: world.token(roles=["finance", "customer_admin"], tenant=tenant) for tenant in ids}
    routes = sorted({(method, path) for method, path, _ in every_route(world.app)} - set(public_routes(world)))
    tags: dict[str, set[str]] = {"alice": set(), "bob": set()}
    own = 0
    for turn in range(3):
        for method, path in routes:
            for tenant, other in (("alice", "bob"), ("bob", "alice")):
                # Both ask for their own things, for the other's, and for lists with one address.
                for values, query in product((ids[tenant], ids[other]), QUERIES if method == "GET" else QUERIES[:1]):
                    asked = query.format(**values)
                    text = keys[tenant] if turn else finance[tenant]
                    headers = bearer(text, **{"if-none-match": ", ".join(sorted(tags[other])) or '"none"'})
                    response = ask(clients[turn % 2], method, path, values, headers, asked)
                    assert response.status_code != 304, path
                    mine = values is ids[tenant]
                    if mine:
                        assert not named_in(response.text, ids[other]), (path, asked)
                        own += response.status_code < 300
                    elif response.status_code < 300:
                        # A list, and no filter by what the other has.
                        assert "{" not in path, path
                        assert not named_in(response.text, ids[other]), (path, asked)
                    else:
                        # 409: the one Idempotency-Key here is of another request of one's own.
                        assert response.status_code in (400, 403, 404, 409), (path, asked)
                    if "etag" in response.headers:
                        tags[tenant].add(response.headers["etag"])
    assert not tags["alice"] & tags["bob"]
    assert len(tags["alice"]) > 15
    assert own > 100


def public_routes(world: World) -> Iterator[tuple[str, str]]:
    public = public_paths(world.app)
    return ((method, path) for method, path, _ in every_route(world.app) if path in public)


@pytest.mark.parametrize("path", ["/v1/credit-lines/{line_id}/reverse", "/v1/credit-lines/{line_id}/apply"])
def test_nobody_changes_what_is_another_tenant_s(world: World, clients: list[Client], path: str) -> None:
    filled(world, "alice", 1)
    bobs = filled(world, "bob", 2)
    headers = bearer(world.key(Role.OPERATOR), **{"sla-tenant": "alice"})
    before = clients[0].get("/v1/log").json()
    for each in (path, "/v1/webhooks/{endpoint_id}/state", "/v1/webhooks/{endpoint_id}/secret", "/v1/embed/tokens"):
        assert ask(clients[0], "POST", each, bobs, headers).status_code == 404, each
    closing = "/v1/agreements/{sla_id}/periods/{first}/close"
    assert ask(clients[0], "POST", closing, bobs, headers).status_code == 404
    observed = ask(clients[0], "POST", "/v1/observations", bobs, headers, f"?sla_id={bobs['sla_id']}")
    assert observed.status_code == 404
    assert clients[0].get("/v1/log").json() == before


def test_empty_tenants_with_equal_answers_have_validators_of_their_own(world: World, clients: list[Client]) -> None:
    first = clients[0].get("/v1/statements", headers=bearer(world.key(Role.CUSTOMER_ADMIN, "alice")))
    headers = bearer(world.key(Role.CUSTOMER_ADMIN, "bob"), **{"if-none-match": first.headers["etag"]})
    second = clients[0].get("/v1/statements", headers=headers)
    assert first.content == second.content
    assert second.status_code == 200


def test_a_cursor_of_one_tenant_is_refused_by_the_other(world: World, clients: list[Client]) -> None:
    filled(world, "alice", 1)
    filled(world, "bob", 2)
    alice, bob = (bearer(world.key(Role.CUSTOMER_ADMIN, tenant)) for tenant in ("alice", "bob"))
    for path in ("/v1/statements", "/v1/credits"):
        page = clients[0].get(path, params={"limit": 1}, headers=alice).json()
        params = {"limit": 1, "cursor": page["next_cursor"]}
        stolen = clients[0].get(path, params=params, headers=bob)
        assert (stolen.status_code, stolen.json()["code"]) == (400, "cursor_invalid")
        assert clients[0].get(path, params=params, headers=alice).status_code == 200


def test_the_same_statement_id_is_each_tenant_s_own(world: World, clients: list[Client]) -> None:
    """Two tenants may hold the same agreement: each gets its own rows of it."""
    names = []
    for tenant, credit in (("alice", "111100"), ("bob", "222200")):
        ledger = world.ledger.of_tenant(tenant)
        names.append(ledger.statement(ledger.agreement(7), credit={"currency": "USD", "minor_units": credit}))
    assert names[0] == names[1]
    for _ in range(2):
        for tenant, credit in (("alice", "111100"), ("bob", "222200")):
            headers = bearer(world.key(Role.CUSTOMER_ADMIN, tenant))
            for client in clients:
                found = client.get(f"/v1/statements/{names[0]}", headers=headers).json()
                assert found["statement"]["credit"]["minor_units"] == credit


def test_the_operator_sees_payloads_of_the_tenant_it_acts_for(world: World, clients: list[Client]) -> None:
    filled(world, "alice", 1)
    filled(world, "bob", 2)
    operator = world.key(Role.OPERATOR)
    page = clients[0].get("/v1/events", headers=bearer(operator, **{"sla-tenant": "alice"})).json()
    shown = {item["header"]["tenant"] for item in page["items"] if item["payload"] is not None}
    assert shown == {"alice"}
    for item in page["items"]:
        own = item["header"]["tenant"] == "alice"
        assert (item["salt"] is not None, item["withheld"]) == (own, [] if own else ["payload", "salt"])
    assert {item["header"]["tenant"] for item in page["items"]} == {"alice", "bob"}


def test_roles_of_one_tenant_do_not_share_answers(world: World, clients: list[Client]) -> None:
    name = filled(world, "alice", 1)["statement_id"]
    admin = clients[0].get(f"/v1/statements/{name}", headers=bearer(world.key(Role.CUSTOMER_ADMIN, "alice")))
    viewer = bearer(world.key(Role.OPERATIONS_VIEWER, "alice"), **{"if-none-match": admin.headers["etag"]})
    seen = clients[0].get(f"/v1/statements/{name}", headers=viewer)
    assert seen.status_code == 200
    assert (admin.json()["statement"]["credit"] is None, seen.json()["statement"]["credit"]) == (False, None)
