"""Access tokens of an identity provider: JWTs by RFC 9068, and what their claims let a caller do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jws import JWSRegistry

from api.auth.callers import Caller
from api.auth.issuer_keys import ALGORITHMS, IssuerKeys
from ledger.app.access import DEFAULT_TENANT, ROLE_SCOPES, Principal, Role, Scope, check_tenant, refused
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import QueryInvalid

TYPES: Final = ("at+jwt", "application/at+jwt")
REQUIRED: Final = ("iss", "exp", "aud", "sub", "client_id", "iat", "jti")
LEEWAY_S: Final = 60
MAX_SUBJECT_CHARS: Final = 200
_SCOPE_PREFIX: Final = "sla:"


@dataclass(frozen=True, slots=True)
class AccessTokens:
    """Checks tokens of ``issuer`` for ``audience``; ``now_ns`` is the present.

    Roles (claim ``roles``) give their scopes. Scopes of ours in ``scope`` narrow them; without any role they are what
    the caller may do. Others' roles and scopes mean nothing here. ``tenant_claim`` names the tenant.
    """

    issuer: str
    audience: str
    tenant_claim: str
    keys: IssuerKeys
    now_ns: Callable[[], int]

    def verify(self, text: str) -> Caller:
        """Raises ``Unauthenticated``, and ``Unavailable`` where the issuer's keys cannot be had."""
        registry = JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)
        try:
            token = jwt.decode(text, lambda found: self.keys.find(found.headers().get("kid")), registry=registry)
        except (JoseError, ValueError, TypeError, RecursionError) as error:
            raise refused("the access token is malformed, or its signature does not hold") from error
        kind = token.header.get("typ")
        if not isinstance(kind, str) or kind.lower() not in TYPES:
            raise refused("the token is no access token (typ at+jwt, RFC 9068)")
        claims: Mapping[str, Any] = token.claims
        self._check(claims)
        return self._caller(claims)

    def _check(self, claims: Mapping[str, Any]) -> None:
        for name in REQUIRED:
            if name not in claims:
                raise refused(f"the access token lacks the claim {name}")
        if claims["iss"] != self.issuer:
            raise refused("another issuer made the access token")
        audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        if self.audience not in audiences:
            raise refused("the access token is for another audience")
        now_s = self.now_ns() // SECOND_NS
        if _seconds(claims, "exp") + LEEWAY_S <= now_s:
            raise refused("the access token has expired")
        for name in ("nbf", "iat"):
            if name in claims and _seconds(claims, name) - LEEWAY_S > now_s:
                raise refused("the access token is not valid yet")

    def _caller(self, claims: Mapping[str, Any]) -> Caller:
        subject = claims["sub"]
        if not (isinstance(subject, str) and 0 < len(subject) <= MAX_SUBJECT_CHARS and subject.isprintable()):
            raise refused("the access token's subject is no name")
        roles = {Role(name) for name in _names(claims.get("roles")) if name in set(Role)}
        operator = Role.OPERATOR in roles
        return Caller(
            Principal(f"user {subject}", self._tenant(claims, operator=operator), _scopes(roles, claims.get("scope"))),
            operator=operator,
            expires_at_ns=_seconds(claims, "exp") * SECOND_NS,
        )

    def _tenant(self, claims: Mapping[str, Any], *, operator: bool) -> str:
        """Operators need none: they name one with each request."""
        named = claims.get(self.tenant_claim, DEFAULT_TENANT if operator else None)
        if not isinstance(named, str):
            raise refused(f"the access token has no claim {self.tenant_claim} that names a tenant")
        try:
            return check_tenant(named)
        except QueryInvalid as error:
            raise refused(error.message) from error


def _scopes(roles: Iterable[Role], scope: Any) -> frozenset[Scope]:
    asked = [name for name in _names(scope) if name.startswith(_SCOPE_PREFIX)]
    narrowed = frozenset(Scope(name) for name in asked if name in set(Scope))
    granted: frozenset[Scope] = frozenset().union(*(ROLE_SCOPES[role] for role in roles))
    if not granted:
        return narrowed
    return granted & narrowed if asked else granted


def _names(value: Any) -> list[str]:
    """The words of a claim that is a list, or a text with blanks between."""
    words = value.split(" ") if isinstance(value, str) else value if isinstance(value, list) else []
    return [word for word in words if isinstance(word, str)]


def _seconds(claims: Mapping[str, Any], name: str) -> int:
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        raise refused(f"the access token's claim {name} is no time")
    return int(value)
