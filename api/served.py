"""What the routes answer from. It comes with each request: making the routes takes a tenth of a second, so a process
makes them once, and they serve all of its applications."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from litestar import Request
from litestar.di import NamedDependency, Provide

from api.auth.guests import GuestTokens
from api.desks import Desks
from api.graphql.context import Sources
from api.meters import Meters
from ledger.app.access import Principal
from ledger.app.billing.claims import ClaimDesk
from ledger.app.facts.quality import QualityDesk
from ledger.app.reading.lists import Lists
from ledger.app.reading.queries import Queries
from ledger.app.reading.readiness import Health
from ledger.app.reading.visible import VisibleQueries
from ledger.ingest.facts import read_facts
from ledger.settings import EmbedSettings

SERVED: Final = "served"
"""The key of a request's ``state``."""


@dataclass(frozen=True, slots=True)
class Served:
    """Of one application. Without ``guests`` there are no guest tokens."""

    desks: Desks
    health: Health
    meters: Meters
    graphql: Sources
    guests: GuestTokens | None
    embed: EmbedSettings


def served(request: Request[Any, Any, Any]) -> Served:
    """What answers a request."""
    found: Served = request.scope["state"][SERVED]
    return found


def _whole(name: str) -> Provide:
    def provide(request: Request[Any, Any, Any]) -> Any:
        return getattr(served(request), name)

    return _now(provide)


def _of_tenant(name: str) -> Provide:
    def provide(request: Request[Any, Any, Any], principal: NamedDependency[Principal]) -> Any:
        return getattr(served(request).desks, name).of_tenant(principal.tenant)

    return _now(provide)


def _intake(request: Request[Any, Any, Any]) -> Any:
    # It serves every tenant: what it counts and bounds is the server's.
    return served(request).desks.intake


def _claim_desk(request: Request[Any, Any, Any], principal: NamedDependency[Principal]) -> ClaimDesk | None:
    return served(request).desks.asked_for(principal).claims


def _seen_by(principal: NamedDependency[Principal], queries: NamedDependency[Queries]) -> VisibleQueries:
    return VisibleQueries(queries, principal)


def _lists(queries: NamedDependency[Queries]) -> Lists:
    return Lists(queries.database)


def _quality_desk(queries: NamedDependency[Queries]) -> QualityDesk:
    return QualityDesk(queries.database, read_facts)


def _now(provide: Callable[..., Any]) -> Provide:
    return Provide(provide, sync_to_thread=False)


DEPENDENCIES: Final = {
    **{
        name: _of_tenant(name)
        for name in ("queries", "public_log", "credit_desk", "webhooks", "commands", "exclusion_desk")
    },
    **{name: _whole(name) for name in ("health", "meters", "guests", "embed")},
    "intake": _now(_intake),
    "claim_desk": _now(_claim_desk),
    "seen": _now(_seen_by),
    "lists": _now(_lists),
    "quality_desk": _now(_quality_desk),
}
"""Litestar's: each desk under its name, as the tenant of the principal has it; ``seen`` is what the principal may see
of ``queries``."""
