"""Signed EVM transactions, kept before they are sent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, func, insert, or_, select, text, update

from ledger.app.ports.chain import ChainLook, StateTally, StoredTransaction, TransactionState
from ledger.errors import NotFound, VersionConflict
from ledger.store import tables
from ledger.store.dialects import insert_for, is_postgresql

_table = tables.chain_transaction
_transaction = _table.c
_looks = tables.chain_look.c
_NONCES_LOCK = 0x534C4E4F
"""First half of the advisory lock on a chain's nonces; the second is drawn from the chain's id."""
_NOT_FAILED = _transaction.state != "failed"
_IN_NO_BLOCK: Final = {"block_number": None, "block_hash": None}
_LOOK_COLUMNS: Final = ("contract", "next_block", "latest", "safe", "finalized", "looked_at_ns", "error", "of_others")


class SqlChainTransactions:
    """``ledger.app.ports.store.ChainTransactions``: the operator's, so they belong to no tenant."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def reserve(self, chain_id: int) -> None:
        # On SQLite transactions that write come one after the other.
        if is_postgresql(self._connection):
            # Chains of one remainder wait for each other, which costs time and nothing else.
            keys = {"lock": _NONCES_LOCK, "chain": chain_id % 2**31}
            self._connection.execute(text("SELECT pg_advisory_xact_lock(:lock, :chain)"), keys)

    def add(self, transaction: StoredTransaction) -> None:
        rows = self._rows(
            or_(
                _transaction.tx_hash == transaction.tx_hash,
                _of(transaction.chain_id) & (_transaction.ordinal == transaction.ordinal),
                _at(transaction) & (_transaction.attempt == transaction.attempt),
            )
        )
        known = self._all(rows)
        require_free(transaction, known)
        if not known:
            row = asdict(transaction) | {"chain_id": str(transaction.chain_id)}
            self._connection.execute(insert(_table), row)

    def included(
        self, tx_hash: str, *, block_number: int, block_hash: str, state: TransactionState = "included"
    ) -> None:
        known = self.by_hash(tx_hash)
        self._change(_at(known) & (_transaction.tx_hash != tx_hash), **_IN_NO_BLOCK, state="failed")
        self._change(_transaction.tx_hash == tx_hash, block_number=block_number, block_hash=block_hash, state=state)

    def reached(self, tx_hash: str, state: TransactionState, *, block_hash: str) -> None:
        self.by_hash(tx_hash)
        self._change((_transaction.tx_hash == tx_hash) & (_transaction.block_hash == block_hash), state=state)

    def dropped(self, tx_hash: str, *, block_hash: str) -> None:
        place = _at(self.by_hash(tx_hash))
        # Held: the block that somebody notes meanwhile would be taken back with this one.
        for each in self._all(self._rows(place).with_for_update()):
            if (each.tx_hash, each.block_hash) == (tx_hash, block_hash):
                self._change(place, **_IN_NO_BLOCK, state="submitted")

    def superseded(self, tx_hash: str) -> None:
        self._change(_at(self.by_hash(tx_hash)), **_IN_NO_BLOCK, state="failed")

    def by_hash(self, tx_hash: str) -> StoredTransaction:
        found = self._all(self._rows(_transaction.tx_hash == tx_hash))
        if not found:
            raise no_transaction(tx_hash)
        return found[0]

    def of_effect(self, chain_id: int, effect: str) -> StoredTransaction | None:
        standing = _of(chain_id) & (_transaction.effect == effect) & _NOT_FAILED
        found = self._all(self._rows(standing).order_by(_transaction.ordinal.desc()).limit(1))
        return found[0] if found else None

    def next_place(self, chain_id: int, sender: str) -> tuple[int, int]:
        ordinal = self._connection.scalar(select(func.max(_transaction.ordinal)).where(_of(chain_id)))
        nonce = self._connection.scalar(select(func.max(_transaction.nonce)).where(_sent_by(chain_id, sender)))
        return _after(ordinal), _after(nonce)

    def from_nonce(self, chain_id: int, sender: str, nonce: int) -> Sequence[StoredTransaction]:
        later = _sent_by(chain_id, sender) & (_transaction.nonce >= nonce)
        return self._all(self._rows(later).order_by(_transaction.nonce, _transaction.attempt))

    def at_nonce(self, chain_id: int, sender: str, nonce: int) -> Sequence[StoredTransaction]:
        attempts = _sent_by(chain_id, sender) & (_transaction.nonce == nonce)
        return self._all(self._rows(attempts).order_by(_transaction.attempt))

    def not_included(self, chain_id: int) -> Sequence[StoredTransaction]:
        waiting = _of(chain_id) & _transaction.block_number.is_(None) & _NOT_FAILED
        return self._all(self._rows(waiting).order_by(_transaction.ordinal))

    def unsettled(self, chain_id: int, *, above: int, limit: int | None = None) -> Sequence[StoredTransaction]:
        on_its_way = _transaction.state.in_(("submitted", "included", "safe"))
        reverted = (_transaction.state == "failed") & (_transaction.block_number > above)
        found = self._rows(_of(chain_id) & (on_its_way | reverted)).order_by(_transaction.ordinal)
        return self._all(found.limit(limit))

    def since_block(self, chain_id: int) -> int | None:
        block = func.coalesce(_transaction.signed_at_block, _transaction.block_number)
        return self._connection.scalar(select(func.min(block)).where(_of(chain_id)))

    def states(self, tx_hashes: Collection[str]) -> Mapping[str, TransactionState]:
        named = _transaction.tx_hash.in_(tx_hashes)
        rows = self._connection.execute(select(_transaction.tx_hash, _transaction.state).where(named))
        return {row.tx_hash: row.state for row in rows}

    def tallies(self) -> Sequence[StateTally]:
        by = (_transaction.chain_id, _transaction.state)
        rows = self._connection.execute(
            select(*by, func.count(), func.min(_transaction.signed_at_s)).group_by(*by).order_by(*by)
        )
        return [StateTally(int(chain_id), *others) for chain_id, *others in rows]

    def of_chain(self, chain_id: int, *, newest: int | None = None) -> Sequence[StoredTransaction]:
        found = self._all(self._rows(_of(chain_id)).order_by(_transaction.ordinal.desc()).limit(newest))
        return found[::-1]

    def count(self, chain_id: int) -> int:
        return self._connection.scalar(select(func.count()).select_from(_table).where(_of(chain_id))) or 0

    def _change(self, condition: ColumnElement[bool], **values: Any) -> None:
        self._connection.execute(update(_table).where(condition).values(**values))

    def _rows(self, condition: ColumnElement[bool]) -> Select[Any]:
        return select(_table).where(condition)

    def _all(self, rows: Select[Any]) -> list[StoredTransaction]:
        return [_stored(row._asdict()) for row in self._connection.execute(rows)]


