"""Giving events their place in the log: contiguous ``seq``, leaf, dirty tiles, compare-and-swap of the size.

SQLite runs this inside the append; on PostgreSQL ``ledger.store.inbox`` makes leaves of the queue, in batches, and
grows the tree over them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count, repeat

from sqlalchemy import Connection, bindparam, select, update

from ledger.errors import LogInconsistent
from ledger.merkle.tile import TileId, edge_tiles
from ledger.merkle.tree import grow
from ledger.store import tables
from ledger.store.bulk import insert_rows

# One statement a level: for pairs of level and index SQLite reads the whole table.
TILES_OF_LEVEL = select(tables.tile.c.tile_index, tables.tile.c.data).where(
    tables.tile.c.level == bindparam("level"), tables.tile.c.tile_index.in_(bindparam("indices", expanding=True))
)

# Made once: making a statement takes longer than SQLite does to run it.
_state = tables.log_state.c
_STATE = select(_state.size, _state.sequenced_at_ns)
_MOVE_ON = (
    update(tables.log_state)
    .where(_state.size == bindparam("before"))
    .values(size=bindparam("now"), sequenced_at_ns=bindparam("now_ns"))
)
_GROW_TILE = (
    update(tables.tile)
    .where(tables.tile.c.level == bindparam("at_level"), tables.tile.c.tile_index == bindparam("at_index"))
    .values(width=bindparam("grown_width"), data=bindparam("grown"))
)


def sequence(connection: Connection, event_ids: Sequence[str], leaf_hashes: Sequence[bytes], now_ns: int) -> int:
    """Append events to the log, given their ids and leaf hashes; the ``seq`` of the first one.

    Raises ``LogInconsistent`` as ``grow_log`` does.
    """
    first, sequenced_at_ns = next_place(connection, now_ns)
    insert_rows(connection, tables.leaf, zip(count(first), event_ids, leaf_hashes, repeat(sequenced_at_ns)))
    grow_log(connection, first, leaf_hashes, sequenced_at_ns)
    return first


def next_place(connection: Connection, now_ns: int) -> tuple[int, int]:
    """The size of the log, which is the ``seq`` of the next leaf, and its ``sequenced_at``.

    That never goes back, whatever the clock does.
    """
    size, last_sequenced_ns = connection.execute(_STATE).one()
    return size, max(now_ns, last_sequenced_ns)


def grow_log(connection: Connection, first: int, leaf_hashes: Sequence[bytes], sequenced_at_ns: int) -> None:
    """Append the hashes of leaves that are stored to the tree of the first ``first`` ones, and move the log's size on.

    Raises ``LogInconsistent`` where another sequencer moved the log on meanwhile or a stored tile does not fit its
    size.
    """
    growth = grow(first, leaf_hashes, lambda wanted: read_tiles(connection, wanted))
    write_tiles(connection, {(tile.level, tile.index) for tile in edge_tiles(first)}, growth.tiles)
    moved = connection.execute(_MOVE_ON, {"before": first, "now": growth.size, "now_ns": sequenced_at_ns})
    if moved.rowcount != 1:
        raise LogInconsistent(f"another sequencer moved the log past size {first}; nothing was written", size=first)


def read_tiles(connection: Connection, wanted: Sequence[TileId]) -> Mapping[TileId, bytes]:
    """A ``TileReader``: the stored tile may be wider than the one asked for."""
    indices: defaultdict[int, list[int]] = defaultdict(list)
    for tile in wanted:
        indices[tile.level].append(tile.index)
    stored = {
        (level, index): data
        for level, asked in indices.items()
        for index, data in connection.execute(TILES_OF_LEVEL, {"level": level, "indices": asked})
    }
    return {tile: stored[tile.level, tile.index] for tile in wanted if (tile.level, tile.index) in stored}


def write_tiles(connection: Connection, partial: set[tuple[int, int]], dirty: Mapping[TileId, bytes]) -> None:
    """Store the tiles of a growth; ``partial`` are the (level, index) of those that were there before."""
    fresh = []
    for tile, data in dirty.items():
        if (tile.level, tile.index) not in partial:
            fresh.append((tile.level, tile.index, tile.width, data))
            continue
        values = {"at_level": tile.level, "at_index": tile.index, "grown_width": tile.width, "grown": data}
        grown = connection.execute(_GROW_TILE, values)
        if grown.rowcount != 1:
            raise LogInconsistent(f"tile {tile.path()} is missing; run fsck", tile=tile.path())
    if fresh:
        insert_rows(connection, tables.tile, fresh)
