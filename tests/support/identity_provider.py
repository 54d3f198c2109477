"""An identity provider: keys, their public set, and access tokens, honest and otherwise."""

from __future__ import annotations

import json
import warnings
from base64 import urlsafe_b64encode
from functools import cache
from typing import Any

from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from ledger.domain.time.instant import SECOND_NS

ISSUER = "https://id.example"
AUDIENCE = "https://sla.example"


@cache
def rsa_key(kid: str = "first", bits: int = 2048) -> RSAKey:
    """Making one takes a while, so each is made once."""
    with warnings.catch_warnings(action="ignore", category=SecurityWarning):
        return RSAKey.generate_key(bits, {"kid": kid, "use": "sig"})


@cache
def ec_key(kid: str = "second", curve: str = "P-256") -> ECKey:
    return ECKey.generate_key(curve, {"kid": kid})  # type: ignore[arg-type]


@cache
def ed_key(kid: str = "third") -> OKPKey:
    return OKPKey.generate_key("Ed25519", {"kid": kid})


def key_set(*keys: Key) -> bytes:
    """The public halves as a JWK set."""
    return json.dumps({"keys": [key.as_dict(private=False) for key in keys]}).encode()


def claims(now_ns: int, **changes: Any) -> dict[str, Any]:
    """The claims of a good token; None in ``changes`` leaves one out."""
    now_s = now_ns // SECOND_NS
    good = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "carol",
        "client_id": "portal",
        "iat": now_s,
        "exp": now_s + 300,
        "jti": "1",
        "tenant": "alice",
        "roles": ["operations_viewer"],
    }
    return {name: value for name, value in (good | changes).items() if value is not None}


def token(said: Any, key: Key | None = None, *, alg: str = "RS256", typ: str | None = "at+jwt", **header: Any) -> str:
    """A token signed with ``key``, by default the first RSA key. A header member that is None is left out.

    It is put together by hand: the library makes no token that its own checks would refuse.
    """
    signer = rsa_key() if key is None else key
    head = {"alg": alg, "kid": signer.kid, "typ": typ, **header}
    text = f"{part({name: value for name, value in head.items() if value is not None})}.{part(said)}"
    signature = JWSRegistry.algorithms[alg].sign(text.encode(), signer)
    return f"{text}.{encoded(signature)}"


def unsigned(said: dict[str, Any]) -> str:
    """A token with ``alg`` none."""
    return f"{part({'alg': 'none', 'typ': 'at+jwt', 'kid': 'first'})}.{part(said)}."


def signed_with_the_public_key(said: dict[str, Any]) -> str:
    """An HMAC whose secret is the RSA key that everybody knows: the classic confusion of algorithms."""
    secret = rsa_key().as_pem(private=False)
    with warnings.catch_warnings(action="ignore"):
        key = OctKey.import_key(secret.hex(), {"kid": "first"})
    return token(said, key, alg="HS256")


def tampered(text: str) -> str:
    """A token whose claims were changed after it was signed."""
    head, body, signature = text.split(".")
    flipped = "B" if body[10] != "B" else "C"
    return ".".join([head, body[:10] + flipped + body[11:], signature])


def part(value: Any) -> str:
    """A part of a token that holds JSON."""
    return encoded(json.dumps(value).encode())


def encoded(data: bytes) -> str:
    """Base64url without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()
