"""Access tokens of an identity provider: RFC 9068, tested mostly on lies."""

from __future__ import annotations

import http.server
import json
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from joserfc.errors import SecurityWarning

from api.auth.access_tokens import LEEWAY_S, REQUIRED, AccessTokens
from api.auth.guests import recognise
from api.auth.issuer_keys import MAX_AGE_NS, MAX_STALE_NS, MIN_INTERVAL_NS, IssuerKeys, loader
from ledger.app.access import ROLE_SCOPES, Role, Scope, check_tenant
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import Unauthenticated, Unavailable
from tests.support import identity_provider as idp

NOW_NS = 1_800_000_000 * SECOND_NS


class Provider:
    """What an issuer serves, and how often it was asked."""

    def __init__(self, *keys: Any) -> None:
        self.data: bytes | Exception = idp.key_set(*keys)
        self.asked = 0

    def __call__(self) -> bytes:
        self.asked += 1
        if isinstance(self.data, Exception):
            raise self.data
        return self.data


class Present:
    def __init__(self) -> None:
        self.ns = NOW_NS

    def __call__(self) -> int:
        return self.ns


@pytest.fixture
def present() -> Present:
    return Present()


@pytest.fixture
def provider() -> Provider:
    return Provider(idp.rsa_key(), idp.ec_key(), idp.ed_key())


@pytest.fixture
def tokens(provider: Provider, present: Present) -> AccessTokens:
    return AccessTokens(idp.ISSUER, idp.AUDIENCE, "tenant", IssuerKeys(provider, present), present)


@pytest.mark.parametrize(
    ("key", "alg"),
    [(idp.rsa_key, "RS256"), (idp.rsa_key, "PS256"), (idp.ec_key, "ES256"), (idp.ed_key, "Ed25519")],
)
@pytest.mark.parametrize("typ", ["at+jwt", "application/at+jwt", "AT+JWT"])
def test_good_tokens(tokens: AccessTokens, key: Callable[[], Any], alg: str, typ: str) -> None:
    caller = tokens.verify(idp.token(idp.claims(NOW_NS), key(), alg=alg, typ=typ))
    assert caller.principal.subject == "user carol"
    assert caller.principal.tenant == "alice"
    assert caller.principal.scopes == ROLE_SCOPES[Role.OPERATIONS_VIEWER]
    assert not caller.operator
    assert caller.expires_at_ns == NOW_NS + 300 * SECOND_NS


def good(**changes: Any) -> dict[str, Any]:
    return idp.claims(NOW_NS, **changes)


S = NOW_NS // SECOND_NS
LIES: dict[str, Callable[[], str]] = {
    "no signature": lambda: idp.unsigned(good()),
    "an HMAC with the public key": lambda: idp.signed_with_the_public_key(good()),
    "changed after signing": lambda: idp.tampered(idp.token(good())),
    "another key under a known kid": lambda: idp.token(good(), idp.ec_key("first"), alg="ES256"),
    "the algorithm of another key": lambda: idp.token(good(), idp.rsa_key("second")),
    "an unknown kid": lambda: idp.token(good(), idp.rsa_key("stranger")),
    "no kid": lambda: idp.token(good(), kid=None),
    "a kid that is a list": lambda: idp.token(good(), kid=["first"]),
    "its own key in the header": lambda: idp.token(
        good(), idp.ec_key("other"), alg="ES256", jwk=idp.ec_key("other").as_dict(private=False)
    ),
    "an ID token": lambda: idp.token(good(), typ="JWT"),
    "no type": lambda: idp.token(good(), typ=None),
    "a critical extension": lambda: idp.token(good(), crit=["new"], new=True),
    "another issuer": lambda: idp.token(good(iss="https://evil.example")),
    "an issuer with a slash more": lambda: idp.token(good(iss=idp.ISSUER + "/")),
    "another audience": lambda: idp.token(good(aud="https://other.example")),
    "other audiences": lambda: idp.token(good(aud=["https://other.example"])),
    "an audience that begins alike": lambda: idp.token(good(aud=idp.AUDIENCE + ".evil.example")),
    "expired": lambda: idp.token(good(exp=S - LEEWAY_S)),
    "not valid yet": lambda: idp.token(good(nbf=S + LEEWAY_S + 1)),
    "made in the future": lambda: idp.token(good(iat=S + LEEWAY_S + 1)),
    "an end that is a text": lambda: idp.token(good(exp=str(S + 300))),
    "an end that is true": lambda: idp.token(good(exp=True)),
    "an end beyond numbers": lambda: idp.token(good(exp=10**30)),
    "no tenant": lambda: idp.token(good(tenant=None)),
    "a tenant that is no name": lambda: idp.token(good(tenant="../bob")),
    "a tenant that is a list": lambda: idp.token(good(tenant=["alice", "bob"])),
    "an empty subject": lambda: idp.token(good(sub="")),
    "a subject with a line feed": lambda: idp.token(good(sub="a\nb")),
    "claims that are a list": lambda: idp.token([1]),
    "words": lambda: "a.b.c",
    "nothing": lambda: "..",
    **{f"no {name}": (lambda name=name: idp.token(good(**{name: None}))) for name in REQUIRED},
}


