"""Giving events their place in the log: contiguous ``seq``, leaf, dirty tiles, compare-and-swap of the size.

SQLite runs this inside the append; on PostgreSQL ``ledger.store.inbox`` runs it over the queue, in batches. It takes
nothing but (event id, leaf hash) pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

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


def sequence(connection: Connection, leaves: Sequence[tuple[str, bytes]], now_ns: int) -> int:
    """Append (event id, leaf hash) pairs to the log; the ``seq`` of the first one.

    ``sequenced_at`` never goes back, whatever the clock does. Raises ``LogInconsistent`` where another
    sequencer moved the log on meanwhile or a stored tile does not fit its size.
    """
    first, last_sequenced_ns = connection.execute(_STATE).one()
    sequenced_at_ns = max(now_ns, last_sequenced_ns)
    growth = grow(first, [leaf_hash for _, leaf_hash in leaves], lambda wanted: read_tiles(connection, wanted))
    rows = [(first + at, event_id, leaf_hash, sequenced_at_ns) for at, (event_id, leaf_hash) in enumerate(leaves)]
    insert_rows(connection, tables.leaf, rows)
    write_tiles(connection, {(tile.level, tile.index) for tile in edge_tiles(first)}, growth.tiles)
    moved = connection.execute(_MOVE_ON, {"before": first, "now": growth.size, "now_ns": sequenced_at_ns})
    if moved.rowcount != 1:
        raise LogInconsistent(f"another sequencer moved the log past size {first}; nothing was written", size=first)
    return int(first)


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
    insert_rows(connection, tables.tile, fresh)
