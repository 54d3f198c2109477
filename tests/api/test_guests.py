"""Guest tokens: some agreements, some minutes, one page, and no right beyond their maker's."""

from __future__ import annotations

from typing import Any

import pytest
from litestar.testing import TestClient

from ledger.app.access import AGREEMENT_SCOPES, ROLE_SCOPES, Role, Scope
from tests.api.asking import World, bearer, client_of_world, every_route, fill

Client = TestClient[Any]
ORIGIN = "https://portal.example"
VIEWER = sorted(ROLE_SCOPES[Role.OPERATIONS_VIEWER])
client = client_of_world


def ask(client: Client, key: str, agreements: list[str], **changes: Any) -> Any:
    body = {"sla_ids": agreements, "ttl_s": 600, "origin": ORIGIN} | changes
    return client.post("/v1/embed/tokens", json=body, headers=bearer(key))


def test_a_page_sees_its_agreements_and_no_others(world: World, client: Client) -> None:
    first, second = (world.ledger.agreement(number) for number in (1, 2))
    shown, hidden = world.ledger.statement(first), world.ledger.statement(second)
    made = ask(client, world.key(Role.CUSTOMER_ADMIN), [first])
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    answer = made.json()
    assert (answer["scopes"], answer["sla_ids"]) == (VIEWER, [first])
    assert int(answer["expires"]["ns"]) == world.clock.ns + 600 * 10**9
    guest = bearer(answer["token"])

    def get(path: str) -> Any:
        return client.get(path, headers=guest)

    assert [item["sla_id"] for item in get("/v1/agreements").json()["items"]] == [first]
    assert [item["id"] for item in get("/v1/statements").json()["items"]] == [shown]
    assert [item["id"] for item in get(f"/v1/statements?sla_id={first}").json()["items"]] == [shown]
    assert get(f"/v1/statements/{shown}").json()["statement"]["credit"] is None
    for path in (f"/v1/agreements/{second}", f"/v1/statements/{hidden}", f"/v1/statements?sla_id={second}"):
        found = get(path)
        assert (found.status_code, found.json()["code"]) == (404, "not_found")
        # Word for word what is said about what does not exist.
        ghost = get(path.replace(second, "0x" + "0" * 64).replace(hidden, "0"))
        assert set(found.json()["data"]) == set(ghost.json()["data"])
    for path in ("/v1/credits", "/v1/events", "/v1/chain", f"/v1/bundles/{shown}"):
        assert get(path).status_code == 403


def test_a_guest_with_all_it_can_have_still_sees_its_agreements_alone(world: World, client: Client) -> None:
    first, second = (world.ledger.agreement(number) for number in (1, 2))
    shown, hidden = world.ledger.statement(first), world.ledger.statement(second)
    for name in (shown, hidden):
        world.ledger.bundles[name] = b'{"a":1}'
    world.ledger.sign_checkpoint()
    made = ask(client, world.key(Role.CUSTOMER_ADMIN), [first], scopes=sorted(AGREEMENT_SCOPES))
    guest = bearer(made.json()["token"])
    for path, status in (
        ("/v1/bundles/{}", 200),
        ("/v1/statements/{}/inclusion", 200),
        ("/v1/statements/{}/tlog-proof", 200),
    ):
        assert client.get(path.format(shown), headers=guest).status_code == status
        assert client.get(path.format(hidden), headers=guest).status_code == 404
    assert [item["statement_id"] for item in client.get("/v1/credits", headers=guest).json()["items"]] == [shown]
    assert client.get("/v1/events", headers=guest).status_code == 403


def test_lists_of_a_guest_are_paged_among_its_agreements(world: World, client: Client) -> None:
    sla_ids = [world.ledger.agreement(number) for number in range(3)]
    names = [world.ledger.statement(sla_ids[day % 3], day) for day in range(9)]
    guest = bearer(ask(client, world.key(Role.CUSTOMER_ADMIN), [sla_ids[1]]).json()["token"])
    page = client.get("/v1/statements?limit=2", headers=guest).json()
    assert [item["id"] for item in page["items"]] == [names[1], names[4]]
    rest = client.get("/v1/statements", params={"limit": 2, "cursor": page["next_cursor"]}, headers=guest).json()
    assert ([item["id"] for item in rest["items"]], rest["next_cursor"]) == ([names[7]], None)


@pytest.mark.parametrize("role", list(Role))
def test_no_guest_has_more_than_its_maker(world: World, client: Client, role: Role) -> None:
    sla_id, key = world.ledger.agreement(1), world.key(role)
    may_embed = Scope.EMBED in ROLE_SCOPES[role]
    for scope in Scope:
        made = ask(client, key, [sla_id], scopes=[scope])
        allowed = may_embed and scope in ROLE_SCOPES[role] & AGREEMENT_SCOPES
        assert made.status_code == (201 if allowed else 403), scope
    if may_embed:
        made = ask(client, key, [sla_id])
        assert set(made.json()["scopes"]) <= ROLE_SCOPES[role]