@pytest.mark.parametrize("lie", sorted(LIES))
def test_lies(tokens: AccessTokens, lie: str) -> None:
    text = LIES[lie]()
    with pytest.raises(Unauthenticated) as caught:
        tokens.verify(text)
    assert caught.value.data == {"presented": True}
    assert not [part for part in text.split(".") if len(part) > 5 and part in caught.value.message]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from([*REQUIRED, "nbf", "tenant", "roles", "scope", "other"])


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(names, json_values, max_size=4))
def test_whatever_an_issuer_signs_is_a_caller_or_refused(tokens: AccessTokens, changes: dict[str, Any]) -> None:
    text = idp.token(idp.claims(NOW_NS) | changes, idp.ed_key(), alg="Ed25519")
    try:
        caller = tokens.verify(text)
    except Unauthenticated:
        return
    assert caller.principal.scopes <= ROLE_SCOPES[Role.OPERATIONS_VIEWER] | _named(changes)
    assert check_tenant(caller.principal.tenant) == changes.get("tenant", "alice")


def _named(changes: dict[str, Any]) -> frozenset[Scope]:
    return frozenset(Scope) if {"roles", "scope"} & set(changes) else frozenset()


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(st.characters(codec="ascii"), max_size=60)
    | st.from_regex(r"[\w-]{0,40}\.[\w-]{0,40}\.[\w-]{0,40}", fullmatch=True, alphabet=st.characters(codec="ascii"))
    | st.builds(lambda head: f"{idp.part(head)}.e30.AA", json_values)
    | st.builds(lambda depth: f"{idp.encoded(b'[' * depth)}.e30.AA", st.integers(0, 6000))
)
def test_whatever_is_presented_is_refused(tokens: AccessTokens, text: str) -> None:
    assert recognise(text) in ("", "jwt", "guest", "key")
    if recognise(text) == "jwt":
        with pytest.raises(Unauthenticated):
            tokens.verify(text)


def test_leeway_is_a_minute(tokens: AccessTokens) -> None:
    tokens.verify(idp.token(good(exp=S - LEEWAY_S + 1, nbf=S + LEEWAY_S, iat=S + LEEWAY_S)))


@pytest.mark.parametrize(
    ("said", "scopes"),
    [
        ({"roles": ["finance"]}, ROLE_SCOPES[Role.FINANCE]),
        ({"roles": "finance operations_viewer"}, ROLE_SCOPES[Role.FINANCE] | ROLE_SCOPES[Role.OPERATIONS_VIEWER]),
        ({"roles": ["root", "FINANCE", 7]}, frozenset()),
        ({"roles": None, "scope": "openid sla:read:uptime sla:read:everything"}, {Scope.READ_UPTIME}),
        ({"roles": None, "scope": "openid"}, frozenset()),
        ({"roles": ["customer_admin"], "scope": "openid email"}, ROLE_SCOPES[Role.CUSTOMER_ADMIN]),
        ({"roles": ["customer_admin"], "scope": "sla:read:uptime sla:read:log"}, {Scope.READ_UPTIME}),
        ({"roles": ["operations_viewer"], "scope": "sla:read:credits"}, frozenset()),
        ({"roles": {"finance": True}}, frozenset()),
    ],
)
def test_roles_and_scopes_of_the_claims(tokens: AccessTokens, said: dict[str, Any], scopes: set[Scope]) -> None:
    assert tokens.verify(idp.token(good(**said))).principal.scopes == scopes


