"""A chain with the registry on it, and agreements to try things with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_tester.exceptions import TransactionFailed
from eth_utils import keccak, to_checksum_address
from web3 import HTTPProvider, Web3
from web3.exceptions import Web3Exception
from web3.types import TxReceipt

from ledger.anchor.abi import ContractName, contract_build
from ledger.anchor.chain import AnchorChain, DeployedVerifier, RecordOutcome, Statement, signals_hash
from ledger.anchor.embedded import EmbeddedChain, Genesis
from ledger.anchor.registration import sign_registration, sla_id
from ledger.anchor.reverts import refusal
from ledger.anchor.sender import Call, Sender
from ledger.app.ports.evidence import Registration
from tests.contracts.trapdoor import Trapdoor, curve_order
from tests.support.anvil import running_anvil
from tests.support.batches import BatchRegistry
from tests.support.stored import memory_database

SECOND = 10**9
HOUR = 3600 * SECOND
DAY = 24 * HOUR
T0_S = 1_800_000_000
FIRST_START = (T0_S // 86_400 - 10) * DAY
TERMS_HASH = 0x1234567
ZERO = bytes(32)


def account(n: int) -> LocalAccount:
    return Account.from_key(keccak(text=f"test account {n}"))


ACCOUNTS = DEPLOYER, ISSUER, CUSTOMER, STRANGER = [account(n) for n in range(4)]
BALANCE_WEI = 10**24
GENESIS = Genesis(T0_S, {a.address: BALANCE_WEI for a in ACCOUNTS})


@dataclass(frozen=True)
class TestChain:
    """A fresh chain whose block times are given, with money for all accounts."""

    __test__ = False

    name: str
    w3: Web3
    pin_block_time: Callable[[int], int]


def embedded() -> TestChain:
    chain = EmbeddedChain(GENESIS)
    return TestChain("embedded", chain.w3, chain.pin_block_time)


@contextmanager
def anvil() -> Iterator[TestChain]:
    """The same of a node of its own. Raises AnvilMissing."""
    with running_anvil("--timestamp", str(T0_S), "--hardfork", "prague") as node:

        def pin_block_time(timestamp_s: int) -> int:
            node.call("evm_setNextBlockTimestamp", timestamp_s)
            return timestamp_s

        node.fund(*(a.address for a in ACCOUNTS), wei=BALANCE_WEI)
        w3 = Web3(HTTPProvider(node.url))
        w3.eth.default_account = DEPLOYER.address
        yield TestChain("anvil", w3, pin_block_time)


class TermsState(NamedTuple):
    """One version of an agreement's terms as the registry holds it; all zero where there is none."""

    terms_hash: int
    effective_from_ns: int
    window_seconds: int


def word(value: int | bytes | str) -> bytes:
    """abi.encode of a number, a bytes32 or an address: written anew here, to check the contract by."""
    if isinstance(value, str):
        value = bytes.fromhex(value[2:]).rjust(32, b"\0")
    return value if isinstance(value, bytes) else value.to_bytes(32, "big")


def ctx_of(chain_id: int, registry: str, *rest: int | bytes) -> int:
    preimage = [keccak(text="sla-ledger/ctx/v1"), chain_id, registry, *rest]
    return int.from_bytes(keccak(b"".join(word(x) for x in preimage)), "big") >> 8


