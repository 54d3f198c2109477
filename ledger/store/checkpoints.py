"""The stored parts of the log in SQL: its size, tiles and signed checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, insert, select

from ledger.merkle.tile import TileId
from ledger.store import tables
from ledger.store.dialects import hold_log, is_postgresql
from ledger.store.log import SignedCheckpoint
from ledger.store.sequencer import read_tiles


class SqlLogRows:
    """``ledger.store.log.LogRows`` over one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def size(self) -> int:
        return int(self._connection.execute(select(tables.log_state.c.size)).scalar_one())

    def hold(self) -> None:
        # On SQLite transactions that write come one after the other.
        if is_postgresql(self._connection):
            hold_log(self._connection)

    def tiles(self, wanted: Sequence[TileId]) -> Mapping[TileId, bytes]:
        return read_tiles(self._connection, wanted)

    def checkpoint(self, size: int | None) -> SignedCheckpoint | None:
        columns = tables.checkpoint.c
        found = select(columns.size, columns.root, columns.note)
        found = found.order_by(columns.size.desc()).limit(1) if size is None else found.where(columns.size == size)
        row = self._connection.execute(found).one_or_none()
        return None if row is None else SignedCheckpoint(row.size, row.root, row.note.decode())

    def add_checkpoint(self, checkpoint: SignedCheckpoint) -> None:
        row = {"size": checkpoint.size, "root": checkpoint.root, "note": checkpoint.note.encode()}
        self._connection.execute(insert(tables.checkpoint), row)
