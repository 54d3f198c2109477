"""Signed transactions as stored values, and the port that keeps them.

A transaction is stored before it is sent: after a crash the same bytes are sent again, never a second
transaction in its place, and the embedded chain, which lives in memory, is rebuilt from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ledger.errors import NotFound, Refused


@dataclass(frozen=True, slots=True)
class StoredTransaction:
    """One signed transaction.

    ``ordinal`` counts from 0 per chain in the order of sending. ``sender`` is in EIP-55 form. ``purpose`` is
    for people. ``block_timestamp_s`` is the block time asked for (embedded chain), None on a chain that
    sets its own. Block number and hash are None until the transaction is included.
    """

    ordinal: int
    chain_id: int
    sender: str
    nonce: int
    purpose: str
    tx_hash: bytes
    raw: bytes
    block_timestamp_s: int | None = None
    block_number: int | None = None
    block_hash: bytes | None = None


class TransactionStore(Protocol):
    """Keeps signed transactions. ``save`` must be durable when it returns."""

    def save(self, transaction: StoredTransaction) -> None:
        """Keep a new transaction. Raises Refused if its ordinal, hash or (sender, nonce) is taken."""

    def transactions(self, chain_id: int) -> Sequence[StoredTransaction]:
        """All transactions of a chain, by ordinal."""

    def not_included(self, chain_id: int) -> Sequence[StoredTransaction]:
        """The transactions of a chain that no block is noted for, by ordinal."""

    def next_ordinal(self, chain_id: int) -> int:
        """One more than the last ordinal of a chain, 0 if it has none."""

    def mark_included(self, tx_hash: bytes, block_number: int, block_hash: bytes) -> None:
        """Note the block that holds a transaction. Raises NotFound for an unknown hash."""


class MemoryTransactionStore:
    """The port over a list: for tests and for pure computations that leave nothing behind."""

    def __init__(self, transactions: Sequence[StoredTransaction] = ()) -> None:
        self._transactions = list(transactions)

    def save(self, transaction: StoredTransaction) -> None:
        """See ``TransactionStore.save``."""
        new = _identities(transaction)
        for known in self._transactions:
            if new & _identities(known):
                raise Refused(
                    "a transaction with this ordinal, hash or nonce is stored already: read the store "
                    "again and build the transaction on its present state",
                    ordinal=transaction.ordinal,
                    sender=transaction.sender,
                    nonce=transaction.nonce,
                )
        self._transactions.append(transaction)

    def transactions(self, chain_id: int) -> Sequence[StoredTransaction]:
        """See ``TransactionStore.transactions``."""
        return sorted((t for t in self._transactions if t.chain_id == chain_id), key=lambda t: t.ordinal)

    def not_included(self, chain_id: int) -> Sequence[StoredTransaction]:
        """See ``TransactionStore.not_included``."""
        return [t for t in self.transactions(chain_id) if t.block_number is None]

    def next_ordinal(self, chain_id: int) -> int:
        """See ``TransactionStore.next_ordinal``."""
        return max((t.ordinal + 1 for t in self._transactions if t.chain_id == chain_id), default=0)

    def mark_included(self, tx_hash: bytes, block_number: int, block_hash: bytes) -> None:
        """See ``TransactionStore.mark_included``."""
        for i, known in enumerate(self._transactions):
            if known.tx_hash == tx_hash:
                self._transactions[i] = replace(known, block_number=block_number, block_hash=block_hash)
                return
        raise NotFound("no transaction with this hash is stored", tx_hash="0x" + tx_hash.hex())


def _identities(t: StoredTransaction) -> set[tuple[object, ...]]:
    return {("hash", t.tx_hash), ("ordinal", t.chain_id, t.ordinal), ("nonce", t.chain_id, t.sender, t.nonce)}
