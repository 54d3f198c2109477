"""One batch on two chains with one key and one database: published once on each, and found there by its path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import pytest

from ledger.anchor.sender import Sender
from ledger.attest.crypto.batch import Batch, batch_node
from ledger.merkle.checkpoint import Checkpoint
from ledger.wiring.chain import RpcChain
from tests.chain.conftest import ACCOUNTS, chain_of
from tests.support.anvil import Anvil, AnvilMissing, running_anvil
from tests.support.batches import BatchRegistry
from tests.support.settled import Settled

pytestmark = pytest.mark.slow

LEAVES = [bytes([n]) * 32 for n in range(1, 6)]
BATCH = Batch.of(LEAVES)
ROOT = BATCH.root
CHECKPOINT = Checkpoint("sla.example/log", 7, b"\x07" * 32)
ISSUER = ACCOUNTS.issuer.address


@pytest.fixture
def further(absent: Callable[[str], NoReturn]) -> Iterator[Anvil]:
    """Another chain than the home chain."""
    try:
        with running_anvil("--chain-id", "10") as node:
            node.fund(ACCOUNTS.deployer.address, ISSUER)
            yield node
    except AnvilMissing as error:
        absent(str(error))


def opened(node: Anvil, settled: Settled) -> tuple[RpcChain, BatchRegistry]:
    chain = chain_of(node, settled.database)
    chain.deploy()
    return chain, batches_of(chain, settled)


def batches_of(chain: RpcChain, settled: Settled) -> BatchRegistry:
    """As one worker opens it."""
    return BatchRegistry(chain._w3, Sender(chain._w3, settled.database), chain.anchor.registry)


def test_workers_publish_a_batch_once_on_each_chain(node: Anvil, further: Anvil, settled: Settled) -> None:
    effect = "batch/" + batch_node(CHECKPOINT, ROOT).hex()
    for each in (node, further):
        chain, batches = opened(each, settled)

        def publish(worker: BatchRegistry) -> None:
            for _ in range(2):
                worker.anchor(ACCOUNTS.issuer, CHECKPOINT, ROOT, now_s=0, effect=effect)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(publish, [batches_of(chain, settled) for _ in range(4)]))
        # A reorganisation drops it; the same bytes put it back.
        each.call("anvil_reorg", 1, [])
        each.call("anvil_dropAllTransactions")
        assert batches.anchored(ISSUER, from_block=0, to_block=each.height()) == ()
        publish(batches)
        (found,) = batches.anchored(ISSUER, from_block=0, to_block=each.height())
        assert (found.batch_root, found.size, found.root) == (ROOT, CHECKPOINT.size, CHECKPOINT.root)
        assert found.node == batch_node(CHECKPOINT, ROOT), "the same on every chain"
        assert all(batches.is_root_anchored(ISSUER, leaf, CHECKPOINT, BATCH.path(leaf)) for leaf in LEAVES)
        assert int(each.call("eth_getTransactionCount", ISSUER, "latest"), 16) == 1
        assert [event.name for event in chain.watch(0).events if event.own][-1] == "BatchAnchored"
    with settled.database.read() as tx:
        home, other = (tx.chain.of_effect(chain_id, effect) for chain_id in (31337, 10))
    assert home is not None
    assert other is not None
    assert (home.nonce, other.nonce) == (0, 0), "each chain counts its own nonces"
