"""Webhook endpoints: where a tenant wants to be told of what happens, and with which scopes.

An endpoint is configured by events alone, each of which says everything about it. Its secrets are kept beside the
log; the newest signs, and for a day after a rotation the one before signs as well, so that a receiver can change
over without losing a message (Standard Webhooks).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from ledger.app.access import Principal, Scope, require
from ledger.app.ports.store import Randomness, Transaction
from ledger.app.webhooks.messages import MESSAGE_TYPES
from ledger.domain.events.webhook_events import WEBHOOK_CONFIGURED
from ledger.domain.record.events import NewEvent
from ledger.domain.record.naming import webhook_stream
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import NotFound, WebhookInvalid

OLD_SECRET_NS = 86_400 * SECOND_NS
"""How long the secret before the newest goes on signing."""

SECRET_BYTES = 32
MAX_ENDPOINTS = 10
"""Of a tenant: each is told of every event it asks for, one after the other."""
_MAX_URL_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint as it stands. ``secrets`` counts those it has had; ``version`` is the next one of its stream."""

    id: str
    url: str
    types: tuple[str, ...]
    scopes: frozenset[Scope]
    secrets: int
    old_secret_until_ns: int | None
    state: str
    reason: str | None
    by: str
    version: int

    def signing_secrets(self, now_ns: int) -> tuple[int, ...]:
        """Numbers of the secrets that sign a message now, the newest first."""
        if self.old_secret_until_ns is not None and now_ns < self.old_secret_until_ns:
            return self.secrets, self.secrets - 1
        return (self.secrets,)


def register_endpoint(
    tx: Transaction,
    principal: Principal,
    *,
    url: str,
    types: Sequence[str],
    request: str,
    randomness: Randomness,
    now_ns: int,
    plain: bool = False,
) -> tuple[Endpoint, str]:
    """A new endpoint with the principal's scopes, and its first secret.

    ``request`` names the request: the same one again gives the same endpoint and secret. ``plain`` allows http, where
    what is sent may go by it.
    Raises ``WebhookInvalid`` for an address or type that cannot be used, ``AccessDenied`` for a type whose messages
    the principal may not see, ``IdempotencyConflict`` where the request was another one.
    """
    require(principal, Scope.ADMIN_WEBHOOKS)
    _require_address(url, ("https", "http") if plain else ("https",))
    for kind in types:
        if kind not in MESSAGE_TYPES:
            raise WebhookInvalid(
                f"there are no messages of type {kind[:40]!r}; there are {', '.join(sorted(MESSAGE_TYPES))}",
                field="types",
            )
        require(principal, *MESSAGE_TYPES[kind].scopes)
    if not types or len(set(types)) != len(types):
        raise WebhookInvalid("types must name at least one message type, and none twice", field="types")
    digest = hashlib.sha256(f"{principal.tenant}\n{request}".encode()).hexdigest()
    name = f"wh_{digest[:24]}"
    if sum(row["state"] != "removed" and row["id"] != name for row in tx.views.webhooks()) >= MAX_ENDPOINTS:
        raise WebhookInvalid(f"there are {MAX_ENDPOINTS} endpoints already; remove one first", field="url")
    endpoint = Endpoint(
        id=name,
        url=url,
        types=tuple(sorted(types)),
        scopes=principal.scopes,
        secrets=1,
        old_secret_until_ns=None,
        state="active",
        reason=None,
        by=principal.subject,
        version=0,
    )
    _configure(tx, endpoint, request=f"webhook/{endpoint.id}", now_ns=now_ns)
    return endpoint, _show(_make_secret(tx, endpoint.id, 1, randomness))


def rotate_secret(
    tx: Transaction, principal: Principal, endpoint_id: str, *, request: str, randomness: Randomness, now_ns: int
) -> str:
    """A new secret; the one before goes on signing for a day. The same ``request`` again gives the same secret.

    Raises ``VersionConflict`` where the endpoint was changed meanwhile.
    """
    endpoint = _own(tx, principal, endpoint_id)
    rotation = f"{webhook_stream(endpoint_id)}/rotation/{hashlib.sha256(request.encode()).hexdigest()[:32]}"
    try:
        number = int.from_bytes(tx.secrets.get(rotation), "big")
    except NotFound:
        number = endpoint.secrets + 1
        rotated = replace(endpoint, secrets=number, old_secret_until_ns=now_ns + OLD_SECRET_NS)
        # By the version alone: a retry at the same moment has another time in it, and is to try again.
        _configure(tx, rotated, request=None, now_ns=now_ns)
        # Remembered beside the secrets, so that a retry gets the secret that the first try made.
        tx.secrets.put(rotation, number.to_bytes(2, "big"))
    return _show(_make_secret(tx, endpoint_id, number, randomness))


