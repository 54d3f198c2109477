"""The chain of a data directory, by settings alone: the embedded one, replayed, or that of a node over RPC."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol, TypedDict

from eth_account import Account
from eth_typing import ChecksumAddress
from eth_utils import to_checksum_address
from web3 import Web3
from web3.types import RPCEndpoint

from ledger.anchor.addresses import registry_address
from ledger.anchor.administration import Administration
from ledger.anchor.chain import AnchorChain
from ledger.anchor.embedded import EmbeddedChain, Genesis
from ledger.anchor.fees import GWEI, FeePolicy
from ledger.anchor.registry import RegistryAnchor
from ledger.anchor.replay import ReplayReport, replay
from ledger.anchor.roots import RegistryRoots
from ledger.anchor.rpc import rpc_web3
from ledger.anchor.sender import Sender
from ledger.anchor.signers import Signer
from ledger.anchor.states import read_heights
from ledger.anchor.watched import WatchedRegistry
from ledger.anchor.watcher import Watcher
from ledger.app.chain.status import ChainStatus, ChainTransactionStatus
from ledger.app.ports.chain import Heights, Seen, StoredTransaction, TransactionState
from ledger.app.ports.evidence import RootPublisher
from ledger.app.ports.store import Database
from ledger.domain.attested import TEST_CHAIN_IDS
from ledger.domain.time.instant import SECOND_NS, Clock
from ledger.errors import AnchorRefused, ChainUnavailable, SettingInvalid, SlaLedgerError
from ledger.settings import ChainSettings

GENESIS_BALANCE_WEI = 10**24
SHOWN_TRANSACTIONS: Final = 100
STATUS_KEPT_S: Final = 1.0
ERROR_KEPT_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class ChainAccounts:
    """Who pays and signs on the chain."""

    deployer: Signer
    issuer: Signer

    @classmethod
    def from_secrets(cls, *, deployer: bytes, issuer: bytes) -> ChainAccounts:
        return cls(Account.from_key(deployer), Account.from_key(issuer))

    def genesis(self, timestamp_s: int) -> Genesis:
        addresses: tuple[str, ...] = (self.deployer.address, self.issuer.address)
        return Genesis(timestamp_s, dict.fromkeys(addresses, GENESIS_BALANCE_WEI))


class OpenChain(Protocol):
    """A chain with its registry, as the services use it."""

    @property
    def anchor(self) -> RegistryAnchor:
        """The registry. Of a node: asked for at first use. Raises ``ChainUnavailable`` and ``SettingInvalid``."""
        ...

    @property
    def roots(self) -> RootPublisher:
        """The batch side of the registry, in the issuer's name; raises as ``anchor`` does."""
        ...

    def location(self) -> tuple[int, str]:
        """The chain's id and the registry's address, whether or not it is deployed there yet; sends nothing.

        Raises ``ChainUnavailable``, and ``SettingInvalid`` where no registry is there and none will be put there
        unasked.
        """
        ...

    @property
    def confirmations(self) -> int:
        """Blocks that must stand before an anchor counts as confirmed; raises as ``anchor`` does."""
        ...

    def status(self) -> ChainStatus:
        """What is known of the chain; never raises because of the chain."""
        ...


@dataclass(frozen=True, slots=True)
class ReplayedChain:
    """The embedded chain as it stands after its replay, and the registry on it. Nothing on it is ever undone."""

    anchor: RegistryAnchor
    roots: RootPublisher
    report: ReplayReport
    confirmations: int = 0

    def location(self) -> tuple[int, str]:
        return self.anchor.chain_id, self.anchor.registry

    def status(self) -> ChainStatus:
        outcomes = self.report.outcomes
        return {
            "kind": "embedded",
            "chain_id": self.anchor.chain_id,
            "registry": self.anchor.registry,
            "error": None,
            "total": len(outcomes),
            "transactions": [shown_transaction(outcome.transaction, outcome.reason) for outcome in outcomes],
        }


class Deployment(TypedDict):
    """Where a registry stands, whether it was put there just now, and who pays for what is sent."""

    chain_id: str
    registry: str
    deployed: bool
    deployer: str
    issuer: str


@dataclass(frozen=True, slots=True)
class Tracked:
    """A stored transaction, how far it has come, and the block that holds it now."""

    transaction: StoredTransaction
    state: TransactionState
    block_number: int | None


@dataclass(frozen=True, slots=True)
class Watched:
    """One look at a registry: its events between two blocks, and this ledger's transactions."""

    chain_id: int
    registry: str
    from_block: int
    to_block: int
    events: tuple[Seen, ...]
    transactions: tuple[Tracked, ...]

    @property
    def of_others(self) -> tuple[Seen, ...]:
        """What somebody else did that concerns this ledger."""
        return tuple(event for event in self.events if event.concerns is not None)


