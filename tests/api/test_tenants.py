"""Tenant A never sees B: the same addresses, asked in turn, with warm caches and with what the other was given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from ledger.app.access import Role
from tests.api.asking import World, bearer, every_route, fill
from tests.api.conftest import Ledger

Client = TestClient[Any]


@pytest.fixture
def world(ledger: Ledger, tmp_path: Path) -> World:
    return World(ledger, tmp_path)


@pytest.fixture
def clients(world: World) -> Iterator[list[Client]]:
    """Two servers over one database."""
    other = World(world.ledger, world.folder)
    with world.client() as first, other.client() as second:
        yield [first, second]


def filled(world: World, tenant: str, number: int) -> dict[str, str]:
    """A tenant with an agreement and three statements; the ids of the first."""
    ledger = world.ledger.of_tenant(tenant)
    sla_id = ledger.agreement(number)
    names = [ledger.statement(sla_id, day) for day in range(3)]
    for name in names:
        ledger.attest(name, sla_id)
        ledger.bundles[name] = f'{{"of":"{name}"}}'.encode()
    return {"sla_id": sla_id, "statement_id": names[0]}


def test_alternating_requests_never_meet_the_other_tenant(world: World, clients: list[Client]) -> None:
    ids = {"alice": filled(world, "alice", 1), "bob": filled(world, "bob", 2)}
    world.ledger.sign_checkpoint()
    keys = {tenant: world.key(Role.CUSTOMER_ADMIN, tenant) for tenant in ids}
    paths = sorted({path for method, path, scopes in every_route(world.app) if method == "GET" and scopes})
    tags: dict[str, set[str]] = {"alice": set(), "bob": set()}
    for turn in range(4):
        for path in paths:
            for tenant, other in (("alice", "bob"), ("bob", "alice")):
                # Both ask for their own things, for the other's, and for lists with one address.
                for values in (ids[tenant], ids[other]):
                    target = fill(path, values)
                    headers = bearer(keys[tenant], **{"if-none-match": ", ".join(sorted(tags[other])) or '"none"'})
                    response = clients[turn % 2].get(target, headers=headers)
                    assert response.status_code != 304, target
                    seen = response.text.replace(target, "").replace(values["statement_id"], "")
                    assert ids[other]["sla_id"] not in seen.replace(values["sla_id"], ""), target
                    if values is ids[other] and "{" in path:
                        assert response.status_code in (403, 404), target
                    if "etag" in response.headers:
                        tags[tenant].add(response.headers["etag"])
    assert not tags["alice"] & tags["bob"]
    assert len(tags["alice"]) > 5


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
