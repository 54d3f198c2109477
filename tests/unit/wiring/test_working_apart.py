"""Processes that share a data directory: who they are, which chain is meant, whose keys seal."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.app.facts.handing_in import hand_in
from ledger.attest.crypto import babyjub
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.errors import ChainUnavailable, CollectorUnknown
from ledger.ingest.facts import read_facts
from ledger.settings import WorkerSettings
from ledger.wiring.keyring import Keyring
from ledger.wiring.lock import DirectoryLock
from ledger.wiring.parties import DemoParties
from ledger.wiring.services import Services, create_data, open_data
from ledger.wiring.stages import directory_holder, process_holder
from tests.support.deployment import example_terms
from tests.unit.app.conftest import log, row, signed_agreement

BROKER = WorkerSettings(broker_url="redis://127.0.0.1:1/0")


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    made = create_data(tmp_path / "data", key_cache=tmp_path / "cache", notify=lambda _: None)
    yield made
    made.close()


def test_proofs_are_for_the_chain_that_the_anchor_worker_opens(services: Services, tmp_path: Path) -> None:
    identity = services.chain_identity
    anchor = services.chain.anchor
    assert (identity.chain_id, identity.registry) == (anchor.chain_id, anchor.registry)
    # Another process says so, too, while this one has the directory's lock, and shows what is stored.
    other = open_data(services.folder, workers=BROKER)
    assert other.chain_identity == identity
    status, mine = other.chain_status(), services.chain_status()
    assert (status["chain_id"], status["registry"]) == (mine["chain_id"], mine["registry"])
    (deployment,) = status["transactions"]
    assert (deployment["ordinal"], deployment["reason"]) == (0, None)
    other.close()


def test_with_a_broker_nothing_is_worked_or_locked_by_the_server(services: Services) -> None:
    server = open_data(services.folder, workers=BROKER)
    server.dispatcher.start()
    _ = server.chain_status(), server.runner
    server.dispatcher.stop()
    DirectoryLock(services.folder).release()
    server.close()


def test_writes_need_no_node(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLA_LEDGER_CHAIN_RPC", "http://127.0.0.1:1")
    parties = DemoParties(services.keyring)
    document = parties.signed(parties.with_keys(example_terms()))
    server = open_data(services.folder, workers=BROKER)
    try:
        registered = server.commands.register(document)
        period = period_named(Agreement.from_document(document), "2023-06-14/P1D")
        handed_in = hand_in(
            server.database,
            registered.sla_id,
            log(row("a")),
            attestor=server.attestor,
            clock=server.clock,
            read_rows=read_facts,
            declared_complete=period.interval,
        )
        assert handed_in.batch.receipt.event_id
        assert server.commands.close(registered.sla_id, str(period)).period == str(period)
        # What the customer signs names the chain, which only the node can tell.
        with pytest.raises(ChainUnavailable, match=r"127\.0\.0\.1:1"):
            server.commands.registration_request(document)
        with pytest.raises(ChainUnavailable, match=r"127\.0\.0\.1:1"):
            server.commands.register(document, customer_signature=bytes(65))
    finally:
        server.close()


def test_a_directory_is_the_same_at_its_next_start_and_a_copy_is_another(services: Services, tmp_path: Path) -> None:
    again = open_data(services.folder)
    assert again.holder == services.holder == directory_holder(services.folder)
    again.close()
    shutil.copytree(services.folder, tmp_path / "copy")
    assert directory_holder(tmp_path / "copy") != services.holder
    assert process_holder() != process_holder()


class TestCollectors:
    def test_the_key_that_the_agreement_names_seals(self, services: Services) -> None:
        Keyring(services.folder / "keys", services.randomness).make("collector-berlin")
        keys = services.collectors.public_keys()
        assert set(keys) == {"collector", "collector-berlin"}
        for x, y in keys.values():
            document = signed_agreement()
            document["collector"]["babyjubjub_public_key"] = {"x": str(x), "y": str(y)}
            signature = services.collectors.of(Agreement.from_document(document)).sign(7)
            assert babyjub.verify((x, y), 7, babyjub.Signature(signature.r8, signature.s))

    def test_another_one_is_refused_unless_nothing_will_be_sealed(self, services: Services) -> None:
        theirs = Agreement.from_document(signed_agreement())
        with pytest.raises(CollectorUnknown, match="agreements keys") as refused:
            services.collectors.require(theirs)
        assert refused.value.data["x"] == str(theirs.collector_key[0])
        services.collectors.require(Agreement.from_document(signed_agreement("agreement-llm-quality.yaml")))

    def test_a_demonstration_names_this_directorys(self, services: Services) -> None:
        parties = DemoParties(services.keyring)
        services.collectors.require(Agreement.from_document(parties.signed(parties.with_keys(example_terms()))))
