"""Errors as GraphQL shows them. The one place where an error becomes ``extensions.code``.

Codes are those of the error tree in capitals (``NOT_FOUND``, ``CURSOR_INVALID``, ...), and ``FORBIDDEN`` for a scope
that is lacking. What is not of the tree tells nothing about itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from graphql import GraphQLError, GraphQLSyntaxError

from api.problems import plain
from ledger.app.access import Principal, Scope
from ledger.errors import AccessDenied, BadInput, SlaLedgerError

FORBIDDEN = "FORBIDDEN"
INTERNAL = "INTERNAL"
PARSE_FAILED = "GRAPHQL_PARSE_FAILED"
VALIDATION_FAILED = "GRAPHQL_VALIDATION_FAILED"

_LOG = logging.getLogger(__name__)


class LimitExceeded(BadInput):
    """An operation is too large; ``data`` names the limit and what is allowed."""

    code = "limit_exceeded"


class RequestUnusable(BadInput):
    """The body is not a GraphQL request: not JSON, a list of requests, or an unknown or misspelt member."""

    code = "request_unusable"


def forbidden(principal: Principal, field: str, scopes: Iterable[str]) -> AccessDenied:
    """That ``field`` (``Type.field``) needs ``scopes``: those that are lacking, in order."""
    named = " and ".join(scopes)
    return AccessDenied(
        f"the field {field} needs the scope {named}, which {principal.subject} does not have; "
        "ask an administrator for it, or leave the field out",
        scope=named,
        field=field,
    )


def lacking(principal: Principal, needed: Iterable[Scope]) -> tuple[Scope, ...]:
    """The scopes of ``needed`` that the principal does not have, sorted."""
    return tuple(sorted(scope for scope in needed if scope not in principal.scopes))


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
            _LOG.error("GraphQL: %s failed", error.path, exc_info=error.original_error or error)


def _described(error: GraphQLError) -> tuple[str, dict[str, Any]]:
    code, original = _code(error), error.original_error
    if isinstance(original, SlaLedgerError):
        if code == INTERNAL:
            return "the server failed; its log says why", {"code": INTERNAL}
        members = {"scope": original.data["scope"]} if "scope" in original.data else {}
        return original.message, {"code": code, **members, "data": plain(original.data)}
    if code == INTERNAL:
        return "the server failed; its log says why", {"code": INTERNAL}
    return error.message, {"code": code}


def _code(error: GraphQLError) -> str:
    original = error.original_error
    if isinstance(original, AccessDenied):
        return FORBIDDEN
    if isinstance(original, SlaLedgerError):
        # The root and what is stored wrongly are faults of ours; their text may name what nobody outside needs.
        return INTERNAL if original.code == SlaLedgerError.code else original.code.upper()
    if isinstance(error, GraphQLSyntaxError):
        return PARSE_FAILED
    # Errors of a request have no path; one inside the answer that is not of the tree is a fault of ours.
    return VALIDATION_FAILED if error.path is None and original is None else INTERNAL