def test_an_operator_needs_no_tenant(tokens: AccessTokens) -> None:
    caller = tokens.verify(idp.token(good(roles=["operator"], tenant=None)))
    assert (caller.operator, caller.principal.tenant) == (True, "default")


def test_a_new_key_is_fetched_once_it_is_named(tokens: AccessTokens, provider: Provider, present: Present) -> None:
    new = idp.rsa_key("new")
    tokens.verify(idp.token(good()))
    provider.data = idp.key_set(idp.rsa_key(), new)
    for _ in range(5):
        with pytest.raises(Unauthenticated):
            tokens.verify(idp.token(good(), new))
    # Not within a minute of the fetch before, however many ask.
    assert provider.asked == 1
    present.ns += MIN_INTERVAL_NS
    tokens.verify(idp.token(good(), new))
    assert provider.asked == 2


def test_strangers_do_not_make_us_ask_the_issuer(tokens: AccessTokens, provider: Provider, present: Present) -> None:
    for number in range(50):
        present.ns += SECOND_NS
        with pytest.raises(Unauthenticated):
            tokens.verify(idp.token(good(), kid=f"kid {number}"))
    assert provider.asked == 1


def test_a_withdrawn_key_is_refused_after_ten_minutes(
    tokens: AccessTokens, provider: Provider, present: Present
) -> None:
    tokens.verify(idp.token(good(exp=S + 10_000)))
    provider.data = idp.key_set(idp.ec_key())
    present.ns += MAX_AGE_NS + 1
    with pytest.raises(Unauthenticated):
        tokens.verify(idp.token(good(exp=S + 10_000)))


def test_an_issuer_that_is_away(provider: Provider, present: Present, tokens: AccessTokens) -> None:
    text = idp.token(good(exp=S + 100_000))
    served, provider.data = provider.data, OSError("no route")
    with pytest.raises(Unavailable):
        tokens.verify(text)
    present.ns += MIN_INTERVAL_NS
    provider.data = served
    tokens.verify(text)
    for broken in (OSError("away"), b"not JSON", b'{"keys": 7}', b"[]", b"{" * 100_000):
        provider.data = broken  # type: ignore[assignment]
        present.ns += MAX_AGE_NS // 2 + 1
        tokens.verify(text)
    present.ns += MAX_STALE_NS
    with pytest.raises(Unavailable):
        tokens.verify(text)


def test_keys_that_are_too_weak_or_not_for_signing_are_passed_over(provider: Provider, tokens: AccessTokens) -> None:
    wrap = idp.rsa_key().as_dict(private=False) | {"kid": "wrap", "use": "enc"}
    shared = {"kty": "oct", "kid": "shared", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA"}
    weak = idp.rsa_key("weak", 1024).as_dict(private=False)
    strange = [{"kty": "new", "kid": "x"}, 7, {}, {"kty": "RSA", "kid": "half"}, {"kty": "EC", "crv": "P-999"}]
    first = idp.rsa_key().as_dict(private=False)
    provider.data = json.dumps({"keys": [*strange, weak, shared, wrap, first]}).encode()
    with warnings.catch_warnings(action="ignore", category=SecurityWarning):
        tokens.verify(idp.token(good()))
    with pytest.raises(Unauthenticated):
        tokens.verify(idp.token(good(), idp.rsa_key("weak", 1024)))
    with pytest.raises(Unauthenticated):
        tokens.verify(idp.token(good(), kid="wrap"))


@contextmanager
def serving(answer: Callable[[http.server.BaseHTTPRequestHandler], None]) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_arguments: Any) -> None:
            """Quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/jwks"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_keys_by_url_and_by_file(tmp_path: Any) -> None:
    data = idp.key_set(idp.rsa_key())

    def give(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        request.wfile.write(data)

    with serving(give) as url:
        assert loader(url)() == data
    (tmp_path / "jwks.json").write_bytes(data)
    assert loader(str(tmp_path / "jwks.json"))() == data


def test_no_redirect_is_followed() -> None:
    def elsewhere(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(302)
        request.send_header("location", "file:///etc/passwd")
        request.end_headers()

    with serving(elsewhere) as url, pytest.raises(OSError, match="302"):
        loader(url)()
