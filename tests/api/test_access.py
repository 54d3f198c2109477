"""Who asks, and what a route lets them do: on every route, for every kind of credentials that do not hold."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar import Litestar, get
from litestar.testing import TestClient

from api.auth.callers import Authentication
from api.auth.guard import SCOPES, check_scopes, require_declared
from api.auth.guests import GuestTokens
from api.edge import MAX_BODY_BYTES, Edge
from ledger.app.access import ROLE_SCOPES, Role, Scope
from ledger.settings import AuthMode
from tests.api.asking import World, ask, bearer, client_of_world, every_route, fill, public_paths
from tests.api.filled import Ledger
from tests.support import identity_provider as idp

Client = TestClient[Any]
ORIGIN = "https://portal.example"
client = client_of_world


def guest(world: World, key: str, guests: GuestTokens | None = None) -> str:
    sla_id = world.ledger.agreement(1)
    caller = world.app._authentication.verify([b"Bearer " + key.encode()], [])
    made = (guests or world.guests).make(caller, [sla_id], ttl_s=300, origin=ORIGIN, scopes=None)
    return made.text


def expired_key(world: World) -> str:
    text = world.key(Role.OPERATOR, expires_at_ns=world.clock.ns + 1)
    world.clock.ns += 1
    return text


def revoked_key(world: World) -> str:
    text = world.key(Role.OPERATOR)
    world.revoke(text)
    return text


def expired_guest(world: World) -> str:
    text = guest(world, world.key(Role.OPERATOR))
    world.clock.pass_s(300)
    return text


def guest_of_a_revoked_key(world: World) -> str:
    key = world.key(Role.OPERATOR)
    text = guest(world, key)
    world.revoke(key)
    return text


BAD: dict[str, Callable[[World], str]] = {
    "expired key": expired_key,
    "revoked key": revoked_key,
    "key of another secret": lambda world: world.key(Role.OPERATOR)[:21] + "A" * 43,
    "unknown key": lambda _world: "slk_" + "0" * 16 + "_" + "A" * 43,
    "expired access token": lambda world: world.token(roles=["operator"], exp=1),
    "access token without signature": lambda world: idp.unsigned(idp.claims(world.clock.ns, roles=["operator"])),
    "access token with an HMAC": lambda world: idp.signed_with_the_public_key(
        idp.claims(world.clock.ns, roles=["operator"])
    ),
    "access token of a stranger": lambda world: idp.token(
        idp.claims(world.clock.ns, roles=["operator"]), idp.rsa_key("stranger")
    ),
    "changed access token": lambda world: idp.tampered(world.token(roles=["operator"])),
    "expired guest token": expired_guest,
    "guest token of another server": lambda world: guest(
        world, world.key(Role.OPERATOR), world.guests_by(b"\x06" * 32)
    ),
    "changed guest token": lambda world: idp.tampered(guest(world, world.key(Role.OPERATOR))),
    "guest token of a revoked key": guest_of_a_revoked_key,
    "guest token signed by the identity provider": lambda world: idp.token(
        idp.claims(world.clock.ns), typ="sla-guest+jwt"
    ),
    "nothing": lambda _world: "",
    "words": lambda _world: "let me in",
    "dots": lambda _world: "..",
}


@pytest.mark.parametrize("mode", list(AuthMode))
@pytest.mark.parametrize("kind", sorted(BAD))
def test_bad_credentials_are_refused_on_every_route(ledger: Ledger, tmp_path: Path, kind: str, mode: AuthMode) -> None:
    world = World(ledger, tmp_path, mode)
    sla_id = ledger.agreement(2)
    values = {"sla_id": sla_id, "statement_id": ledger.statement(sla_id)}
    text = BAD[kind](world)
    routes = {(method, path) for method, path, _ in every_route(world.app)}
    assert len(routes) >= 45
    with world.client() as client:
        for method, path in [*sorted(routes), ("GET", "/nothing"), ("GET", "/schema/nothing"), ("PUT", "/v1/chain")]:
            response = ask(client, method, path, values, bearer(text, **{"if-none-match": "*"}))
            assert response.status_code == 401, (kind, method, path)
            assert response.headers["www-authenticate"].startswith(
                'Bearer realm="sla-ledger", error="invalid_token", error_description="'
            )
            assert response.headers["cache-control"] == "no-store"
            problem = response.json()
            assert problem["code"] == "unauthenticated"
            assert problem["data"] == {"presented": True}
            assert sla_id not in response.text.replace(fill(path, values), "")
            assert not [part for part in text.split(".") if len(part) > 8 and part in response.text]


@pytest.mark.parametrize(
    "value", ["Basic YTpi", "Bearer", "bearer", "Token x", "", "Bearer x" + "x" * 9000, "Bearer é"]
)
def test_headers_that_are_no_bearer_credentials(client: Client, value: str) -> None:
    response = client.get("/health/live", headers={"authorization": value.encode()})
    assert response.status_code == 401


def test_two_sets_of_credentials_are_none(world: World, client: Client) -> None:
    good = f"Bearer {world.key(Role.OPERATOR)}"
    response = client.get("/v1/agreements", headers=[("authorization", good), ("authorization", good)])  # type: ignore[arg-type]
    assert response.status_code == 401


def test_without_credentials_only_public_routes_answer(world: World, client: Client) -> None:
    public = public_paths(world.app)
    for method, path, scopes in every_route(world.app):
        response = ask(client, method, path, {}, {})
        if path in public:
            assert not scopes, path
            assert response.status_code != 401, path
        else:
            assert response.status_code == 401, path
            assert response.headers["www-authenticate"] == 'Bearer realm="sla-ledger"'
            assert response.json()["data"] == {}
    assert public == {
        "/dashboard",
        "/embed",
        "/embed/{file_name}",
        "/health/live",
        "/health/ready",
        "/log/{log_id}/checkpoint",
        "/log/{log_id}/tile/{tile_path}",
        "/schema",
        "/schema/openapi.json",
        "/schema/{path}",
        "/v1/checkpoints/latest",
        "/v1/checkpoints/{size}",
        "/v1/log",
    }


@pytest.mark.parametrize("role", list(Role))
def test_each_role_reaches_what_its_scopes_cover(world: World, client: Client, role: Role) -> None:
    sla_id = world.ledger.agreement(1)
    name = world.ledger.statement(sla_id)
    values = {
        "sla_id": sla_id,
        "statement_id": name,
        "line_id": world.ledger.credit_line(sla_id, name),
        "violation_id": world.ledger.violation(sla_id, ended_by="met"),
    }
    for credentials in (world.key(role), world.token(roles=[str(role)], tenant="default")):
        for method, path, scopes in every_route(world.app):
            response = ask(client, method, path, values, bearer(credentials))
            if ROLE_SCOPES[role] >= set(scopes):
                assert response.status_code not in (401, 403), (path, response.text)
            else:
                missing = next(scope for scope in scopes if scope not in ROLE_SCOPES[role])
                assert response.status_code == 403, path
                assert response.json()["data"] == {"scope": missing}
                challenge = f'Bearer realm="sla-ledger", error="insufficient_scope", scope="{missing}"'
                assert response.headers["www-authenticate"] == challenge


def test_a_handler_without_scopes_is_refused_when_the_application_is_made() -> None:
    @get("/open", sync_to_thread=False)
    def silent() -> str:
        return "all of it"

    @get("/half", sync_to_thread=False, opt={SCOPES: ["sla:read:credits"]})
    def misspelt() -> str:
        return "all of it"

    for handler in (silent, misspelt):
        app = Litestar([handler], openapi_config=None, logging_config=None)
        with pytest.raises(TypeError, match=r"scopes.*/(open|half)|/(open|half)"):
            require_declared(app)

    # And if one got in all the same, the guard lets nobody through.
    app = Litestar([silent], guards=[check_scopes], openapi_config=None, logging_config=None)
    with TestClient(Edge(app), base_url="http://127.0.0.1") as client:  # type: ignore[arg-type]
        assert client.get("/open").status_code == 500


class TestLocalMode:
    @pytest.fixture
    def client(self, ledger: Ledger, tmp_path: Path) -> Iterator[Client]:
        self.world = World(ledger, tmp_path, AuthMode.LOCAL)
        with self.world.client() as client:
            yield client

    def test_whoever_reaches_the_port_is_the_operator(self, client: Client) -> None:
        self.world.ledger.agreement(1)
        assert client.get("/v1/events").json()["items"][0]["payload"] is not None

    def test_credentials_narrow_that(self, client: Client) -> None:
        viewer = self.world.key(Role.OPERATIONS_VIEWER)
        assert client.get("/v1/events", headers=bearer(viewer)).status_code == 403

    @pytest.mark.parametrize(
        "headers",
        [
            {"origin": "https://evil.example"},
            {"origin": "http://evil.example"},
            {"origin": "null"},
            {"origin": "http://127.0.0.1:1234"},
            {"origin": "http://localhost"},
            {"origin": "http://127.0.0.1.evil.example"},
            {"origin": "ftp://127.0.0.1"},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
            {"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1"},
        ],
    )
    def test_pages_of_other_origins_change_nothing(self, client: Client, headers: dict[str, str]) -> None:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            for path in ("/v1/embed/tokens", "/v1/agreements", "/nothing"):
                response = client.request(method, path, headers=headers)
                assert (response.status_code, response.json()["code"]) == (403, "cross_site_request")
        # They may ask, and the browser keeps the answer from them: no CORS.
        assert client.get("/health/live", headers=headers).status_code == 200

    @pytest.mark.parametrize(
        "headers",
        [{}, {"origin": "http://127.0.0.1"}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}],
    )
    def test_the_own_pages_and_programs_may(self, client: Client, headers: dict[str, str]) -> None:
        body = {"sla_ids": [self.world.ledger.agreement(1)], "ttl_s": 300, "origin": ORIGIN}
        assert client.post("/v1/embed/tokens", json=body, headers=headers).status_code == 201


class TestTenantOfTheRequest:
    def test_the_operator_names_it(self, world: World, client: Client) -> None:
        sla_id = world.ledger.of_tenant("alice").agreement(1)
        for credentials in (world.key(Role.OPERATOR), world.token(roles=["operator"], tenant=None)):
            assert client.get("/v1/agreements", headers=bearer(credentials)).json()["items"] == []
            response = client.get("/v1/agreements", headers=bearer(credentials, **{"sla-tenant": "alice"}))
            assert [item["sla_id"] for item in response.json()["items"]] == [sla_id]

    @pytest.mark.parametrize("role", [role for role in Role if role is not Role.OPERATOR])
    def test_nobody_else_does(self, world: World, client: Client, role: Role) -> None:
        for credentials in (world.key(role, "bob"), world.token(roles=[str(role)], tenant="bob")):
            assert client.get("/v1/agreements", headers=bearer(credentials, **{"sla-tenant": "bob"})).status_code == 200
            response = client.get("/v1/agreements", headers=bearer(credentials, **{"sla-tenant": "alice"}))
            assert (response.status_code, response.json()["code"]) == (403, "access_denied")
        assert client.get("/v1/agreements", headers={"sla-tenant": "alice"}).status_code == 403

    def test_an_operator_s_key_for_some_agreements_does_not_either(self, world: World, client: Client) -> None:
        key = world.key(Role.OPERATOR, sla_ids=[world.ledger.agreement(1)])
        assert client.get("/v1/agreements", headers=bearer(key, **{"sla-tenant": "alice"})).status_code == 403

    @pytest.mark.parametrize("name", ["", "../x", "a b", "-a", "x" * 121, "é"])
    def test_names_that_are_none(self, world: World, client: Client, name: str) -> None:
        headers = {"authorization": f"Bearer {world.key(Role.OPERATOR)}", "sla-tenant": name.encode("latin-1")}
        assert client.get("/v1/agreements", headers=headers).status_code == 400  # type: ignore[arg-type]


class TestRate:
    def test_each_principal_has_its_own_bucket(self, ledger: Ledger, tmp_path: Path) -> None:
        world = World(ledger, tmp_path, rate_per_minute=6)
        first, second = world.key(Role.OPERATIONS_VIEWER), world.key(Role.OPERATIONS_VIEWER)
        with world.client() as client:

            def ask(key: str) -> Any:
                return client.get("/v1/agreements", headers=bearer(key))

            assert ask(first).status_code == 200
            refused = ask(first)
            assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
            assert refused.headers["retry-after"] == "10"
            assert refused.headers["cache-control"] == "no-store"
            assert ask(second).status_code == 200
            world.clock.pass_s(9)
            assert ask(first).headers["retry-after"] == "1"
            world.clock.pass_s(1)
            assert ask(first).status_code == 200

    def test_refusals_do_not_lengthen_the_wait(self, ledger: Ledger, tmp_path: Path) -> None:
        world = World(ledger, tmp_path, rate_per_minute=60)
        key = world.key(Role.OPERATIONS_VIEWER)
        with world.client() as client:
            codes = [client.get("/v1/agreements", headers=bearer(key)).status_code for _ in range(30)]
            assert codes == [200] * 10 + [429] * 20
            world.clock.pass_s(2)
            codes = [client.get("/v1/agreements", headers=bearer(key)).status_code for _ in range(4)]
            assert codes == [200, 200, 429, 429]

    def test_who_has_no_credentials_is_counted_by_address(self, ledger: Ledger, tmp_path: Path) -> None:
        world = World(ledger, tmp_path, rate_per_minute=6)
        with world.client() as client:
            assert [client.get("/health/live").status_code for _ in range(2)] == [200, 429]

    def test_a_flood_of_bad_credentials_is_stopped_before_they_are_looked_at(
        self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world = World(ledger, tmp_path, rate_per_minute=60)
        looked_at, verify = [], Authentication.verify

        def counted(self: Authentication, authorization: Any, tenant: Any) -> Any:
            looked_at.append(authorization)
            return verify(self, authorization, tenant)

        monkeypatch.setattr(Authentication, "verify", counted)
        with world.client() as client:
            tries = [client.get("/v1/agreements", headers=bearer(f"sla_{n:064}")) for n in range(30)]
            assert [each.status_code for each in tries] == [401] * 10 + [429] * 20
            assert len(looked_at) == 10
            assert tries[-1].headers["retry-after"] == "1"
            # Of those without credentials it takes nothing.
            assert client.get("/health/live").status_code == 200
            world.clock.pass_s(1)
            codes = [client.get("/v1/agreements", headers=bearer("x.y.z")).status_code for _ in range(2)]
            assert codes == [401, 429]

    def test_good_credentials_are_not_counted_among_the_bad(self, ledger: Ledger, tmp_path: Path) -> None:
        world = World(ledger, tmp_path, rate_per_minute=60)
        keys = [world.key(Role.OPERATIONS_VIEWER) for _ in range(3)]
        with world.client() as client:
            codes = [client.get("/v1/agreements", headers=bearer(key)).status_code for key in keys * 10]
            assert codes == [200] * 30
            assert client.get("/v1/agreements", headers=bearer("wrong")).status_code == 401

    def test_without_a_rate_bad_credentials_are_only_refused(self, ledger: Ledger, tmp_path: Path) -> None:
        world = World(ledger, tmp_path, rate_per_minute=0)
        with world.client() as client:
            codes = {client.get("/v1/agreements", headers=bearer("wrong")).status_code for _ in range(50)}
            assert codes == {401}


WRITES = {
    "/v1/agreements": "sla:write:agreements",
    "/v1/agreements/registration-digest": "sla:write:agreements",
    "/v1/agreements/{sla_id}/charges": "sla:write:credits",
    "/v1/agreements/{sla_id}/exclusions": "sla:write:agreements",
    "/v1/agreements/{sla_id}/exclusions/{exclusion_id}/withdraw": "sla:write:agreements",
    "/v1/agreements/{sla_id}/amendments": "sla:write:agreements",
    "/v1/agreements/{sla_id}/terminate": "sla:write:agreements",
    "/v1/agreements/{sla_id}/termination-message": "sla:write:agreements",
    "/v1/agreements/{sla_id}/periods/{first}/close": "sla:write:periods",
    "/v1/breaker-events": "sla:write:observations",
    "/v1/credit-lines/{line_id}/apply": "sla:write:credits sla:read:credits",
    "/v1/credit-lines/{line_id}/reverse": "sla:write:credits sla:read:credits",
    "/v1/embed/tokens": "sla:embed",
    "/v1/metrics": "sla:write:observations",
    "/v1/observations": "sla:write:observations",
    "/v1/statements/{statement_id}/claims": "sla:write:claims sla:read:credits",
    "/v1/statements/{statement_id}/probe-signature": "sla:write:claims sla:read:proofs",
    "/v1/webhooks": "sla:admin:webhooks",
    "/v1/webhooks/{endpoint_id}/secret": "sla:admin:webhooks",
    "/v1/webhooks/{endpoint_id}/state": "sla:admin:webhooks",
}
"""The scopes that each change needs: that of its answer, too, where it has figures. One more must be written here."""


def test_a_change_needs_its_scope_and_nothing_less(world: World, client: Client) -> None:
    posts = {path: scopes for method, path, scopes in every_route(world.app) if method != "GET" and path != "/graphql"}
    assert {path: " ".join(scopes) for path, scopes in posts.items()} == WRITES
    sla_id = world.ledger.agreement(1)
    name = world.ledger.statement(sla_id)
    values = {"sla_id": sla_id, "statement_id": name, "line_id": world.ledger.credit_line(sla_id, name)}
    before = client.get("/v1/events", headers=bearer(world.key(Role.OPERATOR))).json()["log_size"]
    for path, needed in WRITES.items():
        for scope in needed.split():
            others = " ".join(each for each in Scope if each != scope)
            refused = ask(client, "POST", path, values, bearer(world.token(roles=None, tenant="default", scope=others)))
            assert (refused.status_code, refused.json()["data"]) == (403, {"scope": scope}), path
    assert client.get("/v1/events", headers=bearer(world.key(Role.OPERATOR))).json()["log_size"] == before
    for path, scope in WRITES.items():
        alone = world.token(roles=None, tenant="default", scope=f"{scope} sla:read:agreements")
        assert ask(client, "POST", path, values, bearer(alone)).status_code not in (401, 403), path


class TestBodies:
    def test_what_says_it_is_too_long_is_not_read(self, world: World, client: Client) -> None:
        headers = bearer(world.key(Role.OPERATOR), **{"content-length": str(MAX_BODY_BYTES + 1)})
        response = client.post("/v1/embed/tokens", content=b"{}", headers=headers)
        assert (response.status_code, response.json()["code"]) == (413, "body_too_large")

    def test_what_turns_out_too_long_is_not_read_to_its_end(self, world: World, client: Client) -> None:
        response = client.post(
            "/v1/embed/tokens", content=b" " * (2 * 1024 * 1024), headers=bearer(world.key(Role.OPERATOR))
        )
        assert (response.status_code, response.json()["code"]) == (413, "body_too_large")

    @pytest.mark.parametrize(
        "body",
        [b"", b"{", b"[]", b"null", b'{"sla_ids": []}', b"\xff", b"{}" * 9, b"[" * 100_000],
    )
    def test_bodies_that_are_none(self, world: World, client: Client, body: bytes) -> None:
        headers = bearer(world.key(Role.OPERATOR), **{"content-type": "application/json"})
        response = client.post("/v1/embed/tokens", content=body, headers=headers)
        assert response.status_code == 400, response.text
        assert response.headers["content-type"] == "application/problem+json"

    @pytest.mark.parametrize("body", [b"[" * 250_000, b'{"a":' * 50_000, b'{"sla_ids": ' + b"[" * 250_000])
    def test_deep_nesting_does_not_take_the_process_down(self, world: World, client: Client, body: bytes) -> None:
        limit = sys.getrecursionlimit()
        # What py_ecc sets when it is imported: more than the stack holds.
        sys.setrecursionlimit(100_000)
        try:
            headers = bearer(world.key(Role.OPERATOR), **{"content-type": "application/json"})
            response = client.post("/v1/embed/tokens", content=body, headers=headers)
        finally:
            sys.setrecursionlimit(limit)
        assert (response.status_code, response.json()["code"]) == (400, "not_canonical")


def test_request_ids_are_kept_where_they_are_plain(world: World, client: Client) -> None:
    assert client.get("/health/live", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    for odd in ("", "a b", "x" * 65, "<script>"):
        made = client.get("/health/live", headers={"x-request-id": odd}).headers["x-request-id"]
        assert made != odd
        assert len(made) == 16


def test_the_validator_covers_who_asks(world: World, client: Client) -> None:
    """Two principals who get the same bytes have different validators, unless they see the same."""
    keys = {
        name: world.key(role, tenant)
        for name, role, tenant in (
            ("a viewer", Role.OPERATIONS_VIEWER, "alice"),
            ("another viewer", Role.OPERATIONS_VIEWER, "alice"),
            ("an admin", Role.CUSTOMER_ADMIN, "alice"),
            ("bob's viewer", Role.OPERATIONS_VIEWER, "bob"),
        )
    }
    answers = {name: client.get("/v1/agreements", headers=bearer(key)) for name, key in keys.items()}
    assert len({answer.content for answer in answers.values()}) == 1
    tags = {name: answer.headers["etag"] for name, answer in answers.items()}
    assert tags["a viewer"] == tags["another viewer"]
    assert len(set(tags.values())) == 3
    for answer in answers.values():
        assert answer.headers["vary"] == "Authorization, Sla-Tenant"
        assert answer.headers["cache-control"] == "private, no-cache"


def test_public_answers_are_everybody_s(world: World, client: Client) -> None:
    plain = client.get("/v1/log")
    with_key = client.get("/v1/log", headers=bearer(world.key(Role.FINANCE, "bob")))
    assert plain.headers["etag"] == with_key.headers["etag"]
    assert plain.headers["cache-control"] == "no-cache"
    assert "vary" not in plain.headers
