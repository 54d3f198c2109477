"""Guest tokens: what a page shows of some agreements, for some minutes, and no right beyond its maker's."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OKPKey
from joserfc.jws import JWSRegistry

from api.auth.callers import Caller, GuestRefused
from ledger.app.access import AGREEMENT_SCOPES, ROLE_SCOPES, Principal, Role, Scope, refused, require
from ledger.app.keys import KEY_PREFIX, is_alive
from ledger.app.ports.store import Database, Randomness
from ledger.attest.crypto.signing import SigningKey
from ledger.domain.record.canonical import parse_json
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import AccessDenied, SlaLedgerError

MIN_TTL_S: Final = 300
MAX_TTL_S: Final = 900
KIND: Final = "sla-guest+jwt"
_ALGORITHM: Final = "Ed25519"
_REGISTRY: Final = JWSRegistry(algorithms=[_ALGORITHM])
_MAX_HEADER_BYTES: Final = 4096

DEFAULT_SCOPES: Final = ROLE_SCOPES[Role.OPERATIONS_VIEWER]


@dataclass(frozen=True, slots=True)
class GuestToken:
    """A token as it is handed out."""

    text: str
    expires_at_ns: int
    scopes: frozenset[Scope]


class GuestTokens:
    """Makes and checks tokens with a key of this data directory."""

    def __init__(self, seed: bytes, database: Database, now_ns: Callable[[], int], randomness: Randomness) -> None:
        public = SigningKey(seed).public_key
        self._key = OKPKey.import_key({"kty": "OKP", "crv": "Ed25519", "d": _base64(seed), "x": _base64(public)})
        self._database = database
        self._now_ns = now_ns
        self._randomness = randomness

    def make(
        self, caller: Caller, sla_ids: Sequence[str], *, ttl_s: int, origin: str, scopes: frozenset[Scope] | None
    ) -> GuestToken:
        """A token for ``sla_ids`` of the caller's tenant, of no more life than the caller's own credentials.

        Without ``scopes`` it has those of a viewer that the caller holds. Raises ``AccessDenied`` for a scope that the
        caller does not hold or no guest may have, and ``NotFound`` for an agreement it does not see.
        """
        principal = caller.principal
        require(principal, Scope.EMBED, *sorted(scopes or ()))
        if scopes is not None and not scopes <= AGREEMENT_SCOPES:
            refused_scope = sorted(scopes - AGREEMENT_SCOPES)[0]
            raise AccessDenied(f"no guest may have the scope {refused_scope}", scope=str(refused_scope))
        granted = DEFAULT_SCOPES & principal.scopes if scopes is None else scopes
        now_ns = self._now_ns()
        expires_at_s = min(now_ns // SECOND_NS + ttl_s, (caller.expires_at_ns or 2**63) // SECOND_NS)
        claims = {
            "sub": principal.subject,
            "tenant": principal.tenant,
            "scopes": sorted(granted),
            "sla_ids": sorted(set(sla_ids)),
            "origin": origin,
            "exp": expires_at_s,
            "jti": self._randomness.bytes(8).hex(),
            "key": caller.key_id,
        }
        text = jwt.encode({"alg": _ALGORITHM}, claims, self._key, default_type=KIND, registry=_REGISTRY)
        return GuestToken(text, expires_at_s * SECOND_NS, granted)

    def verify(self, text: str) -> Caller:
        """Raises ``Unauthenticated``, also where the API key behind the token was revoked since."""
        try:
            token = jwt.decode(text, self._key, registry=_REGISTRY)
        except (JoseError, ValueError, TypeError, RecursionError) as error:
            raise refused("the guest token is malformed, or was not made here") from error
        if token.header.get("typ") != KIND:
            raise refused("that is no guest token")
        # Signed here, so that the members are those of `make`.
        claims: dict[str, Any] = token.claims
        now_ns = self._now_ns()
        if claims["exp"] * SECOND_NS <= now_ns:
            raise GuestRefused("the guest token has expired", claims["origin"])
        if claims["key"] is not None and not self._is_alive(claims["key"], now_ns):
            raise GuestRefused("the API key behind the guest token is no longer valid", claims["origin"])
        principal = Principal(
            subject=f"guest {claims['jti']} of {claims['sub']}",
            tenant=claims["tenant"],
            scopes=frozenset(Scope(name) for name in claims["scopes"] if name in set(Scope)),
            sla_ids=frozenset(claims["sla_ids"]),
        )
        return Caller(principal, expires_at_ns=claims["exp"] * SECOND_NS, guest_origin=claims["origin"])

    def _is_alive(self, key_id: str, now_ns: int) -> bool:
        with self._database.read() as tx:
            key = tx.keys.find(key_id)
        return key is not None and is_alive(key, now_ns)


def recognise(text: str) -> str:
    """Which credentials a text claims to be: ``key``, ``guest``, ``jwt``, or "". The verifier checks the claim."""
    if text.startswith(KEY_PREFIX):
        return "key"
    if text.count(".") != 2:
        return ""
    try:
        head = text.partition(".")[0]
        header = parse_json(urlsafe_b64decode(head + "=" * (-len(head) % 4)), max_bytes=_MAX_HEADER_BYTES)
    except (binascii.Error, ValueError, SlaLedgerError):
        return ""
    return "guest" if isinstance(header, dict) and header.get("typ") == KIND else "jwt"


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
