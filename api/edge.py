"""What holds for every request, whichever route answers it: hosts, who asks, how often and how much.

It stands around the application instead of in a route's middleware, because routing errors (404, 405) never
reach the latter.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from litestar import Litestar
from litestar.handlers import BaseRouteHandler
from litestar.types import HTTPScope, Receive, Send

from api import cors
from api.answers import KeptAnswer, KeptAnswers, is_of_the_log
from api.auth.callers import LOCAL_OPERATOR, TENANT_HEADER, Authentication, Caller, GuestRefused
from api.auth.guard import is_public
from api.auth.rate import RateLimit
from api.finishing import READING, REQUEST_ID, Answer, Forward, etag_of, finished, header_values
from api.lifespan import acknowledge
from api.problems import (
    PROBLEM_MEDIA_TYPE,
    CrossSiteRequest,
    HostNotServed,
    MethodNotAllowed,
    encode_problem,
    problem_headers,
    problem_of,
)
from api.served import SERVED, Served
from api.shared_reads import SharedReads
from ledger.app.access import ANONYMOUS, Principal
from ledger.app.reading.queries import Revision
from ledger.errors import AccessDenied, BodyTooLarge, SlaLedgerError, Unauthenticated
from ledger.settings import LOOPBACK_HOSTS

WRITING: Final = ("POST", "PUT", "PATCH", "DELETE")
ALLOWED_METHODS: Final = ", ".join(READING + WRITING)
MAX_BODY_BYTES: Final = 64 * 1024 * 1024
"""No route takes more; most take far less (``create_app``)."""
VERSIONED_PREFIX: Final = "/v1/"

Count: TypeAlias = Callable[[str, str, int, float], None]
"""Told of each answer: (method, route, status, seconds)."""

_LOG = logging.getLogger(__name__)

LOCAL_ONLY: Final = Authentication(LOCAL_OPERATOR, {}, lambda _text: "")
"""Whoever reaches the port is the operator; there are no credentials to present."""
UNLIMITED: Final = RateLimit(0, lambda: 0)


class Edge:
    """ASGI application around another one.

    Finds out who asks (``scope["auth"]`` is the principal, ``scope["user"]`` the caller) before any route does, and
    answers requests that name one of ``hosts`` (without port). Gives each 200 that may be stored an ``ETag``
    (SHA-256 over what the principal may see and the body) and honours ``If-None-Match`` (RFC 9110, 13.1.2). Bodies of
    reading requests are never read.
    """

    def __init__(
        self,
        app: Litestar,
        served: Served | None = None,
        *,
        authentication: Authentication = LOCAL_ONLY,
        hosts: Iterable[str] = LOOPBACK_HOSTS,
        rate_limit: RateLimit = UNLIMITED,
        revision: Callable[[], Revision] | None = None,
        count: Count = lambda *_: None,
    ) -> None:
        """``served`` is what the routes answer from. ``revision`` tells the present state of things; without it no
        answer is kept. ``count`` is told of every answer."""
        self.app = app
        self.served = served
        self._count = count
        self._revision = None if revision is None else SharedReads(revision)
        self._kept = KeptAnswers()
        self._authentication = authentication
        self._hosts = frozenset(host.encode() for host in hosts)
        self._rate_limit = rate_limit

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Any ASGI scope: Litestar's types would need a cast for each of the three kinds."""
        if scope["type"] == "http":
            started = time.perf_counter()
            answer = await self._answer(scope, receive, send)
            if not answer.begun:
                await _send(answer, send, with_body=scope["method"] != "HEAD")
            self._tell(scope, answer, time.perf_counter() - started)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "there are no websockets here"})
        else:
            await acknowledge(receive, send)

    def _tell(self, scope: HTTPScope, answer: Answer, seconds: float) -> None:
        method = scope["method"] if scope["method"] in READING + WRITING else "other"
        self._count(method, answer.route, answer.status, seconds)
        if not _LOG.isEnabledFor(logging.INFO):
            return
        # Neither address nor query: they name agreements. The request's id finds what the client was told.
        _LOG.info(
            "request",
            extra={
                "method": method,
                "route": answer.route,
                "status": answer.status,
                "duration_ms": round(seconds * 1000, 3),
                "request_id": (answer.header(REQUEST_ID) or b"").decode(),
            },
        )

    async def _answer(self, scope: HTTPScope, receive: Receive, send: Send) -> Answer:
        async def forward(part_of: Answer, body: bytes, more: bool) -> None:
            if not part_of.begun:
                finish(part_of)
                await send({"type": "http.response.start", "status": part_of.status, "headers": part_of.headers})
                part_of.begun = True
            shown = b"" if scope["method"] == "HEAD" else body
            # The last part at once: who makes the answer waits until the client has it.
            await send({"type": "http.response.body", "body": shown, "more_body": more})

        def finish(found: Answer) -> Answer:
            found.headers.extend(cors.readable(header_values(scope, b"origin"), guest_origin))
            return finished(found, scope, principal, public=_is_public(inner))

        allowed = _preflight(scope)
        reading, guest_origin = scope["method"] in READING, None
        inner: HTTPScope = {**scope, "method": "GET" if reading else scope["method"]}
        try:
            self._check(scope, preflight=allowed is not None)
            if allowed is not None:
                return finished(Answer(204, allowed), scope, ANONYMOUS, public=True)
            caller = await self._caller(scope)
            guest_origin = caller.guest_origin
            self._admit(caller, scope)
        except Exception as error:
            answer, principal = _refused(error, scope), ANONYMOUS
            if isinstance(error, GuestRefused):
                guest_origin = error.guest_origin
        else:
            answer, principal = Answer(forward=forward), caller.principal
            inner["auth"], inner["user"], inner["state"] = principal, caller, {SERVED: self.served}
            if reading:
                answer = await self._read(inner, principal, receive, forward)
            else:
                await self.app(inner, _Capped(receive), answer.collect)
                answer.route = inner.get("path_template", "")
        return answer if answer.begun else finish(answer)

    async def _read(self, inner: HTTPScope, principal: Principal, receive: Receive, forward: Forward) -> Answer:
        """The answer of a route, or the one it gave when all was as it is now."""
        place = KeptAnswers.place(inner["path"], inner["query_string"], principal)
        revision = await self._present(inner["path"])
        kept = None if revision is None else self._kept.find(place, revision)
        if kept is not None:
            headers = [(b"content-type", kept.content_type), (b"content-length", b"%d" % len(kept.body))]
            return Answer(200, headers, kept.body, kept.etag, kept.route)
        answer = Answer(forward=forward)
        await self.app(inner, _NoBody(receive), answer.collect)
        answer.route = inner.get("path_template", "")
        if revision is not None and answer.status == 200 and is_of_the_log(_handler_of(inner)):
            answer.etag = etag_of(answer.body, principal, public=_is_public(inner))
            content_type = answer.header(b"content-type") or b""
            self._kept.keep(place, KeptAnswer(answer.body, content_type, answer.etag, answer.route, revision))
        return answer

    async def _present(self, path: str) -> Revision | None:
        if self._revision is None or not path.startswith(VERSIONED_PREFIX):
            return None
        try:
            return await self._revision.get()
        except SlaLedgerError:
            # The route says what is wrong.
            return None

    def _check(self, scope: HTTPScope, *, preflight: bool) -> None:
        method = scope["method"]
        if method not in READING + WRITING and not preflight:
            raise MethodNotAllowed(f"{method[:20]} is not served", allowed=ALLOWED_METHODS)
        hosts = header_values(scope, b"host")
        if len(hosts) != 1 or _without_port(hosts[0]) not in self._hosts:
            named = b", ".join(hosts).decode("latin-1")[:100]
            raise HostNotServed(f"the host {named!r} is not served here; ask for {_listed(self._hosts)}", host=named)
        lengths = header_values(scope, b"content-length")
        if method in WRITING and any(not value.isdigit() or int(value[:20]) > MAX_BODY_BYTES for value in lengths):
            raise _too_large()

    async def _caller(self, scope: HTTPScope) -> Caller:
        authorization, tenant = header_values(scope, b"authorization"), header_values(scope, TENANT_HEADER)
        if not authorization:
            return self._authentication.without_credentials(tenant)
        # Whoever tries credentials that do not hold is refused before the next ones cost anything.
        tries = ("refused credentials", _address(scope))
        self._rate_limit.check(tries)
        try:
            # In a thread: keys are looked up in the database, and those of an issuer are fetched.
            return await asyncio.to_thread(self._authentication.verify, authorization, tenant)
        except Unauthenticated:
            self._rate_limit.take(tries)
            raise

    def _admit(self, caller: Caller, scope: HTTPScope) -> None:
        principal = caller.principal
        address = _address(scope) if principal is ANONYMOUS else ""
        self._rate_limit.take((principal.subject, principal.tenant, address))
        if scope["method"] in WRITING and self._authentication.is_local:
            _refuse_cross_site(scope)
        if caller.guest_origin is not None:
            _admit_guest(caller.guest_origin, scope)


