"""A transaction that blocks leave out is replaced by a dearer one of its nonce; the chain ever holds one of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.anchor.fees import GWEI, FeePolicy, Fees, fields_of
from ledger.app.ports.chain import StoredTransaction
from ledger.errors import ChainUnavailable
from ledger.wiring.chain import RpcChain
from tests.chain.conftest import ACCOUNTS, chain_of, recordings, sent
from tests.support.anvil import Anvil
from tests.support.settled import Settled
from tests.support.stuck import attempts, base_fee, by_hand, hurried, too_dear

pytestmark = pytest.mark.slow

ISSUER = ACCOUNTS.issuer.address
NONCE = 1
"""Of the second of the issuer's transactions: the first registers the terms, this one records the statement."""


@pytest.fixture
def chain(node: Anvil, settled: Settled) -> RpcChain:
    return hurried(chain_of(node, settled.database), settled.database)


@pytest.fixture
def stuck(node: Anvil, settled: Settled, chain: RpcChain) -> str:
    """A statement whose recording a reorganisation put back into the pool, where the next blocks leave it."""
    proof = settled.prove(0, chain.anchor)
    settled.anchor(proof, chain.anchor)
    by_hand(node)
    node.call("anvil_reorg", 1, [])
    too_dear(node)
    return proof


def replaced(settled: Settled, chain: RpcChain, proof: str) -> list[StoredTransaction]:
    """The attempts at the recording after a look that found it stuck."""
    with pytest.raises(ChainUnavailable):
        settled.confirm(proof, chain.anchor, 1)
    return attempts(settled.database, ISSUER, NONCE)


def offered(transaction: StoredTransaction) -> Fees:
    fields = fields_of(transaction.raw)
    return Fees(fields["maxFeePerGas"], fields["maxPriorityFeePerGas"])


def test_a_stuck_recording_is_replaced_with_its_nonce_and_higher_fees(
    node: Anvil, settled: Settled, chain: RpcChain, stuck: str
) -> None:
    first, second = replaced(settled, chain, stuck)
    before, after = offered(first), offered(second)
    assert after.most * 8 >= before.most * 9
    assert after.tip * 8 >= before.tip * 9
    assert after.most > 100 * GWEI, "it can pay what the chain takes now"
    assert (second.nonce, second.attempt, second.effect) == (first.nonce, 1, first.effect)
    assert {**fields_of(second.raw), **_fees_of(first)} == fields_of(first.raw), "nothing else is changed"
    node.mine()
    settled.confirm(stuck, chain.anchor, 1)
    assert len(recordings(node, chain.anchor.registry)) == 1
    assert sent(node) == 2, "one registration and one recording"
    (confirmed,) = settled.events(stuck, "anchor_confirmed")
    assert confirmed.payload["tx_hash"] == second.tx_hash
    with settled.database.read() as tx:
        assert [tx.chain.by_hash(each.tx_hash).failed for each in (first, second)] == [True, False]
        assert tx.chain.not_included(31337) == []


def _fees_of(transaction: StoredTransaction) -> dict[str, int]:
    fees = offered(transaction)
    return {"maxFeePerGas": fees.most, "maxPriorityFeePerGas": fees.tip}


