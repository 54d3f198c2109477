"""The customer recorded a statement first: this ledger's bundle carries the customer's transaction, and it verifies."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.anchor.chain import Statement
from ledger.app.chain.anchoring import _load, _record
from ledger.attest.checks import statement_checks as checks
from ledger.attest.crypto.evm_tx import decode_transaction
from ledger.errors import ChainUnavailable
from ledger.wiring.chain import RpcChain
from tests.chain.conftest import ACCOUNTS, chain_of, recordings
from tests.chain.test_asking_a_node import Recorded
from tests.chain.test_watching import CUSTOMER_ACCOUNT, of_customer
from tests.contracts.trapdoor import rerandomise
from tests.support.anvil import Anvil
from tests.support.faulty_rpc import faulty_rpc
from tests.support.settled import Settled

pytestmark = pytest.mark.slow

Answer = dict[str, Any]


@pytest.fixture
def chain(node: Anvil, settled: Settled) -> RpcChain:
    return chain_of(node, settled.database)


def record_as_customer(node: Anvil, settled: Settled, proof: str) -> None:
    with settled.database.read() as tx:
        material = _load(tx, tx.events.by_id(proof).payload, settled.attestor)
    _record(material, of_customer(node).anchor)


def register(node: Anvil, settled: Settled, chain: RpcChain, proof: str) -> None:
    """What only the issuer does: the terms stand, with the verifier, and no statement."""
    settled.anchor(proof, chain.anchor)
    node.call("anvil_reorg", 1, [])
    node.call("anvil_dropAllTransactions")
    assert recordings(node, chain.anchor.registry) == []


def signer(recorded: Recorded) -> str:
    """Who signed the transaction of the bundle, which passes the check of a reader without a node."""
    case = recorded.case
    checks.anchor(case)
    return decode_transaction(bytes.fromhex(case.bundle["anchor"]["raw_transaction"])).sender


def test_what_the_customer_recorded_before_the_issuer_is_in_the_bundle(
    node: Anvil, settled: Settled, chain: RpcChain
) -> None:
    other = settled.prove(1, chain.anchor)
    settled.anchor(other, chain.anchor)
    proof = settled.prove(0, chain.anchor)
    with settled.database.read() as tx:
        material = _load(tx, tx.events.by_id(proof).payload, settled.attestor)
    assert material.registered.registration is not None
    assert material.registered.customer_signature is not None
    chain.anchor.register(material.registered.registration, material.registered.customer_signature)
    record_as_customer(node, settled, proof)
    before = node.height()
    settled.anchor(proof, chain.anchor)
    assert node.height() == before, "it is not recorded again"
    recorded = Recorded(node, chain, settled, proof, before)
    assert signer(recorded) == CUSTOMER_ACCOUNT.address
    settled.confirm(proof, chain.anchor, 1)
    assert signer(recorded) == CUSTOMER_ACCOUNT.address
    (confirmed,) = settled.events(proof, "anchor_confirmed")
    assert recorded.case.bundle["anchor"]["tx_hash"] == confirmed.payload["tx_hash"]


def test_what_the_customer_recorded_after_a_reorganisation_is_in_the_bundle(
    node: Anvil, settled: Settled, chain: RpcChain
) -> None:
    proof = settled.prove(0, chain.anchor)
    register(node, settled, chain, proof)
    recorded = Recorded(node, chain, settled, proof, node.height())
    assert signer(recorded) == ACCOUNTS.issuer.address
    record_as_customer(node, settled, proof)
    settled.confirm(proof, chain.anchor, 1)
    assert signer(recorded) == CUSTOMER_ACCOUNT.address
    with settled.database.read() as tx:
        row = tx.views.statement(recorded.case.issued["statement_id"])
    assert "raw_transaction" not in row["anchor"]


@pytest.mark.parametrize("member", ["input", "nonce", "r", "accessList", "missing", "unknown"])
def test_fields_that_do_not_hash_to_the_transaction_are_not_taken(
    node: Anvil, settled: Settled, chain: RpcChain, member: str
) -> None:
    proof = settled.prove(0, chain.anchor)
    register(node, settled, chain, proof)
    record_as_customer(node, settled, proof)
    asked = []

    def lying(request: Answer, answer: Answer) -> Answer:
        if request["method"] != "eth_getTransactionByHash":
            return answer
        asked.append(request)
        result = dict(answer["result"])
        if member == "unknown":
            return {**answer, "result": None}
        if member == "missing":
            del result["maxFeePerGas"]
        elif member == "accessList":
            result[member] = [{"address": chain.anchor.registry, "storageKeys": []}]
        else:
            result[member] = hex(int(result[member], 16) ^ 2)
        return {**answer, "result": result}

    with faulty_rpc(node.url, 1) as between:
        between.reshape = lying
        through = chain_of(node, settled.database, url=between.url)
        with pytest.raises(ChainUnavailable, match="check the node"):
            settled.confirm(proof, through.anchor, 1)
    assert asked
    assert settled.events(proof, "anchor_confirmed") == []
    settled.confirm(proof, chain.anchor, 1)
    assert len(settled.events(proof, "anchor_confirmed")) == 1


def record_otherwise(node: Anvil, settled: Settled, chain: RpcChain, proof: str, *, factor: int, more: bytes) -> bytes:
    """The customer records the statement with a proof made of the ledger's own, and bytes behind it; that proof."""
    with settled.database.read() as tx:
        recording = _load(tx, tx.events.by_id(proof).payload, settled.attestor).recording
    given = (bytes.fromhex(recording.sla_id[2:]), recording.start_ns, recording.end_ns, 1, 1, 0, bytes(32))
    other = rerandomise(recording.proof, factor)
    call = chain.anchor._chain.record_call(Statement(*given, recording.circuit_id, recording.signals, other))
    node.fund(CUSTOMER_ACCOUNT.address)
    fields = {"chainId": 31337, "nonce": 0, "value": 0, "to": call.to, "gas": call.gas_limit, "gasPrice": 10**10}
    signed = CUSTOMER_ACCOUNT.sign_transaction({**fields, "data": call.data + more})
    node.call("eth_sendRawTransaction", "0x" + bytes(signed.raw_transaction).hex())
    return other


