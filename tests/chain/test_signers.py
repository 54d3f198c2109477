"""Keys of files, of the environment and of a signer elsewhere, whose answers are used only where they are right."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from eth_utils import keccak, to_checksum_address

from ledger.anchor.addresses import registry_address
from ledger.anchor.registration import registration_digest, registration_typed_data
from ledger.anchor.sender import Call, Sender
from ledger.anchor.signers import RemoteAccount
from ledger.app.ports.evidence import Registration
from ledger.app.ports.store import Database
from ledger.errors import AnchorRefused, ChainUnavailable, KeyFileUnusable, SettingInvalid
from ledger.settings import ChainSettings, read_chain_settings
from ledger.store.database import SqliteDatabase
from ledger.wiring.chain import ChainAccounts, RpcChain
from ledger.wiring.chain_accounts import chain_accounts
from ledger.wiring.chain_identity import recovered_signer
from ledger.wiring.keyring import Keyring
from tests.chain.conftest import ACCOUNTS, chain_of, recordings, sent
from tests.conformance.samples import SeededRandomness, StepClock
from tests.support.anvil import Anvil, running_anvil
from tests.support.chain_processes import ended, work_in_child
from tests.support.faulty_rpc import faulty_rpc
from tests.support.settled import Settled
from tests.support.signer import SECRET, HttpSigner, http_signer, other_account
from tests.support.stored import memory_database
from tests.support.stuck import attempts, by_hand, hurried, too_dear

pytestmark = pytest.mark.slow

NODE = {"SLA_LEDGER_CHAIN_RPC": "http://node"}
ELSEWHERE = other_account().address


@pytest.fixture
def signer() -> Iterator[HttpSigner]:
    with http_signer(ACCOUNTS.issuer) as signer:
        yield signer


def remote(node: Anvil, settled: Settled, signer: HttpSigner) -> RpcChain:
    """The chain of a process that holds the deployer's key and not the issuer's."""
    issuer = RemoteAccount(signer.url, ACCOUNTS.issuer.address)
    accounts = ChainAccounts(ACCOUNTS.deployer, issuer)
    return RpcChain(settled.database, accounts, ChainSettings(node.url), StepClock())


def test_statements_are_recorded_with_a_key_that_another_process_holds(
    node: Anvil, settled: Settled, signer: HttpSigner
) -> None:
    chain = remote(node, settled, signer)
    for n, shape in enumerate((signer.shape, lambda raw: {"result": {"raw": raw, "tx": {}}})):
        signer.shape = shape
        proof = settled.prove(n, chain.anchor)
        settled.anchor(proof, chain.anchor)
        settled.confirm(proof, chain.anchor, 1)
    assert len(recordings(node, chain.anchor.registry)) == 2
    assert sent(node) == len(signer.asked) == 4
    assert {(each["from"], each["chainId"]) for each in signer.asked} == {(ACCOUNTS.issuer.address, hex(31337))}


def test_a_stuck_transaction_is_replaced_by_the_signer_as_well(
    node: Anvil, settled: Settled, signer: HttpSigner
) -> None:
    chain = hurried(remote(node, settled, signer), settled.database)
    proof = settled.prove(0, chain.anchor)
    settled.anchor(proof, chain.anchor)
    by_hand(node)
    node.call("anvil_reorg", 1, [])
    too_dear(node)
    with pytest.raises(ChainUnavailable):
        settled.confirm(proof, chain.anchor, 1)
    assert len(attempts(settled.database, ACCOUNTS.issuer.address, 1)) == 2
    node.mine()
    settled.confirm(proof, chain.anchor, 1)
    assert len(recordings(node, chain.anchor.registry)) == 1


# --- a signer that takes its time -----------------------------------------------------------------


def nothing(effect: str) -> Call:
    return Call(ACCOUNTS.deployer.address, effect.encode(), 30_000, "do nothing", effect)


def sender_on(node: Anvil, path: Path, seed: int) -> Sender:
    """One process's sender; ``path`` is the SQLite file of all of them."""
    database = SqliteDatabase(path, StepClock(), SeededRandomness(seed))
    return Sender(chain_of(node, memory_database())._w3, database)