def test_a_chain_that_makes_no_blocks_is_waited_for(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    proof = settled.prove(0, chain.anchor)
    settled.anchor(proof, chain.anchor)
    by_hand(node)
    node.call("anvil_reorg", 1, [])
    node.call("anvil_dropAllTransactions")
    for _ in range(3):
        assert len(replaced(settled, chain, proof)) == 1
    node.mine()
    settled.confirm(proof, chain.anchor, 1)
    assert len(recordings(node, chain.anchor.registry)) == 1


def test_above_the_limit_nothing_is_offered_and_the_setting_is_named(
    node: Anvil, settled: Settled, chain: RpcChain, stuck: str
) -> None:
    poor = hurried(chain_of(node, settled.database), settled.database, limit_gwei=99)
    with pytest.raises(ChainUnavailable, match="SLA_LEDGER_MAX_FEE_GWEI") as refused:
        settled.confirm(stuck, poor.anchor, 1)
    assert int(refused.value.data["needed_wei"]) > int(refused.value.data["limit_wei"]) == 99 * GWEI
    assert len(attempts(settled.database, ISSUER, NONCE)) == 1
    base_fee(node, 1)
    node.call("evm_setAutomine", True)
    settled.confirm(stuck, poor.anchor, 1)
    assert len(attempts(settled.database, ISSUER, NONCE)) == 1
    assert len(recordings(node, chain.anchor.registry)) == 1


@pytest.mark.parametrize("winner", [0, 1])
def test_whichever_attempt_a_block_holds_counts_and_a_reorganisation_may_change_it(
    node: Anvil, settled: Settled, chain: RpcChain, stuck: str, winner: int
) -> None:
    both = replaced(settled, chain, stuck)

    def include(attempt: StoredTransaction) -> None:
        node.call("anvil_dropAllTransactions")
        base_fee(node, 1)
        node.call("eth_sendRawTransaction", "0x" + attempt.raw.hex())
        node.mine()

    include(both[winner])
    (recorded,) = settled.events(stuck, "anchor_recorded")
    standing = chain.anchor.standing(recorded.payload["tx_hash"])
    assert standing is not None
    assert standing.placed.tx_hash == both[winner].tx_hash
    node.call("anvil_reorg", 1, [])
    include(both[1 - winner])
    settled.confirm(stuck, chain.anchor, 1)
    (confirmed,) = settled.events(stuck, "anchor_confirmed")
    assert confirmed.payload["tx_hash"] == both[1 - winner].tx_hash
    assert len(recordings(node, chain.anchor.registry)) == 1


def test_workers_that_find_it_stuck_at_once_replace_it_once(
    node: Anvil, settled: Settled, chain: RpcChain, stuck: str
) -> None:
    workers = [hurried(chain_of(node, settled.database), settled.database) for _ in range(4)]
    with ThreadPoolExecutor(len(workers)) as pool:
        found = list(pool.map(lambda worker: replaced(settled, worker, stuck), workers))
    assert len(attempts(settled.database, ISSUER, NONCE)) == 2, found
    node.mine()
    for worker in workers:
        settled.confirm(stuck, worker.anchor, 1)
    assert len(recordings(node, chain.anchor.registry)) == 1


def test_one_that_waits_for_a_stuck_one_before_it_replaces_that_one(
    node: Anvil, settled: Settled, chain: RpcChain, stuck: str
) -> None:
    """Nobody looks after the first any more; whoever sends next with that key does."""
    later = settled.prove(1, chain.anchor)
    with pytest.raises(ChainUnavailable):
        settled.anchor(later, chain.anchor)
    assert len(attempts(settled.database, ISSUER, NONCE)) == 2
    for _ in range(3):
        node.mine()
        with suppress(ChainUnavailable):
            settled.anchor(later, chain.anchor)
    settled.anchor(later, chain.anchor)
    assert len(recordings(node, chain.anchor.registry)) == 2
    assert sent(node) == 4


@given(
    most=st.integers(1, 10**13), tip=st.integers(1, 10**12), base=st.integers(0, 10**13), limit=st.integers(1, 10**13)
)
def test_what_is_offered_keeps_to_the_limit_and_rises_by_an_eighth(most: int, tip: int, base: int, limit: int) -> None:
    policy, before = FeePolicy(limit), Fees(most, min(tip, most))
    with suppress(ChainUnavailable):
        first = policy.first(base)
        assert first.tip <= first.most <= limit
        assert first.most >= base + first.tip
    with suppress(ChainUnavailable):
        after = policy.raised(before, base)
        assert after.most * 8 >= before.most * 9
        assert after.tip * 8 >= before.tip * 9
        assert after.tip <= after.most <= limit
        assert after.most >= base + after.tip, "it is taken at the price of today"
