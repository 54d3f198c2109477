"""How a route is declared: its scopes, the problems it may answer with, and where its handler runs.

Every route of the API is one of these three, so that the OpenAPI document says the same of all: ``reads`` asks,
``writes`` changes by a JSON body, ``receives`` takes facts in a body of another type.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from litestar import MediaType, get, post
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec

from api.answers import OF_THE_LOG
from api.auth.guard import SCOPES
from api.problems import PROBLEM_MEDIA_TYPE, Problem
from ledger.app.access import Scope
from ledger.app.reading.visible import VisibleQueries

Seen: TypeAlias = NamedDependency[VisibleQueries]
"""The type of a handler's ``seen`` argument: what the principal may see."""

PUBLIC: tuple[Scope, ...] = ()
"""The scopes of a route that answers everybody."""

MAX_BODY_BYTES: Final = 256 * 1024
"""Of a change; facts have limits of their own (``ledger.settings.IngestSettings``)."""

_MEANINGS: Final = {
    400: "A parameter, a header or the body cannot be used; `data` names what",
    401: "Credentials are missing, or do not hold",
    403: "The credentials do not cover this; `data.scope` names the scope",
    404: "There is no such thing",
    408: "The body did not come in time",
    409: "The present state refuses it",
    413: "The body is too large, as it came or unpacked",
    415: "The body's type or encoding is not read here",
    503: "The database cannot be used now; ask again",
}


def reads(  # noqa: PLR0913 - what a route says of itself, each by its name
    path: str,
    *,
    summary: str,
    tag: str,
    scopes: tuple[Scope, ...],
    problems: Sequence[int] = (400, 503),
    media_type: MediaType | str = MediaType.JSON,
    shape: Any = None,
    of_the_log: bool = False,
    waits: bool = True,
) -> HTTPRouteHandler:
    """Decorator of a read that needs all of ``scopes``.

    ``of_the_log``: the answer follows from the log and what the principal may see, so it may be kept meanwhile.
    ``shape`` documents an answer whose bytes the handler gives as they are. A handler that never ``waits`` for anything
    needs no thread of the pool.
    """
    responses = _problems(problems, scopes)
    if shape is not None:
        responses[200] = ResponseSpec(
            shape, generate_examples=False, description="The exact bytes", media_type=media_type
        )
    return get(
        path,
        sync_to_thread=waits,
        media_type=media_type,
        summary=summary,
        tags=[tag],
        responses=responses,
        opt={SCOPES: scopes, OF_THE_LOG: of_the_log},
        security=_security(scopes),
    )


def writes(
    path: str,
    *,
    summary: str,
    tag: str,
    scopes: tuple[Scope, ...],
    status: int = 200,
    problems: Sequence[int] = (400, 404, 409, 413, 503),
) -> HTTPRouteHandler:
    """Decorator of a change that needs all of ``scopes``: 200 answers with what it made or found, 201 with something
    new, 202 with a receipt for what is yet to follow."""
    return post(
        path,
        status_code=status,
        sync_to_thread=True,
        media_type=MediaType.JSON,
        summary=summary,
        tags=[tag],
        responses=_problems(problems, scopes),
        request_max_body_size=MAX_BODY_BYTES,
        opt={SCOPES: scopes},
        security=_security(scopes),
    )


def receives(
    path: str,
    *,
    summary: str,
    tag: str,
    scopes: tuple[Scope, ...],
    problems: Sequence[int] = (400, 408, 413, 415, 503),
) -> HTTPRouteHandler:
    """Decorator of a route that takes facts and needs all of ``scopes``. The handler reads the body by
    ``api.receiving.Intake.take``, which has a limit for each route and a problem that names it."""
    return post(
        path,
        status_code=200,
        media_type=MediaType.JSON,
        summary=summary,
        tags=[tag],
        responses=_problems(problems, scopes),
        opt={SCOPES: scopes},
        security=_security(scopes),
        request_max_body_size=None,
    )


def _problems(statuses: Iterable[int], scopes: tuple[Scope, ...]) -> dict[int, ResponseSpec]:
    # Bad credentials are refused on public routes, too.
    all_of_them = {*statuses, 401, *([403] if scopes else [])}
    return {
        status: ResponseSpec(
            Problem, generate_examples=False, description=_MEANINGS[status], media_type=PROBLEM_MEDIA_TYPE
        )
        for status in sorted(all_of_them)
    }


def _security(scopes: tuple[Scope, ...]) -> list[dict[str, list[str]]]:
    """What the OpenAPI document says of a route's scopes."""
    return [{"bearer": [str(scope) for scope in scopes]}] if scopes else [{}]