def test_an_admin_cannot_pass_on_the_log_or_a_write(world: World, client: Client) -> None:
    made = ask(client, world.key(Role.OPERATOR), [world.ledger.agreement(1)], scopes=[Scope.READ_LOG])
    assert (made.status_code, made.json()["data"]) == (403, {"scope": "sla:read:log"})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"ttl_s": 299}, "ttl_s"),
        ({"ttl_s": 901}, "ttl_s"),
        ({"ttl_s": "ten minutes"}, "ttl_s"),
        ({"ttl_s": 600.5}, "ttl_s"),
        ({"sla_ids": []}, "sla_ids"),
        ({"sla_ids": ["0x12"]}, "sla_ids"),
        ({"sla_ids": ["0x" + "0" * 64] * 51}, "sla_ids"),
        ({"origin": "http://portal.example"}, "origin"),
        ({"origin": "https://portal.example/"}, "origin"),
        ({"origin": "https://portal.example\n"}, "origin"),
        ({"origin": "*"}, "origin"),
        ({"origin": "null"}, "origin"),
        ({"scopes": ["sla:read:everything"]}, "scopes"),
        ({"tenant": "bob"}, "tenant"),
    ],
)
def test_bodies_that_cannot_be_used_name_the_member(
    world: World, client: Client, changes: dict[str, Any], field: str
) -> None:
    made = ask(client, world.key(Role.CUSTOMER_ADMIN), [world.ledger.agreement(1)], **changes)
    assert made.status_code == 400, made.text
    assert field in made.text


def test_agreements_of_others_cannot_be_named(world: World, client: Client) -> None:
    other = world.ledger.of_tenant("bob").agreement(1)
    own = world.ledger.of_tenant("alice").agreement(2)
    key = world.key(Role.CUSTOMER_ADMIN, "alice")
    assert ask(client, key, [own, other]).status_code == 404
    narrow = world.key(Role.CUSTOMER_ADMIN, "alice", sla_ids=[own])
    third = world.ledger.of_tenant("alice").agreement(3)
    assert ask(client, narrow, [third]).status_code == 404
    assert ask(client, narrow, [own]).status_code == 201


def test_a_guest_only_reads_and_never_renews_itself(world: World, client: Client) -> None:
    sla_id = world.ledger.agreement(1)
    values = {"sla_id": sla_id, "statement_id": world.ledger.statement(sla_id)}
    token = ask(client, world.key(Role.OPERATOR), [sla_id], scopes=sorted(AGREEMENT_SCOPES)).json()["token"]
    for method, path, _ in every_route(world.app):
        outside = not path.startswith("/v1/")
        response = client.request(method, fill(path, values), headers=bearer(token))
        if method != "GET" or outside:
            assert response.status_code == 403, path
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for path in ("/v1/embed/tokens", "/v1/observations", "/graphql"):
            assert client.request(method, path, headers=bearer(token), json={}).status_code == 403
    assert client.get("/v1/agreements", headers=bearer(token, **{"sla-tenant": "bob"})).status_code == 403


def test_a_token_is_for_one_page(world: World, client: Client) -> None:
    token = ask(client, world.key(Role.OPERATOR), [world.ledger.agreement(1)]).json()["token"]
    for origin, status in (
        (ORIGIN, 200),
        ("http://127.0.0.1", 200),
        ("https://evil.example", 403),
        ("https://portal.example.evil.example", 403),
        ("null", 403),
    ):
        response = client.get("/v1/agreements", headers=bearer(token, origin=origin))
        assert response.status_code == status, origin


def test_the_page_of_the_token_may_read_the_answers(world: World, client: Client) -> None:
    key = world.key(Role.OPERATOR)
    token = ask(client, key, [world.ledger.agreement(1)]).json()["token"]
    asked = {"access-control-request-method": "GET", "access-control-request-headers": "authorization, if-none-match"}
    allowed = client.options("/v1/agreements", headers={"origin": ORIGIN, **asked})
    assert (allowed.status_code, allowed.content) == (204, b"")
    assert allowed.headers["access-control-allow-origin"] == ORIGIN
    assert allowed.headers["access-control-allow-methods"] == "GET"
    assert "access-control-allow-credentials" not in allowed.headers

    def get(path: str = "/v1/agreements", origin: str = ORIGIN) -> Any:
        return client.get(path, headers=bearer(token, origin=origin))

    for path, status in (("/v1/agreements", 200), ("/v1/credits", 403), ("/v1/statements/x", 404)):
        response = get(path)
        assert (response.status_code, response.headers["access-control-allow-origin"]) == (status, ORIGIN)
        assert "Origin" in response.headers.get_list("vary", split_commas=True)
    assert "access-control-allow-origin" not in get(origin="https://evil.example").headers
    # An admin's key is no guest: its answers are for servers.
    assert "access-control-allow-origin" not in client.get("/v1/agreements", headers=bearer(key, origin=ORIGIN)).headers
    # The page must be able to tell that the token has ended, so that it asks its server for another.
    world.clock.pass_s(600)
    assert (get().status_code, get().headers["access-control-allow-origin"]) == (401, ORIGIN)
    assert "access-control-allow-origin" not in get(origin="https://evil.example").headers


def test_a_token_ends_with_its_time_and_with_its_maker(world: World, client: Client) -> None:
    sla_id = world.ledger.agreement(1)
    key = world.key(Role.OPERATOR, expires_at_ns=world.clock.ns + 100 * 10**9)
    made = ask(client, key, [sla_id]).json()
    assert int(made["expires"]["ns"]) == world.clock.ns + 100 * 10**9
    world.clock.pass_s(99)
    assert client.get("/v1/agreements", headers=bearer(made["token"])).status_code == 200
    world.clock.pass_s(1)
    assert client.get("/v1/agreements", headers=bearer(made["token"])).status_code == 401

    key = world.key(Role.OPERATOR)
    token = ask(client, key, [sla_id]).json()["token"]
    world.revoke(key)
    assert client.get("/v1/agreements", headers=bearer(token)).status_code == 401


def test_the_maker_s_key_does_not_leave_the_server_in_the_token(world: World, client: Client) -> None:
    key = world.key(Role.OPERATOR)
    token = ask(client, key, [world.ledger.agreement(1)]).json()["token"]
    from base64 import urlsafe_b64decode

    claims = urlsafe_b64decode(token.split(".")[1] + "==")
    assert key[21:].encode() not in claims