@dataclass
class Ground:
    """One chain with registry and verifier. Block times go forward by a second a call."""

    chain: TestChain = field(default_factory=embedded)
    trapdoor: Trapdoor = field(default_factory=Trapdoor)
    clock_s: int = T0_S
    nonces: int = 0

    def __post_init__(self) -> None:
        self.sender = Sender(self.chain.w3, memory_database(), pin_block_time=self.chain.pin_block_time)
        admin = DEPLOYER.address
        self.anchor = AnchorChain.deploy(
            self.chain.w3, self.sender, DEPLOYER, admin=admin, registrar=admin, now_s=self.tick()
        )
        self.batches = BatchRegistry(self.chain.w3, self.sender, self.anchor.registry)
        self.verifier = self.deploy_verifier(self.trapdoor)
        self.anchor.add_verifier(DEPLOYER, self.verifier, dev_unsafe=True, now_s=self.tick())

    def tick(self) -> int:
        self.clock_s += 1
        return self.clock_s

    def deploy_verifier(self, trapdoor: Trapdoor) -> DeployedVerifier:
        return self.anchor.deploy_verifier(DEPLOYER, trapdoor.verification_key, dev_unsafe=True, now_s=self.tick())

    def terms(self, **changes: Any) -> Registration:
        """Terms of a new agreement, in force from its first period on."""
        self.nonces += 1
        first = Registration(
            issuer=ISSUER.address,
            customer=CUSTOMER.address,
            nonce=keccak(text=f"agreement {self.nonces}"),
            terms_hash=TERMS_HASH,
            terms_version=1,
            effective_from_ns=FIRST_START,
            first_start_ns=FIRST_START,
            window_seconds=3600,
            circuit_ids=(self.verifier.circuit_id,),
        )
        return replace(first, **changes)

    def register(self, terms: Registration, *, sender: LocalAccount = ISSUER, signature: bytes | None = None) -> bytes:
        """Register terms, signed by the customer unless another signature is given; returns the slaId."""
        if signature is None:
            signature = sign_registration(terms, self.anchor.chain_id, self.anchor.registry, CUSTOMER)
        self.anchor.register(sender, terms, signature, now_s=self.tick())
        return sla_id(terms.issuer, terms.customer, terms.nonce)

    def terms_state(self, sla: bytes, version: int) -> TermsState:
        return TermsState(*self.anchor._read("termsOf", sla, version))

    def agreement(self, **changes: Any) -> bytes:
        """The slaId of a newly registered agreement."""
        return self.register(self.terms(**changes))

    def statement(
        self,
        sla: bytes,
        *,
        start: int = FIRST_START,
        hours: int = 24,
        end: int | None = None,
        replaces: Statement | None = None,
        proved: bool = True,
        alter_signals: Callable[[list[int]], None] | None = None,
        ctx: int | None = None,
        **changes: Any,
    ) -> Statement:
        """A statement about ``hours`` one-hour windows with a valid (forged) proof of its signals.

        ``changes`` replace fields before ctx is worked out; ``ctx`` and ``alter_signals`` lie afterwards, and the
        proof is made for the altered signals. ``proved=False`` saves the time for lies that are seen earlier.
        """
        s = Statement(
            sla_id=sla,
            start_ns=start,
            end_ns=start + hours * HOUR if end is None else end,
            terms_version=1,
            statement_version=1 if replaces is None else replaces.statement_version + 1,
            prev_ctx=0 if replaces is None else replaces.signals[2],
            prev_signals_hash=ZERO if replaces is None else signals_hash(replaces.all_signals),
            circuit_id=self.verifier.circuit_id,
            signals=(),
            proof=bytes(256),
        )
        s = replace(s, **changes)
        if ctx is None:
            ctx = self.ctx(s)
        credit = 1000 + s.statement_version
        signals = [0xAA | hours << 8 | hours << 18, credit, ctx, curve_order - 5, TERMS_HASH, curve_order - 7]
        if alter_signals is not None:
            alter_signals(signals)
        proof = self.trapdoor.forge(tuple(signals)) if proved else bytes(256)
        return replace(s, signals=tuple(signals), proof=proof)

    def ctx(self, s: Statement, *, chain_id: int | None = None, registry: str | None = None) -> int:
        return ctx_of(
            self.anchor.chain_id if chain_id is None else chain_id,
            self.anchor.registry if registry is None else registry,
            s.sla_id,
            s.start_ns,
            s.end_ns,
            s.terms_version,
            s.statement_version,
            s.prev_ctx,
        )

    def record(self, s: Statement, *, sender: LocalAccount = ISSUER) -> RecordOutcome:
        return self.anchor.verify_and_record(sender, s, now_s=self.tick())

    def verifies(self, proof: bytes, signals: tuple[int, ...], *, gas: int = 1_000_000) -> bool:
        """The verifier's own answer, by a call. Raises AnchorRefused where it reverts."""
        abi = contract_build("Groth16Verifier").abi
        verifier = self.chain.w3.eth.contract(address=to_checksum_address(self.verifier.address), abi=abi)
        words = [int.from_bytes(proof[i : i + 32], "big") for i in range(0, 256, 32)]
        try:
            return bool(verifier.functions.verifyProof(words, list(signals)).call({"gas": gas}))
        except (TransactionFailed, Web3Exception) as error:
            raise refusal(error, "verify the proof") from error

    def send(self, sender: LocalAccount, function: str, *args: object) -> TxReceipt:
        """Call a function of the registry that this package has no name for."""
        data = bytes.fromhex(self.anchor._contract.encode_abi(function, args=list(args))[2:])
        return self.sender.send(sender, Call(self.anchor.registry, data, 200_000, function), now_s=self.tick())

    def deploy_registry(self, admin: str, registrar: str) -> None:
        """Deploy another registry. May be refused."""
        self._deploy("SlaAnchor", 5_000_000, admin, registrar)

    def deploy_words(self, words: list[int]) -> None:
        """Deploy a verifier from raw constructor words, past the checks of this package. May be refused."""
        self._deploy("Groth16Verifier", 2_500_000, words)

    def _deploy(self, name: ContractName, gas_limit: int, *arguments: object) -> None:
        build = contract_build(name)
        factory = self.chain.w3.eth.contract(abi=build.abi, bytecode=build.bytecode)
        data = bytes.fromhex(factory.constructor(*arguments).data_in_transaction[2:])
        self.sender.send(DEPLOYER, Call(None, data, gas_limit, f"deploy {name}"), now_s=self.tick())
