"""Rebuilding the embedded chain from stored transactions.

The same bytes are executed in the same order with the same block times on the same genesis, which gives the
same addresses, transaction hashes and block hashes. What cannot be replayed is reported one by one: later
transactions are still tried, since they may not depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass

from eth_utils import keccak
from hexbytes import HexBytes
from web3.types import TxReceipt

from ledger.anchor.embedded import EmbeddedChain
from ledger.app.ports.chain import StoredTransaction, TransactionState
from ledger.app.ports.store import Database


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of one stored transaction; ``reason`` is None exactly if it stands as it stood before."""

    transaction: StoredTransaction
    reason: str | None


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """All outcomes in order."""

    outcomes: tuple[Replayed, ...]

    @property
    def failures(self) -> tuple[Replayed, ...]:
        """The transactions that do not stand as they stood before, each with its reason."""
        return tuple(outcome for outcome in self.outcomes if outcome.reason is not None)


def replay(chain: EmbeddedChain, database: Database) -> ReplayReport:
    """Execute all stored transactions of the embedded chain's id on a fresh ``chain``.

    A transaction that was stored but never included (a crash in between) is included now and noted in
    the database. Never raises for a transaction: see ``ReplayReport.failures``.
    """
    outcomes = []
    with database.read() as tx:
        stored = tx.chain.of_chain(chain.chain_id)
    for transaction in stored:
        try:
            reason = _replay_one(chain, database, transaction)
        # Anything at all may be wrong with stored bytes, and the rest must still be replayed.
        except Exception as error:
            reason = f"cannot be executed: {type(error).__name__}: {error}"
        outcomes.append(Replayed(transaction, reason))
    return ReplayReport(tuple(outcomes))


def _replay_one(chain: EmbeddedChain, database: Database, transaction: StoredTransaction) -> str | None:
    if "0x" + keccak(transaction.raw).hex() != transaction.tx_hash:
        return "the stored bytes do not hash to the stored transaction hash"
    if transaction.block_timestamp_s is None:
        return "no block time is stored with it"
    pinned_s = chain.pin_block_time(transaction.block_timestamp_s)
    chain.w3.eth.send_raw_transaction(transaction.raw)
    receipt = chain.w3.eth.get_transaction_receipt(HexBytes(transaction.tx_hash))
    if transaction.block_hash is None:
        failed = receipt["status"] != 1
        # Nothing on this chain is ever undone.
        state: TransactionState = "failed" if failed else "finalized"
        with database.begin() as tx:
            tx.chain.included(
                transaction.tx_hash, block_number=receipt["blockNumber"], block_hash=_hash(receipt), state=state
            )
        return None if not failed else "included now for the first time, and reverted"
    return _difference(transaction, receipt, pinned_s)


def _difference(transaction: StoredTransaction, receipt: TxReceipt, pinned_s: int) -> str | None:
    place = (receipt["blockNumber"], _hash(receipt))
    if place == (transaction.block_number, transaction.block_hash):
        return None
    outcome = "executed" if receipt["status"] == 1 else "reverted"
    if receipt["blockNumber"] != transaction.block_number:
        return f"{outcome} in block {receipt['blockNumber']}, before it was {transaction.block_number}"
    if pinned_s != transaction.block_timestamp_s:
        return f"{outcome} at block time {pinned_s}, before it was {transaction.block_timestamp_s}"
    return f"{outcome} in another block: {_hash(receipt)}; genesis or software differ"


def _hash(receipt: TxReceipt) -> str:
    return "0x" + bytes(receipt["blockHash"]).hex()
