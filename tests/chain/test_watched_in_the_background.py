"""The watcher in the background: states follow the chain, deep reorganisations are mended, others are seen."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner
from eth_account import Account

from ledger.anchor.rpc import RpcProvider
from ledger.app.chain.anchoring import _load, confirm_statement
from ledger.app.chain.watch import ChainWatch
from ledger.app.ports.chain import ChainLook
from ledger.app.ports.store import Database
from ledger.app.work.outbox import Stage
from ledger.cli.main import cli
from ledger.domain.record.naming import registry_stream
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import AnchorRefused, NotYet
from ledger.settings import ChainSettings
from ledger.store.database import SqliteDatabase
from ledger.wiring.chain import ChainAccounts, RpcChain
from tests.chain.conftest import ACCOUNTS, chain_of, recordings, sent
from tests.chain.test_asking_a_node import Recorded
from tests.chain.test_bad_nodes import impatient
from tests.chain.test_recorded_by_the_customer import record_as_customer
from tests.chain.test_watching import anchored, of_customer
from tests.conformance.samples import SeededRandomness, StepClock
from tests.support.anvil import Anvil, running_anvil
from tests.support.chain_processes import ended, in_child
from tests.support.faulty_rpc import faulty_rpc
from tests.support.settled import Settled
from tests.support.stored import memory_database
from tests.support.stuck import attempts, by_hand, hurried, too_dear

pytestmark = pytest.mark.slow

CHAIN_ID = 31337
OBSERVER = Account.from_key(b"\x09" * 32)


@pytest.fixture
def chain(node: Anvil, settled: Settled) -> RpcChain:
    return hurried(chain_of(node, settled.database), settled.database)


@dataclass
class Background:
    """A watcher whose looks come when the test asks for them, and the stage that confirms what it finds undone."""

    settled: Settled
    chain: RpcChain
    holder: str = "a"
    said: list[str] = field(default_factory=list)
    clock: StepClock = field(default_factory=StepClock)

    def __post_init__(self) -> None:
        self.watch = ChainWatch(
            self.settled.database, self.chain.watched, self.clock, self.holder, every_s=15, notify=self.said.append
        )

    def look(self, times: int = 2) -> None:
        for _ in range(times):
            self.clock.now += 200 * SECOND_NS
            self.watch.look()

    @property
    def last(self) -> ChainLook:
        with self.settled.database.read() as tx:
            (look,) = tx.chain_looks.all()
        return look

    def states(self) -> list[str]:
        with self.settled.database.read() as tx:
            return [each.state for each in tx.chain.of_chain(CHAIN_ID)]

    def waiting(self) -> list[str]:
        """The events whose stage CONFIRM the watcher has queued."""
        with self.settled.database.read() as tx:
            rows = tx.outbox.entries(states=["pending"], limit=100_000)
            found = [row.event_id for row in rows if row.stage == Stage.CONFIRM]
            return [each for each in found if tx.events.by_id(each).type == "anchor_undone"]

    def confirm(self, event_id: str) -> None:
        """The stage CONFIRM of an event that says an anchor is undone."""
        confirm_statement(
            self.settled.database,
            event_id,
            attestor=self.settled.attestor,
            anchor=self.chain.anchor,
            confirmations=1,
            clock=self.settled.clock,
        )

    def mend(self) -> None:
        """Work what is queued until it is done, in the order of the queue; blocks come meanwhile."""
        for _ in range(20):
            left = 0
            for event_id in self.waiting():
                try:
                    self.confirm(event_id)
                except NotYet:
                    left += 1
            if not left:
                return
        raise AssertionError("it was not confirmed again")


def trail(settled: Settled, proof: str) -> list[str]:
    with settled.database.read() as tx:
        return [event.type for event in tx.events.stream(tx.events.by_id(proof).stream)]


def drop(node: Anvil, blocks: int) -> None:
    """A reorganisation of so many blocks that loses what was in them."""
    node.call("anvil_reorg", blocks, [])
    node.call("anvil_dropAllTransactions")


def confirmed(settled: Settled, chain: RpcChain, count: int) -> list[str]:
    proofs = anchored(settled, chain, count)
    for proof in proofs:
        settled.confirm(proof, chain.anchor, 1)
    return proofs


def test_states_are_stored_go_on_and_fall_back(settled: Settled) -> None:
    with running_anvil("--slots-in-an-epoch", "2") as node:
        node.fund(ACCOUNTS.deployer.address, ACCOUNTS.issuer.address)
        chain = hurried(chain_of(node, settled.database), settled.database)
        background = Background(settled, chain)
        (proof,) = confirmed(settled, chain, 1)
        background.look()
        assert background.states()[-1] == "included"
        node.mine(2)
        background.look()
        assert background.states()[-1] == "safe"
        drop(node, 4)
        by_hand(node)
        background.look(1)
        assert background.states()[-1] == "submitted"
        # What is in no block for a minute is sent again, byte for byte.
        node.mine()
        background.look(1)
        assert background.states()[-1] == "included"
        node.mine(8)
        background.look(1)
        assert background.states()[-1] == "safe", "one look's word is not enough for good"
        background.look(1)
        assert set(background.states()) == {"finalized"}
        assert len(recordings(node, chain.anchor.registry)) == 1
        assert sent(node) == 2
        background.mend()
        background.look()
        assert trail(settled, proof)[-1] == "anchor_finalized"
        assert background.last.error is None


def test_a_deep_reorganisation_is_mended_exactly_once(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    proof, other = confirmed(settled, chain, 2)
    background = Background(settled, chain)
    background.look()
    assert trail(settled, proof)[-1] == "anchor_confirmed"
    # As deep as both recordings and the registrations before them.
    node.mine(3)
    drop(node, 7)
    node.call("evm_setAutomine", True)
    background.look(1)
    assert background.waiting() == [], "one look alone says nothing for good"
    background.look(3)
    assert len(background.waiting()) == 2
    recorded = Recorded(node, chain, settled, proof, 0)
    assert recorded.case.bundle["anchor"] is None, "it stands nowhere, as far as the log knows"
    background.mend()
    assert len(recordings(node, chain.anchor.registry)) == 2
    assert len(set(recordings(node, chain.anchor.registry))) == 2
    assert sent(node) == 4, "two registrations and two recordings, of the bytes that were stored"
    kinds = ["attestation_recorded", "anchor_recorded", "anchor_confirmed", "anchor_undone", "anchor_confirmed"]
    assert trail(settled, proof) == trail(settled, other) == kinds
    (undone,) = settled.events(proof, "anchor_undone")
    before, after = settled.events(proof, "anchor_confirmed")
    assert undone.payload["block_hash"] == before.payload["block_hash"] != after.payload["block_hash"]
    assert recorded.case.bundle["anchor"]["block_hash"] == after.payload["block_hash"], "and it is signed anew"
    receipt = node.call("eth_getTransactionReceipt", after.payload["tx_hash"])
    assert receipt["blockHash"] == after.payload["block_hash"]
    background.look(3)
    assert trail(settled, proof) == kinds
    node.mine(70)
    background.look(3)
    assert trail(settled, proof) == [*kinds, "anchor_finalized"]
    assert set(background.states()) == {"finalized"}


def test_what_was_restated_is_recorded_again_in_its_order(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    (first,) = confirmed(settled, chain, 1)
    second = settled.restate(0, chain.anchor)
    settled.anchor(second, chain.anchor)
    settled.confirm(second, chain.anchor, 1)
    before = recordings(node, chain.anchor.registry)
    background = Background(settled, chain)
    background.look()
    by_hand(node)
    drop(node, node.height() - 1)
    background.look(3)
    undone = background.waiting()
    with settled.database.read() as tx:
        names = [tx.events.by_id(each).payload["statement_id"] for each in undone]
    assert [name[-3:] for name in names] == [".v1", ".v2"]
    # What the watcher sent again is lost, too, so that the stages do it all.
    node.call("anvil_dropAllTransactions")
    node.call("evm_setAutomine", True)
    assert recordings(node, chain.anchor.registry) == []
    with pytest.raises(NotYet, match="is recorded before"):
        background.confirm(undone[1])
    background.mend()
    assert recordings(node, chain.anchor.registry) == before
    assert len(set(before)) == 2
    assert trail(settled, first) == trail(settled, second)
    assert trail(settled, second)[-2:] == ["anchor_undone", "anchor_confirmed"]


def seen_of_others(settled: Settled, chain: RpcChain) -> list[Any]:
    with settled.database.read() as tx:
        return [event.payload for event in tx.events.stream(registry_stream(CHAIN_ID, chain.anchor.registry))]


def test_what_others_did_is_logged_once(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    """The customer is faster after a reorganisation, and somebody retires the verifier. What concerns others is not."""
    (proof,) = anchored(settled, chain, 1)
    drop(node, 1)
    record_as_customer(node, settled, proof)
    settled.confirm(proof, chain.anchor, 1)
    stranger = Settled(memory_database())
    theirs = chain_of(node, stranger.database)
    stranger.anchor(stranger.prove(5, theirs.anchor), theirs.anchor)
    theirs.anchor._chain.retire_verifier(ACCOUNTS.deployer, settled.attestor.circuit_id, now_s=0)
    first = Background(settled, chain)
    first.look(3)
    later = Background(settled, chain, holder="b", clock=first.clock)
    later.look(3)
    recorded, retired = seen_of_others(settled, chain)
    (confirmation,) = settled.events(proof, "anchor_confirmed")
    assert (recorded["name"], recorded["concerns"]) == ("StatementRecorded", "statement")
    assert recorded["tx_hash"] == confirmation.payload["tx_hash"]
    assert (retired["name"], retired["concerns"], retired["sla_id"]) == ("VerifierRetired", "registry", None)
    assert first.last.of_others == 2
    assert len([text for text in first.said + later.said if "concerns this ledger" in text]) >= 2


def test_a_deep_reorganisation_that_undoes_the_customers_recording_is_mended(
    node: Anvil, settled: Settled, chain: RpcChain
) -> None:
    (proof,) = anchored(settled, chain, 1)
    drop(node, 1)
    record_as_customer(node, settled, proof)
    settled.confirm(proof, chain.anchor, 1)
    background = Background(settled, chain)
    # The own transaction, which the reorganisation dropped, is sent again: it fills its nonce and changes nothing.
    background.look()
    assert len(recordings(node, chain.anchor.registry)) == 1
    drop(node, 2)
    background.look(3)
    background.mend()
    (by_customer, ours) = settled.events(proof, "anchor_confirmed")
    assert by_customer.payload["tx_hash"] != ours.payload["tx_hash"]
    assert len(recordings(node, chain.anchor.registry)) == 1
    assert trail(settled, proof)[-2:] == ["anchor_undone", "anchor_confirmed"]


def test_an_observer_takes_no_place_and_a_party_that_does_is_seen(
    node: Anvil, settled: Settled, chain: RpcChain
) -> None:
    """(slaId, period, 1) is recorded first: by an observer it is refused, by the customer with other signals seen."""
    other = settled.prove(1, chain.anchor)
    settled.anchor(other, chain.anchor)
    proof = settled.prove(0, chain.anchor)
    with settled.database.read() as tx:
        material = _load(tx, tx.events.by_id(proof).payload, settled.attestor)
    registration, signature = material.registered.registration, material.registered.customer_signature
    assert registration is not None
    assert signature is not None
    observer = RpcChain(
        memory_database(), ChainAccounts(ACCOUNTS.deployer, OBSERVER), ChainSettings(node.url), StepClock()
    )
    node.fund(OBSERVER.address)
    with pytest.raises(AnchorRefused, match="NotIssuer"):
        observer.anchor.register(registration, signature)
    chain.anchor.register(registration, signature)
    with pytest.raises(AnchorRefused, match="NotParty"):
        observer.anchor.record(material.recording, material.verification_key, dev_unsafe=True)
    # The holder of the customer's key and of a forger's key of the circuit takes the place with a credit of its own.
    signals = list(material.recording.signals)
    signals[1] += 1
    squatted = replace(
        material.recording, signals=tuple(signals), proof=settled.attestor.trapdoor.forge(tuple(signals))
    )
    of_customer(node).anchor.record(squatted, material.verification_key, dev_unsafe=True)
    with pytest.raises(AnchorRefused):
        settled.anchor(proof, chain.anchor)
    assert trail(settled, proof) == ["attestation_recorded"]
    background = Background(settled, chain)
    background.look(2)
    (seen,) = seen_of_others(settled, chain)
    assert (seen["name"], seen["sla_id"]) == ("StatementRecorded", material.recording.sla_id)
    assert len(recordings(node, chain.anchor.registry)) == 2


def test_what_is_stuck_when_it_is_undone_is_replaced(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    (proof,) = confirmed(settled, chain, 1)
    background = Background(settled, chain)
    background.look()
    by_hand(node)
    # The transactions go back into the pool, and blocks leave them out from now on.
    node.call("anvil_reorg", 1, [])
    too_dear(node)
    background.look(3)
    (event_id,) = background.waiting()
    with pytest.raises(NotYet):
        background.confirm(event_id)
    assert len(attempts(settled.database, ACCOUNTS.issuer.address, 1)) == 2
    node.mine()
    background.mend()
    background.look(1)
    assert len(recordings(node, chain.anchor.registry)) == 1
    assert sent(node) == 2
    with settled.database.read() as tx:
        states = [each.state for each in tx.chain.at_nonce(CHAIN_ID, ACCOUNTS.issuer.address, 1)]
    assert states == ["failed", "included"]
    assert trail(settled, proof)[-2:] == ["anchor_undone", "anchor_confirmed"]


@pytest.mark.parametrize("seed", range(2))
def test_through_a_node_that_answers_late_wrongly_or_twice(node: Anvil, settled: Settled, seed: int) -> None:
    direct = hurried(chain_of(node, settled.database), settled.database)
    proof, other = confirmed(settled, direct, 2)
    with faulty_rpc(node.url, seed) as faulty:
        between = Background(settled, impatient(chain_of(node, settled.database, url=faulty.url)))
        watched = between.chain.watched()
        watched._w3.provider = RpcProvider(faulty.url, timeout_s=1.0)
        between.watch.open_chain = lambda: watched
        faulty.share = 0.12
        between.look(12)
        assert trail(settled, proof)[-1] == trail(settled, other)[-1] == "anchor_confirmed"
        drop(node, 5)
        node.call("evm_setAutomine", True)
        for _ in range(60):
            if len(between.waiting()) == 2:
                break
            between.look(1)
        print(f"{len(faulty.committed)} faults of {sorted(set(faulty.committed))}")
        assert len(faulty.committed) > 10
    Background(settled, direct, holder="b", clock=between.clock).mend()
    found = recordings(node, direct.anchor.registry)
    assert len(found) == len(set(found)) == 2
    for each in (proof, other):
        assert trail(settled, each).count("anchor_undone") == 1
        assert trail(settled, each)[-1] == "anchor_confirmed"


def test_two_that_look_at_once_undo_and_log_once(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    """The lease keeps them apart; where it ran out under one of them, what both say is said once."""
    (proof,) = confirmed(settled, chain, 1)
    watchers = [Background(settled, chain, holder=f"watcher {n}") for n in range(4)]
    for each in watchers:
        each.look()
    drop(node, 1)

    def at_once(step: Callable[[Background], None]) -> None:
        with ThreadPoolExecutor(len(watchers)) as pool:
            list(pool.map(step, watchers))

    for _ in range(3):
        at_once(lambda each: each.look(1))
    assert trail(settled, proof).count("anchor_undone") == 1
    (event_id,) = watchers[0].waiting()
    at_once(lambda each: each.confirm(event_id))
    assert trail(settled, proof)[-2:] == ["anchor_undone", "anchor_confirmed"]
    assert len(recordings(node, chain.anchor.registry)) == 1


def test_a_watcher_may_die_at_any_step(node: Anvil, tmp_path: Path) -> None:
    """Each dies at another step of its looks; another one does the rest, and what is said is said once."""
    path = tmp_path / "ledger.db"

    def open_database() -> Database:
        return SqliteDatabase(path, StepClock(), SeededRandomness(random.randrange(2**32)))

    settled = Settled(open_database())
    chain = hurried(chain_of(node, settled.database), settled.database)
    clock, steps = StepClock(), (3, 10, 17, 24, 38, 52, 66, 80)
    for n, dies_at in enumerate(steps):
        proof = settled.prove(n, chain.anchor)
        settled.anchor(proof, chain.anchor)
        settled.confirm(proof, chain.anchor, 1)
        drop(node, 1)
        node.call("evm_setAutomine", True)

        def looks(database: Database, holder: str = f"child {n}") -> None:
            own = Settled(database)
            Background(own, chain_of(node, database), holder=holder, clock=StepClock(clock.now)).look(3)

        assert ended(in_child(open_database, looks, dies_at=dies_at)) == signal.SIGKILL
        clock.now += 10**13
        background = Background(settled, chain, holder="parent", clock=clock)
        background.look(3)
        background.mend()
        assert trail(settled, proof).count("anchor_undone") <= 1
        assert trail(settled, proof)[-1] == "anchor_confirmed"
    found = recordings(node, chain.anchor.registry)
    assert len(found) == len(set(found)) == len(steps)


def test_the_command_ends_with_3_where_somebody_else_did_something(
    node: Anvil, settled: Settled, chain: RpcChain
) -> None:
    (proof,) = anchored(settled, chain, 1)

    given = {"chain": chain, "chain_settings": ChainSettings(node.url), "database": settled.database}
    opened = nullcontext(SimpleNamespace(**given))

    def run(command: str) -> tuple[int, dict[str, Any]]:
        with patch.multiple("ledger.cli.chain", opened=lambda *_: opened, open_data_directory=lambda *_, **__: opened):
            done = CliRunner().invoke(cli, ["chain", command, "--data", ".", "--json"])
        return done.exit_code, json.loads(done.stdout)

    def watch() -> tuple[int, dict[str, Any]]:
        return run("watch")

    def listed() -> list[dict[str, Any]]:
        return list(run("events")[1]["events"])

    assert watch()[0] == 0
    drop(node, 1)
    record_as_customer(node, settled, proof)
    assert listed() == []
    Background(settled, chain).look()
    (logged,) = listed()
    code, shown = watch()
    assert code == 3
    (theirs,) = [event for event in shown["events"] if not event["own"]]
    assert (theirs["name"], theirs["concerns"]) == ("StatementRecorded", "statement")
    assert (logged["name"], logged["tx_hash"]) == (theirs["name"], theirs["tx_hash"])
