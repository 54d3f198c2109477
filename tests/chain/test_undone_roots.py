"""Batch roots that a reorganisation took after their confirmations: said, and published again, each exactly once."""

from __future__ import annotations

import pytest

from ledger.app.chain.roots import publish_batch
from ledger.app.work.outbox import Stage
from ledger.domain.record.naming import batches_stream
from ledger.errors import NotYet
from tests.chain.conftest import chain_of
from tests.chain.test_roots import anchored, bundle_of, form, nonce, publish, sign
from tests.chain.test_watched_in_the_background import Background, drop
from tests.conformance.samples import StepClock
from tests.support.anvil import Anvil
from tests.support.settled import Settled
from tests.support.stuck import hurried

pytestmark = pytest.mark.slow


def kinds(settled: Settled) -> list[tuple[str, int]]:
    with settled.database.read() as tx:
        events = tx.events.stream(batches_stream("home"))
        return [(event.type.removeprefix("batch_"), event.payload["number"]) for event in events]


def undone(settled: Settled) -> list[str]:
    with settled.database.read() as tx:
        rows = tx.outbox.entries(states=["pending"], limit=1000)
        found = [row.event_id for row in rows if row.stage == Stage.PUBLISH]
        return [each for each in found if tx.events.by_id(each).type == "batch_undone"]


def test_two_roots_that_a_deep_reorganisation_took_are_published_again_in_their_order(
    node: Anvil, settled: Settled
) -> None:
    chain = hurried(chain_of(node, settled.database), settled.database)
    proofs = []
    for n in range(2):
        proofs.append(settled.prove(n, chain.anchor))
        sign(settled.database)
        form(settled, settled.database, "home")
        publish(settled.database, "home", chain)
    background = Background(settled, chain)
    background.look()
    before, sent = anchored(node), nonce(node)
    drop(node, 2)
    node.call("evm_setAutomine", True)
    background.look(1)
    assert undone(settled) == [], "one look alone says nothing for good"
    background.look(3)
    first, second = undone(settled)
    sign(settled.database)
    assert all("roots" not in bundle_of(settled, proof).bundle for proof in proofs)

    def work(event_id: str) -> None:
        clock = StepClock()
        publish_batch(settled.database, event_id, publisher=chain.roots, confirmations=1, clock=clock)

    with pytest.raises(NotYet, match="batch 0 for home is published before"):
        work(second)
    for event_id in (first, second, second, first):
        work(event_id)
    assert anchored(node) == before
    assert nonce(node) == sent, "of the bytes that were stored"
    told = [("formed", 0), ("published", 0), ("formed", 1), ("published", 1)]
    told += [("undone", 0), ("undone", 1), ("published", 0), ("published", 1)]
    assert kinds(settled) == told
    for proof in proofs:
        (root,) = bundle_of(settled, proof).bundle["roots"]
        receipt = node.call("eth_getTransactionReceipt", root["tx_hash"])
        assert (receipt["blockHash"], receipt["status"]) == (root["block_hash"], "0x1")
    node.mine(70)
    background.look(3)
    assert kinds(settled) == [*told, ("finalized", 0), ("finalized", 1)]
    assert background.last.error is None
