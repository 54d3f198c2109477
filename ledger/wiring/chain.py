"""The embedded chain of a data directory: its genesis, its stored transactions, its replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eth_account import Account
from eth_account.signers.local import LocalAccount

from ledger.anchor.chain import AnchorChain
from ledger.anchor.embedded import EmbeddedChain, Genesis
from ledger.anchor.registry import RegistryAnchor
from ledger.anchor.replay import ReplayReport, replay
from ledger.anchor.sender import Sender
from ledger.anchor.transactions import StoredTransaction
from ledger.app import ports
from ledger.app.ports import Database
from ledger.app.queries import ChainStatus
from ledger.domain.instant import SECOND_NS, Clock

GENESIS_BALANCE_WEI = 10**24


@dataclass(frozen=True, slots=True)
class ChainAccounts:
    """Who pays and signs on the embedded chain."""

    deployer: LocalAccount
    issuer: LocalAccount

    @classmethod
    def from_secrets(cls, *, deployer: bytes, issuer: bytes) -> ChainAccounts:
        return cls(Account.from_key(deployer), Account.from_key(issuer))

    def genesis(self, timestamp_s: int) -> Genesis:
        addresses: tuple[str, ...] = (self.deployer.address, self.issuer.address)
        return Genesis(timestamp_s, dict.fromkeys(addresses, GENESIS_BALANCE_WEI))


class DatabaseTransactions:
    """``ledger.anchor``'s store over the ledger's database; each call is a transaction, so ``save`` is durable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, transaction: StoredTransaction) -> None:
        row = ports.StoredTransaction(
            ordinal=transaction.ordinal,
            chain_id=transaction.chain_id,
            sender=transaction.sender,
            nonce=transaction.nonce,
            purpose=transaction.purpose,
            tx_hash="0x" + transaction.tx_hash.hex(),
            raw=transaction.raw,
            block_timestamp_s=transaction.block_timestamp_s or 0,
            block_number=transaction.block_number,
            block_hash=None if transaction.block_hash is None else "0x" + transaction.block_hash.hex(),
        )
        with self._database.begin() as tx:
            tx.chain.add(row)

    def transactions(self, chain_id: int) -> Sequence[StoredTransaction]:
        with self._database.read() as tx:
            return [_stored(row) for row in tx.chain.all() if row.chain_id == chain_id]

    def not_included(self, chain_id: int) -> Sequence[StoredTransaction]:
        return [transaction for transaction in self.transactions(chain_id) if transaction.block_number is None]

    def next_ordinal(self, chain_id: int) -> int:
        return max((transaction.ordinal for transaction in self.transactions(chain_id)), default=-1) + 1

    def mark_included(self, tx_hash: bytes, block_number: int, block_hash: bytes) -> None:
        with self._database.begin() as tx:
            tx.chain.included("0x" + tx_hash.hex(), block_number=block_number, block_hash="0x" + block_hash.hex())


@dataclass(frozen=True, slots=True)
class ReplayedChain:
    """The embedded chain as it stands after its replay, and the registry on it."""

    anchor: RegistryAnchor
    report: ReplayReport

    def status(self) -> ChainStatus:
        return {
            "chain_id": self.anchor.chain_id,
            "registry": self.anchor.registry,
            "transactions": [
                {
                    "ordinal": outcome.transaction.ordinal,
                    "purpose": outcome.transaction.purpose,
                    "tx_hash": "0x" + outcome.transaction.tx_hash.hex(),
                    "block_number": outcome.transaction.block_number,
                    "block_hash": None
                    if outcome.transaction.block_hash is None
                    else "0x" + outcome.transaction.block_hash.hex(),
                    "reason": outcome.reason,
                }
                for outcome in self.report.outcomes
            ],
        }


def open_chain(database: Database, accounts: ChainAccounts, genesis_timestamp_s: int, clock: Clock) -> ReplayedChain:
    """A fresh embedded chain with every stored transaction replayed and the registry deployed."""
    chain, store = EmbeddedChain(accounts.genesis(genesis_timestamp_s)), DatabaseTransactions(database)
    report = replay(chain, store)
    sender = Sender(chain.w3, store, pin_block_time=chain.pin_block_time)
    deployer = accounts.deployer
    registry = AnchorChain.deploy(
        chain.w3,
        sender,
        deployer,
        admin=deployer.address,
        registrar=deployer.address,
        now_s=clock.now_ns() // SECOND_NS,
    )
    anchor = RegistryAnchor(registry, issuer=accounts.issuer, deployer=deployer, clock=clock)
    return ReplayedChain(anchor, report)


def _stored(row: ports.StoredTransaction) -> StoredTransaction:
    return StoredTransaction(
        ordinal=row.ordinal,
        chain_id=row.chain_id,
        sender=row.sender,
        nonce=row.nonce,
        purpose=row.purpose,
        tx_hash=bytes.fromhex(row.tx_hash[2:]),
        raw=row.raw,
        block_timestamp_s=row.block_timestamp_s,
        block_number=row.block_number,
        block_hash=None if row.block_hash is None else bytes.fromhex(row.block_hash[2:]),
    )
