"""Errors as GraphQL shows them. The one place where an error becomes ``extensions.code``.

Codes are those of the error tree in capitals (``NOT_FOUND``, ``CURSOR_INVALID``, ...), and ``FORBIDDEN`` for a scope
that is lacking. What is not of the tree tells nothing about itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from graphql import GraphQLError, GraphQLSyntaxError

from api.problems import plain, status_of
from ledger.app.access import Principal, Scope
from ledger.errors import AccessDenied, BadInput, SlaLedgerError

FORBIDDEN = "FORBIDDEN"
INTERNAL = "INTERNAL"
NOT_SHOWN = "ERRORS_NOT_SHOWN"
PARSE_FAILED = "GRAPHQL_PARSE_FAILED"
VALIDATION_FAILED = "GRAPHQL_VALIDATION_FAILED"
MAX_SHOWN = 200

_LOG = logging.getLogger(__name__)


class LimitExceeded(BadInput):
    """An operation is too large; ``data`` names the limit and what is allowed."""

    code = "limit_exceeded"


class RequestUnusable(BadInput):
    """The body is not a GraphQL request: not JSON, a list of requests, or an unknown or misspelt member."""

    code = "request_unusable"


def forbidden(principal: Principal, field: str, scopes: Iterable[str]) -> AccessDenied:
    """That ``field`` (``Type.field``) needs ``scopes``: those that are lacking, in order."""
    named = list(map(str, scopes))
    return AccessDenied(
        f"the field {field} needs the scope {' and '.join(named)}, which {principal.subject} does not have; "
        "ask an administrator for it, or leave the field out",
        scope=named[0],
        scopes=named,
        field=field,
    )


def lacking(principal: Principal, needed: Iterable[Scope]) -> tuple[Scope, ...]:
    """The scopes of ``needed`` that the principal does not have, sorted."""
    return tuple(sorted(scope for scope in needed if scope not in principal.scopes))


def present_all(errors: Sequence[GraphQLError]) -> list[dict[str, Any]]:
    """The first ``MAX_SHOWN`` errors, and one that says how many more there are: a refused field of a long list is an
    error for each item."""
    shown = [present(error) for error in errors[:MAX_SHOWN]]
    if len(errors) > MAX_SHOWN:
        message = f"{len(errors) - MAX_SHOWN} more errors are not shown"
        shown.append({"message": message, "extensions": {"code": NOT_SHOWN}})
    return shown


def present(error: GraphQLError) -> dict[str, Any]:
    """The error as a member of ``errors`` (GraphQL, 7.1.2)."""
    message, extensions = _described(error)
    shown: dict[str, Any] = {"message": message}
    if error.locations:
        shown["locations"] = [{"line": place.line, "column": place.column} for place in error.locations]
    if error.path is not None:
        shown["path"] = list(error.path)
    shown["extensions"] = extensions
    return shown


def log_unexpected(errors: Iterable[GraphQLError]) -> None:
    """Log the faults of this program, with their traceback. A denial or a bad argument is no fault of ours."""
    for error in errors:
        if _code(error) == INTERNAL:
            _LOG.error("GraphQL: %s failed", error.path, exc_info=_cause(error) or error)


def _described(error: GraphQLError) -> tuple[str, dict[str, Any]]:
    code, original = _code(error), _cause(error)
    if code == INTERNAL:
        return "the server failed; its log says why", {"code": INTERNAL}
    if isinstance(original, SlaLedgerError):
        # Beside the code, where clients look for it first.
        members = {"scope": original.data["scope"]} if "scope" in original.data else {}
        return original.message, {"code": code, **members, "data": plain(original.data)}
    return error.message, {"code": code}


def _code(error: GraphQLError) -> str:
    original = _cause(error)
    if isinstance(original, AccessDenied):
        return FORBIDDEN
    if isinstance(original, SlaLedgerError):
        # What the evidence in the store does not bear out is a fault of ours, as in REST.
        return INTERNAL if status_of(original) == 500 else original.code.upper()
    if isinstance(error, GraphQLSyntaxError):
        return PARSE_FAILED
    # Errors of a request have no path; one inside the answer that is not of the tree is a fault of ours.
    return VALIDATION_FAILED if error.path is None and original is None else INTERNAL


def _cause(error: GraphQLError) -> Exception | None:
    """What was raised before GraphQL wrapped it, perhaps more than once."""
    found: Exception | None = error
    while isinstance(found, GraphQLError):
        found = found.original_error
    return found
