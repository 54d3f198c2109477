"""On PostgreSQL a tenant's transaction sees no other tenant; the gauges of error budgets are about all of them."""

from __future__ import annotations

from typing import Any

from ledger.app.reading.budget_board import BudgetBoard
from ledger.app.reading.queries import Queries
from ledger.app.reading.readiness import Health, SchemaState
from tests.api.filled import Ledger
from tests.conformance.samples import SeededRandomness, StepClock
from tests.support.postgres import ROLE_PREFIX, SequencedAfterCommit


def test_the_budgets_of_every_tenant_are_known(postgres_url: str) -> None:
    database: Any = SequencedAfterCommit(postgres_url, StepClock(), SeededRandomness(1), role_prefix=ROLE_PREFIX)
    try:
        ledger = Ledger(database)
        for tenant, number in (("alice", 1), ("bob", 2)):
            of_tenant = ledger.of_tenant(tenant)
            sla_id = of_tenant.agreement(number)
            of_tenant.window(sla_id)
            of_tenant.statement(sla_id)
        health = Health(database, schema_state=lambda: SchemaState("1", "1"), chain_status=lambda: ledger.chain)
        own = Queries(database.of_tenant("default"), bundles=ledger, chain_status=lambda: ledger.chain)
        assert {each.tenant for each in BudgetBoard(own, health.tenants).look()} == {"alice", "bob"}
    finally:
        database.close()
