"""Errors as problem documents (RFC 9457). The one place where an error becomes an HTTP status."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, NotFoundException, ValidationException

from ledger.domain.record.canonical import MAX_SAFE_INTEGER
from ledger.errors import (
    AccessDenied,
    AgreementNotSigned,
    BadInput,
    BodyTooLarge,
    BodyTooSlow,
    MediaTypeUnsupported,
    NotFound,
    QueryInvalid,
    Refused,
    SlaLedgerError,
    Unauthenticated,
    Unavailable,
)

PROBLEM_MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:sla-ledger:problem:"

_LOG = logging.getLogger(__name__)

# Most special first. What no row names, evidence in the store that does not hold among it, is a 500.
_STATUS: tuple[tuple[type[SlaLedgerError], int], ...] = (
    (Unauthenticated, 401),
    (AccessDenied, 403),
    (NotFound, 404),
    (Refused, 409),
    # What a client hands in, not evidence in the store.
    (AgreementNotSigned, 400),
    (BodyTooSlow, 408),
    (BodyTooLarge, 413),
    (MediaTypeUnsupported, 415),
    (BadInput, 400),
    (Unavailable, 503),
)


class MethodNotAllowed(SlaLedgerError):
    """The route is not served by this method; ``data["allowed"]`` has those that are."""

    code = "method_not_allowed"


class CrossSiteRequest(SlaLedgerError):
    """A page of another origin had a browser send this, and it would change something."""

    code = "cross_site_request"


class RateLimited(SlaLedgerError):
    """The principal asks too often; ``data["retry_after_s"]`` says when to ask again."""

    code = "rate_limited"


class HostNotServed(SlaLedgerError):
    """The Host header names another machine: a page elsewhere may be trying to read this one (DNS rebinding)."""

    code = "host_not_served"


class NotReady(Unavailable):
    """The service cannot answer now; ``data`` has the schema it found and the one it needs."""

    code = "not_ready"


_OWN_STATUS: tuple[tuple[type[SlaLedgerError], int], ...] = (
    (MethodNotAllowed, 405),
    (HostNotServed, 421),
    (CrossSiteRequest, 403),
    (RateLimited, 429),
)


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem document (RFC 9457). ``code`` is stable across releases; ``detail`` is for a person."""

    type: Annotated[str, msgspec.Meta(description=f"`{TYPE_PREFIX}` followed by the code")]
    title: Annotated[str, msgspec.Meta(description="The code in words")]
    status: Annotated[int, msgspec.Meta(description="The HTTP status, again", ge=400, le=599)]
    detail: Annotated[str, msgspec.Meta(description="What is wrong, and what to do next")]
    instance: Annotated[str, msgspec.Meta(description="The path that was asked for")]
    code: Annotated[str, msgspec.Meta(description="Stable name of the error, as on the command line")]
    data: Annotated[dict[str, Any], msgspec.Meta(description="The values that made the error")]


def problem_of(error: Exception, instance: str) -> Problem:
    """The problem document of any error. What is not of the error tree tells nothing about itself."""
    if isinstance(error, SlaLedgerError):
        return _problem(status_of(error), error.code, error.message, instance, error.data)
    if isinstance(error, ValidationException):
        parameters = _parameters(error.extra)
        detail = "; ".join(f"{item['parameter']}: {item['message']}" for item in parameters) or error.detail
        return _problem(400, QueryInvalid.code, detail, instance, {"parameters": parameters})
    if isinstance(error, NotFoundException):
        return _problem(404, NotFound.code, "there is no such resource; /schema/openapi.json lists all", instance, {})
    if isinstance(error, HTTPException) and error.status_code == 405:
        allowed = _allowed(error)
        detail = f"this route serves {allowed}"
        return _problem(405, MethodNotAllowed.code, detail, instance, {"allowed": allowed})
    if isinstance(error, HTTPException) and error.status_code == 413:
        return _problem(413, BodyTooLarge.code, "the body is longer than this route takes", instance, {})
    if isinstance(error, HTTPException) and error.status_code < 500:
        return _problem(error.status_code, BadInput.code, error.detail, instance, {})
    return _problem(500, SlaLedgerError.code, "the server failed; its log says why", instance, {})


def encode_problem(problem: Problem) -> bytes:
    return msgspec.json.encode(problem)


def handle_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Litestar's handler for every error of every route."""
    problem = problem_of(error, request.url.path)
    if problem.status >= 500:
        _LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return Response(
        encode_problem(problem),
        status_code=problem.status,
        media_type=PROBLEM_MEDIA_TYPE,
        headers=problem_headers(error),
    )


def problem_headers(error: Exception) -> dict[str, str]:
    """What goes with a problem: the challenge of RFC 6750, the methods that are served, when to ask again."""
    if isinstance(error, HTTPException):
        return {"allow": _allowed(error)} if error.status_code == 405 else {}
    if isinstance(error, Unauthenticated):
        # Without credentials RFC 6750, 3.1 wants no error code.
        invalid = f', error="invalid_token", error_description="{_quotable(error.message)}"'
        return {"www-authenticate": 'Bearer realm="sla-ledger"' + (invalid if error.data.get("presented") else "")}
    if isinstance(error, AccessDenied) and "scope" in error.data:
        return {
            "www-authenticate": f'Bearer realm="sla-ledger", error="insufficient_scope", scope="{error.data["scope"]}"'
        }
    if isinstance(error, MethodNotAllowed):
        return {"allow": str(error.data["allowed"])}
    if isinstance(error, SlaLedgerError) and isinstance(error.data.get("retry_after_s"), int):
        return {"retry-after": str(error.data["retry_after_s"])}
    return {}


def _allowed(error: HTTPException) -> str:
    """The methods of a route; HEAD goes with GET, and OPTIONS (CORS) is not served."""
    named = {name.strip() for name in (error.headers or {}).get("allow", "").split(",")} - {"", "OPTIONS"}
    return ", ".join(sorted(named | ({"HEAD"} if "GET" in named else set())))


def _quotable(text: str) -> str:
    """As much of a text as RFC 6750 allows between quotes."""
    return "".join(sign for sign in text if " " <= sign <= "~" and sign not in '"\\')


def status_of(error: SlaLedgerError) -> int:
    """The HTTP status of an error of the tree."""
    table = (*_OWN_STATUS, *_STATUS)
    return next((status for kind, status in table if isinstance(error, kind)), 500)


def _problem(status: int, code: str, detail: str, instance: str, data: Mapping[str, Any]) -> Problem:
    return Problem(
        type=TYPE_PREFIX + code,
        title=code.replace("_", " ").capitalize(),
        status=status,
        detail=detail,
        instance=instance,
        code=code,
        data={key: plain(value) for key, value in data.items()},
    )


def _parameters(extra: Any) -> list[dict[str, str]]:
    """Litestar's findings as (parameter, message) pairs."""
    items: Sequence[Any] = extra if isinstance(extra, list) else ()
    return [{"parameter": _spelt(item), "message": str(item.get("message", ""))} for item in items]


def _spelt(item: Mapping[str, Any]) -> str:
    """A parameter as a client knows it; Litestar names a header's argument."""
    name = str(item.get("key", ""))
    return name.replace("_", "-").title() if item.get("source") == "header" else name


def plain(value: Any) -> Any:
    """``value`` as JSON that every reader understands alike: no number beyond 2^53, no unknown types."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_SAFE_INTEGER else str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [plain(item) for item in value]
    return str(value)
