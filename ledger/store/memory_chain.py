"""Signed EVM transactions in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ledger.app.ports import StoredTransaction
from ledger.store.chain import no_transaction, require_free


class ChainRows(Protocol):
    """Where the transactions are, by hash."""

    chain: dict[str, StoredTransaction]


class ChainHandle(Protocol):
    """The state of a database transaction; ``changing`` refuses where it only reads."""

    @property
    def state(self) -> ChainRows: ...

    @property
    def changing(self) -> ChainRows: ...


@dataclass(frozen=True, slots=True)
class MemoryChain:
    """``ledger.app.ports.ChainTransactions`` over the rows of one transaction."""

    handle: ChainHandle

    def reserve(self, chain_id: int) -> None:
        """Nothing to do: transactions that write come one after the other."""

    def add(self, transaction: StoredTransaction) -> None:
        rows = self.handle.changing.chain
        chain_id = transaction.chain_id
        known = [
            other
            for other in rows.values()
            if other.tx_hash == transaction.tx_hash
            or (other.chain_id, other.ordinal) == (chain_id, transaction.ordinal)
            or _place(other) == _place(transaction)
        ]
        require_free(transaction, known)
        rows.setdefault(transaction.tx_hash, transaction)

    def included(self, tx_hash: str, *, block_number: int, block_hash: str, failed: bool = False) -> None:
        self.superseded(tx_hash)
        self.handle.changing.chain[tx_hash] = replace(
            self.by_hash(tx_hash), block_number=block_number, block_hash=block_hash, failed=failed
        )

    def superseded(self, tx_hash: str) -> None:
        known, rows = self.by_hash(tx_hash), self.handle.changing.chain
        for each in self.at_nonce(known.chain_id, known.sender, known.nonce):
            rows[each.tx_hash] = replace(each, block_number=None, block_hash=None, failed=True)

    def by_hash(self, tx_hash: str) -> StoredTransaction:
        known = self.handle.state.chain.get(tx_hash)
        if known is None:
            raise no_transaction(tx_hash)
        return known

    def of_effect(self, chain_id: int, effect: str) -> StoredTransaction | None:
        found = [each for each in self.of_chain(chain_id) if each.effect == effect and not each.failed]
        return found[-1] if found else None

    def next_place(self, chain_id: int, sender: str) -> tuple[int, int]:
        rows = self.of_chain(chain_id)
        nonces = [each.nonce for each in rows if each.sender == sender]
        return max((each.ordinal for each in rows), default=-1) + 1, max(nonces, default=-1) + 1

    def from_nonce(self, chain_id: int, sender: str, nonce: int) -> Sequence[StoredTransaction]:
        found = [each for each in self.of_chain(chain_id) if each.sender == sender and each.nonce >= nonce]
        return sorted(found, key=lambda each: (each.nonce, each.attempt))

    def at_nonce(self, chain_id: int, sender: str, nonce: int) -> Sequence[StoredTransaction]:
        return [each for each in self.from_nonce(chain_id, sender, nonce) if each.nonce == nonce]

    def not_included(self, chain_id: int) -> Sequence[StoredTransaction]:
        return [each for each in self.of_chain(chain_id) if each.block_number is None and not each.failed]

    def of_chain(self, chain_id: int, *, newest: int | None = None) -> Sequence[StoredTransaction]:
        rows = [each for each in self.handle.state.chain.values() if each.chain_id == chain_id]
        rows.sort(key=lambda each: each.ordinal)
        return rows if newest is None else rows[max(len(rows) - newest, 0) :]

    def count(self, chain_id: int) -> int:
        return len(self.of_chain(chain_id))


def _place(transaction: StoredTransaction) -> tuple[int, str, int, int]:
    return transaction.chain_id, transaction.sender, transaction.nonce, transaction.attempt
