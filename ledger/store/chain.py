"""Signed EVM transactions, kept before they are sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, insert, or_, select, text, update

from ledger.app.ports import StoredTransaction
from ledger.errors import NotFound, VersionConflict
from ledger.store import tables
from ledger.store.dialects import is_postgresql

_table = tables.chain_transaction
_transaction = _table.c
_NONCES_LOCK = 0x534C4E4F
"""First half of the advisory lock on a chain's nonces; the second is drawn from the chain's id."""


class SqlChainTransactions:
    """``ledger.app.ports.ChainTransactions``: the operator's, so they belong to no tenant."""

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

    def included(self, tx_hash: str, *, block_number: int, block_hash: str, failed: bool = False) -> None:
        known = self.by_hash(tx_hash)
        self._change(_at(known) & (_transaction.tx_hash != tx_hash), block_number=None, block_hash=None, failed=True)
        self._change(_transaction.tx_hash == tx_hash, block_number=block_number, block_hash=block_hash, failed=failed)

    def superseded(self, tx_hash: str) -> None:
        self._change(_at(self.by_hash(tx_hash)), block_number=None, block_hash=None, failed=True)

    def by_hash(self, tx_hash: str) -> StoredTransaction:
        found = self._all(self._rows(_transaction.tx_hash == tx_hash))
        if not found:
            raise no_transaction(tx_hash)
        return found[0]

    def of_effect(self, chain_id: int, effect: str) -> StoredTransaction | None:
        standing = _of(chain_id) & (_transaction.effect == effect) & ~_transaction.failed
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
        waiting = _of(chain_id) & _transaction.block_number.is_(None) & ~_transaction.failed
        return self._all(self._rows(waiting).order_by(_transaction.ordinal))

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


def require_free(transaction: StoredTransaction, known: Sequence[StoredTransaction]) -> None:
    """Refuse a transaction where another has its ordinal, nonce or hash; what became of it does not matter."""
    for other in known:
        same = replace(
            other,
            block_number=transaction.block_number,
            block_hash=transaction.block_hash,
            failed=transaction.failed,
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


def _after(last: int | None) -> int:
    return 0 if last is None else last + 1


def _stored(row: Mapping[str, Any]) -> StoredTransaction:
    return StoredTransaction(**{**row, "chain_id": int(row["chain_id"])})