def set_state(tx: Transaction, endpoint_id: str, state: str, *, reason: str | None, by: str, now_ns: int) -> Endpoint:
    """Enable, disable or remove an endpoint; as it stands already, nothing is written. Raises ``NotFound``."""
    endpoint = load_endpoint(tx, endpoint_id)
    if endpoint.state == state:
        return endpoint
    changed = replace(endpoint, state=state, reason=reason, by=by)
    _configure(tx, changed, request=None, now_ns=now_ns)
    return changed


def load_endpoint(tx: Transaction, endpoint_id: str) -> Endpoint:
    """An endpoint as its newest event has it; raises ``NotFound``, also for one that was removed."""
    newest = None
    for event in tx.events.stream(webhook_stream(endpoint_id)):
        newest = event
    if newest is None or newest.payload["state"] == "removed":
        raise NotFound(f"there is no webhook endpoint {endpoint_id[:40]}", endpoint_id=endpoint_id[:40])
    return _endpoint(newest.payload, newest.version + 1)


def secret_of(tx: Transaction, endpoint_id: str, number: int) -> bytes:
    """Secret ``number`` of an endpoint, counted from 1."""
    return tx.secrets.get(f"{webhook_stream(endpoint_id)}/{number}")


def _own(tx: Transaction, principal: Principal, endpoint_id: str) -> Endpoint:
    require(principal, Scope.ADMIN_WEBHOOKS)
    endpoint = load_endpoint(tx, endpoint_id)
    # Who sees less than an endpoint does would learn the rest by a secret for it.
    require(principal, *sorted(endpoint.scopes))
    return endpoint


def _configure(tx: Transaction, endpoint: Endpoint, *, request: str | None, now_ns: int) -> None:
    until = endpoint.old_secret_until_ns
    payload = {
        "endpoint_id": endpoint.id,
        "url": endpoint.url,
        "types": list(endpoint.types),
        "scopes": sorted(str(scope) for scope in endpoint.scopes),
        "secrets": endpoint.secrets,
        "old_secret_until_ns": None if until is None else str(until),
        "state": endpoint.state,
        "reason": endpoint.reason,
        "by": endpoint.by,
    }
    tx.events.append(
        webhook_stream(endpoint.id),
        [NewEvent(WEBHOOK_CONFIGURED, payload, occurred_at_ns=now_ns)],
        expected_version=endpoint.version,
        idempotency_key=request,
    )


def _make_secret(tx: Transaction, endpoint_id: str, number: int, randomness: Randomness) -> bytes:
    try:
        return secret_of(tx, endpoint_id, number)
    except NotFound:
        secret = randomness.bytes(SECRET_BYTES)
        tx.secrets.put(f"{webhook_stream(endpoint_id)}/{number}", secret)
        return secret


def _show(secret: bytes) -> str:
    """As Standard Webhooks writes secrets."""
    return "whsec_" + base64.b64encode(secret).decode()


def _endpoint(payload: Mapping[str, Any], version: int) -> Endpoint:
    until = payload["old_secret_until_ns"]
    known = {str(scope) for scope in Scope}
    return Endpoint(
        id=payload["endpoint_id"],
        url=payload["url"],
        types=tuple(payload["types"]),
        # A scope that a later version no longer knows gives nothing.
        scopes=frozenset(Scope(scope) for scope in payload["scopes"] if scope in known),
        secrets=payload["secrets"],
        old_secret_until_ns=None if until is None else int(until),
        state=payload["state"],
        reason=payload["reason"],
        by=payload["by"],
        version=version,
    )


def _require_address(url: str, schemes: Sequence[str]) -> None:
    wrong = None
    try:
        parts = urlsplit(url)
        if len(url) > _MAX_URL_CHARS:
            wrong = f"it has more than {_MAX_URL_CHARS} characters"
        elif parts.scheme not in schemes or not parts.hostname:
            wrong = "it is not an https address"
        elif parts.username is not None or parts.password is not None or parts.fragment:
            wrong = "it must not hold a user, a password or a fragment"
        elif any(char <= " " or char == "\x7f" for char in url):
            wrong = "it holds a space or a control character"
        else:
            _ = parts.port  # raises ValueError where it is no port
    except ValueError as error:
        wrong = str(error)
    if wrong is not None:
        raise WebhookInvalid(f"the url cannot be used: {wrong}", field="url")