class SqlChainLooks:
    """``ledger.app.ports.chain.ChainLooks``: the operator's, too."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def take(
        self, chain_id: int, contract: str, *, holder: str, now_ns: int, until_ns: int, due_ns: int
    ) -> ChainLook | None:
        first = {**_unseen(chain_id, contract), "lease_until_ns": 0}
        self._connection.execute(insert_for(self._connection, tables.chain_look).values(first).on_conflict_do_nothing())
        row = _look_at(chain_id, contract)
        free = _looks.holder.is_(None) | (_looks.holder == holder) | (_looks.lease_until_ns <= now_ns)
        taken = self._connection.execute(
            update(tables.chain_look)
            .where(row & free & (_looks.looked_at_ns <= due_ns))
            .values(holder=holder, lease_until_ns=until_ns)
        )
        if taken.rowcount != 1:
            return None
        return self._found(select(tables.chain_look).where(row))[0]

    def note(self, look: ChainLook, *, holder: str) -> bool:
        kept = self._connection.execute(
            update(tables.chain_look)
            .where(_look_at(look.chain_id, look.contract) & (_looks.holder == holder))
            .values(_look_row(look))
        )
        return kept.rowcount == 1

    def all(self) -> Sequence[ChainLook]:
        return self._found(select(tables.chain_look).order_by(_looks.chain_id, _looks.contract))

    def _found(self, rows: Select[Any]) -> list[ChainLook]:
        return [_look(row._asdict()) for row in self._connection.execute(rows)]


def require_free(transaction: StoredTransaction, known: Sequence[StoredTransaction]) -> None:
    """Refuse a transaction where another has its ordinal, nonce or hash; what became of it does not matter."""
    for other in known:
        same = replace(
            other,
            block_number=transaction.block_number,
            block_hash=transaction.block_hash,
            state=transaction.state,
        )
        if same != transaction:
            raise VersionConflict(
                f"another transaction ({other.tx_hash}) has ordinal {other.ordinal} and nonce {other.nonce} of "
                f"{other.sender}; read the stored transactions again and take the next free ones",
                ordinal=transaction.ordinal,
                nonce=transaction.nonce,
                sender=transaction.sender,
            )


def no_transaction(tx_hash: str) -> NotFound:
    """The error for a transaction that was never stored."""
    return NotFound(f"no stored transaction has the hash {tx_hash}", tx_hash=tx_hash)


def _of(chain_id: int) -> ColumnElement[bool]:
    return _transaction.chain_id == str(chain_id)


def _sent_by(chain_id: int, sender: str) -> ColumnElement[bool]:
    return _of(chain_id) & (_transaction.sender == sender)


def _at(transaction: StoredTransaction) -> ColumnElement[bool]:
    """All attempts at a transaction's nonce."""
    return _sent_by(transaction.chain_id, transaction.sender) & (_transaction.nonce == transaction.nonce)


def _look_at(chain_id: int, contract: str) -> ColumnElement[bool]:
    return (_looks.chain_id == str(chain_id)) & (_looks.contract == contract)


def _unseen(chain_id: int, contract: str) -> dict[str, Any]:
    return _look_row(ChainLook(chain_id, contract))


def _look_row(look: ChainLook) -> dict[str, Any]:
    row = asdict(look)
    first, last = row.pop("unread") or (None, None)
    return {**row, "chain_id": str(look.chain_id), "unread_from": first, "unread_to": last}


def _look(row: Mapping[str, Any]) -> ChainLook:
    unread = None if row["unread_from"] is None else (row["unread_from"], row["unread_to"])
    kept = {name: row[name] for name in _LOOK_COLUMNS}
    return ChainLook(**{**kept, "chain_id": int(row["chain_id"])}, unread=unread)


def _after(last: int | None) -> int:
    return 0 if last is None else last + 1


def _stored(row: Mapping[str, Any]) -> StoredTransaction:
    return StoredTransaction(**{**row, "chain_id": int(row["chain_id"])})