def _address(scope: HTTPScope) -> str:
    """Where a request comes from; empty where the server does not know."""
    client = scope.get("client")
    return client[0] if client else ""


def _refuse_cross_site(scope: HTTPScope) -> None:
    """A browser sends requests of any page to this machine; they must not change anything (CSRF)."""
    sites, origins = header_values(scope, b"sec-fetch-site"), header_values(scope, b"origin")
    if all(site in (b"same-origin", b"none") for site in sites) and all(_is_own(scope, each) for each in origins):
        return
    named = b", ".join(origins).decode("latin-1")[:100]
    raise CrossSiteRequest(f"a page of {named or 'another site'} may change nothing here", origin=named)


def _admit_guest(origin: str, scope: HTTPScope) -> None:
    if scope["method"] not in READING or not scope["path"].startswith(VERSIONED_PREFIX):
        raise AccessDenied("a guest token reads under /v1/ and does nothing else", path=scope["path"][:80])
    if not all(each == origin.encode() or _is_own(scope, each) for each in header_values(scope, b"origin")):
        raise AccessDenied("the guest token was made for a page of another origin", origin=origin)


def _is_own(scope: HTTPScope, origin: bytes) -> bool:
    scheme, _, authority = origin.partition(b"://")
    return scheme in (b"http", b"https") and [authority] == header_values(scope, b"host")


