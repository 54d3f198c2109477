"""Statements on the chain of a real node: recorded once, confirmed once, and found again after a reorganisation."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ledger.anchor.addresses import registry_address
from ledger.anchor.sender import Call, Sender
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import AnchorRefused, ChainUnavailable, DevKeyRefused, NotYet, SettingInvalid
from ledger.settings import ChainSettings
from ledger.wiring.chain import RpcChain
from tests.chain.conftest import ACCOUNTS, chain_of, recordings, sent
from tests.conformance.samples import StepClock
from tests.support.anvil import Anvil, running_anvil
from tests.support.settled import Settled

pytestmark = pytest.mark.slow


@pytest.fixture
def chain(node: Anvil, settled: Settled) -> RpcChain:
    return chain_of(node, settled.database)


def test_a_statement_is_recorded_and_confirmed_once(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    proof = settled.prove(0, chain.anchor)
    for _ in range(2):
        settled.anchor(proof, chain.anchor)
        settled.confirm(proof, chain.anchor, chain.confirmations)
    assert len(recordings(node, chain.anchor.registry)) == 1
    assert sent(node) == 2, "one registration and one recording"
    (recorded,), (confirmed,) = (settled.events(proof, kind) for kind in ("anchor_recorded", "anchor_confirmed"))
    assert confirmed.payload["confirmations"] == 1
    assert {name: confirmed.payload[name] for name in ("tx_hash", "block_number", "block_hash")} == {
        name: recorded.payload[name] for name in ("tx_hash", "block_number", "block_hash")
    }
    with settled.database.read() as tx:
        row = tx.views.statement(recorded.payload["statement_id"])
    assert (row["anchor"]["confirmed"], row["anchor"]["confirmations"]) == (True, 1)


def test_workers_that_get_the_same_task_send_one_transaction(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    """Four workers, each with connections of its own, and the same five statements."""
    proofs = [settled.prove(n, chain.anchor) for n in range(5)]
    workers = [chain_of(node, settled.database) for _ in range(4)]

    def work(number: int) -> None:
        for proof in proofs[number:] + proofs[:number]:
            settled.anchor(proof, workers[number].anchor)
            settled.confirm(proof, workers[number].anchor, 1)

    with ThreadPoolExecutor(len(workers)) as pool:
        list(pool.map(work, range(len(workers))))
    found = recordings(node, chain.anchor.registry)
    assert len(found) == len(set(found)) == 5
    assert sent(node) == 10
    assert [len(settled.events(proof, "anchor_confirmed")) for proof in proofs] == [1] * 5


def test_it_waits_for_confirmations(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    proof = settled.prove(0, chain.anchor)
    settled.anchor(proof, chain.anchor)
    for have in (1, 2):
        with pytest.raises(NotYet) as waiting:
            settled.confirm(proof, chain.anchor, 3)
        assert (waiting.value.data["confirmations"], waiting.value.data["retry_after_s"]) == (have, 3 - have)
        node.mine()
    # On a chain that stands still for long it looks rarely.
    settled.clock.now += 600 * SECOND_NS
    with pytest.raises(NotYet) as waiting:
        settled.confirm(proof, chain.anchor, 4)
    assert 60 <= waiting.value.data["retry_after_s"] < 70
    settled.confirm(proof, chain.anchor, 3)
    (confirmed,) = settled.events(proof, "anchor_confirmed")
    assert confirmed.payload["confirmations"] == 3


def test_a_dropped_recording_is_sent_again_byte_for_byte(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    """The reorganisation drops the registration before it as well, which nobody waits for any more."""
    proof = settled.prove(0, chain.anchor)
    height = node.height()
    settled.anchor(proof, chain.anchor)
    drop(node, height)
    assert recordings(node, chain.anchor.registry) == []
    with pytest.raises(NotYet):
        settled.confirm(proof, chain.anchor, 30)
    (recorded,) = settled.events(proof, "anchor_recorded")
    assert len(recordings(node, chain.anchor.registry)) == 1
    node.mine(30)
    settled.confirm(proof, chain.anchor, 30)
    (confirmed,) = settled.events(proof, "anchor_confirmed")
    assert confirmed.payload["tx_hash"] == recorded.payload["tx_hash"]
    assert confirmed.payload["block_hash"] != recorded.payload["block_hash"]
    assert len(recordings(node, chain.anchor.registry)) == 1


def test_the_bundle_names_the_block_that_was_confirmed(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    proof = settled.prove(0, chain.anchor)
    height = node.height()
    settled.anchor(proof, chain.anchor)
    drop(node, height)
    node.mine(3)
    settled.confirm(proof, chain.anchor, 1)
    (confirmed,) = settled.events(proof, "anchor_confirmed")
    with settled.database.read() as tx:
        row = tx.views.statement(confirmed.payload["statement_id"])
    assert row["anchor"]["block_number"] == confirmed.payload["block_number"] > height + 2
    assert row["anchor"]["registry"] == chain.anchor.registry


def test_a_recording_that_failed_in_another_order_is_signed_anew(
    node: Anvil, settled: Settled, chain: RpcChain
) -> None:
    """After the reorganisation a block holds the recording before the verifier that it needs."""
    height_of_registry = node.height() + 1
    proof = settled.prove(0, chain.anchor)
    settled.anchor(proof, chain.anchor)
    with settled.database.read() as tx:
        issuers = [t for t in tx.chain.of_chain(31337) if t.sender == ACCOUNTS.issuer.address]
    drop(node, height_of_registry)
    for transaction in issuers:
        node.call("eth_sendRawTransaction", "0x" + transaction.raw.hex())
    assert recordings(node, chain.anchor.registry) == []
    settled.confirm(proof, chain.anchor, 1)
    (recorded,), (confirmed,) = (settled.events(proof, kind) for kind in ("anchor_recorded", "anchor_confirmed"))
    assert confirmed.payload["tx_hash"] != recorded.payload["tx_hash"]
    assert len(recordings(node, chain.anchor.registry)) == 1


def test_what_is_stored_and_not_mined_is_sent_again(node: Anvil, settled: Settled) -> None:
    sender = Sender(chain_of(node, settled.database)._w3, settled.database, receipt_timeout_s=0.5)
    call = Call(ACCOUNTS.deployer.address, b"", 30_000, "do nothing", "nothing")
    node.call("evm_setAutomine", False)
    with pytest.raises(ChainUnavailable) as waiting:
        sender.send(ACCOUNTS.issuer, call, now_s=0)
    assert waiting.value.data["retry_after_s"] > 0
    node.call("anvil_dropAllTransactions")
    node.call("evm_setAutomine", True)
    receipt = sender.send(ACCOUNTS.issuer, call, now_s=0)
    assert "0x" + receipt["transactionHash"].hex() == waiting.value.data["tx_hash"]
    with settled.database.read() as tx:
        assert tx.chain.not_included(31337) == []


def test_a_nonce_that_another_took_is_given_up(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    """Somebody used the issuer's key past this ledger: the stored transaction can never be included."""
    _ = chain.anchor
    sender = Sender(chain._w3, settled.database, receipt_timeout_s=0.5)
    call = Call(ACCOUNTS.deployer.address, b"", 30_000, "do nothing", "nothing")
    node.call("evm_setAutomine", False)
    with pytest.raises(ChainUnavailable):
        sender.send(ACCOUNTS.issuer, call, now_s=0)
    node.call("anvil_dropAllTransactions")
    node.call("evm_setAutomine", True)
    foreign = {"to": ACCOUNTS.issuer.address, "value": 1, "gas": 21_000, "nonce": 0, "chainId": 31337}
    signed = ACCOUNTS.issuer.sign_transaction({**foreign, "gasPrice": 10**11})
    node.call("eth_sendRawTransaction", "0x" + signed.raw_transaction.hex())
    with pytest.raises(ChainUnavailable, match="another transaction"):
        sender.send(ACCOUNTS.issuer, call, now_s=0)
    receipt = sender.send(ACCOUNTS.issuer, call, now_s=0)
    assert receipt["status"] == 1
    with settled.database.read() as tx:
        places = [(t.nonce, t.failed) for t in tx.chain.of_chain(31337) if t.sender == ACCOUNTS.issuer.address]
    assert places == [(0, True), (1, False)]


