"""The application over such a ledger, as ``up`` serves it."""

from __future__ import annotations

from functools import cache
from typing import Any

from api.app import create_app
from api.auth.guests import GuestTokens
from api.desks import Desks
from api.edge import Edge
from api.receiving import Intake
from ledger.app.billing.credit_changes import CreditDesk
from ledger.app.bundles.tlog import PublicLog
from ledger.app.commands import Commands
from ledger.app.log.log_keys import LogIdentity
from ledger.app.reading.queries import Queries
from ledger.app.reading.readiness import Health
from ledger.app.webhooks.desk import WebhookDesk
from ledger.attest.checks.probe_checks import telemetry_signature_holds
from ledger.attest.crypto.signing import verify
from ledger.attest.proving.attestor import CircuitAttestor
from ledger.attest.proving.circuits import load_circuits
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.instant import Clock
from ledger.resources import resource_dir
from ledger.settings import IngestSettings
from ledger.wiring.chain_identity import ChainIdentity
from tests.api.filled import LOG_KEY, REGISTRY, Counted, Ledger, Seconds


class AnyCollector:
    """``ledger.app.commands.AcceptedCollectors`` that holds every key."""

    def require(self, agreement: Agreement) -> None:
        """All can be sealed."""


@cache
def attestor() -> CircuitAttestor:
    return CircuitAttestor(load_circuits(resource_dir("circuits")), {})


def guests_of(ledger: Ledger, clock: Clock) -> GuestTokens:
    """Makes guest tokens over the test's database and clock."""
    return GuestTokens(b"\x05" * 32, ledger.database, clock.now_ns, Counted())


def app_over(ledger: Ledger, **options: Any) -> Edge:
    """The application as ``up`` serves it; ``options`` are those of ``create_app``."""
    clock = Seconds()
    options.setdefault("guests", guests_of(ledger, clock))
    queries = Queries(ledger.database, bundles=ledger, chain_status=lambda: ledger.chain)
    health = Health(ledger.database, schema_state=lambda: ledger.schema, chain_status=lambda: ledger.chain)
    public_log = PublicLog(ledger.database, LogIdentity(LOG_KEY.key, verify))
    desks = Desks(
        queries=queries,
        public_log=public_log,
        credit_desk=CreditDesk(ledger.database, clock),
        webhooks=WebhookDesk(ledger.database, clock, Counted()),
        commands=Commands(
            ledger.database,
            attestor(),
            collectors=AnyCollector(),
            signing=ChainIdentity(131277322940537, REGISTRY),
            verify=verify,
            clock=clock,
            verify_telemetry=telemetry_signature_holds,
        ),
        intake=Intake(ledger.database, attestor(), clock, IngestSettings()),
    )
    return create_app(desks, health=health, **options)
