"""The exchange of a server's own rights for a guest token, which a page may have."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar.di import NamedDependency
from litestar.params import JSONBody

from api.auth.callers import Caller
from api.auth.guests import MAX_TTL_S, MIN_TTL_S, GuestTokens
from api.rest.routes import Seen, writes
from api.rest.values import Instant, Word, instant
from ledger.app.access import Scope

# Written so that the OpenAPI document, which points nowhere outside, has no address in it. `$` would also match before
# a line feed.
_ORIGIN = r"^(https:/{2}[a-z0-9.-]{1,253}|http:/{2}(localhost|127\.0\.0\.1|\[::1\]))(:[1-9][0-9]{0,4})?(?![\s\S])"


class GuestTokenRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a page is to show, and for how long."""

    sla_ids: Annotated[list[Word], msgspec.Meta(min_length=1, max_length=50, description="The agreements it may see")]
    ttl_s: Annotated[int, msgspec.Meta(ge=MIN_TTL_S, le=MAX_TTL_S, description="Life in seconds")]
    origin: Annotated[
        str,
        msgspec.Meta(pattern=_ORIGIN, description="Of the page, as a browser spells it: scheme, host, unusual port"),
    ]
    scopes: Annotated[
        list[Scope] | None,
        msgspec.Meta(description="Reading scopes of the asker's own; absent: those of a viewer which the asker holds"),
    ] = None


class GuestTokenAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A token for `Authorization: Bearer`. It reads under /v1/ and cannot be exchanged for another."""

    token: str
    expires: Instant
    scopes: list[Scope]
    sla_ids: list[Word]


@writes(
    "/v1/embed/tokens",
    summary="Make a guest token",
    tag="embedding",
    scopes=(Scope.EMBED,),
    status=201,
    problems=(400, 404, 413, 503),
)
def make_guest_token(
    data: JSONBody[GuestTokenRequest],
    caller: NamedDependency[Caller],
    guests: NamedDependency[GuestTokens],
    seen: Seen,
) -> GuestTokenAnswer:
    """For the server of a page, which passes the token on by `postMessage` or a setter, never in a URL."""
    for sla_id in data.sla_ids:
        seen.agreement(sla_id)
    scopes = None if data.scopes is None else frozenset(data.scopes)
    made = guests.make(caller, data.sla_ids, ttl_s=data.ttl_s, origin=data.origin, scopes=scopes)
    return GuestTokenAnswer(
        token=made.text,
        expires=instant(made.expires_at_ns),
        scopes=sorted(made.scopes),
        sla_ids=sorted(set(data.sla_ids)),
    )
