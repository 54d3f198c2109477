"""Filling an empty database from an export, row by row as they were (``ledger.app.log.transfer.Restoration``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, func, insert, select, update

from ledger.app.log.inspection import RawEntry, RawRequest
from ledger.errors import LogInconsistent
from ledger.merkle.tile import edge_tiles
from ledger.merkle.tree import grow
from ledger.store import tables
from ledger.store.batches import SqlBatches
from ledger.store.bulk import insert_rows
from ledger.store.sequencer import read_tiles, write_tiles

_event = tables.event.c


class SqlRestoration:
    """Writes into one transaction of an empty database. ``rebuild`` makes its views, in the same transaction."""

    def __init__(self, connection: Connection, rebuild: Callable[[Connection], int]) -> None:
        self._connection = connection
        self._rebuild = rebuild
        self._size = 0
        self._sequenced_at_ns = 0
        if connection.scalar(select(tables.event.c.id).limit(1)) is not None:
            raise LogInconsistent("this database has events already; import into a new one")

    def add_entries(self, entries: Sequence[RawEntry]) -> None:
        connection, first = self._connection, self._size
        insert_rows(connection, tables.event, [entry[4:15] for entry in entries])
        kept = [(entry.id, entry.kept_salt, entry.kept_payload) for entry in entries if entry.kept_payload is not None]
        if kept:
            insert_rows(connection, tables.event_payload, kept)
        leaves = [(entry.seq, entry.id, entry.leaf_hash, entry.sequenced_at_ns) for entry in entries]
        insert_rows(connection, tables.leaf, leaves)
        self._sequenced_at_ns = entries[-1].sequenced_at_ns
        growth = grow(first, [entry.leaf_hash for entry in entries], lambda wanted: read_tiles(connection, wanted))
        write_tiles(connection, {(tile.level, tile.index) for tile in edge_tiles(first)}, growth.tiles)
        self._size = growth.size

    def add_request(self, request: RawRequest) -> None:
        insert_rows(self._connection, tables.append_request, [tuple(request)])

    def add_checkpoint(self, size: int, root: bytes, note: bytes) -> None:
        insert_rows(self._connection, tables.checkpoint, [(size, root, note)])

    def add_batch(self, tenant: str, data: bytes) -> None:
        SqlBatches(self._connection, tenant).put(data)

    def finish(self) -> None:
        """Raises ``LogInconsistent`` where the versions of a stream do not count from 0."""
        streams = select(_event.tenant, _event.stream, func.max(_event.version)).group_by(_event.tenant, _event.stream)
        gap = self._connection.execute(streams.having(func.count() != func.max(_event.version) + 1)).first()
        if gap is not None:
            raise LogInconsistent(f"the stream {gap[1]!r} skips a version", tenant=gap[0], stream=gap[1])
        heads = [column.name for column in tables.stream_head.columns]
        self._connection.execute(insert(tables.stream_head).from_select(heads, streams))
        if self._size:
            self._connection.execute(
                update(tables.log_state).values(size=self._size, sequenced_at_ns=self._sequenced_at_ns)
            )
        self._rebuild(self._connection)
