"""Signed EVM transactions, kept before they are sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection, insert, or_, select, update

from ledger.app.ports import StoredTransaction
from ledger.errors import NotFound, VersionConflict
from ledger.store import tables

_transaction = tables.chain_transaction.c


class SqlChainTransactions:
    """``ledger.app.ports.ChainTransactions``: the operator's, so they belong to no tenant."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, transaction: StoredTransaction) -> None:
        """Adding the same again is a no-op. Raises ``VersionConflict`` where its ordinal or nonce is taken."""
        rows = self._connection.execute(
            select(tables.chain_transaction).where(
                or_(
                    _transaction.ordinal == transaction.ordinal,
                    _transaction.tx_hash == transaction.tx_hash,
                    (_transaction.chain_id == str(transaction.chain_id))
                    & (_transaction.sender == transaction.sender)
                    & (_transaction.nonce == transaction.nonce),
                )
            )
        )
        known = [_stored(row._asdict()) for row in rows]
        require_free(transaction, known)
        if not known:
            row = asdict(transaction) | {"chain_id": str(transaction.chain_id)}
            self._connection.execute(insert(tables.chain_transaction), row)

    def included(self, tx_hash: str, *, block_number: int, block_hash: str) -> None:
        """The block may change with a reorganisation. Raises ``NotFound``."""
        found = self._connection.execute(
            update(tables.chain_transaction)
            .where(_transaction.tx_hash == tx_hash)
            .values(block_number=block_number, block_hash=block_hash)
        )
        if found.rowcount != 1:
            raise no_transaction(tx_hash)

    def all(self) -> Sequence[StoredTransaction]:
        rows = self._connection.execute(select(tables.chain_transaction).order_by(_transaction.ordinal))
        return [_stored(row._asdict()) for row in rows]


def require_free(transaction: StoredTransaction, known: Sequence[StoredTransaction]) -> None:
    """Refuse a transaction where another has its ordinal, nonce or hash; where it was included does not matter."""
    for other in known:
        same = replace(other, block_number=transaction.block_number, block_hash=transaction.block_hash)
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


def _stored(row: Mapping[str, Any]) -> StoredTransaction:
    return StoredTransaction(**{**row, "chain_id": int(row["chain_id"])})
