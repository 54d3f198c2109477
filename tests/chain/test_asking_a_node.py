"""``sla-ledger verify --rpc``: what a real node says of a statement, and what a node that lies can get past."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import pytest

from ledger.anchor.chain import Statement, signals_hash
from ledger.app.bundles.building import build_bundle
from ledger.attest.checks.case import Case
from ledger.attest.checks.chain_checks import on_chain
from ledger.attest.checks.json_rpc import HttpNode
from ledger.attest.checks.report import Line, Outcome, Report
from ledger.attest.checks.verification import Exit, read_bundle
from ledger.attest.crypto.signing import NoteKey, SigningKey
from ledger.domain.attested import EMBEDDED_CHAIN_ID
from ledger.errors import ChainUnavailable, SettingInvalid
from ledger.merkle.checkpoint import Checkpoint, sign_checkpoint
from ledger.wiring.chain import RpcChain
from tests.chain.conftest import ACCOUNTS, chain_of
from tests.chain.test_anchoring_on_a_node import drop
from tests.contracts.ground import ctx_of
from tests.support.anvil import Anvil, AnvilMissing, running_anvil
from tests.support.faulty_rpc import FAULTS, SECRET, faulty_rpc
from tests.support.settled import Settled
from tests.support.stored import memory_database

pytestmark = pytest.mark.slow

LOG_KEY = NoteKey("example.com/log", SigningKey(b"\x05" * 32))
CHECKS = ("id", "registry", "block", "event", "record", "verifier", "final", "newest")
Ask = Callable[..., Any]


@dataclass
class Recorded:
    """A statement on a node's chain and the bundle about it. Its proof was made by whoever made the key."""

    node: Anvil
    chain: RpcChain
    settled: Settled
    proof: str
    before: int
    """Height before it was recorded."""

    @property
    def case(self) -> Case:
        """The bundle as it is now."""
        (anchored, *_) = self.settled.events(self.proof, "anchor_recorded")
        with self.settled.database.begin() as tx:
            size = tx.log.size()
            note = sign_checkpoint(Checkpoint(LOG_KEY.key.name, size, tx.log.root(size)), [LOG_KEY])
            if tx.log.checkpoint(size) is None:
                tx.log.save_checkpoint(size, tx.log.root(size), note.decode())
            data = build_bundle(
                tx,
                anchored.payload["statement_id"],
                vkey=LOG_KEY.key.vkey(),
                sign=SigningKey(b"\x06" * 32).sign,
                attestor=self.settled.attestor,
            )
        return Case(read_bundle(data))

    def restate(self) -> None:
        """Put a second version of the period on chain."""
        case, anchor = self.case, self.chain.anchor
        span, signals = case.period.interval, case.signals.as_tuple()
        given = (case.sla_id, span.start_ns, span.end_ns, 1, 2, case.signals.ctx)
        ctx = ctx_of(anchor.chain_id, anchor.registry, *given)
        changed = (signals[0], 6, ctx, *signals[3:])
        trapdoor = self.settled.attestor.trapdoor
        statement = Statement(*given, signals_hash(signals), self.settled.attestor.circuit_id, changed, b"")
        proved = Statement(*given, signals_hash(signals), statement.circuit_id, changed, trapdoor.forge(changed))
        anchor._chain.verify_and_record(ACCOUNTS.issuer, proved, now_s=self.settled.clock.now_ns() // 10**9)


def record(node: Anvil, terms: str = "agreement.yaml") -> Recorded:
    settled = Settled(memory_database())
    chain = chain_of(node, settled.database)
    proof = settled.prove(0, chain.anchor, terms=terms)
    before = node.height()
    settled.anchor(proof, chain.anchor)
    return Recorded(node, chain, settled, proof, before)


@pytest.fixture(scope="module")
def kept(absent: Callable[[str], NoReturn]) -> Iterator[Recorded]:
    """One that tests only look at: 70 blocks deep, so that it is final."""
    try:
        with running_anvil() as node:
            node.fund(ACCOUNTS.deployer.address, ACCOUNTS.issuer.address)
            recorded = record(node)
            node.mine(70)
            yield recorded
    except AnvilMissing as error:
        absent(str(error))


def said(case: Case, ask: Ask) -> dict[str, Line]:
    return {line.check.removeprefix("chain: "): line for line in on_chain(case, ask)}


def outcomes(case: Case, ask: Ask) -> dict[str, Outcome]:
    return {name: line.outcome for name, line in said(case, ask).items()}


def failed(case: Case, ask: Ask) -> set[str]:
    return {name for name, outcome in outcomes(case, ask).items() if outcome is Outcome.FAIL}


def exit_code(case: Case, ask: Ask) -> Exit:
    return Report(tuple(on_chain(case, ask)), (), False).exit_code(accept_dev=True)


# --- a node that tells the truth ---


def test_a_final_recording_is_found_in_every_way(kept: Recorded) -> None:
    lines = said(kept.case, HttpNode(kept.node.url).ask)
    assert tuple(lines) == CHECKS
    assert {line.outcome for line in lines.values()} == {Outcome.PASS}, lines
    assert all(line.detail.endswith(", by this node") for line in lines.values())
    assert exit_code(kept.case, HttpNode(kept.node.url).ask) is Exit.HOLDS


def test_what_is_not_final_is_said_and_is_no_full_success(node: Anvil) -> None:
    recorded = record(node)
    lines = said(recorded.case, HttpNode(node.url).ask)
    assert {name for name, line in lines.items() if line.outcome is not Outcome.PASS} == {"final"}
    assert lines["final"].outcome is Outcome.ASSUMED
    assert "1 confirmations, not safe yet; it may be dropped" in lines["final"].detail
    assert exit_code(recorded.case, HttpNode(node.url).ask) is Exit.NOT_PINNED


def test_both_proofs_of_an_incident_credit_are_found_and_both_verifiers(node: Anvil) -> None:
    case, ask = record(node, "agreement-impact.yaml").case, HttpNode(node.url).ask
    lines = said(case, ask)
    assert {name for name, line in lines.items() if line.outcome is not Outcome.PASS} == {"final"}
    assert lines["verifier"].detail.startswith("the verifiers 0x")

    def changed(change: Callable[[list[Any]], object]) -> Ask:
        def answer(method: str, *arguments: Any) -> Any:
            found = ask(method, *arguments)
            if method == "eth_getTransactionReceipt":
                change(found["logs"])
            return found

        return answer

    # Without the event of the credit a node shows the first proof alone; with another one, another credit.
    for change in (
        lambda logs: logs.pop(),
        lambda logs: logs[1]["topics"].__setitem__(3, "0x" + "07" * 32),
        lambda logs: logs.pop(0),
    ):
        assert failed(case, changed(change)) == {"event", "record", "verifier"}


def test_a_transaction_that_was_reorganised_away_fails(node: Anvil) -> None:
    recorded = record(node)
    drop(node, recorded.before)
    found = failed(recorded.case, HttpNode(node.url).ask)
    assert {"block", "event", "record"} <= found
    assert exit_code(recorded.case, HttpNode(node.url).ask) is Exit.FAILED


def test_one_that_was_mined_again_elsewhere_needs_a_new_bundle(node: Anvil) -> None:
    recorded = record(node)
    case, raw = recorded.case, recorded.case.bundle["anchor"]["raw_transaction"]
    height = node.height()
    drop(node, height - 1)
    node.mine(2)
    node.call("eth_sendRawTransaction", "0x" + raw)
    lines = said(case, HttpNode(node.url).ask)
    assert {name for name, line in lines.items() if line.outcome is Outcome.FAIL} == {"block"}
    assert "not in the one the bundle names; ask for a newer bundle" in lines["block"].detail


def test_a_later_restatement_is_said(node: Anvil) -> None:
    recorded = record(node)
    case = recorded.case
    recorded.restate()
    node.mine(70)
    lines = said(case, HttpNode(node.url).ask)
    assert {name for name, line in lines.items() if line.outcome is not Outcome.PASS} == {"newest"}
    assert "superseded: a later version than 1 of this period is recorded" in lines["newest"].detail
    assert exit_code(case, HttpNode(node.url).ask) is Exit.NOT_PINNED


def changed(case: Case, **members: dict[str, Any]) -> Case:
    bundle = {name: dict(case.bundle[name]) | values for name, values in members.items()}
    return Case({**case.bundle, **bundle})


WRONG = {
    "a registry that is no contract": ({"context": {"registry": ACCOUNTS.issuer.address}}, {"registry"}),
    "another chain": ({"context": {"chain_id": "1"}}, {"id"}),
    "a transaction that nobody sent": ({"anchor": {"tx_hash": "0x" + "ab" * 32}}, {"block", "event", "record"}),
    "another block": ({"anchor": {"block_number": 1}}, {"block"}),
    "another block hash": ({"anchor": {"block_hash": "0x" + "ab" * 32}}, {"block"}),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_bundle_that_says_something_else_than_the_chain_fails(kept: Recorded, name: str) -> None:
    members, named = WRONG[name]
    case, ask = changed(kept.case, **members), HttpNode(kept.node.url).ask
    assert named <= failed(case, ask)
    assert exit_code(case, ask) is Exit.FAILED


@pytest.mark.parametrize(
    ("chain_id", "do"),
    [("1", r"ask a node of chain 1 \(--rpc\)"), (str(EMBEDDED_CHAIN_ID), "no node has: verify without --rpc")],
)
def test_a_node_of_another_chain_has_one_line_that_says_what_to_do(kept: Recorded, chain_id: str, do: str) -> None:
    ask = HttpNode(kept.node.url).ask
    (line,) = said(changed(kept.case, context={"chain_id": chain_id}), ask).values()
    assert (line.check, line.outcome) == ("chain: id", Outcome.FAIL)
    assert re.search(f"the node is on chain 31337, the statement on chain {chain_id}; .*{do}", line.detail)


def test_a_chain_without_the_registry_has_one_line_that_says_what_to_do(kept: Recorded) -> None:
    case = changed(kept.case, context={"registry": ACCOUNTS.issuer.address})
    passed, line = said(case, HttpNode(kept.node.url).ask).values()
    assert (passed.check, passed.outcome) == ("chain: id", Outcome.PASS)
    assert (line.check, line.outcome) == ("chain: registry", Outcome.FAIL)
    assert "started anew or is another one with the same id; ask a node" in line.detail


def test_the_transaction_that_registered_the_terms_records_nothing(kept: Recorded) -> None:
    """It succeeded at the same registry, from the same sender."""
    with kept.settled.database.read() as tx:
        sent = [transaction.tx_hash for transaction in tx.chain.of_chain(31337)]
    mine = kept.case.bundle["anchor"]["tx_hash"]
    receipts = [kept.node.call("eth_getTransactionReceipt", tx_hash) for tx_hash in sent if tx_hash != mine]
    other = next(receipt for receipt in receipts if receipt["to"] == kept.chain.anchor.registry.lower())
    where = {"block_number": int(other["blockNumber"], 16), "block_hash": other["blockHash"]}
    case = changed(kept.case, anchor={"tx_hash": other["transactionHash"], **where})
    assert failed(case, HttpNode(kept.node.url).ask) == {"event", "record", "verifier"}


# --- a node that lies ---


def lying(ask: Ask, method: str, change: Callable[[Any], Any]) -> Ask:
    """Every answer to ``method`` is changed."""

    def answer(asked: str, *params: Any) -> Any:
        result = ask(asked, *params)
        return change(result) if asked == method else result

    return answer


def receipt_with(**members: Any) -> Callable[[Any], Any]:
    return lambda receipt: {**receipt, **members}


def log_with(**members: Any) -> Callable[[Any], Any]:
    return lambda receipt: {**receipt, "logs": [{**receipt["logs"][0], **members}]}


LIES: dict[str, tuple[str, Callable[[Any], Any], set[str]]] = {
    "another chain id": ("eth_chainId", lambda _: "0x1", {"id"}),
    "a chain id that is none": ("eth_chainId", lambda _: 31337, {"id"}),
    "a number with leading zeros": ("eth_chainId", lambda _: "0x07a69", {"id"}),
    "no code anywhere": ("eth_getCode", lambda _: "0x", {"registry"}),
    "other code": ("eth_getCode", lambda _: "0x6001", {"verifier"}),
    "code that is no hex": ("eth_getCode", lambda _: "0x6", {"registry"}),
    "no receipt": ("eth_getTransactionReceipt", lambda _: None, {"block", "event", "record", "verifier", "final"}),
    "a receipt of another transaction": (
        "eth_getTransactionReceipt",
        receipt_with(transactionHash="0x" + "ab" * 32),
        {"block", "event", "record", "verifier", "final"},
    ),
    "a failed transaction": ("eth_getTransactionReceipt", receipt_with(status="0x0"), {"block"}),
    "a receipt from another block": ("eth_getTransactionReceipt", receipt_with(blockNumber="0x1"), {"block"}),
    "a receipt that is a list": ("eth_getTransactionReceipt", lambda _: [], {"block", "event", "record"}),
    "no logs": ("eth_getTransactionReceipt", receipt_with(logs=[]), {"event", "record", "verifier"}),
    "logs that are none": ("eth_getTransactionReceipt", receipt_with(logs=[7, {}, None]), {"event"}),
    "the event of another emitter": (
        "eth_getTransactionReceipt",
        log_with(address=ACCOUNTS.issuer.address.lower()),
        {"event", "record", "verifier"},
    ),
    "an event of other data": (
        "eth_getTransactionReceipt",
        log_with(data="0x" + "ab" * 256),
        {"event", "record", "verifier"},
    ),
    "an event with other topics": (
        "eth_getTransactionReceipt",
        lambda receipt: log_with(topics=[receipt["logs"][0]["topics"][0], *["0x" + "ab" * 32] * 3])(receipt),
        {"event", "record", "verifier"},
    ),
    "an event checked by another verifier": (
        "eth_getTransactionReceipt",
        lambda receipt: log_with(data=receipt["logs"][0]["data"][:-40] + "ab" * 20)(receipt),
        {"record", "verifier"},
    ),
    "no such block": ("eth_getBlockByNumber", lambda _: None, {"block"}),
    "another block at its height": ("eth_getBlockByNumber", receipt_with(hash="0x" + "ab" * 32), {"block"}),
    "a block without the transaction": ("eth_getBlockByNumber", receipt_with(transactions=[]), {"block"}),
    "no record": ("eth_call", lambda _: "0x" + "00" * 32, {"record", "verifier"}),
    "another record": ("eth_call", lambda _: "0x" + "ab" * 32, {"record"}),
    "a call that answers nothing": ("eth_call", lambda _: "0x", {"record", "verifier", "newest"}),
    "a height that is none": ("eth_blockNumber", lambda _: None, {"final"}),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_of_the_node_that_contradicts_anything_fails(kept: Recorded, name: str) -> None:
    method, change, named = LIES[name]
    ask = lying(HttpNode(kept.node.url).ask, method, change)
    assert named <= failed(kept.case, ask)
    assert exit_code(kept.case, ask) is Exit.FAILED


def test_a_node_that_hides_a_restatement_is_believed_so_every_line_says_by_this_node(node: Anvil) -> None:
    recorded = record(node)
    case = recorded.case
    recorded.restate()
    node.mine(70)
    real = HttpNode(node.url).ask

    def hides(method: str, *params: Any) -> Any:
        answer = real(method, *params)
        return f"{answer[:-1]}{int(answer[-1], 16) & 14:x}" if method == "eth_call" and len(answer) == 66 else answer

    lines = said(case, hides)
    assert {line.outcome for line in lines.values()} == {Outcome.PASS}
    assert lines["newest"].detail.endswith("by this node")


# --- a node that does not answer ---


def test_a_node_that_is_away_checks_nothing_and_is_no_success(kept: Recorded) -> None:
    (line,) = on_chain(kept.case, HttpNode("http://127.0.0.1:9/v2/" + SECRET).ask)
    assert (line.check, line.outcome) == ("chain: id", Outcome.NOT_CHECKED)
    assert "127.0.0.1:9 does not answer" in line.detail
    assert SECRET not in line.detail
    assert exit_code(kept.case, HttpNode("http://127.0.0.1:9/").ask) is Exit.NOT_PINNED


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "twice"])
def test_a_node_that_answers_badly_is_named_without_its_secret(kept: Recorded, fault: str) -> None:
    with faulty_rpc(kept.node.url, 1, [fault]) as faulty:
        faulty.share = 1.0
        with pytest.raises(ChainUnavailable) as caught:
            HttpNode(faulty.url, timeout_s=0.5).ask("eth_chainId")
    assert SECRET not in f"{caught.value.message} {caught.value.data}"


def test_a_method_that_the_node_refuses_is_not_checked_and_the_others_are(kept: Recorded) -> None:
    real = HttpNode(kept.node.url).ask

    def refusing(method: str, *params: Any) -> Any:
        return real("eth_no_such_method") if params[:1] == ("finalized",) else real(method, *params)

    found = outcomes(kept.case, refusing)
    assert found.pop("final") is Outcome.NOT_CHECKED
    assert set(found.values()) == {Outcome.PASS}
    assert exit_code(kept.case, refusing) is Exit.NOT_PINNED


@pytest.mark.parametrize("url", ["", "node", "ftp://example.com", "file:///etc/passwd", "http://", "http://[", "//x"])
def test_an_address_that_is_no_node_is_bad_input(url: str) -> None:
    with pytest.raises(SettingInvalid, match="--rpc"):
        HttpNode(url)
