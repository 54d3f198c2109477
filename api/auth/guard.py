"""One guard before every handler, and the refusal of handlers that do not say what they need."""

from __future__ import annotations

from typing import Any, Final

from litestar import Litestar, Request
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from api.auth.callers import Caller
from ledger.app.access import Principal, Scope, require

SCOPES: Final = "scopes"
"""The key of a handler's ``opt``: a tuple of scopes, all of which are needed; () is public."""


def needed_scopes(handler: BaseRouteHandler) -> tuple[Scope, ...] | None:
    """What a handler needs, None where it does not say."""
    found = handler.opt.get(SCOPES)
    if isinstance(found, tuple) and all(isinstance(scope, Scope) for scope in found):
        return found
    return None


AUTHENTICATED: Final = "authenticated"
"""The key of a handler's ``opt``: True where everybody who is known may ask, and each field says what it needs."""


def is_public(handler: BaseRouteHandler) -> bool:
    """Whether a handler answers everybody alike."""
    return needed_scopes(handler) == () and not handler.opt.get(AUTHENTICATED)


def check_scopes(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Litestar's guard: raises ``AccessDenied`` or ``Unauthenticated``."""
    scopes = needed_scopes(handler)
    if scopes is None:
        raise TypeError(f"{handler} declares no scopes")
    require(connection.scope["auth"], *scopes)


def require_declared(app: Litestar) -> None:
    """Raises ``TypeError`` naming the handlers of ``app`` that do not declare their scopes."""
    silent = {
        f"{handler} ({route.path})"
        for route in app.routes
        for handler in getattr(route, "route_handlers", None) or [getattr(route, "route_handler", None)]
        if handler is not None and not _is_preflight(handler) and needed_scopes(handler) is None
    }
    if silent:
        raise TypeError(f'these handlers need opt={{"scopes": (...)}}: {", ".join(sorted(silent))}')


def principal_of(request: Request[Any, Any, Any]) -> Principal:
    """The dependency ``principal``."""
    found: Principal = request.scope["auth"]
    return found


def caller_of(request: Request[Any, Any, Any]) -> Caller:
    """The dependency ``caller``: the principal with what its credentials say beside."""
    found: Caller = request.scope["user"]
    return found


def _is_preflight(handler: BaseRouteHandler) -> bool:
    # Litestar makes these for each path; the edge lets no OPTIONS through.
    return getattr(handler, "http_methods", None) == {"OPTIONS"}