def test_a_recording_whose_nonce_is_gone_after_a_reorganisation_is_signed_anew(
    node: Anvil, settled: Settled, chain: RpcChain
) -> None:
    """It stood in a block, fell out of it, and somebody else's use of the key stands in its place."""
    proof = settled.prove(0, chain.anchor)
    height = node.height()
    settled.anchor(proof, chain.anchor)
    (recorded,) = settled.events(proof, "anchor_recorded")
    nonce = sent(node) - 1
    assert node.height() > height
    drop(node, node.height() - 1)
    foreign = {"to": ACCOUNTS.issuer.address, "value": 1, "gas": 21_000, "nonce": nonce, "chainId": 31337}
    signed = ACCOUNTS.issuer.sign_transaction({**foreign, "gasPrice": 10**11})
    node.call("eth_sendRawTransaction", "0x" + signed.raw_transaction.hex())
    with pytest.raises(ChainUnavailable, match="another transaction"):
        settled.confirm(proof, chain.anchor, 1)
    for _ in range(2):
        settled.confirm(proof, chain.anchor, 1)
    (confirmed,) = settled.events(proof, "anchor_confirmed")
    assert confirmed.payload["tx_hash"] != recorded.payload["tx_hash"]
    assert len(recordings(node, chain.anchor.registry)) == 1
    assert sent(node) == nonce + 2


