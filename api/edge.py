"""What holds for every answer, whichever route gives it: methods, hosts, validators, security headers.

It stands around the application instead of in a route's middleware, because routing errors (404, 405) never
reach the latter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from litestar import Litestar
from litestar.types import HTTPReceiveMessage, HTTPScope, Message, Receive, Send

from api.problems import (
    PROBLEM_MEDIA_TYPE,
    HostNotServed,
    MethodNotAllowed,
    encode_problem,
    problem_of,
)
from ledger.errors import SlaLedgerError

READING: Final = ("GET", "HEAD")
WRITING: Final = (*READING, "POST")
LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
NO_STORE: Final = "no-store"
# Not "immutable": on a loopback port the next data directory serves other bytes under the same address. Files of the
# log are the exception (api.rest.tlog): their address names the log.
REVALIDATE: Final = "no-cache"

SECURITY_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


@dataclass(slots=True)
class _Answer:
    """A whole response, collected before it is sent: none of ours is larger than one bundle."""

    status: int = 500
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)

    async def collect(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = [(name.lower(), value) for name, value in message["headers"]]
        elif message["type"] == "http.response.body":
            self.body += message["body"]

    def header(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.headers if key == name), None)

    def drop(self, *names: bytes) -> None:
        self.headers = [(key, value) for key, value in self.headers if key not in names]


class Edge:
    """ASGI application around another one.

    Answers GET and HEAD, and POST where ``writes`` are served, to requests that name one of ``hosts`` (without port).
    Gives each 200 that may be stored an ``ETag`` (SHA-256 of its body) and honours ``If-None-Match`` (RFC 9110,
    13.1.2). Bodies are passed on for POST alone.
    """

    def __init__(self, app: Litestar, *, hosts: Iterable[str] = LOOPBACK_HOSTS, writes: bool = False) -> None:
        self.app = app
        self._methods = WRITING if writes else READING
        self._hosts = frozenset(host.encode() for host in hosts)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Any ASGI scope: Litestar's types would need a cast for each of the three kinds."""
        if scope["type"] == "http":
            answer = await self._answer(scope, receive)
            await _send(answer, send, with_body=scope["method"] != "HEAD")
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "there are no websockets here"})
        else:
            await self.app(scope, receive, send)

    async def _answer(self, scope: HTTPScope, receive: Receive) -> _Answer:
        refusal = self._refusal(scope)
        if refusal is not None:
            answer = _refused(refusal, scope["path"])
        else:
            answer = _Answer()
            writes = scope["method"] == "POST"
            inner: HTTPScope = {**scope, "method": "POST" if writes else "GET"}
            await self.app(inner, receive if writes else _no_body, answer.collect)
        return _conditional(answer, scope)

    def _refusal(self, scope: HTTPScope) -> SlaLedgerError | None:
        if scope["method"] not in self._methods:
            allowed = ", ".join(self._methods)
            return MethodNotAllowed(f"{scope['method']} is not served: there is {allowed}", allowed=allowed)
        hosts = _values(scope, b"host")
        if len(hosts) == 1 and _without_port(hosts[0]) in self._hosts:
            return None
        named = b", ".join(hosts).decode("latin-1")[:100]
        return HostNotServed(f"the host {named!r} is not served here; ask for 127.0.0.1 or localhost", host=named)


async def _no_body() -> HTTPReceiveMessage:
    return {"type": "http.request", "body": b"", "more_body": False}


def _refused(error: SlaLedgerError, path: str) -> _Answer:
    problem = problem_of(error, path)
    headers = [(b"content-type", PROBLEM_MEDIA_TYPE.encode())]
    if isinstance(error, MethodNotAllowed):
        headers.append((b"allow", str(error.data["allowed"]).encode()))
    body = bytearray(encode_problem(problem))
    return _Answer(problem.status, [*headers, (b"content-length", b"%d" % len(body))], body)


def _conditional(answer: _Answer, scope: HTTPScope) -> _Answer:
    """``answer`` with cache headers, and as a 304 where the client holds the same bytes already."""
    if answer.header(b"cache-control") is None:
        revalidates = answer.status == 200 and scope["method"] != "POST"
        answer.headers.append((b"cache-control", (REVALIDATE if revalidates else NO_STORE).encode()))
    if answer.status == 200 and answer.header(b"cache-control") != NO_STORE.encode():
        etag = b'"%s"' % hashlib.sha256(answer.body).hexdigest().encode()
        answer.headers.append((b"etag", etag))
        if _matches(_values(scope, b"if-none-match"), etag):
            answer.status = 304
            answer.drop(b"content-type", b"content-length")
            answer.body.clear()
    answer.headers.extend(SECURITY_HEADERS)
    return answer


def _matches(if_none_match: list[bytes], etag: bytes) -> bool:
    """Weak comparison, as If-None-Match asks for. Our tags hold no comma, so splitting at commas is exact."""
    tags = [tag.strip() for tag in b",".join(if_none_match).split(b",")]
    return b"*" in tags or any(tag.removeprefix(b"W/") == etag for tag in tags)


def _without_port(host: bytes) -> bytes:
    end = host.find(b"]") if host.startswith(b"[") else 0
    name, colon, port = host[end:].partition(b":")
    # A port of anything but digits is a name in disguise ("127.0.0.1:x@evil.example").
    return host if colon and not port.isdigit() else (host[:end] + name).lower()


def _values(scope: HTTPScope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key.lower() == name]


async def _send(answer: _Answer, send: Send, *, with_body: bool) -> None:
    await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
    body = bytes(answer.body) if with_body else b""
    await send({"type": "http.response.body", "body": body, "more_body": False})