def test_nobody_who_writes_waits_for_a_signer_and_whoever_stores_first_has_the_nonce(
    node: Anvil, tmp_path: Path, signer: HttpSigner
) -> None:
    """While one process's signer thinks, another stores and sends a transaction of the same account."""
    asked, answer = threading.Event(), threading.Event()
    given: list[str] = []

    def think(raw: str) -> dict[str, str]:
        given.append(raw)
        asked.set()
        assert answer.wait(60)
        return {"result": raw}

    signer.shape = think
    slow, quick = (sender_on(node, tmp_path / "ledger.db", seed) for seed in (1, 2))
    with ThreadPoolExecutor(1) as pool:
        account = RemoteAccount(signer.url, ACCOUNTS.issuer.address, timeout_s=60)
        receipt = pool.submit(slow.send, account, nothing("slow"), now_s=0)
        assert asked.wait(60)
        assert quick.send(ACCOUNTS.issuer, nothing("quick"), now_s=0)["status"] == 1
        answer.set()
        assert receipt.result(60)["status"] == 1
    assert [int(each["nonce"], 16) for each in signer.asked] == [0, 1], "signed again, since nonce 0 was gone"
    with quick._database.read() as tx:
        stored = tx.chain.of_chain(31337)
    assert [(each.nonce, each.effect, each.attempt) for each in stored] == [(0, "quick", 0), (1, "slow", 0)]
    assert sent(node) == 2
    never_sent = "0x" + keccak(hexstr=given[0]).hex()
    assert node.call("eth_getTransactionByHash", never_sent) is None


def test_an_effect_that_another_process_stored_while_the_signer_thought_is_not_brought_about_twice(
    node: Anvil, tmp_path: Path, signer: HttpSigner
) -> None:
    first, second = (sender_on(node, tmp_path / "ledger.db", seed) for seed in (1, 2))
    shape = signer.shape

    def meanwhile(raw: str) -> object:
        signer.shape = shape
        first.send(ACCOUNTS.issuer, nothing("once"), now_s=0)
        return shape(raw)

    signer.shape = meanwhile
    receipt = second.send(RemoteAccount(signer.url, ACCOUNTS.issuer.address), nothing("once"), now_s=0)
    assert receipt["status"] == 1
    assert len(signer.asked) == sent(node) == 1


