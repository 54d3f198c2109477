"""Where handlers turn to: everything that answers or changes, as one tenant has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from litestar.di import NamedDependency, Provide

from api.graphql.context import AskedDesks
from api.receiving import Intake
from ledger.app.access import Principal
from ledger.app.claims import ClaimDesk
from ledger.app.commands import Commands
from ledger.app.credit_changes import CreditDesk
from ledger.app.exclusions import ExclusionDesk
from ledger.app.lists import Lists
from ledger.app.quality import QualityDesk
from ledger.app.queries import Queries
from ledger.app.tlog import PublicLog
from ledger.app.visible import VisibleQueries
from ledger.app.webhook_desk import WebhookDesk
from ledger.ingest.facts import read_facts


@dataclass(frozen=True, slots=True)
class Desks:
    """Those of the tenant ``default``. Without ``commands`` no agreement is registered, no period closed and nothing
    excluded, without ``intake`` no fact is taken."""

    queries: Queries
    public_log: PublicLog
    credit_desk: CreditDesk
    webhooks: WebhookDesk
    commands: Commands | None = None
    intake: Intake | None = None

    @property
    def exclusion_desk(self) -> ExclusionDesk | None:
        found = self.commands
        return None if found is None else ExclusionDesk(found.database, found.attestor, found.clock)

    def queries_for(self, principal: Principal) -> Queries:
        return self.queries.of_tenant(principal.tenant)

    def lists_for(self, principal: Principal) -> Lists:
        return Lists(self.queries_for(principal).database)

    def asked_for(self, principal: Principal) -> AskedDesks:
        quality = QualityDesk(self.queries_for(principal).database, read_facts)
        if self.commands is None:
            return AskedDesks(quality=quality)
        commands = self.commands.of_tenant(principal.tenant)
        return AskedDesks(commands.claims, commands.charges, quality)

    def _claim_desk(self, principal: NamedDependency[Principal]) -> ClaimDesk | None:
        return self.asked_for(principal).claims

    def dependencies(self) -> dict[str, Provide]:
        """Litestar's dependencies: each desk under its name, as the tenant of the principal has it; ``seen`` is what
        the principal may see of ``queries``."""
        of_tenants = ("queries", "public_log", "credit_desk", "webhooks", "commands", "exclusion_desk")
        return {name: _of_tenant(getattr(self, name)) for name in of_tenants if getattr(self, name) is not None} | {
            "seen": Provide(_seen_by, sync_to_thread=False),
            "lists": Provide(_lists, sync_to_thread=False),
            "quality_desk": Provide(_quality_desk, sync_to_thread=False),
            "claim_desk": Provide(self._claim_desk, sync_to_thread=False),
            # It serves every tenant: what it counts and bounds is the server's.
            "intake": Provide(lambda: self.intake, sync_to_thread=False),
        }


def _of_tenant(desk: Any) -> Provide:
    def provide(principal: NamedDependency[Principal]) -> Any:
        return desk.of_tenant(principal.tenant)

    made: Callable[..., Any] = provide
    return Provide(made, sync_to_thread=False)


def _seen_by(principal: NamedDependency[Principal], queries: NamedDependency[Queries]) -> VisibleQueries:
    return VisibleQueries(queries, principal)


def _lists(queries: NamedDependency[Queries]) -> Lists:
    return Lists(queries.database)


def _quality_desk(queries: NamedDependency[Queries]) -> QualityDesk:
    return QualityDesk(queries.database, read_facts)