class RpcChain:
    """The chain of a node. Nothing is asked of it before it is needed: what is stored is served without it.

    Any number of processes may work on it with the same keys and database.
    """

    def __init__(
        self,
        database: Database,
        accounts: ChainAccounts,
        settings: ChainSettings,
        clock: Clock,
        *,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        if settings.rpc_url is None:
            raise SettingInvalid("no node is named: set SLA_LEDGER_CHAIN_RPC", setting="SLA_LEDGER_CHAIN_RPC")
        self._database = database
        self._accounts = accounts
        self._settings = settings
        self._clock = clock
        self._monotonic_s = monotonic_s
        self._status: tuple[float, ChainStatus] | None = None
        self._w3 = rpc_web3(settings.rpc_url)

    @cached_property
    def anchor(self) -> RegistryAnchor:
        # On a test chain nothing is lost by deploying unasked; elsewhere it costs money, and whoever pays says so.
        return self._open(deploy=self._sender.chain_id in TEST_CHAIN_IDS)

    @cached_property
    def roots(self) -> RootPublisher:
        registry = to_checksum_address(self.anchor.registry)
        return RegistryRoots(self._w3, self._sender, registry, issuer=self._accounts.issuer, clock=self._clock)

    def location(self) -> tuple[int, str]:
        chain_id, address = self._sender.chain_id, self._address
        if self._settings.registry is not None or chain_id not in TEST_CHAIN_IDS:
            self._require_registry(address)
        return chain_id, address

    @property
    def confirmations(self) -> int:
        return self._settings.confirmations_on(self._sender.chain_id)

    def deploy(self) -> Deployment:
        """The registry of the deployer's key, deployed unless it is there.

        Raises ``AnchorRefused``, ``ChainUnavailable``, and ``SettingInvalid`` where the settings name a registry.
        """
        if self._settings.registry is not None:
            raise SettingInvalid(
                f"SLA_LEDGER_REGISTRY names {self._settings.registry}, so there is nothing to deploy; leave it out to "
                "deploy a registry with this directory's deployer key",
                setting="SLA_LEDGER_REGISTRY",
            )
        deployer = self._accounts.deployer.address
        before = bool(self._w3.eth.get_code(registry_address(deployer)))
        anchor = self._open(deploy=True)
        return {
            "chain_id": str(anchor.chain_id),
            "registry": anchor.registry,
            "deployed": not before,
            "deployer": deployer,
            "issuer": self._accounts.issuer.address,
        }

    def fund(self) -> None:
        """Give deployer and issuer a local node's test money, if they have none. Raises ``AnchorRefused`` elsewhere."""
        if self._sender.chain_id not in TEST_CHAIN_IDS:
            raise AnchorRefused(
                f"chain {self._sender.chain_id} is no local test chain; send money to deployer and issuer yourself",
                chain_id=self._sender.chain_id,
            )
        for account in (self._accounts.deployer, self._accounts.issuer):
            if not self._w3.eth.get_balance(account.address):
                request = RPCEndpoint("anvil_setBalance")
                self._w3.provider.make_request(request, [account.address, hex(GENESIS_BALANCE_WEI)])

    def administration(self) -> Administration:
        """The registry as the holder of its roles works it, with the deployer's key.

        Raises ``ChainUnavailable``, and ``SettingInvalid`` where no registry stands.
        """
        _, registry = self.location()
        self._require_registry(to_checksum_address(registry))
        chain = AnchorChain(self._w3, self._sender, to_checksum_address(registry))
        return Administration(self._w3, self._sender, chain, self._accounts.deployer, self._clock)

    def watched(self) -> WatchedRegistry:
        """The registry for a watcher that works beside this process's senders. Raises as ``location`` does."""
        _, registry = self.location()
        w3 = rpc_web3(str(self._settings.rpc_url))
        return WatchedRegistry(w3, Sender(w3, self._database), to_checksum_address(registry), self.confirmations)

    def watch(self, from_block: int) -> Watched:
        """What the registry's logs hold from a block on, and how far each stored transaction has come.

        Each is looked for on the chain again, so one that a reorganisation moved or dropped is shown where it is now.
        Raises ``ChainUnavailable``, and ``SettingInvalid`` where no registry stands.
        """
        chain_id, registry = self.location()
        self._require_registry(to_checksum_address(registry))
        heights, needed = read_heights(self._w3), self.confirmations
        with self._database.read() as tx:
            stored = tx.chain.of_chain(chain_id)
            tenants = tx.views.tenants()
        agreements = set[str]()
        for tenant in tenants:
            with self._database.of_tenant(tenant).read() as tx:
                agreements |= {row["sla_id"] for row in tx.views.agreements()}
        own = {each.tx_hash for each in stored}
        watcher = Watcher(self._w3, to_checksum_address(registry), own=own.intersection, known=agreements.intersection)
        events = watcher.events(from_block, heights.latest)
        return Watched(
            chain_id=chain_id,
            registry=registry,
            from_block=from_block,
            to_block=heights.latest,
            events=events,
            transactions=tuple(self._tracked(each, heights, needed) for each in stored),
        )

    def _tracked(self, stored: StoredTransaction, heights: Heights, needed: int) -> Tracked:
        receipt = self._sender.standing(stored.tx_hash)
        held = receipt is not None and "0x" + bytes(receipt["transactionHash"]).hex() == stored.tx_hash
        block = receipt["blockNumber"] if receipt is not None and held else None
        gone = (receipt is not None and not held) or (receipt is None and stored.failed)
        failed = gone or (receipt is not None and receipt["status"] != 1)
        return Tracked(stored, "failed" if failed else heights.state(block, needed), block)

    def status(self) -> ChainStatus:
        # Every list of statements asks for it, and a node that is away must not hold each of them up.
        now_s = self._monotonic_s()
        if self._status is None or self._status[0] <= now_s:
            status = self._read_status()
            keep_s = STATUS_KEPT_S if status["error"] is None else ERROR_KEPT_S
            self._status = (self._monotonic_s() + keep_s, status)
        return self._status[1]

    def _read_status(self) -> ChainStatus:
        status: ChainStatus = {
            "kind": "rpc",
            "chain_id": None,
            "registry": None,
            "error": None,
            "total": 0,
            "transactions": [],
        }
        try:
            chain_id = self._sender.chain_id
        except SlaLedgerError as error:
            return {**status, "error": error.message}
        with self._database.read() as tx:
            total = tx.chain.count(chain_id)
            newest = tx.chain.of_chain(chain_id, newest=SHOWN_TRANSACTIONS)
        opened = self.__dict__.get("anchor")
        return {
            **status,
            "chain_id": chain_id,
            "registry": None if opened is None else opened.registry,
            "total": total,
            "transactions": [shown_transaction(transaction, None) for transaction in newest],
        }

    @cached_property
    def _sender(self) -> Sender:
        policy = FeePolicy(self._settings.max_fee_gwei * GWEI, self._settings.replace_after_blocks)
        return Sender(self._w3, self._database, fees=policy)

    def _open(self, *, deploy: bool) -> RegistryAnchor:
        self._sender.resend()
        deployer, address = self._accounts.deployer, self._address
        if not deploy or self._settings.registry is not None:
            self._require_registry(address)
            registry = AnchorChain(self._w3, self._sender, address)
        else:
            self._require_funds(deployer, address)
            registry = _deployed(self._w3, self._sender, deployer, self._clock)
        return RegistryAnchor(registry, issuer=self._accounts.issuer, deployer=deployer, clock=self._clock)

    @property
    def _address(self) -> ChecksumAddress:
        named = self._settings.registry
        return registry_address(self._accounts.deployer.address) if named is None else to_checksum_address(named)

    def _require_registry(self, address: ChecksumAddress) -> None:
        if not self._w3.eth.get_code(address):
            raise _no_registry(address, self._sender.chain_id, named=self._settings.registry is not None)

    def _require_funds(self, deployer: Signer, registry: str) -> None:
        """Said before anything is signed: a transaction that cannot be paid would keep its nonce for good."""
        if not self._w3.eth.get_code(to_checksum_address(registry)) and not self._w3.eth.get_balance(deployer.address):
            issuer = self._accounts.issuer.address
            raise ChainUnavailable(
                f"the deployer {deployer.address} has no money on chain {self._sender.chain_id}; send some to it, and "
                f"to the issuer {issuer}, who pays for every statement",
                deployer=deployer.address,
                issuer=issuer,
                retry_after_s=10,
            )


def open_chain(database: Database, accounts: ChainAccounts, genesis_timestamp_s: int, clock: Clock) -> ReplayedChain:
    """A fresh embedded chain with every stored transaction replayed and the registry deployed."""
    chain = EmbeddedChain(accounts.genesis(genesis_timestamp_s))
    report = replay(chain, database)
    sender = Sender(chain.w3, database, pin_block_time=chain.pin_block_time)
    registry = _deployed(chain.w3, sender, accounts.deployer, clock)
    anchor = RegistryAnchor(registry, issuer=accounts.issuer, deployer=accounts.deployer, clock=clock)
    roots = RegistryRoots(chain.w3, sender, registry.registry, issuer=accounts.issuer, clock=clock)
    return ReplayedChain(anchor, roots, report)


def _deployed(w3: Web3, sender: Sender, deployer: Signer, clock: Clock) -> AnchorChain:
    address = deployer.address
    now_s = clock.now_ns() // SECOND_NS
    return AnchorChain.deploy(w3, sender, deployer, admin=address, registrar=address, now_s=now_s)


def _no_registry(address: str, chain_id: int, *, named: bool) -> SettingInvalid:
    what = "SLA_LEDGER_REGISTRY names" if named else "the registry of this directory's deployer key would stand at"
    do = "correct it" if named else "deploy one with: sla-ledger chain deploy --data DIR"
    return SettingInvalid(
        f"{what} {address}, where chain {chain_id} holds no contract; {do}",
        setting="SLA_LEDGER_REGISTRY",
        registry=address,
        chain_id=chain_id,
    )


def shown_transaction(transaction: StoredTransaction, reason: str | None) -> ChainTransactionStatus:
    return {
        "ordinal": transaction.ordinal,
        "purpose": transaction.purpose,
        "tx_hash": transaction.tx_hash,
        "state": transaction.state,
        "block_number": transaction.block_number,
        "block_hash": transaction.block_hash,
        "reason": reason,
    }
