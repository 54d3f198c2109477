"""How a route is declared: a GET in the thread pool, with the problems it may answer with in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from litestar import MediaType, get
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec

from api.problems import PROBLEM_MEDIA_TYPE, Problem
from ledger.app.queries import Queries

Asked: TypeAlias = NamedDependency[Queries]
"""The type of a handler's ``queries`` argument."""

_MEANINGS = {
    400: "A parameter is unknown, repeated or not usable",
    404: "There is no such thing",
    503: "The database cannot be read now",
}


def reads(
    path: str,
    *,
    summary: str,
    tag: str,
    problems: Sequence[int] = (400, 503),
    media_type: MediaType | str = MediaType.JSON,
    shape: Any = None,
) -> HTTPRouteHandler:
    """Decorator of a read. ``shape`` documents an answer whose bytes the handler gives as they are."""
    responses = {
        status: ResponseSpec(
            Problem, generate_examples=False, description=_MEANINGS[status], media_type=PROBLEM_MEDIA_TYPE
        )
        for status in problems
    }
    if shape is not None:
        responses[200] = ResponseSpec(
            shape, generate_examples=False, description="The exact bytes", media_type=media_type
        )
    return get(path, sync_to_thread=True, media_type=media_type, summary=summary, tags=[tag], responses=responses)
