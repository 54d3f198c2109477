"""A whole answer, and what it gets before it is sent: cache rules, validator, security headers, the request's id."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from litestar.types import HTTPScope, Message

from ledger.app.access import Principal

READING: Final = ("GET", "HEAD")
NO_STORE: Final = "no-store"
# Not "immutable": on a loopback port the next data directory serves other bytes under the same address. Files of the
# log are the exception (api.rest.tlog): their address names the log.
REVALIDATE: Final = "no-cache"
PRIVATE: Final = "private, no-cache"
REQUEST_ID: Final = b"x-request-id"

SECURITY_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""A route that needs others (a page) sets them itself."""

Forward: TypeAlias = Callable[["Answer", bytes, bool], Awaitable[None]]
"""Sends a part of an answer on: (answer, bytes, whether more come)."""

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


@dataclass(slots=True)
class Answer:
    """A whole response, collected before it is sent: none of ours is larger than one bundle.

    But one that comes in parts and is not to be stored goes on to ``forward`` as it comes; ``begun`` says so.
    """

    status: int = 500
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    etag: bytes | None = None
    route: str = ""
    """The template of the address; empty where there is no such route."""
    forward: Forward | None = None
    begun: bool = False

    async def collect(self, message: Message) -> None:
        """Take in what the application sends (ASGI's ``send``)."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = [(name.lower(), value) for name, value in message["headers"]]
        elif message["type"] == "http.response.body":
            in_parts = message.get("more_body", False) and self.header(b"cache-control") == NO_STORE.encode()
            if self.forward is not None and (self.begun or in_parts):
                await self.forward(self, message["body"], message.get("more_body", False))
            else:
                self.body += message["body"]

    def header(self, name: bytes) -> bytes | None:
        """The first value of a header, whose name is in lower case."""
        return next((value for key, value in self.headers if key == name), None)

    def drop(self, *names: bytes) -> None:
        """Without these headers."""
        self.headers = [(key, value) for key, value in self.headers if key not in names]

    def default(self, name: bytes, value: bytes) -> None:
        """With this header, unless the route set it."""
        if self.header(name) is None:
            self.headers.append((name, value))


def finished(answer: Answer, scope: HTTPScope, principal: Principal, *, public: bool) -> Answer:
    """``answer`` with cache and security headers, and as a 304 where the client holds the same already."""
    storable = answer.status == 200 and scope["method"] in READING
    if not public:
        answer.headers.append((b"vary", b"Authorization, Sla-Tenant"))
    answer.default(b"cache-control", (NO_STORE if not storable else REVALIDATE if public else PRIVATE).encode())
    if storable and answer.header(b"cache-control") != NO_STORE.encode():
        etag = answer.etag or etag_of(answer.body, principal, public=public)
        answer.headers.append((b"etag", etag))
        if _matches(header_values(scope, b"if-none-match"), etag):
            answer.status = 304
            answer.drop(b"content-type", b"content-length")
            answer.body = b""
    for name, value in SECURITY_HEADERS:
        answer.default(name, value)
    given = header_values(scope, REQUEST_ID)
    named = given[0] if len(given) == 1 and _REQUEST_ID.fullmatch(given[0]) else secrets.token_hex(8).encode()
    answer.headers.append((REQUEST_ID, named))
    return answer


def etag_of(body: bytes, principal: Principal, *, public: bool) -> bytes:
    """The validator (RFC 9110, 8.8.3) of a body as this principal sees it; one for everybody where it is public."""
    seen = b"" if public else _view_digest(principal)
    return b'"%s"' % hashlib.sha256(seen + body).hexdigest().encode()


@lru_cache(maxsize=1024)
def _view_digest(principal: Principal) -> bytes:
    """Names what a principal may see: equal bytes seen by two of them must not have one validator."""
    parts = [principal.tenant, *sorted(principal.scopes), "", *sorted(principal.sla_ids or ("*",))]
    return hashlib.sha256("\n".join(parts).encode()).digest()


def _matches(if_none_match: list[bytes], etag: bytes) -> bool:
    """Weak comparison, as If-None-Match asks for. Our tags hold no comma, so splitting at commas is exact."""
    tags = [tag.strip() for tag in b",".join(if_none_match).split(b",")]
    return b"*" in tags or any(tag.removeprefix(b"W/") == etag for tag in tags)


def header_values(scope: HTTPScope, name: bytes) -> list[bytes]:
    """Every value of a request's header, in the order they came."""
    return [value for key, value in scope["headers"] if key.lower() == name]
