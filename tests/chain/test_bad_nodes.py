"""A node that answers late, wrongly, twice or not at all costs time and nothing else; its URL stays a secret."""

from __future__ import annotations

import logging
import random
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import requests
from hexbytes import HexBytes
from web3 import Web3

from ledger.anchor.rpc import RpcProvider, rpc_web3, shown_host
from ledger.errors import ChainUnavailable
from ledger.settings import ChainSettings
from ledger.wiring.chain import RpcChain
from tests.chain.conftest import ACCOUNTS, chain_of, recordings, sent
from tests.conformance.samples import StepClock
from tests.support.anvil import Anvil
from tests.support.faulty_rpc import FAULTS, SECRET, FaultyRpc, faulty_rpc
from tests.support.settled import Settled

pytestmark = pytest.mark.slow

REFUSALS = [fault for fault in FAULTS if fault != "twice"]


@pytest.fixture
def faulty(node: Anvil) -> Iterator[FaultyRpc]:
    with faulty_rpc(node.url, seed=4) as rpc:
        yield rpc


@pytest.mark.parametrize("seed", range(3))
def test_statements_are_recorded_once_through_a_bad_node(node: Anvil, settled: Settled, seed: int) -> None:
    with faulty_rpc(node.url, seed) as faulty:
        chain = chain_of(node, settled.database, url=faulty.url)
        proofs = [settled.prove(n, chain.anchor) for n in range(3)]
        impatient(chain)
        faulty.share = 0.12
        attempts = sum(_attempts(settled, proof, chain) for proof in proofs * 2)
        print(f"seed {seed}: {attempts} attempts, {len(faulty.committed)} faults of {sorted(set(faulty.committed))}")
    found = recordings(node, chain.anchor.registry)
    assert len(found) == len(set(found)) == 3
    assert sent(node) == 6
    assert faulty.committed, "nothing was tried"


def _attempts(settled: Settled, proof: str, chain: RpcChain) -> int:
    """Repeat the stages as the outbox does until both are done; how often it took."""
    for attempt in range(1, 200):
        with suppress(ChainUnavailable):
            settled.anchor(proof, chain.anchor)
            settled.confirm(proof, chain.anchor, 1)
            return attempt
    raise AssertionError("it never came to an end")


@pytest.mark.parametrize("fault", REFUSALS)
def test_each_bad_answer_is_an_error_that_does_not_show_the_url(node: Anvil, fault: str) -> None:
    with faulty_rpc(node.url, 1, [fault]) as faulty:
        faulty.share = 1.0
        w3 = Web3(RpcProvider(faulty.url, timeout_s=0.5))
        with pytest.raises(ChainUnavailable) as caught:
            _ = w3.eth.chain_id
    assert caught.value.data["host"] == shown_host(faulty.url)
    assert caught.value.data["retry_after_s"] > 0
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_the_url_is_shown_nowhere(faulty: FaultyRpc, settled: Settled, caplog: pytest.LogCaptureFixture) -> None:
    settings = ChainSettings(rpc_url=faulty.url)
    chain = RpcChain(settled.database, ACCOUNTS, settings, StepClock())
    with caplog.at_level(logging.DEBUG):
        _ = chain.anchor
        faulty.share = 1.0
        status = RpcChain(settled.database, ACCOUNTS, settings, StepClock()).status()
    assert status["error"] is not None
    assert SECRET not in f"{settings!r} {status} {chain._w3.provider} {caplog.text}"


def test_a_receipt_of_another_transaction_is_not_believed(
    node: Anvil, settled: Settled, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = chain_of(node, settled.database)
    proof = settled.prove(0, chain.anchor)
    settled.anchor(proof, chain.anchor)
    with settled.database.read() as tx:
        first, *_, last = (transaction.tx_hash for transaction in tx.chain.of_chain(31337))
    wrong = chain._w3.eth.get_transaction_receipt(HexBytes(first))
    monkeypatch.setattr(chain._w3.eth, "get_transaction_receipt", lambda _: wrong)
    with pytest.raises(ChainUnavailable, match="another"):
        chain.anchor.standing(last)


def test_a_node_that_gives_receipts_of_others_and_old_nonces_costs_time_only(node: Anvil, settled: Settled) -> None:
    """Of its receipts a third are another transaction's, and of its counts of nonces a third are from before."""
    chain = chain_of(node, settled.database)
    _ = chain.anchor
    dice, lied = random.Random(4), Counter[str]()

    def confused(request: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
        method = request["method"]
        lies = {"eth_getTransactionReceipt": first, "eth_getTransactionCount": "0x0"}
        if method not in lies or dice.random() > 0.33:
            return answer
        lied[method] += 1
        return {**answer, "result": lies[method]}

    with faulty_rpc(node.url, 1) as between, settled.database.read() as tx:
        (deployment,) = (each.tx_hash for each in tx.chain.of_chain(31337))
        first = node.call("eth_getTransactionReceipt", deployment)
        through = chain_of(node, settled.database, url=between.url)
        proofs = [settled.prove(n, through.anchor) for n in range(2)]
        between.reshape = confused
        for proof in proofs * 2:
            _attempts(settled, proof, through)
    assert all(lied[method] for method in ("eth_getTransactionReceipt", "eth_getTransactionCount")), lied
    assert len(recordings(node, chain.anchor.registry)) == 2
    assert sent(node) == 4


def test_a_receipt_from_a_branch_that_was_left_is_not_believed(
    node: Anvil, settled: Settled, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = chain_of(node, settled.database)
    proof = settled.prove(0, chain.anchor)
    settled.anchor(proof, chain.anchor)
    tx_hash = settled.events(proof, "anchor_recorded")[0].payload["tx_hash"]
    stale = chain._w3.eth.get_transaction_receipt(HexBytes(tx_hash))
    assert chain.anchor.standing(tx_hash) is not None
    node.call("anvil_reorg", 1, [])
    monkeypatch.setattr(chain._w3.eth, "get_transaction_receipt", lambda _: stale)
    assert chain.anchor.standing(tx_hash) is None


def test_a_node_that_is_away_is_named_and_awaited(settled: Settled) -> None:
    w3 = rpc_web3("http://127.0.0.1:9/v2/secret")
    with pytest.raises(ChainUnavailable, match=r"127\.0\.0\.1:9 does not answer") as caught:
        _ = w3.eth.chain_id
    assert caught.value.data["retry_after_s"] > 0
    assert not isinstance(caught.value.__cause__, requests.RequestException)


def impatient(chain: RpcChain) -> RpcChain:
    """The same chain with a client that waits for a second instead of ten."""
    chain._w3.provider = RpcProvider(str(chain._settings.rpc_url), timeout_s=1.0)
    return chain
