"""Webhook endpoints: where to be told, of what, and what became of it (Standard Webhooks)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, TypeAlias

import msgspec
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter

from api.parameters import CursorText, IdempotencyKey, Limit, decode_cursor, encode_cursor
from api.rest.routes import reads, writes
from api.rest.values import Instant, instant
from ledger.app.access import Principal, Scope
from ledger.app.webhooks.desk import WebhookDesk
from ledger.errors import CursorInvalid

Desk: TypeAlias = NamedDependency[WebhookDesk]
EndpointId: TypeAlias = Annotated[
    str, PathParameter(pattern="^wh_[0-9a-f]{24}$", description="The endpoint, as its registration named it")
]
_SCOPES = (Scope.ADMIN_WEBHOOKS,)


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint as it stands."""

    id: str
    url: str
    types: Annotated[list[str], msgspec.Meta(description="Types of messages it is sent: docs/webhooks.md")]
    scopes: Annotated[list[str], msgspec.Meta(description="Those of whoever registered it: messages say no more")]
    state: Annotated[str, msgspec.Meta(description="active, or disabled: by request, or because it answered 410")]
    reason: str | None
    old_secret_until: Annotated[
        Instant | None, msgspec.Meta(description="Until then the secret before the newest signs, too")
    ]


class EndpointWithSecret(Endpoint, frozen=True, kw_only=True):
    """An endpoint with its secret, which is shown here and nowhere else."""

    secret: Annotated[str, msgspec.Meta(description="whsec_ and base64; keep it where secrets are kept")]


class Endpoints(msgspec.Struct, frozen=True):
    """All of a tenant's endpoints, by id."""

    items: list[Endpoint]


class NewSecret(msgspec.Struct, frozen=True):
    """A secret, which is shown here and nowhere else."""

    secret: str


class Registration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where to send what."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=2000, description="A public https address")]
    types: Annotated[list[str], msgspec.Meta(min_length=1, max_length=50)]


class State(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an endpoint is to stand."""

    state: Literal["active", "disabled", "removed"]


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to deliver a message."""

    message_id: str
    attempt: Annotated[int, msgspec.Meta(ge=1, description="Counted from 1 for each message")]
    at: Instant
    duration_ms: int
    status: Annotated[int | None, msgspec.Meta(description="What the endpoint answered; null: nothing")]
    error: Annotated[str | None, msgspec.Meta(description="Why the attempt failed; null: it was taken")]


class DeliveryPage(msgspec.Struct, frozen=True):
    """Attempts, newest first; ``next_cursor`` is null on the last page."""

    items: list[Delivery]
    next_cursor: str | None


@writes("/v1/webhooks", summary="Register a webhook endpoint", tag="webhooks", scopes=_SCOPES)
def register_webhook(
    webhooks: Desk,
    principal: NamedDependency[Principal],
    data: JSONBody[Registration],
    idempotency_key: IdempotencyKey,
) -> EndpointWithSecret:
    """The endpoint is sent what its registrant may see, and no more. The same key again gives the same answer."""
    made, secret = webhooks.register(principal, url=data.url, types=data.types, request=idempotency_key)
    return EndpointWithSecret(
        id=made.id,
        url=made.url,
        types=list(made.types),
        scopes=_texts(made.scopes),
        state=made.state,
        reason=made.reason,
        old_secret_until=None,
        secret=secret,
    )


@reads("/v1/webhooks", summary="List webhook endpoints", tag="webhooks", scopes=_SCOPES)
def list_webhooks(webhooks: Desk, principal: NamedDependency[Principal]) -> Endpoints:
    """Every endpoint that was not removed."""
    return Endpoints(
        [
            Endpoint(
                id=row["id"],
                url=row["url"],
                types=list(row["types"]),
                scopes=_texts(row["scopes"]),
                state=row["state"],
                reason=row["reason"],
                old_secret_until=None if row["old_secret_until_ns"] is None else instant(row["old_secret_until_ns"]),
            )
            for row in webhooks.endpoints(principal)
        ]
    )


@writes("/v1/webhooks/{endpoint_id:str}/secret", summary="Rotate the secret", tag="webhooks", scopes=_SCOPES)
def rotate_webhook_secret(
    webhooks: Desk, principal: NamedDependency[Principal], endpoint_id: EndpointId, idempotency_key: IdempotencyKey
) -> NewSecret:
    """A new secret. For a day the one before signs as well: messages carry both signatures."""
    return NewSecret(webhooks.rotate(principal, endpoint_id, request=idempotency_key))


@writes("/v1/webhooks/{endpoint_id:str}/state", summary="Enable, disable, remove", tag="webhooks", scopes=_SCOPES)
def set_webhook_state(
    webhooks: Desk, principal: NamedDependency[Principal], endpoint_id: EndpointId, data: JSONBody[State]
) -> State:
    """What happens while an endpoint is disabled is not sent later."""
    webhooks.set_state(principal, endpoint_id, data.state)
    return data


@reads(
    "/v1/webhooks/{endpoint_id:str}/deliveries",
    summary="What became of its messages",
    tag="webhooks",
    scopes=_SCOPES,
    problems=(400, 404, 503),
)
def list_deliveries(
    webhooks: Desk,
    principal: NamedDependency[Principal],
    endpoint_id: EndpointId,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> DeliveryPage:
    """Every attempt, newest first."""
    listing = f"deliveries/{endpoint_id}"
    found = webhooks.deliveries(principal, endpoint_id, after=_ordinal(decode_cursor(cursor, listing)), limit=limit + 1)
    page = found[:limit]
    last = str(page[-1][0]) if len(found) > limit else None
    items = [
        Delivery(
            message_id=f"msg_{each.event_id}",
            attempt=each.attempt,
            at=instant(each.at_ns),
            duration_ms=each.duration_ms,
            status=each.status,
            error=each.error,
        )
        for _, each in page
    ]
    return DeliveryPage(items, encode_cursor(listing, last))


def _texts(scopes: Iterable[str]) -> list[str]:
    return sorted(str(scope) for scope in scopes)


def _ordinal(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise CursorInvalid("the cursor names nothing in this ledger; start again without one", after=text[:40])
    return int(text)