def test_a_node_that_was_started_anew_gets_everything_again(settled: Settled) -> None:
    """A local chain that lost its memory: the stored transactions put the same registry and records there."""
    with running_anvil() as node:
        node.fund(ACCOUNTS.deployer.address, ACCOUNTS.issuer.address)
        anchor = chain_of(node, settled.database).anchor
        proof = settled.prove(0, anchor)
        settled.anchor(proof, anchor)
        registry = anchor.registry
    with running_anvil() as node:
        node.fund(ACCOUNTS.deployer.address, ACCOUNTS.issuer.address)
        again = chain_of(node, settled.database)
        settled.confirm(proof, again.anchor, 1)
        assert again.anchor.registry == registry
        assert len(recordings(node, registry)) == 1


# --- opening ------------------------------------------------------------------------------------


def test_a_test_chain_gets_its_registry_unasked_and_once(node: Anvil, settled: Settled) -> None:
    chains = [chain_of(node, settled.database) for _ in range(4)]
    with ThreadPoolExecutor(len(chains)) as pool:
        registries = set(pool.map(lambda chain: chain.anchor.registry, chains))
    assert registries == {registry_address(ACCOUNTS.deployer.address)}
    with settled.database.read() as tx:
        assert [t.effect for t in tx.chain.of_chain(31337)] == ["registry"]


def test_where_the_registry_will_be_is_known_without_deploying_it(node: Anvil, settled: Settled) -> None:
    chain = chain_of(node, settled.database)
    location = chain.location()
    assert node.height() == 0
    with settled.database.read() as tx:
        assert tx.chain.count(31337) == 0
    assert location == (chain.anchor.chain_id, chain.anchor.registry)
    wrong = chain_of(node, settled.database, registry="0x" + "11" * 20)
    with pytest.raises(SettingInvalid, match="holds no contract"):
        wrong.location()


