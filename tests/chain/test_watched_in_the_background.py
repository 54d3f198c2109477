"""The watcher in the background: states follow the chain, deep reorganisations are mended, others are seen."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from ledger.app.anchoring import confirm_statement
from ledger.app.chain_port import ChainLook
from ledger.app.chain_watch import ChainWatch
from ledger.app.outbox import Stage
from ledger.domain.instant import SECOND_NS
from ledger.errors import NotYet
from ledger.wiring.chain import RpcChain
from tests.chain.conftest import ACCOUNTS, chain_of, recordings, sent
from tests.chain.test_watching import anchored
from tests.conformance.samples import StepClock
from tests.support.anvil import Anvil, running_anvil
from tests.support.settled import Settled
from tests.support.stuck import by_hand, hurried

pytestmark = pytest.mark.slow

CHAIN_ID = 31337


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
            rows = tx.outbox.entries(states=["pending"], limit=100)
            found = [row.event_id for row in rows if row.stage == Stage.CONFIRM]
            return [each for each in found if tx.events.by_id(each).type == "anchor_undone"]

    def mend(self) -> None:
        """Work what is queued until it is done, in the order of the queue; blocks come meanwhile."""
        for _ in range(20):
            left = 0
            for event_id in self.waiting():
                try:
                    confirm_statement(
                        self.settled.database,
                        event_id,
                        attestor=self.settled.attestor,
                        anchor=self.chain.anchor,
                        confirmations=1,
                        clock=self.settled.clock,
                    )
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
    background.mend()
    assert len(recordings(node, chain.anchor.registry)) == 2
    assert len(set(recordings(node, chain.anchor.registry))) == 2
    assert sent(node) == 4, "two registrations and two recordings, of the bytes that were stored"
    kinds = ["attestation_recorded", "anchor_recorded", "anchor_confirmed", "anchor_undone", "anchor_confirmed"]
    assert trail(settled, proof) == trail(settled, other) == kinds
    (undone,) = settled.events(proof, "anchor_undone")
    before, after = settled.events(proof, "anchor_confirmed")
    assert undone.payload["block_hash"] == before.payload["block_hash"] != after.payload["block_hash"]
    receipt = node.call("eth_getTransactionReceipt", after.payload["tx_hash"])
    assert receipt["blockHash"] == after.payload["block_hash"]
    background.look(3)
    assert trail(settled, proof) == kinds
    node.mine(70)
    background.look(3)
    assert trail(settled, proof) == [*kinds, "anchor_finalized"]
    assert set(background.states()) == {"finalized"}
