"""Transactions are stored before they are sent, and the embedded chain is rebuilt from them as it was."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils import keccak, to_checksum_address

from ledger.anchor.addresses import registry_address
from ledger.anchor.chain import AnchorChain
from ledger.anchor.embedded import EmbeddedChain, Genesis
from ledger.anchor.logs import read_logs
from ledger.anchor.registration import sign_registration, sla_id
from ledger.anchor.replay import replay
from ledger.anchor.sender import Call, Sender
from ledger.app.ports.chain import StoredTransaction
from ledger.app.ports.evidence import Registration
from ledger.domain.attested import EMBEDDED_CHAIN_ID
from ledger.errors import AnchorRefused, ChainUnavailable, DevKeyRefused, NotFound
from ledger.store.memory import MemoryDatabase
from tests.support.stored import memory_database, stored_on

pytestmark = pytest.mark.slow

T0_S = 1_750_000_000
DEPLOYER, ISSUER, CUSTOMER = (Account.from_key(keccak(text=f"sender test {n}")) for n in range(3))
GENESIS = Genesis(T0_S, {a.address: 10**24 for a in (DEPLOYER, ISSUER)})
START_NS = (T0_S - 86_400) * 10**9


class Site:
    """A chain with its store and sender, and the registry deployed by the first transaction."""

    def __init__(self, genesis: Genesis = GENESIS, database: MemoryDatabase | None = None) -> None:
        self.chain = EmbeddedChain(genesis)
        self.database = database or memory_database()
        self.sender = Sender(self.chain.w3, self.database, pin_block_time=self.chain.pin_block_time)

    def deploy(self, now_s: int = T0_S + 10, deployer: LocalAccount = DEPLOYER) -> AnchorChain:
        address = deployer.address
        return AnchorChain.deploy(self.chain.w3, self.sender, deployer, admin=address, registrar=address, now_s=now_s)

    def transactions(self) -> list[StoredTransaction]:
        return stored_on(self.database, EMBEDDED_CHAIN_ID)


def terms(n: int) -> Registration:
    nonce = n.to_bytes(32, "big")
    return Registration(ISSUER.address, CUSTOMER.address, nonce, 5, 1, START_NS, START_NS, 60, (b"\x01" * 32,))


def register(anchor: AnchorChain, n: int, now_s: int) -> bytes:
    signature = sign_registration(terms(n), anchor.chain_id, anchor.registry, CUSTOMER)
    anchor.register(ISSUER, terms(n), signature, now_s=now_s)
    return sla_id(ISSUER.address, CUSTOMER.address, terms(n).nonce)


@pytest.fixture
def lived() -> tuple[Site, AnchorChain, list[bytes]]:
    """A chain on which something happened: a registry and three agreements, seconds to days apart."""
    site = Site()
    anchor = site.deploy()
    slas = [register(anchor, n, T0_S + 100 * 7**n) for n in range(1, 4)]
    return site, anchor, slas


def test_its_logs_are_read_by_topic(lived: tuple[Site, AnchorChain, list[bytes]]) -> None:
    site, anchor, slas = lived
    w3 = site.chain.w3
    every = read_logs(w3, anchor.registry, [], 0, w3.eth.block_number)
    topic = "0x" + bytes(every[-1]["topics"][0]).hex()
    for sla in slas:
        (log,) = read_logs(w3, anchor.registry, [topic, "0x" + sla.hex()], 0, w3.eth.block_number, span=2)
        assert bytes(log["topics"][1]) == sla


# --- replay ------------------------------------------------------------------------------------


def test_a_replayed_chain_is_the_same_chain(lived: tuple[Site, AnchorChain, list[bytes]]) -> None:
    before, anchor, slas = lived
    again = EmbeddedChain(GENESIS)
    report = replay(again, before.database)
    assert report.failures == ()
    assert len(report.outcomes) == 4
    for number in range(5):
        old, new = (c.w3.eth.get_block(number) for c in (before.chain, again))
        assert (old["hash"], old["timestamp"], old["stateRoot"]) == (
            new["hash"],
            new["timestamp"],
            new["stateRoot"],
        )
    restored = AnchorChain(again.w3, Sender(again.w3, before.database), anchor.registry)
    assert [restored.sla_state(sla) for sla in slas] == [anchor.sla_state(sla) for sla in slas]


def test_life_goes_on_after_a_replay(lived: tuple[Site, AnchorChain, list[bytes]]) -> None:
    before, _, _ = lived
    after = Site(database=before.database)
    replay(after.chain, after.database)
    anchor = after.deploy(now_s=T0_S + 10**6)
    assert len(after.transactions()) == 4, "the registry is found, not deployed again"
    sla = register(anchor, 9, T0_S + 10**6)
    assert anchor.sla_state(sla).terms_version == 1
    third = Site(database=after.database)
    assert replay(third.chain, third.database).failures == ()


def test_what_cannot_be_replayed_is_named_and_the_rest_goes_on(
    lived: tuple[Site, AnchorChain, list[bytes]],
) -> None:
    site, anchor, slas = lived
    stored = site.transactions()
    stored[2] = replace(stored[2], raw=stored[2].raw[:-1] + b"\x00")
    other_chain = replace(stored[3], ordinal=9, chain_id=1, nonce=99, tx_hash="0x" + "00" * 32)
    store = memory_database(*stored, other_chain)
    fresh = EmbeddedChain(GENESIS)
    report = replay(fresh, store)
    reasons = {outcome.transaction.ordinal: outcome.reason for outcome in report.outcomes}
    assert set(reasons) == {0, 1, 2, 3}, "another chain's transactions are not this one's"
    assert reasons[0] is None
    assert reasons[1] is None
    assert "do not hash" in (reasons[2] or "")
    assert "ValidationError" in (reasons[3] or ""), "its nonce now leaves a gap"
    restored = AnchorChain(fresh.w3, Sender(fresh.w3, store), anchor.registry)
    assert restored.sla_state(slas[0]).terms_version == 1
    with pytest.raises(NotFound):
        restored.sla_state(slas[1])


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda t: replace(t, block_timestamp_s=None), "no block time"),
        (lambda t: replace(t, block_timestamp_s=T0_S - 5), "at block time"),
        (lambda t: replace(t, block_number=7), "before it was 7"),
        (lambda t: replace(t, block_hash="0x" + "00" * 32), "in another block"),
    ],
    ids=["no time", "time before its parent", "another number", "another hash"],
)
def test_a_difference_to_what_stood_before_is_reported(
    lived: tuple[Site, AnchorChain, list[bytes]],
    spoil: Callable[[StoredTransaction], StoredTransaction],
    reason: str,
) -> None:
    site, _, _ = lived
    stored = site.transactions()
    store = memory_database(*stored[:-1], spoil(stored[-1]))
    failures = replay(EmbeddedChain(GENESIS), store).failures
    assert len(failures) == 1
    assert reason in (failures[0].reason or "")


def test_another_genesis_is_not_passed_off_as_the_same_chain(
    lived: tuple[Site, AnchorChain, list[bytes]],
) -> None:
    site, _, _ = lived
    poorer = replace(GENESIS, balances_wei=dict.fromkeys(GENESIS.balances_wei, 10**23))
    report = replay(EmbeddedChain(poorer), site.database)
    assert len(report.failures) == len(report.outcomes) == 4
    assert all("executed in another block" in (outcome.reason or "") for outcome in report.failures)


def test_a_transaction_lost_in_a_crash_is_included_by_replay(
    lived: tuple[Site, AnchorChain, list[bytes]],
) -> None:
    site, _, _ = lived
    stored = site.transactions()
    last = stored[-1]
    store = memory_database(*stored[:-1], replace(last, block_number=None, block_hash=None))
    assert replay(EmbeddedChain(GENESIS), store).failures == ()
    assert stored_on(store, EMBEDDED_CHAIN_ID) == stored


def test_transactions_from_many_threads_get_a_block_each() -> None:
    accounts = [Account.from_key(keccak(text=f"thread {n}")) for n in range(12)]
    chain = EmbeddedChain(Genesis(T0_S, {a.address: 10**21 for a in accounts}))
    eth = chain.w3.eth
    signed = [
        bytes(
            account.sign_transaction(
                {
                    "type": 2,
                    "chainId": EMBEDDED_CHAIN_ID,
                    "nonce": 0,
                    "gas": 21_000,
                    "maxFeePerGas": 10**10,
                    "maxPriorityFeePerGas": 1,
                    "to": ISSUER.address,
                    "value": 1,
                    "data": b"",
                }
            ).raw_transaction
        )
        for account in accounts
    ]
    with ThreadPoolExecutor(max_workers=len(signed)) as pool:
        hashes = list(pool.map(eth.send_raw_transaction, signed))
    blocks = {eth.get_transaction_receipt(tx_hash)["blockNumber"] for tx_hash in hashes}
    assert blocks == set(range(1, len(signed) + 1))


# --- sending -----------------------------------------------------------------------------------


def test_the_registry_stands_where_the_deployers_address_says() -> None:
    site = Site()
    anchor = site.deploy()
    assert anchor.registry == registry_address(DEPLOYER.address)
    # A pair of sender and first contract that is quoted in many places (the CREATE address rule).
    assert (
        registry_address("0x6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0") == "0xcd234A471b72ba2F1Ccf0A70FCABA648a5eeCD8d"
    )


def test_a_used_deployer_key_cannot_place_the_registry() -> None:
    site = Site()
    anywhere = Call(to_checksum_address(CUSTOMER.address), b"", 30_000, "send nothing")
    site.sender.send(DEPLOYER, anywhere, now_s=T0_S)
    with pytest.raises(AnchorRefused, match="fresh deployer key"):
        site.deploy()


def test_the_bytes_are_stored_before_the_chain_sees_them(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site()

    def line_goes_dead(raw: bytes) -> None:
        raise ConnectionError("gone")

    monkeypatch.setattr(site.chain.w3.eth, "send_raw_transaction", line_goes_dead)
    with pytest.raises(ChainUnavailable) as caught:
        site.deploy()
    (stored,) = site.transactions()
    assert caught.value.data["tx_hash"] == stored.tx_hash
    assert stored.block_number is None
    assert "0x" + keccak(stored.raw).hex() == stored.tx_hash

    monkeypatch.undo()
    (receipt,) = site.sender.resend()
    assert "0x" + bytes(receipt["transactionHash"]).hex() == stored.tx_hash
    (included,) = site.transactions()
    block_hash = "0x" + bytes(receipt["blockHash"]).hex()
    placed = {"block_number": receipt["blockNumber"], "block_hash": block_hash, "state": "finalized"}
    assert included == replace(stored, **placed)
    assert site.chain.w3.eth.get_block(1)["timestamp"] == stored.block_timestamp_s


def test_what_the_chain_has_already_is_not_sent_again(lived: tuple[Site, AnchorChain, list[bytes]]) -> None:
    site, anchor, _ = lived
    stored = site.transactions()
    forgetful = memory_database(*stored[:-1], replace(stored[-1], block_number=None, block_hash=None))
    sender = Sender(site.chain.w3, forgetful, pin_block_time=site.chain.pin_block_time)
    height = site.chain.w3.eth.block_number
    sender.resend()
    assert site.chain.w3.eth.block_number == height
    assert stored_on(forgetful, anchor.chain_id) == stored


def test_what_a_contract_would_refuse_is_neither_signed_nor_stored() -> None:
    site = Site()
    anchor = site.deploy()
    register(anchor, 1, T0_S + 20)
    with pytest.raises(AnchorRefused) as caught:
        register(anchor, 1, T0_S + 30)
    assert caught.value.data["error"] == "TermsVersionNotNext"
    assert caught.value.data["arguments"] == {"expected": 2, "given": 1}
    assert len(site.transactions()) == 2


def test_blocks_take_the_time_they_are_given_and_never_go_back() -> None:
    site = Site()
    anchor = site.deploy(now_s=T0_S + 1000)
    register(anchor, 1, T0_S + 500)
    times = [site.chain.w3.eth.get_block(n)["timestamp"] for n in (1, 2)]
    assert times == [T0_S + 1000, T0_S + 1001]
    assert [t.block_timestamp_s for t in site.transactions()] == times


def test_a_dev_key_is_refused_before_anything_is_sent() -> None:
    site = Site()
    anchor = site.deploy()
    anchor.chain_id = 1  # as if this were a chain where money is
    with pytest.raises(DevKeyRefused):
        anchor.deploy_verifier(DEPLOYER, {}, dev_unsafe=True, now_s=T0_S + 20)
    assert len(site.transactions()) == 1


def test_an_effect_is_brought_about_once() -> None:
    site = Site()
    anchor = site.deploy()
    signature = sign_registration(terms(1), anchor.chain_id, anchor.registry, CUSTOMER)
    once = [anchor.register(ISSUER, terms(1), signature, now_s=T0_S + n, effect="register/1") for n in (20, 30)]
    assert once[0]["transactionHash"] == once[1]["transactionHash"]
    assert [t.effect for t in site.transactions()] == ["registry", "register/1"]