def test_elsewhere_a_registry_is_deployed_by_whoever_pays(settled: Settled) -> None:
    with running_anvil("--chain-id", "1") as node:
        chain = chain_of(node, settled.database)
        with pytest.raises(SettingInvalid, match="chain deploy"):
            _ = chain.anchor
        with pytest.raises(SettingInvalid, match="chain deploy"):
            chain.location()
        with pytest.raises(ChainUnavailable, match=ACCOUNTS.deployer.address):
            chain.deploy()
        node.fund(ACCOUNTS.deployer.address, ACCOUNTS.issuer.address)
        first, second = chain.deploy(), chain.deploy()
        assert (first["deployed"], second["deployed"]) == (True, False)
        assert first["registry"] == second["registry"] == chain.anchor.registry
        assert chain.confirmations == 12
        proof = settled.prove(0, chain.anchor)
        with pytest.raises(DevKeyRefused):
            settled.anchor(proof, chain.anchor)
        assert recordings(node, chain.anchor.registry) == []


def test_a_registry_that_the_settings_name_is_used(node: Anvil, settled: Settled) -> None:
    registry = chain_of(node, settled.database).anchor.registry
    named = chain_of(node, settled.database, registry=registry.lower(), confirmations=7)
    assert (named.anchor.registry, named.confirmations) == (registry, 7)
    with pytest.raises(SettingInvalid, match="nothing to deploy"):
        named.deploy()
    nobody = chain_of(node, settled.database, registry="0x" + "77" * 20)
    with pytest.raises(SettingInvalid, match="no contract"):
        _ = nobody.anchor


def test_a_sender_without_money_waits_for_it_and_keeps_no_nonce(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    proof = settled.prove(0, chain.anchor)
    node.fund(ACCOUNTS.issuer.address, wei=0)
    with pytest.raises(ChainUnavailable) as refused:
        settled.anchor(proof, chain.anchor)
    assert ACCOUNTS.issuer.address in refused.value.message
    node.fund(ACCOUNTS.issuer.address)
    settled.anchor(proof, chain.anchor)
    assert len(recordings(node, chain.anchor.registry)) == 1


def test_what_a_contract_refuses_is_said_in_its_words(node: Anvil, settled: Settled, chain: RpcChain) -> None:
    anchor = chain.anchor
    sender = Sender(chain._w3, settled.database)
    contract = anchor._chain._contract
    data = bytes.fromhex(contract.encode_abi("addVerifier", args=[ACCOUNTS.issuer.address])[2:])
    call = Call(contract.address, data, 100_000, "add the verifier")
    with pytest.raises(AnchorRefused) as refused:
        sender.send(ACCOUNTS.deployer, call, now_s=0)
    assert refused.value.data["error"] == "NotAContract"


def test_the_status_is_what_is_stored(node: Anvil, settled: Settled) -> None:
    now_s = 0.0
    chain = RpcChain(settled.database, ACCOUNTS, ChainSettings(node.url), StepClock(), monotonic_s=lambda: now_s)
    before = chain.status()
    assert (before["kind"], before["chain_id"], before["registry"], before["total"]) == ("rpc", 31337, None, 0)
    registry = chain.anchor.registry
    assert chain.status() == before, "kept for a moment"
    now_s = 2.0
    after = chain.status()
    assert (after["registry"], after["total"]) == (registry, 1)
    assert after["transactions"][0]["block_number"] == 1


def test_a_status_without_the_node_asks_for_it_now_and_then(settled: Settled) -> None:
    now_s = 0.0
    chain = RpcChain(
        settled.database, ACCOUNTS, ChainSettings("http://127.0.0.1:9"), StepClock(), monotonic_s=lambda: now_s
    )
    away = chain.status()
    assert (away["chain_id"], away["total"]) == (None, 0)
    assert "127.0.0.1:9" in str(away["error"])
    now_s = 10.0
    assert chain.status() is away
    now_s = 20.0
    assert chain.status() is not away


def drop(node: Anvil, height: int) -> None:
    """Replace all blocks above a height by empty ones."""
    node.call("anvil_reorg", node.height() - height, [])
    node.call("anvil_dropAllTransactions")
