"""Errors as problem documents (RFC 9457). The one place where an error becomes an HTTP status."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException, ValidationException

from ledger.domain.canonical import MAX_SAFE_INTEGER
from ledger.errors import (
    AccessDenied,
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
    (BodyTooLarge, 413),
    (BodyTooSlow, 408),
    (MediaTypeUnsupported, 415),
    (BadInput, 400),
    (Unavailable, 503),
)


class MethodNotAllowed(SlaLedgerError):
    """The method is not one that is served; ``data["allowed"]`` lists those that are."""

    code = "method_not_allowed"


class HostNotServed(SlaLedgerError):
    """The Host header names another machine: a page elsewhere may be trying to read this one (DNS rebinding)."""

    code = "host_not_served"


class NotReady(Unavailable):
    """The service cannot answer now; ``data`` has the schema it found and the one it needs."""

    code = "not_ready"


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
        return _problem(_status(error), error.code, error.message, instance, error.data)
    if isinstance(error, ValidationException):
        parameters = _parameters(error.extra)
        detail = "; ".join(f"{item['parameter']}: {item['message']}" for item in parameters) or error.detail
        return _problem(400, QueryInvalid.code, detail, instance, {"parameters": parameters})
    if isinstance(error, NotFoundException):
        return _problem(404, NotFound.code, "there is no such resource; /schema/openapi.json lists all", instance, {})
    if isinstance(error, MethodNotAllowedException):
        return _problem(405, MethodNotAllowed.code, "this resource does not take this method", instance, {})
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
    return Response(encode_problem(problem), status_code=problem.status, media_type=PROBLEM_MEDIA_TYPE)


def _status(error: SlaLedgerError) -> int:
    if isinstance(error, MethodNotAllowed):
        return 405
    if isinstance(error, HostNotServed):
        return 421
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def _problem(status: int, code: str, detail: str, instance: str, data: Mapping[str, Any]) -> Problem:
    return Problem(
        type=TYPE_PREFIX + code,
        title=code.replace("_", " ").capitalize(),
        status=status,
        detail=detail,
        instance=instance,
        code=code,
        data={key: _plain(value) for key, value in data.items()},
    )


def _parameters(extra: Any) -> list[dict[str, str]]:
    """Litestar's findings as (parameter, message) pairs."""
    items: Sequence[Any] = extra if isinstance(extra, list) else ()
    return [{"parameter": str(item.get("key", "")), "message": str(item.get("message", ""))} for item in items]


def _plain(value: Any) -> Any:
    """``value`` as JSON that every reader understands alike: no number beyond 2^53, no unknown types."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_SAFE_INTEGER else str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [_plain(item) for item in value]
    return str(value)
