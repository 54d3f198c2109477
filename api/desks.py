"""Where handlers turn to: everything that answers or changes, as one tenant has it."""

from __future__ import annotations

from dataclasses import dataclass

from api.graphql.context import AskedDesks
from api.receiving import Intake
from ledger.app.access import Principal
from ledger.app.billing.credit_changes import CreditDesk
from ledger.app.bundles.tlog import PublicLog
from ledger.app.commands import Commands
from ledger.app.facts.quality import QualityDesk
from ledger.app.periods.exclusions import ExclusionDesk
from ledger.app.reading.lists import Lists
from ledger.app.reading.queries import Queries
from ledger.app.webhooks.desk import WebhookDesk
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
