"""The stages of a deployment: use cases with the adapters of one data directory."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ledger.app.chain import anchoring
from ledger.app.chain.roots import publish_batch
from ledger.app.chain.turns import wait_for_turn
from ledger.app.facts.telemetry import find_evidence
from ledger.app.judgement.judging import Judge
from ledger.app.judgement.violation_rows import RequestFinder
from ledger.app.ports.evidence import Attestor
from ledger.app.ports.store import Database, Randomness
from ledger.app.settlement import attestations
from ledger.app.settlement.stages import Collectors, compensate_period, evaluate_period
from ledger.app.webhooks.delivery import Courier
from ledger.app.work.outbox import Stage, StageWork
from ledger.domain.time.instant import Clock
from ledger.errors import AnchorRefused, DataDirectoryInUse, NotYet
from ledger.ingest.facts import read_facts
from ledger.ingest.traces import trace_ids
from ledger.settings import Record
from ledger.wiring.chain_identity import ChainIdentity
from ledger.wiring.webhook_client import WebhookClient, sign

if TYPE_CHECKING:
    from ledger.anchor.registry import RegistryAnchor
    from ledger.wiring.chain import OpenChain
    from ledger.wiring.further_chain import FurtherChain

CHAIN_RETRY_S = 0.5


class Judging(Protocol):
    """What judging takes of an opened data directory."""

    @property
    def attestor(self) -> Attestor: ...
    @property
    def clock(self) -> Clock: ...


class Parts(Judging, Protocol):
    """What the stages take of it. Chain and accounts are opened by the first stage that asks for them."""

    @property
    def collectors(self) -> Collectors: ...
    @property
    def randomness(self) -> Randomness: ...
    @property
    def record(self) -> Record: ...
    @property
    def webhooks_private(self) -> bool: ...
    @property
    def chain(self) -> OpenChain: ...
    @property
    def chain_identity(self) -> ChainIdentity: ...
    @property
    def root_chains(self) -> Mapping[str, FurtherChain]: ...


def stage_work(services: Parts) -> Mapping[Stage, StageWork]:
    """Every stage that is worked here. Chain and prover are opened by the first stage that needs them."""
    attestor, clock = services.attestor, services.clock

    evaluate = partial(
        evaluate_period,
        attestor=attestor,
        read_rows=read_facts,
        find_evidence=find_evidence,
        find_requests=find_requests,
        clock=clock,
    )
    compensate = partial(
        compensate_period,
        attestor=attestor,
        collectors=services.collectors,
        randomness=services.randomness,
        clock=clock,
    )

    def prove(database: Database, event_id: str) -> None:
        chain_id, registry = services.chain_identity
        attestations.prove_statement(
            database,
            event_id,
            attestor=attestor,
            chain_id=chain_id,
            registry=registry,
            clock=clock,
            record_each=services.record is Record.EACH,
        )

    return {
        Stage.EVALUATE: evaluate,
        Stage.COMPENSATE: compensate,
        Stage.PROVE: prove,
        **_on_chain(services),
        Stage.DELIVER: Courier(WebhookClient(allow_private=services.webhooks_private), sign, clock).deliver,
    }


def _on_chain(services: Parts) -> Mapping[Stage, StageWork]:
    attestor, clock = services.attestor, services.clock

    def register(database: Database, event_id: str) -> None:
        anchoring.register_on_chain(database, event_id, attestor=attestor, anchor=_anchor(services))

    def anchor(database: Database, event_id: str) -> None:
        wait_for_turn(database, event_id, clock=clock)
        anchoring.anchor_statement(database, event_id, attestor=attestor, anchor=_anchor(services), clock=clock)

    def confirm(database: Database, event_id: str) -> None:
        anchoring.confirm_statement(
            database,
            event_id,
            attestor=attestor,
            anchor=_anchor(services),
            confirmations=services.chain.confirmations,
            clock=clock,
        )

    def publish(database: Database, event_id: str) -> None:
        _anchor(services)
        chain = services.chain
        publish_batch(database, event_id, publisher=chain.roots, confirmations=chain.confirmations, clock=clock)

    def publish_further(database: Database, event_id: str) -> None:
        with database.read() as tx:
            target = tx.events.by_id(event_id).payload["target"]
        chain = services.root_chains.get(target)
        if chain is None:
            raise AnchorRefused(
                f"a batch waits for chain {target}, which SLA_LEDGER_ROOT_CHAINS does not name (any more); name it, "
                "and have it tried again with: sla-ledger outbox retry",
                chain_id=target,
            )
        publish_batch(database, event_id, publisher=chain.roots, confirmations=chain.confirmations, clock=clock)

    return {
        Stage.REGISTER: register,
        Stage.ANCHOR: anchor,
        Stage.CONFIRM: confirm,
        Stage.PUBLISH: publish,
        Stage.PUBLISH_FURTHER: publish_further,
    }


def judge_of(services: Judging) -> Judge:
    """Judges periods that are not closed yet."""
    return Judge(
        services.attestor,
        read_rows=read_facts,
        find_evidence=find_evidence,
        find_requests=find_requests,
        clock=services.clock,
    )


def _anchor(services: Parts) -> RegistryAnchor:
    """The chain, opened when it is first needed. Raises ``NotYet`` where another process works the embedded one."""
    try:
        return services.chain.anchor
    except DataDirectoryInUse as error:
        raise NotYet(
            f"process {error.data['pid']} works the chain of this directory; this one leaves it to it",
            retry_after_s=CHAIN_RETRY_S,
        ) from error


find_requests = RequestFinder(read_facts, trace_ids)
"""``ledger.app.judgement.violation_rows.FindRequests`` of this release's formats."""


def directory_holder(folder: Path) -> str:
    """Who works a data directory, whose lock one process at a time has: the same at its next start.

    A copy of the directory is another one, on this machine and on others.
    """
    found = folder.stat()
    named = f"{socket.gethostname()}/{found.st_dev}/{found.st_ino}"
    return f"directory {hashlib.sha256(named.encode()).hexdigest()[:16]}"


def process_holder() -> str:
    """Who works in a process of its own: nobody has this name again while it lives."""
    return f"{socket.gethostname()[:40]} {os.getpid()} {os.urandom(4).hex()}"