def test_a_call_whose_nonce_is_always_gone_is_given_up_for_now(
    node: Anvil, tmp_path: Path, signer: HttpSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.anchor.sender._SIGNINGS", 3)
    others, one = (sender_on(node, tmp_path / "ledger.db", seed) for seed in (1, 2))
    shape = signer.shape

    def always_first(raw: str) -> object:
        others.send(ACCOUNTS.issuer, nothing(f"other {len(signer.asked)}"), now_s=0)
        return shape(raw)

    signer.shape = always_first
    with pytest.raises(ChainUnavailable, match="too slow for so many workers"):
        one.send(RemoteAccount(signer.url, ACCOUNTS.issuer.address), nothing("mine"), now_s=0)
    assert len(signer.asked) == sent(node) == 3
    assert one.stored("mine") is None


def test_two_processes_with_one_slow_signer_leave_no_gap_and_use_no_nonce_twice(
    node: Anvil, tmp_path: Path, signer: HttpSigner
) -> None:
    path, shape = tmp_path / "ledger.db", signer.shape

    def slowly(raw: str) -> object:
        time.sleep(0.2)
        return shape(raw)

    def open_database(seed: int) -> SqliteDatabase:
        return SqliteDatabase(path, StepClock(), SeededRandomness(seed))

    def open_chain(database: Database) -> RpcChain:
        accounts = ChainAccounts(ACCOUNTS.deployer, RemoteAccount(signer.url, ACCOUNTS.issuer.address))
        return RpcChain(database, accounts, ChainSettings(node.url), StepClock())

    settled = Settled(open_database(1))
    chain = chain_of(node, settled.database)
    proofs = [settled.prove(n, chain.anchor) for n in range(4)]
    signer.shape = slowly
    workers = [
        work_in_child(partial(open_database, 2 + n), open_chain, order, confirmations=1, dies_at=None)
        for n, order in enumerate((proofs, proofs[::-1]))
    ]
    assert [ended(worker) for worker in workers] == [0, 0]
    assert sorted(recordings(node, chain.anchor.registry)) == sorted(set(recordings(node, chain.anchor.registry)))
    assert len(recordings(node, chain.anchor.registry)) == 4
    with settled.database.read() as tx:
        stored = [each for each in tx.chain.of_chain(31337) if each.sender == ACCOUNTS.issuer.address]
    assert [each.nonce for each in stored] == list(range(8)), "four registrations and four recordings"
    assert sent(node) == 8
    print(f"asked {len(signer.asked)} times for 8 transactions")


LIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "nonce": lambda fields: fields.update(nonce="0x9"),
    "to": lambda fields: fields.update(to=ELSEWHERE),
    "value": lambda fields: fields.update(value="0x1"),
    "data": lambda fields: fields.update(data="0x1234"),
    "gas": lambda fields: fields.update(gas=hex(1_000_000)),
    "chainId": lambda fields: fields.update(chainId="0x1"),
    "maxFeePerGas": lambda fields: fields.update(maxFeePerGas=hex(10**12)),
    "maxPriorityFeePerGas": lambda fields: fields.update(maxPriorityFeePerGas="0x1"),
    "access list": lambda fields: fields.update(accessList=[{"address": ELSEWHERE, "storageKeys": []}]),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_signer_that_signs_something_else_is_not_used(
    node: Anvil, settled: Settled, signer: HttpSigner, lie: str
) -> None:
    signer.change = LIES[lie]
    refuse(node, settled, signer, match=lie)


def test_a_signer_that_signs_as_somebody_else_is_not_used(node: Anvil, settled: Settled, signer: HttpSigner) -> None:
    stranger = other_account()
    signer.shape = lambda raw: {
        "result": "0x" + bytes(stranger.sign_transaction(_unsigned(signer)).raw_transaction).hex()
    }
    refuse(node, settled, signer, match=f"signed as {stranger.address}")


def _unsigned(signer: HttpSigner) -> dict[str, Any]:
    asked = {name: value for name, value in signer.asked[-1].items() if name != "from"}
    return {**asked, "to": to_checksum_address(asked["to"])}


@pytest.mark.parametrize("answer", [None, 7, "", "0x", "0x02", "0x02c0", "zz", {}, {"raw": None}, ["0x02"]])
def test_an_answer_that_is_no_transaction_is_not_used(
    node: Anvil, settled: Settled, signer: HttpSigner, answer: object
) -> None:
    signer.shape = lambda raw: {"result": answer}
    refuse(node, settled, signer, match="no signed EIP-1559")


def refuse(node: Anvil, settled: Settled, signer: HttpSigner, *, match: str) -> None:
    """Nothing is stored and nothing sent, and the error shows no secret."""
    call = Call(ACCOUNTS.deployer.address, b"", 30_000, "do nothing", "nothing")
    account = RemoteAccount(signer.url, ACCOUNTS.issuer.address)
    sender = Sender(chain_of(node, settled.database)._w3, settled.database)
    with pytest.raises(AnchorRefused, match=match) as refused:
        sender.send(account, call, now_s=0)
    assert SECRET not in "".join(traceback.format_exception(refused.value))
    with settled.database.read() as tx:
        assert tx.chain.count(31337) == 0
    assert sent(node) == 0


def test_a_signer_that_is_locked_or_away_is_awaited(node: Anvil, settled: Settled, signer: HttpSigner) -> None:
    chain = remote(node, settled, signer)
    proof = settled.prove(0, chain.anchor)
    shape = signer.shape
    signer.shape = lambda raw: {"error": {"code": -32000, "message": "authentication needed: account locked"}}
    with pytest.raises(ChainUnavailable, match="account locked") as refused:
        settled.anchor(proof, chain.anchor)
    assert "SLA_LEDGER_SIGNER_RPC" in refused.value.message
    assert SECRET not in refused.value.message
    signer.shape = shape
    settled.anchor(proof, chain.anchor)
    assert len(recordings(node, chain.anchor.registry)) == 1
    nobody = RemoteAccount("http://127.0.0.1:9", ACCOUNTS.issuer.address)
    with pytest.raises(ChainUnavailable, match="signer at 127"):
        nobody.sign_transaction({"nonce": 0})


def test_a_development_node_signs_for_its_own_accounts(node: Anvil, settled: Settled) -> None:
    """Its ``eth_signTransaction`` is somebody else's implementation of what is asked here."""
    address = to_checksum_address(node.call("eth_accounts")[0])
    sender = Sender(chain_of(node, settled.database)._w3, settled.database)
    call = Call(ACCOUNTS.deployer.address, b"\x01\x02", 40_000, "do nothing", "nothing")
    receipt = sender.send(RemoteAccount(node.url, address), call, now_s=0)
    assert (receipt["status"], receipt["from"]) == (1, address)


def test_a_node_signs_a_registration_as_a_wallet_does(node: Anvil) -> None:
    """Its ``eth_signTypedData_v4`` works the digest out from the document, by somebody else's code."""
    wallet = to_checksum_address(node.call("eth_accounts")[0])
    registry = registry_address(ACCOUNTS.deployer.address)
    terms = Registration(
        ACCOUNTS.issuer.address, wallet, b"\x05" * 32, 2**250, 1, 2**63, 2**63, 3600, (b"\x01" * 32, b"\x02" * 32)
    )
    document = registration_typed_data(terms, 31337, registry)
    signature = bytes.fromhex(node.call("eth_signTypedData_v4", wallet, document)[2:])
    assert recovered_signer(registration_digest(terms, 31337, registry), signature) == wallet


def test_a_node_that_is_on_another_chain_after_a_while_is_not_believed(node: Anvil, settled: Settled) -> None:
    """Nothing is signed for the other chain, and no nonce of it is taken for one of ours."""
    with running_anvil("--chain-id", "10") as other, faulty_rpc(node.url, 1) as between:
        other.fund(ACCOUNTS.deployer.address, ACCOUNTS.issuer.address)
        other.call("anvil_setNonce", ACCOUNTS.issuer.address, "0x63")
        chain = hurried(chain_of(node, settled.database, url=between.url), settled.database)
        first, second = (settled.prove(n, chain.anchor) for n in range(2))
        settled.anchor(first, chain.anchor)
        node.call("evm_setAutomine", False)
        node.call("anvil_reorg", 1, [])
        between.target = other.url
        for stage in (
            lambda: settled.confirm(first, chain.anchor, 1),
            lambda: settled.anchor(second, chain.anchor),
        ):
            with pytest.raises(ChainUnavailable):
                stage()
        with settled.database.read() as tx:
            (recording,) = [each for each in tx.chain.of_chain(31337) if "/record/" in each.effect]
        for effect in ("nothing", recording.effect):
            call = Call(ACCOUNTS.deployer.address, b"", 30_000, "do nothing", effect)
            with pytest.raises(ChainUnavailable, match="chain 10 now"):
                chain._sender.send(ACCOUNTS.issuer, call, now_s=0)
        between.target = node.url
        node.call("evm_setAutomine", True)
        node.mine()
        settled.confirm(first, chain.anchor, 1)
        settled.anchor(second, chain.anchor)
        assert len(recordings(node, chain.anchor.registry)) == 2
        assert sent(node) == 4
        assert int(other.call("eth_getTransactionCount", ACCOUNTS.issuer.address, "latest"), 16) == 0x63


# --- which key it is ------------------------------------------------------------------------------


def test_each_account_is_of_the_signer_the_environment_or_a_file(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path, SeededRandomness(1))
    for name in ("issuer-evm", "deployer-evm"):
        keyring.make(name)
    files = chain_accounts(keyring, read_chain_settings(NODE), {}, dict)
    key = "0x" + "66" * 32
    named = chain_accounts(keyring, read_chain_settings(NODE), {"SLA_LEDGER_ISSUER_KEY": key}, dict)
    assert (named.issuer.address, named.deployer.address) == (ELSEWHERE, files.deployer.address)
    environ = {**NODE, "SLA_LEDGER_SIGNER_RPC": f"http://{SECRET}@signer", "SLA_LEDGER_SIGNER_DEPLOYER": ELSEWHERE}
    settings = read_chain_settings(environ)
    mixed = chain_accounts(keyring, settings, environ, dict)
    assert isinstance(mixed.deployer, RemoteAccount)
    assert (mixed.deployer.address, mixed.issuer.address) == (ELSEWHERE, files.issuer.address)
    assert SECRET not in repr(settings)


def test_a_key_that_is_nowhere_or_no_key_is_said_and_not_shown(tmp_path: Path) -> None:
    keyring, settings = Keyring(tmp_path, SeededRandomness(1)), read_chain_settings(NODE)
    with pytest.raises(KeyFileUnusable):
        chain_accounts(keyring, settings, {}, dict)
    for wrong in ("ab" * 31, "zz" * 32, "00" * 32, "ff" * 32):
        with pytest.raises(SettingInvalid, match="SLA_LEDGER_DEPLOYER_KEY") as refused:
            chain_accounts(keyring, settings, {"SLA_LEDGER_DEPLOYER_KEY": wrong}, dict)
        assert wrong not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize(
    "environ",
    [
        {"SLA_LEDGER_SIGNER_RPC": "http://signer"},
        {"SLA_LEDGER_SIGNER_ISSUER": ELSEWHERE},
        {"SLA_LEDGER_SIGNER_RPC": "ws://signer", "SLA_LEDGER_SIGNER_ISSUER": ELSEWHERE},
        {"SLA_LEDGER_SIGNER_RPC": "http://signer", "SLA_LEDGER_SIGNER_ISSUER": "0x12"},
        {"SLA_LEDGER_SIGNER_RPC": "http://signer", "SLA_LEDGER_SIGNER_ISSUER": ELSEWHERE, "SLA_LEDGER_CHAIN_RPC": ""},
    ],
)
def test_half_a_signer_is_refused(environ: dict[str, str]) -> None:
    with pytest.raises(SettingInvalid, match="SLA_LEDGER_SIGNER"):
        read_chain_settings({**NODE, **environ})
