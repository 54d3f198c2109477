"""The public keys of an issuer of access tokens: fetched when needed, kept for a while, asked for in moderation."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, KeySet, OKPKey, RSAKey

from ledger.app.access import refused
from ledger.domain.record.canonical import parse_json
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import SlaLedgerError, Unavailable

ALGORITHMS: Final = ("RS256", "PS256", "ES256", "EdDSA", "Ed25519")
"""Signatures that are taken: none by a shared secret, and `none` least of all."""

MAX_JWKS_BYTES: Final = 256 * 1024
TIMEOUT_S: Final = 5
MIN_INTERVAL_NS: Final = 60 * SECOND_NS
MAX_AGE_NS: Final = 600 * SECOND_NS
MAX_STALE_NS: Final = 3600 * SECOND_NS
_MIN_RSA_BITS: Final = 2048


class IssuerKeys:
    """Keys by their ``kid``.

    ``load`` gives the bytes of a JWK set (RFC 7517). They are loaded again after ten minutes, and for a ``kid`` that is
    unknown, but never twice a minute, whoever sends what. Where the issuer does not answer, known keys hold for an
    hour. Safe to use from several threads.
    """

    def __init__(self, load: Callable[[], bytes], now_ns: Callable[[], int]) -> None:
        self._load = load
        self._now_ns = now_ns
        self._lock = threading.Lock()
        self._keys: Mapping[str, Key] = {}
        self._loaded_at_ns: int | None = None
        self._tried_at_ns: int | None = None

    def find(self, kid: Any) -> Key:
        """Raises ``Unauthenticated`` for an unknown ``kid``, ``Unavailable`` where the issuer's keys cannot be had."""
        if not isinstance(kid, str):
            raise refused("the access token names no key (kid)")
        key = self._keys.get(kid)
        if key is None or self._age_ns() > MAX_AGE_NS:
            with self._lock:
                # Another thread may have loaded them meanwhile.
                if kid not in self._keys or self._age_ns() > MAX_AGE_NS:
                    self._refresh()
            key = self._keys.get(kid)
        if self._loaded_at_ns is None or self._age_ns() > MAX_STALE_NS:
            raise Unavailable("the keys of the issuer of access tokens cannot be had now; try again in a minute")
        if key is None:
            raise refused("the issuer has no key of the access token's kid")
        return key

    def _age_ns(self) -> int:
        return self._now_ns() - (self._loaded_at_ns or 0)

    def _refresh(self) -> None:
        now_ns = self._now_ns()
        if self._tried_at_ns is not None and now_ns - self._tried_at_ns < MIN_INTERVAL_NS:
            return
        self._tried_at_ns = now_ns
        try:
            self._keys = _usable(self._load())
        except (OSError, HTTPException, ValueError, SlaLedgerError, JoseError):
            return
        self._loaded_at_ns = now_ns


def loader(source: str) -> Callable[[], bytes]:
    """What reads a JWK set from an http(s) URL, or from a file."""
    if "://" not in source:
        return Path(source).read_bytes

    def fetch() -> bytes:
        # The scheme is checked by the settings. No redirect is followed: it may lead to another host.
        request = urllib.request.Request(source, headers={"accept": "application/json"})  # noqa: S310
        with _OPENER.open(request, timeout=TIMEOUT_S) as response:
            data: bytes = response.read(MAX_JWKS_BYTES + 1)
        return data

    return fetch


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: Any, **_options: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def _usable(data: bytes) -> dict[str, Key]:
    """The keys that can check one of ``ALGORITHMS``; others of the set are passed over. Raises ``ValueError``."""
    document = parse_json(data, max_bytes=MAX_JWKS_BYTES)
    if not isinstance(document, dict) or not isinstance(document.get("keys"), list):
        raise ValueError("no JWK set")
    keys: dict[str, Key] = {}
    for item in document["keys"]:
        try:
            (key,) = KeySet.import_key_set({"keys": [item]}).keys
        except (JoseError, ValueError, TypeError, KeyError, AttributeError):
            continue
        kid = item.get("kid")
        if isinstance(kid, str) and _is_strong(key) and item.get("use", "sig") == "sig":
            keys[kid] = key
    return keys


def _is_strong(key: Key) -> bool:
    if isinstance(key, RSAKey):
        return key.public_key.key_size >= _MIN_RSA_BITS
    if isinstance(key, ECKey):
        return key.curve_name == "P-256"
    return isinstance(key, OKPKey) and key.curve_name == "Ed25519"
