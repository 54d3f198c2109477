"""The registry's own logs: what others did is told from what this ledger did, through nodes of every kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from eth_account import Account

from ledger.anchor.logs import read_logs
from ledger.anchor.rpc import rpc_web3
from ledger.anchor.states import read_heights
from ledger.app.chain.anchoring import _load, _record
from ledger.app.ports.chain import Heights
from ledger.errors import ChainUnavailable
from ledger.settings import ChainSettings
from ledger.wiring.chain import ChainAccounts, RpcChain
from tests.chain.conftest import ACCOUNTS, chain_of, recordings
from tests.conformance.samples import StepClock
from tests.support.anvil import RECORDED, Anvil, running_anvil
from tests.support.faulty_rpc import faulty_rpc
from tests.support.settled import Settled
from tests.support.stored import memory_database
from tests.support.stuck import by_hand, hurried, too_dear
from tests.unit.app.conftest import CUSTOMER

pytestmark = pytest.mark.slow

CUSTOMER_ACCOUNT = Account.from_key(CUSTOMER)
Answer = dict[str, Any]


@pytest.fixture
def chain(node: Anvil, settled: Settled) -> RpcChain:
    return chain_of(node, settled.database)


def of_customer(node: Anvil) -> RpcChain:
    """The customer's own ledger on the same chain; it pays with a key of its own."""
    node.fund(CUSTOMER_ACCOUNT.address)
    accounts = ChainAccounts(ACCOUNTS.deployer, CUSTOMER_ACCOUNT)
    return RpcChain(memory_database(), accounts, ChainSettings(node.url), StepClock())


def anchored(settled: Settled, chain: RpcChain, count: int) -> list[str]:
    proofs = [settled.prove(n, chain.anchor) for n in range(count)]
    for proof in proofs:
        settled.anchor(proof, chain.anchor)
    return proofs


def test_what_this_ledger_did_is_its_own(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    anchored(settled, chain, 2)
    watched = chain.watch(0)
    names = Counter(event.name for event in watched.events)
    assert (names["Registered"], names["StatementRecorded"], names["VerifierAdded"]) == (2, 2, 1)
    assert all(event.own for event in watched.events)
    assert watched.of_others == ()
    recorded = [event for event in watched.events if event.name == "StatementRecorded"]
    assert [int(event.arguments["ctx"]) for event in recorded] == [
        int(ctx, 16) for ctx in recordings(node, watched.registry)
    ]


def test_a_statement_that_the_customer_recorded_first_is_seen_and_confirmed_and_not_recorded_again(
    node: Anvil, settled: Settled, chain: RpcChain
) -> None:
    (proof,) = anchored(settled, chain, 1)
    # The issuer's recording falls out of the chain, and the customer is faster.
    node.call("anvil_reorg", 1, [])
    node.call("anvil_dropAllTransactions")
    with settled.database.read() as tx:
        material = _load(tx, tx.events.by_id(proof).payload, settled.attestor)
    _record(material, of_customer(node).anchor)
    settled.confirm(proof, chain.anchor, 1)
    assert len(recordings(node, chain.anchor.registry)) == 1
    watched = chain.watch(0)
    (foreign,) = watched.of_others
    assert (foreign.name, foreign.concerns, foreign.own) == ("StatementRecorded", "statement", False)
    (confirmed,) = settled.events(proof, "anchor_confirmed")
    assert confirmed.payload["tx_hash"] == foreign.tx_hash


def test_a_retired_verifier_concerns_everybody_and_other_peoples_statements_nobody_here(
    node: Anvil, settled: Settled, chain: RpcChain
) -> None:
    anchored(settled, chain, 1)
    stranger = Settled(memory_database())
    others = chain_of(node, stranger.database)
    stranger.anchor(stranger.prove(5, others.anchor), others.anchor)
    others.anchor._chain.retire_verifier(ACCOUNTS.deployer, settled.attestor.circuit_id, now_s=0)
    watched = chain.watch(0)
    assert [(event.name, event.concerns) for event in watched.events if not event.own] == [
        ("Registered", None),
        ("StatementRecorded", None),
        ("VerifierRetired", "registry"),
    ]
    assert [event.name for event in watched.of_others] == ["VerifierRetired"]


def test_states_move_on_and_a_reorganisation_moves_them_back(settled: Settled) -> None:
    with running_anvil("--slots-in-an-epoch", "2") as node:
        node.fund(ACCOUNTS.deployer.address, ACCOUNTS.issuer.address)
        chain = hurried(chain_of(node, settled.database), settled.database)
        (proof,) = anchored(settled, chain, 1)

        def state() -> str:
            return chain.watch(0).transactions[-1].state

        seen = [state()]
        for _ in range(8):
            node.mine()
            seen.append(state())
        steps = [here for here, before in zip(seen, ["", *seen], strict=False) if here != before]
        assert steps == ["included", "safe", "finalized"]
        by_hand(node)
        node.call("anvil_reorg", 9, [])
        node.call("anvil_dropAllTransactions")
        assert state() == "submitted"
        assert recordings(node, chain.anchor.registry) == []
        with pytest.raises(ChainUnavailable):
            settled.confirm(proof, chain.anchor, 1)
        node.mine()
        settled.confirm(proof, chain.anchor, 1)
        assert state() == "included"
        assert len(recordings(node, chain.anchor.registry)) == 1


def test_of_two_attempts_one_comes_further_and_the_other_failed(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    chain = hurried(chain, settled.database)
    (proof,) = anchored(settled, chain, 1)
    by_hand(node)
    node.call("anvil_reorg", 1, [])
    too_dear(node)
    with pytest.raises(ChainUnavailable):
        settled.confirm(proof, chain.anchor, 1)
    assert [each.state for each in chain.watch(0).transactions[-2:]] == ["submitted", "submitted"]
    node.mine()
    assert [each.state for each in chain.watch(0).transactions[-2:]] == ["failed", "included"]


@pytest.mark.parametrize(
    ("heights", "block", "state"),
    [
        (Heights(100, 90, 80), None, "submitted"),
        (Heights(100, 90, 80), 91, "included"),
        (Heights(100, 90, 80), 90, "safe"),
        (Heights(100, 90, 80), 80, "finalized"),
        (Heights(100, None, None), 90, "included"),
        (Heights(100, None, None), 89, "finalized"),
    ],
)
def test_a_node_without_names_for_blocks_counts_confirmations(heights: Heights, block: int | None, state: str) -> None:
    assert heights.state(block, confirmations=12) == state


def test_a_node_that_does_not_know_the_names_says_so_by_an_error(node: Anvil) -> None:
    def unknown(request: Answer, answer: Answer) -> Answer:
        if request["method"] == "eth_getBlockByNumber" and request["params"][0] in ("safe", "finalized"):
            return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -39001, "message": "Unknown block"}}
        return answer

    with faulty_rpc(node.url, 1) as between:
        between.reshape = unknown
        assert read_heights(rpc_web3(between.url)) == Heights(node.height(), None, None)


