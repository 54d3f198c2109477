"""A server over services that settle in the test's own thread, for tests that hand in and ask in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from api.app import create_app
from api.auth.callers import Authentication, Caller
from api.desks import Desks
from api.edge import Edge
from api.receiving import Intake
from ledger.app.access import ROLE_SCOPES, Principal, Role
from ledger.app.billing.credit_changes import CreditDesk
from ledger.app.reading.queries import Queries
from ledger.app.reading.readiness import Health
from ledger.app.webhooks.desk import WebhookDesk
from ledger.app.work.outbox import OutboxRunner
from ledger.settings import IngestSettings, WorkerSettings
from ledger.wiring.services import Services, create_data
from ledger.wiring.stages import stage_work

Client = TestClient[Any]
As = Callable[..., Client]


@pytest.fixture
def services(tmp_path: Path, key_cache: Path) -> Iterator[Services]:
    # With a broker: no chain is opened.
    workers = WorkerSettings(broker_url="redis://127.0.0.1:1/0")
    made = create_data(tmp_path / "data", key_cache=key_cache, notify=lambda _: None, workers=workers)
    yield made
    made.close()


@pytest.fixture
def as_(services: Services) -> As:
    """A client that acts as a role, limited to some agreements if they are named."""
    queries = Queries(services.database, bundles=services.bundles, chain_status=services.chain_status)
    desks = Desks(
        queries=queries,
        public_log=services.public_log,
        credit_desk=CreditDesk(services.database, services.clock),
        webhooks=WebhookDesk(services.database, services.clock, services.randomness),
        commands=services.commands,
        intake=Intake(services.database, services.attestor, services.clock, IngestSettings()),
    )
    health = Health(services.database, schema_state=services.schema_state, chain_status=services.chain_status)
    app = create_app(desks, health=health)

    def client(role: Role, sla_ids: frozenset[str] | None = None) -> Client:
        caller = Caller(Principal(f"the {role}", "default", ROLE_SCOPES[role], sla_ids))
        edge = Edge(app.app, app.served, authentication=Authentication(caller, {}, lambda _text: ""))
        return TestClient(edge, base_url="http://127.0.0.1")

    return client


def work(services: Services) -> None:
    runner = OutboxRunner(services.database, stage_work(services), services.clock, holder="this test")
    while runner.run_once():
        pass