def _preflight(scope: HTTPScope) -> list[tuple[bytes, bytes]] | None:
    if scope["method"] != "OPTIONS":
        return None
    method, headers = (header_values(scope, b"access-control-request-" + name) for name in (b"method", b"headers"))
    return cors.preflight(scope["path"], header_values(scope, b"origin"), method, headers)


class _Capped:
    """The request's messages, as long as there are not too many bytes in them."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._received = 0

    async def __call__(self) -> Any:
        message = await self._receive()
        if message["type"] == "http.request":
            self._received += len(message["body"])
        if self._received > MAX_BODY_BYTES:
            raise _too_large()
        return message


def _too_large() -> BodyTooLarge:
    return BodyTooLarge(f"no body may have more than {MAX_BODY_BYTES} bytes", field="body", limit=MAX_BODY_BYTES)


class _NoBody:
    """The messages of a request whose body is not read: that it has none, and then when the client goes away."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._told = False

    async def __call__(self) -> Any:
        if not self._told:
            self._told = True
            return {"type": "http.request", "body": b"", "more_body": False}
        while (message := await self._receive())["type"] != "http.disconnect":
            pass
        return message


def _refused(error: Exception, scope: HTTPScope) -> Answer:
    problem = problem_of(error, scope["path"])
    if problem.status >= 500:
        _LOG.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
    headers = [(b"content-type", PROBLEM_MEDIA_TYPE.encode())]
    headers += [(name.encode(), value.encode("latin-1")) for name, value in problem_headers(error).items()]
    body = encode_problem(problem)
    return Answer(problem.status, [*headers, (b"content-length", b"%d" % len(body))], body)


def _is_public(inner: Any) -> bool:
    """Whether a route was found, and answers everybody alike."""
    handler = _handler_of(inner)
    return handler is not None and is_public(handler)


def _handler_of(inner: Mapping[str, Any]) -> BaseRouteHandler | None:
    """The handler that Litestar chose, where it found one."""
    return inner.get("route_handler")


def _without_port(host: bytes) -> bytes:
    end = host.find(b"]") if host.startswith(b"[") else 0
    name, colon, port = host[end:].partition(b":")
    # A port of anything but digits is a name in disguise ("127.0.0.1:x@evil.example").
    return host if colon and not port.isdigit() else (host[:end] + name).lower()


def _listed(names: Iterable[bytes]) -> str:
    return ", ".join(sorted(name.decode() for name in names))


async def _send(answer: Answer, send: Send, *, with_body: bool) -> None:
    await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
    body = answer.body if with_body else b""
    await send({"type": "http.response.body", "body": body, "more_body": False})