def test_a_proof_that_the_customer_made_of_ours_is_in_the_bundle(
    node: Anvil, settled: Settled, chain: RpcChain
) -> None:
    """The bundle showed another proof than its own transaction, and so never verified."""
    proof = settled.prove(0, chain.anchor)
    register(node, settled, chain, proof)
    other = record_otherwise(node, settled, chain, proof, factor=7, more=b"")
    settled.confirm(proof, chain.anchor, 1)
    recorded = Recorded(node, chain, settled, proof, 0)
    assert recorded.case.bundle["proof"]["proof"] == other.hex()
    assert signer(recorded) == CUSTOMER_ACCOUNT.address
    checks.proof(recorded.case)


def test_a_recording_with_bytes_behind_it_is_no_anchor(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    proof = settled.prove(0, chain.anchor)
    register(node, settled, chain, proof)
    record_otherwise(node, settled, chain, proof, factor=1, more=b"!")
    settled.confirm(proof, chain.anchor, 1)
    assert Recorded(node, chain, settled, proof, 0).case.bundle["anchor"] is None


@pytest.mark.parametrize("kind", ["legacy", "access list", "names no chain"])
def test_a_recording_by_a_transaction_of_another_type(
    node: Anvil, settled: Settled, chain: RpcChain, kind: str
) -> None:
    """One that names no chain is good on any, so no reader takes it and the bundle has none."""
    proof = settled.prove(0, chain.anchor)
    register(node, settled, chain, proof)
    with settled.database.read() as tx:
        recording = _load(tx, tx.events.by_id(proof).payload, settled.attestor).recording
    given = (bytes.fromhex(recording.sla_id[2:]), recording.start_ns, recording.end_ns, 1, 1, 0, bytes(32))
    call = chain.anchor._chain.record_call(Statement(*given, recording.circuit_id, recording.signals, recording.proof))
    node.fund(CUSTOMER_ACCOUNT.address)
    fields = {"to": call.to, "data": call.data, "gas": call.gas_limit, "gasPrice": 10**10, "nonce": 0, "value": 0}
    listed = [{"address": call.to, "storageKeys": ["0x" + "00" * 32]}]
    fields |= {"access list": {"type": 1, "accessList": listed}}.get(kind, {})
    fields |= {} if kind == "names no chain" else {"chainId": 31337}
    signed = CUSTOMER_ACCOUNT.sign_transaction(fields)
    node.call("eth_sendRawTransaction", "0x" + bytes(signed.raw_transaction).hex())
    settled.confirm(proof, chain.anchor, 1)
    (confirmed,) = settled.events(proof, "anchor_confirmed")
    assert confirmed.payload["tx_hash"] == "0x" + bytes(signed.hash).hex()
    recorded = Recorded(node, chain, settled, proof, 0)
    if kind == "names no chain":
        assert recorded.case.bundle["anchor"] is None
    else:
        assert signer(recorded) == CUSTOMER_ACCOUNT.address
        assert recorded.case.bundle["anchor"]["raw_transaction"] == bytes(signed.raw_transaction).hex()
