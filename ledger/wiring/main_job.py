"""The main job on one log: agreement -> facts -> log -> judgements -> statement -> credit -> proof -> anchor."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ledger.app.access import DEFAULT_TENANT
from ledger.app.agreements.registering import load_agreement, register_agreement, registration_of
from ledger.app.bundles.building import build_opening
from ledger.app.facts.observations import ReadRows, RecordedBatch, record_observations
from ledger.app.periods.closing import Cause, close_period
from ledger.app.settlement.attestations import anchored, proved, proved_circuits
from ledger.app.settlement.statements import IssuedStatement, issued_for
from ledger.attest.crypto.signing import verify
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period
from ledger.domain.time.interval import Interval
from ledger.wiring.chain_identity import ChainIdentity
from ledger.wiring.parties import DemoParties
from ledger.wiring.services import Services
from ledger.wiring.trust import trust_document


@dataclass(frozen=True, slots=True)
class MainJob:
    """What the main job came to. ``opening`` and the proof's names are None for an unproved statement."""

    batch: RecordedBatch
    statement: IssuedStatement
    proof_hash: str | None
    dev_key: bool | None
    tx_hash: str | None
    bundle: bytes
    opening: bytes | None
    trust: dict[str, Any]


def run_main_job(
    services: Services,
    parties: DemoParties,
    agreement: Agreement,
    period: Period,
    log: bytes,
    *,
    read_rows: ReadRows,
    span: Interval | None,
    step: Callable[[str], None],
) -> MainJob:
    """Do everything for one period. ``span`` is where the log is complete; None: in the whole period.

    ``step`` is told what happens next. Each use case is a transaction; proof and anchor follow by the outbox.
    """
    database, attestor, now_ns = services.database, services.attestor, services.clock.now_ns
    sla_id = attestor.sla_id(agreement)
    step("registering the agreement")
    _register(services, parties, agreement, period)
    step("recording the request log")
    with database.begin() as tx:
        registered = load_agreement(tx, sla_id, attestor)
        batch = record_observations(
            tx,
            registered,
            log,
            read_rows=read_rows,
            declared_complete=span or period.interval,
            now_ns=now_ns(),
        )
    step("closing the period: judging its windows, settling, proving and recording on chain")
    with database.begin() as tx:
        close_period(tx, registered, period, cause=Cause.REQUEST, now_ns=now_ns())
    services.runner.run_until_idle(time.sleep)
    # A period of long ago is past its deadline: its statement is final, and stays as it is from here on.
    services.schedule.close_due()
    with database.read() as tx:
        statement = issued_for(tx, registered, period)
        made = (proved(tx, statement.id), anchored(tx, statement.id))
    database.wait_sequenced([statement.receipt.event_id, *(event.id for event in made if event is not None)])
    services.sign_log()
    step("publishing the batch root")
    services.publish_roots()
    return _evidence(services, agreement, batch, statement)


def _register(services: Services, parties: DemoParties, agreement: Agreement, period: Period) -> None:
    """Put the agreement into the log, and what both sides sign of it onto the chain where its credits are proved."""
    registration = registration_of(agreement, services.attestor, period, terms_version=1)
    signature = None
    if registration is not None:
        signature = parties.sign_registration(services.chain.anchor.registration_digest(registration))
    with services.database.begin() as tx:
        register_agreement(
            tx,
            agreement,
            attestor=services.attestor,
            verify=verify,
            terms_version=1,
            registration=registration,
            customer_signature=signature,
            now_ns=services.clock.now_ns(),
        )


def _evidence(services: Services, agreement: Agreement, batch: RecordedBatch, statement: IssuedStatement) -> MainJob:
    with services.database.read() as tx:
        proof, placed = proved(tx, statement.id), anchored(tx, statement.id)
        circuits = proved_circuits(tx)
        opening = build_opening(tx, statement.id) if not statement.settlement.not_attestable else None
        vkey = services.log_signer.vkey_at(tx, tx.log.checkpoint_size() or 0)
    signer, anchor = services.log_signer, services.chain.anchor
    trust = trust_document(
        agreement,
        tenant=DEFAULT_TENANT,
        circuits=circuits,
        log={"origin": signer.origin, "vkey": vkey},
        chain=ChainIdentity(anchor.chain_id, anchor.registry),
    )
    return MainJob(
        batch=batch,
        statement=statement,
        proof_hash=None if proof is None else proof.payload["proof_hash"],
        dev_key=None if proof is None else proof.payload["dev_key"],
        tx_hash=None if placed is None else placed.payload["tx_hash"],
        bundle=services.bundles.get(statement.id),
        opening=opening,
        trust=trust,
    )