# --- nodes that give logs badly -------------------------------------------------------------------


def reading(node: Anvil, chain: RpcChain, reshape: Callable[[Answer, Answer], Answer], **options: int) -> list[str]:
    """The ctx of the statements that are read through a node whose answers are reshaped."""
    with faulty_rpc(node.url, 1) as between:
        between.reshape = reshape
        registry = chain._address
        logs = read_logs(rpc_web3(between.url), registry, [RECORDED], 0, node.height(), **options)
    return ["0x" + bytes(log["topics"][2]).hex() for log in logs]


@pytest.mark.parametrize("limit", [1, 3, 7, 1000])
def test_a_range_that_is_refused_is_halved(node: Anvil, settled: Settled, chain: RpcChain, limit: int) -> None:
    anchored(settled, chain, 3)
    node.mine(10)
    asked = []

    def limited(request: Answer, answer: Answer) -> Answer:
        if request["method"] != "eth_getLogs":
            return answer
        first, last = (int(request["params"][0][end], 16) for end in ("fromBlock", "toBlock"))
        asked.append(last - first + 1)
        if last - first + 1 <= limit:
            return answer
        error = {"code": -32005, "message": "query exceeds max block range"}
        return {"jsonrpc": "2.0", "id": request["id"], "error": error}

    assert reading(node, chain, limited) == recordings(node, chain.anchor.registry)
    assert len([size for size in asked if size > limit]) <= 5, "it keeps to what the node takes"


def test_a_node_that_refuses_even_one_block_is_awaited(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    anchored(settled, chain, 1)

    def refusing(request: Answer, answer: Answer) -> Answer:
        error = {"code": -32005, "message": "too many results"}
        return answer if request["method"] != "eth_getLogs" else {"jsonrpc": "2.0", "id": request["id"], "error": error}

    with pytest.raises(ChainUnavailable, match="too many results"):
        reading(node, chain, refusing)


def test_logs_of_others_removed_ones_and_repeats_are_not_counted(
    node: Anvil, settled: Settled, chain: RpcChain
) -> None:
    """A node, or whoever stands before it, gives more than was asked for."""
    anchored(settled, chain, 2)

    def embellished(request: Answer, answer: Answer) -> Answer:
        if request["method"] != "eth_getLogs" or not answer["result"]:
            return answer
        log, *_ = answer["result"]
        forged = [
            {**log, "address": "0x" + "77" * 20, "logIndex": "0x10"},
            {**log, "topics": ["0x" + "01" * 32, *log["topics"][1:]], "logIndex": "0x11"},
            {**log, "blockNumber": hex(10**6), "logIndex": "0x12"},
            {**log, "removed": True, "logIndex": "0x13"},
            log,
        ]
        return {**answer, "result": [*forged, *answer["result"]]}

    assert reading(node, chain, embellished) == recordings(node, chain.anchor.registry)


def test_a_branch_that_is_left_while_it_is_read_is_read_again(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    anchored(settled, chain, 2)
    done = []

    def reorganised(request: Answer, answer: Answer) -> Answer:
        if request["method"] == "eth_getLogs" and answer["result"] and len(done) < 2:
            done.append(request)
            if len(done) == 2:
                node.call("anvil_reorg", 1, [])
                node.call("anvil_dropAllTransactions")
        return answer

    found = reading(node, chain, reorganised, span=1)
    assert found == recordings(node, chain.anchor.registry)
    assert len(found) == 1
