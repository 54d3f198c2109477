"""How a route is declared: a GET in the thread pool, the scopes it needs, and the problems it may answer with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from litestar import MediaType, get, post
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec

from api.answers import OF_THE_LOG
from api.auth.guard import SCOPES
from api.problems import PROBLEM_MEDIA_TYPE, Problem
from ledger.app.access import Scope
from ledger.app.queries import Queries
from ledger.app.visible import VisibleQueries

Asked: TypeAlias = NamedDependency[Queries]
"""The type of a handler's ``queries`` argument: everything of the principal's tenant, filtered by nobody."""

Seen: TypeAlias = NamedDependency[VisibleQueries]
"""The type of a handler's ``seen`` argument: what the principal may see."""

PUBLIC: tuple[Scope, ...] = ()
"""The scopes of a route that answers everybody."""

_MEANINGS = {
    400: "A parameter is unknown, repeated or not usable",
    401: "Credentials are missing, or do not hold",
    403: "The credentials do not cover this; `data.scope` names the scope",
    404: "There is no such thing",
    409: "The present state does not allow it",
    503: "The database cannot be read now",
}


def reads(
    path: str,
    *,
    summary: str,
    tag: str,
    scopes: tuple[Scope, ...],
    problems: Sequence[int] = (400, 503),
    media_type: MediaType | str = MediaType.JSON,
    shape: Any = None,
    of_the_log: bool = False,
) -> HTTPRouteHandler:
    """Decorator of a read that needs all of ``scopes``.

    ``of_the_log``: the answer follows from the log and what the principal may see, so it may be kept meanwhile.
    ``shape`` documents an answer whose bytes the handler gives as they are.
    """
    # Bad credentials are refused on public routes, too.
    responses = _responses({*problems, 401, *([403] if scopes else [])})
    if shape is not None:
        responses[200] = ResponseSpec(
            shape, generate_examples=False, description="The exact bytes", media_type=media_type
        )
    return get(
        path,
        sync_to_thread=True,
        media_type=media_type,
        summary=summary,
        tags=[tag],
        responses=responses,
        opt={SCOPES: scopes, OF_THE_LOG: of_the_log},
        security=security(scopes),
    )


def writes(
    path: str, *, summary: str, tag: str, scopes: tuple[Scope, ...], problems: Sequence[int] = (400, 404, 409, 503)
) -> HTTPRouteHandler:
    """Decorator of a change that needs all of ``scopes`` and answers with what it made or found."""
    return post(
        path,
        sync_to_thread=True,
        summary=summary,
        tags=[tag],
        status_code=200,
        responses=_responses({*problems, 401, 403}),
        opt={SCOPES: scopes},
        security=security(scopes),
    )


def _responses(problems: Iterable[int]) -> dict[int, ResponseSpec]:
    return {
        status: ResponseSpec(
            Problem, generate_examples=False, description=_MEANINGS[status], media_type=PROBLEM_MEDIA_TYPE
        )
        for status in sorted(problems)
    }


def security(scopes: tuple[Scope, ...]) -> list[dict[str, list[str]]]:
    """What the OpenAPI document says of a route's scopes."""
    return [{"bearer": [str(scope) for scope in scopes]}] if scopes else [{}]
