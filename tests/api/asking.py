"""A server that requires credentials, all kinds of callers, and every request that its routes answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from api.auth.guard import is_public, needed_scopes
from api.auth.guests import GuestTokens
from api.auth.rate import RateLimit
from api.auth.setup import make_authentication
from api.edge import Edge
from ledger.app.access import Role, Scope
from ledger.app.keys import make_key
from ledger.domain.time.instant import SECOND_NS
from ledger.settings import AuthMode, AuthSettings
from tests.api.filled import FIRST_NS, Counted, Ledger
from tests.api.serving import app_over
from tests.support import identity_provider as idp


class Present:
    """A clock that stands until a test moves it."""

    def __init__(self) -> None:
        self.ns = FIRST_NS

    def now_ns(self) -> int:
        return self.ns

    def pass_s(self, seconds: float) -> None:
        self.ns += int(seconds * SECOND_NS)


@dataclass
class World:
    """A ledger of several tenants behind a server, and who may ask it."""

    ledger: Ledger
    folder: Path
    mode: AuthMode = AuthMode.REQUIRED
    rate_per_minute: int = 0
    clock: Present = field(default_factory=Present)
    randomness: Counted = field(default_factory=Counted)

    def __post_init__(self) -> None:
        jwks = self.folder / "jwks.json"
        jwks.write_bytes(idp.key_set(idp.rsa_key()))
        settings = AuthSettings(self.mode, idp.ISSUER, idp.AUDIENCE, str(jwks), rate_per_minute=self.rate_per_minute)
        self.guests = self.guests_by(b"\x05" * 32)
        self.app: Edge = app_over(
            self.ledger,
            authentication=make_authentication(settings, self.ledger.database, self.guests, self.clock.now_ns),
            rate_limit=RateLimit(settings.rate_per_minute, self.clock.now_ns),
            guests=self.guests,
        )

    def guests_by(self, seed: bytes) -> GuestTokens:
        return GuestTokens(seed, self.ledger.database, self.clock.now_ns, self.randomness)

    def client(self) -> TestClient[Any]:
        return TestClient(self.app, base_url="http://127.0.0.1")

    def key(self, role: Role, tenant: str = "default", **options: Any) -> str:
        """The text of a new API key."""
        with self.ledger.database.of_tenant(tenant).begin() as tx:
            _, text = make_key(
                tx, tenant=tenant, role=role, now_ns=self.clock.ns, randomness=self.randomness, **options
            )
        return text

    def revoke(self, text: str, tenant: str = "default") -> None:
        with self.ledger.database.of_tenant(tenant).begin() as tx:
            tx.keys.revoke(text[4:20], self.clock.ns)

    def token(self, **changes: Any) -> str:
        """An access token of the identity provider."""
        return idp.token(idp.claims(self.clock.ns, **changes))


@pytest.fixture
def client_of_world(world: World) -> Iterator[TestClient[Any]]:
    """For a module to name ``client``; anybody who may ask the world asks by it."""
    with world.client() as client:
        yield client


def bearer(text: str, **more: str) -> dict[str, str]:
    return {"authorization": f"Bearer {text}", **more}


GRAPHQL = """{
  statements { edges { node {
    id slaId state credit { amount minorUnits } trace unattestedReasons attestation { signals } anchor { leaf }
    objectives { id good targetPercent }
  } } }
  agreements { edges { node { slaId service document } } }
  credits { edges { node { slaId credit { amount minorUnits } } } }
  violations { edges { node { id slaId targetPercent clause credit { amount minorUnits } } } }
  creditLines { edges { node { id slaId credit { amount minorUnits } } } }
}"""
ABOUT_ONE = """query ($sla: ID!, $statement: ID!) {
  exclusions(slaId: $sla) { edges { node { id ruling why honoured { start end } } } }
  explanation(statementId: $statement, windows: "all") {
    statement coverage objectives credit exclusions violations creditLines restatement
  }
  claims(statementId: $statement) { claimId credit { amount minorUnits } status lineId }
  budgets(slaId: $sla) { objective targetPercent allowed { decimal } bad }
}"""
"""What is asked about one agreement and one statement."""
ABOUT_A_PERIOD = """query ($sla: ID!, $period: String!) {
  agreement(slaId: $sla) { lifecycle { state versions { docSha256 onChain } timeline { what } termination { reason } } }
  pendingPeriods(slaId: $sla) { period waitsFor until watermark start }
  windows(slaId: $sla, period: $period) { edges { node {
    index state objectives { id good valid attainmentPercent }
  } } }
  dataQuality(slaId: $sla) { edges { node { id state sampleId value message } } }
  charges(slaId: $sla, period: $period) { version lines { service kind amount currency rate { rate } life { start } } }
}"""
"""What a settlement waits for and is reckoned by."""


@dataclass(frozen=True)
class Body:
    """What a route that changes something is sent: a JSON value, or bytes of a type of their own."""

    content: Any
    media_type: str = "application/json"

    def options(self) -> dict[str, Any]:
        if self.media_type == "application/json":
            return {"json": self.content}
        return {"content": self.content}


def body_of(path: str, values: Mapping[str, str]) -> Body:
    """A good body for a route, as far as one can be made without keys."""
    row = b'{"request_id": "1", "started_at": "2023-12-19T00:00:00Z", "service": "example-chat"}\n'
    bodies = {
        "/graphql": {"query": GRAPHQL},
        "/v1/agreements": {"document": {}},
        "/v1/agreements/registration-digest": {"document": {}},
        "/v1/agreements/{sla_id}/exclusions": {
            "id": "release-7",
            "clause": "release",
            "from": "2023-12-04T10:00:00Z",
            "to": "2023-12-04T13:00:00Z",
            "reason": "version 7",
            "ticket": "CHG-7",
            "approved_by": "change board",
        },
        "/v1/agreements/{sla_id}/exclusions/{exclusion_id}/withdraw": {"reason": "called off"},
        "/v1/agreements/{sla_id}/charges": {
            "period": "2023-12-01/P1D",
            "lines": [{"service": "example-chat", "kind": "recurring", "amount": "1.00", "currency": "USD"}],
        },
        "/v1/agreements/{sla_id}/amendments": {"document": {}},
        "/v1/agreements/{sla_id}/termination-message": {"effective": "2023-12-30", "reason": "moved away"},
        "/v1/agreements/{sla_id}/terminate": {"effective": "2023-12-30", "reason": "moved away"},
        "/v1/statements/{statement_id}/probe-signature": {
            "format": "sla-ledger/probe-signature/v1",
            "statement_id": values.get("statement_id", ""),
            "telemetry_root": "1",
            "signature": {"r8": {"x": "0", "y": "1"}, "s": "0"},
        },
        "/v1/credit-lines/{line_id}/apply": {"reference": "INV-1"},
        "/v1/credit-lines/{line_id}/reverse": {"reason": "counted in error"},
        "/v1/embed/tokens": {"sla_ids": [values.get("sla_id", "")], "ttl_s": 600, "origin": "https://p.example"},
        "/v1/metrics": {"resourceMetrics": []},
        "/v1/breaker-events": {"service": "example-chat"},
        "/v1/webhooks": {"url": "https://hooks.example/sla", "types": ["statement.issued"]},
        "/v1/webhooks/{endpoint_id}/state": {"state": "active"},
    }
    if path == "/v1/observations":
        return Body(row, "application/x-ndjson")
    return Body(bodies.get(path, {}))


def ask(
    client: TestClient[Any],
    method: str,
    path: str,
    values: Mapping[str, str],
    headers: Mapping[str, str],
    query: str = "",
) -> Any:
    """Ask a route with what it wants to have: a body, an Idempotency-Key. ``path`` has its parameters in braces."""
    target = fill(path, values) + query
    if method == "GET":
        return client.request(method, target, headers=headers)
    body = body_of(path, values)
    sent = {"content-type": body.media_type, "idempotency-key": "the-same-key", **headers}
    return client.request(method, target, headers=sent, **body.options())


def public_paths(app: Edge) -> set[str]:
    """Paths that answer everybody alike."""
    return {
        getattr(route, "path_format", route.path)
        for route in app.app.routes
        for handler in getattr(route, "route_handlers", [])
        if is_public(handler)
    }


def every_route(app: Edge) -> Iterator[tuple[str, str, tuple[Scope, ...]]]:
    """(method, path with its parameters in braces, scopes) of all that is served."""
    for route in app.app.routes:
        for handler in getattr(route, "route_handlers", []):
            needed = needed_scopes(handler)
            for method in sorted(handler.http_methods - {"OPTIONS", "HEAD"}):
                yield method, getattr(route, "path_format", route.path), needed or ()


def fill(path: str, values: Mapping[str, str]) -> str:
    """A path with what it names; parameters of which the test knows nothing get a text that names nothing."""
    for part in path.split("/"):
        if part.startswith("{"):
            path = path.replace(part, values.get(part.strip("{}").partition(":")[0], "0"))
    return path
