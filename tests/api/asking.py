"""A server that requires credentials, all kinds of callers, and every request that its routes answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from litestar.testing import TestClient

from api.auth.guard import needed_scopes
from api.auth.guests import GuestTokens
from api.auth.rate import RateLimit
from api.auth.setup import make_authentication
from api.edge import Edge
from ledger.app.access import Role, Scope
from ledger.app.keys import make_key
from ledger.domain.instant import SECOND_NS
from ledger.settings import AuthMode, AuthSettings
from tests.api.conftest import FIRST_NS, Counted, Ledger, app_over
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


def bearer(text: str, **more: str) -> dict[str, str]:
    return {"authorization": f"Bearer {text}", **more}


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
