"""Signed EVM transactions in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ledger.app.ports.chain import ChainLook, StateTally, StoredTransaction, TransactionState
from ledger.store.chain import no_transaction, require_free


@dataclass(frozen=True, slots=True)
class HeldLook:
    """A look, and who makes the next one until when."""

    look: ChainLook
    holder: str | None = None
    until_ns: int = 0


class ChainRows(Protocol):
    """Where the transactions are, by hash, and the looks, by chain and contract."""

    chain: dict[str, StoredTransaction]
    chain_looks: dict[tuple[int, str], HeldLook]


class ChainHandle(Protocol):
    """The state of a database transaction; ``changing`` refuses where it only reads."""

    @property
    def state(self) -> ChainRows: ...

    @property
    def changing(self) -> ChainRows: ...


@dataclass(frozen=True, slots=True)
class MemoryChain:
    """``ledger.app.ports.store.ChainTransactions`` over the rows of one transaction."""

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

    def included(
        self, tx_hash: str, *, block_number: int, block_hash: str, state: TransactionState = "included"
    ) -> None:
        self.superseded(tx_hash)
        self.handle.changing.chain[tx_hash] = replace(
            self.by_hash(tx_hash), block_number=block_number, block_hash=block_hash, state=state
        )

    def reached(self, tx_hash: str, state: TransactionState, *, block_hash: str) -> None:
        known = self.by_hash(tx_hash)
        if known.block_hash == block_hash:
            self.handle.changing.chain[tx_hash] = replace(known, state=state)

    def dropped(self, tx_hash: str, *, block_hash: str) -> None:
        if self.by_hash(tx_hash).block_hash == block_hash:
            self._in_no_block(tx_hash, "submitted")

    def superseded(self, tx_hash: str) -> None:
        self._in_no_block(tx_hash, "failed")

    def _in_no_block(self, tx_hash: str, state: TransactionState) -> None:
        known, rows = self.by_hash(tx_hash), self.handle.changing.chain
        for each in self.at_nonce(known.chain_id, known.sender, known.nonce):
            rows[each.tx_hash] = replace(each, block_number=None, block_hash=None, state=state)

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

    def unsettled(self, chain_id: int, *, above: int, limit: int | None = None) -> Sequence[StoredTransaction]:
        def may_change(each: StoredTransaction) -> bool:
            reverted = each.failed and each.block_number is not None and each.block_number > above
            return reverted or each.state in ("submitted", "included", "safe")

        return [each for each in self.of_chain(chain_id) if may_change(each)][:limit]

    def since_block(self, chain_id: int) -> int | None:
        rows = self.of_chain(chain_id)
        blocks = (each.block_number if each.signed_at_block is None else each.signed_at_block for each in rows)
        return min((block for block in blocks if block is not None), default=None)

    def states(self, tx_hashes: Collection[str]) -> Mapping[str, TransactionState]:
        rows = self.handle.state.chain
        return {name: rows[name].state for name in tx_hashes if name in rows}

    def tallies(self) -> Sequence[StateTally]:
        found: dict[tuple[str, TransactionState], list[int | None]] = defaultdict(list)
        for each in self.handle.state.chain.values():
            found[str(each.chain_id), each.state].append(each.signed_at_s)
        return [
            StateTally(int(chain_id), state, len(times), min((at for at in times if at is not None), default=None))
            for (chain_id, state), times in sorted(found.items())
        ]

    def of_chain(self, chain_id: int, *, newest: int | None = None) -> Sequence[StoredTransaction]:
        rows = [each for each in self.handle.state.chain.values() if each.chain_id == chain_id]
        rows.sort(key=lambda each: each.ordinal)
        return rows if newest is None else rows[max(len(rows) - newest, 0) :]

    def count(self, chain_id: int) -> int:
        return len(self.of_chain(chain_id))


@dataclass(frozen=True, slots=True)
class MemoryChainLooks:
    """``ledger.app.ports.chain.ChainLooks`` over the rows of one transaction."""

    handle: ChainHandle

    def take(
        self, chain_id: int, contract: str, *, holder: str, now_ns: int, until_ns: int, due_ns: int
    ) -> ChainLook | None:
        rows, place = self.handle.changing.chain_looks, (chain_id, contract)
        held = rows.get(place, HeldLook(ChainLook(chain_id, contract)))
        if held.look.looked_at_ns > due_ns or (held.holder not in (None, holder) and held.until_ns > now_ns):
            return None
        rows[place] = HeldLook(held.look, holder, until_ns)
        return held.look

    def note(self, look: ChainLook, *, holder: str) -> bool:
        rows, place = self.handle.changing.chain_looks, (look.chain_id, look.contract)
        if place not in rows or rows[place].holder != holder:
            return False
        rows[place] = replace(rows[place], look=look)
        return True

    def all(self) -> Sequence[ChainLook]:
        looks = (held.look for held in self.handle.state.chain_looks.values())
        return sorted(looks, key=lambda look: (str(look.chain_id), look.contract))


def _place(transaction: StoredTransaction) -> tuple[int, str, int, int]:
    return transaction.chain_id, transaction.sender, transaction.nonce, transaction.attempt
