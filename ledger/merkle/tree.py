"""Growing a tree and reading hashes out of its tiles.

Nothing here stores anything. ``Frontier`` is the running state of one pass over the leaves. The rest
works over a ``TileReader``, which the store provides: every function asks it once, for all tiles it needs,
and needs O(log n) of them for any past tree size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ledger.errors import BadInput, TreeDamaged
from ledger.merkle.hasher import HASH_SIZE, fold_right, node_hash, perfect_root
from ledger.merkle.tile import (
    TILE_BYTES,
    TILE_HEIGHT,
    TILE_WIDTH,
    TileId,
    edge_tiles,
    require_size,
    tile_at,
)

TileReader = Callable[[Sequence[TileId]], Mapping[TileId, bytes]]
"""Given the wanted tiles, returns their bytes under the very ids asked for.

A store that no longer has the asked width answers with a wider version of the same tile: tiles only grow,
so its first ``width`` hashes are the asked ones.
"""

Span = tuple[int, int]
"""Leaves ``start .. end - 1`` as RFC 6962 cuts them: ``start`` is a multiple of the least power of two not
below the length, so the span is itself a subtree."""


@dataclass(frozen=True, slots=True)
class Frontier:
    """The roots of the perfect subtrees of a tree, largest first: enough to append and to know the root.

    ``peaks`` has one 32-byte hash per one-bit of ``size``; anything else raises BadInput.
    """

    size: int = 0
    peaks: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        require_size(self.size)
        if len(self.peaks) != self.size.bit_count() or any(len(peak) != HASH_SIZE for peak in self.peaks):
            raise BadInput(
                "A frontier needs one 32-byte hash for each one-bit of its size.",
                size=self.size,
                peaks=len(self.peaks),
            )

    def extend(self, leaf_hashes: Iterable[bytes]) -> Frontier:
        """The frontier after these leaf hashes; one node hash per leaf on average."""
        size = self.size
        peaks = list(self.peaks)
        for leaf in leaf_hashes:
            _require_leaf_hash(leaf)
            joined = leaf
            carry = size
            while carry & 1:
                joined = node_hash(peaks.pop(), joined)
                carry >>= 1
            peaks.append(joined)
            size += 1
        return Frontier(size, tuple(peaks))

    def append(self, leaf: bytes) -> Frontier:
        """The frontier after one more leaf hash, in O(log n)."""
        return self.extend((leaf,))

    def root(self) -> bytes:
        """The tree's root, in O(log n); of no leaves, SHA-256 of nothing."""
        return fold_right(self.peaks)


@dataclass(frozen=True, slots=True)
class Growth:
    """What appending a batch makes: the new size and root, and every tile to write."""

    size: int
    root: bytes
    tiles: Mapping[TileId, bytes]


def span_hashes(spans: Sequence[Span], tree_size: int, read_tiles: TileReader) -> list[bytes]:
    """The root of each span of a tree of ``tree_size`` leaves, with one call of the reader.

    Raises TreeDamaged when a tile is missing or has a wrong length.
    """
    nodes_of_spans = [[_locate(node, tree_size) for node in _perfect_nodes(*span)] for span in spans]
    wanted = sorted({node.tile for nodes in nodes_of_spans for node in nodes})
    tiles = fetch_tiles(wanted, read_tiles)
    return [
        fold_right([perfect_root(tiles[node.tile][node.start : node.end]) for node in nodes])
        for nodes in nodes_of_spans
    ]


def frontier_at(size: int, read_tiles: TileReader) -> Frontier:
    """The frontier of the tree's first ``size`` leaves, read from one tile a level."""
    require_size(size)
    return Frontier(size, tuple(span_hashes(_aligned_blocks(0, size), size, read_tiles)))


def tree_root(size: int, read_tiles: TileReader) -> bytes:
    """The root of the tree's first ``size`` leaves, read from one tile a level."""
    return frontier_at(size, read_tiles).root()


def grow(old_size: int, leaf_hashes: Sequence[bytes], read_tiles: TileReader) -> Growth:
    """Append leaf hashes to a stored tree of ``old_size`` leaves.

    Reads the partial tiles of the old tree and nothing else. The tiles returned are those whose content differs from
    the old tree's, complete, so that writing them needs no further read.
    """
    new_size = old_size + len(leaf_hashes)
    require_size(new_size)
    for leaf in leaf_hashes:
        _require_leaf_hash(leaf)
    known = fetch_tiles(edge_tiles(old_size), read_tiles)
    written: dict[TileId, bytes] = {}
    added = b"".join(leaf_hashes)
    level = 0
    while added:
        index, width = divmod(old_size >> (TILE_HEIGHT * level), TILE_WIDTH)
        row = (known[TileId(level, index, width)] if width else b"") + added
        tiles = [row[at : at + TILE_BYTES] for at in range(0, len(row), TILE_BYTES)]
        written |= {TileId(level, index + i, len(tile) // HASH_SIZE): tile for i, tile in enumerate(tiles)}
        added = b"".join(perfect_root(tile) for tile in tiles if len(tile) == TILE_BYTES)
        level += 1
    return Growth(new_size, tree_root(new_size, lambda _wanted: known | written), written)


@dataclass(frozen=True, slots=True)
class _StoredNode:
    """A perfect subtree's place: it is the root over ``tile[start:end]`` (byte offsets)."""

    tile: TileId
    start: int
    end: int


def _aligned_blocks(start: int, end: int) -> list[Span]:
    """Cut a span into perfect subtrees, largest first."""
    blocks = []
    while start < end:
        length = 1 << ((end - start).bit_length() - 1)
        blocks.append((start, start + length))
        start += length
    return blocks


def _perfect_nodes(start: int, end: int) -> list[tuple[int, int]]:
    """The (height, index) of each perfect subtree of a span; a node covers leaves index << height onward."""
    heights = [((stop - first).bit_length() - 1, first) for first, stop in _aligned_blocks(start, end)]
    return [(height, first >> height) for height, first in heights]


def _locate(node: tuple[int, int], tree_size: int) -> _StoredNode:
    height, index = node
    level, height_in_tile = divmod(height, TILE_HEIGHT)
    tile_index, offset = divmod(index << height_in_tile, TILE_WIDTH)
    start = offset * HASH_SIZE
    end = start + (HASH_SIZE << height_in_tile)
    return _StoredNode(tile_at(level, tile_index, tree_size), start, end)


def fetch_tiles(wanted: Sequence[TileId], read_tiles: TileReader) -> dict[TileId, bytes]:
    """Fetch tiles and cut each to the width asked for. Raises TreeDamaged."""
    if not wanted:
        return {}
    found = read_tiles(wanted)
    tiles = {}
    for tile in wanted:
        data = found.get(tile)
        if data is None:
            raise TreeDamaged(
                f"Tile {tile.path()} is missing from the store. Run fsck and restore it.", tile=tile.path()
            )
        needed_bytes = tile.width * HASH_SIZE
        if not needed_bytes <= len(data) <= TILE_BYTES or len(data) % HASH_SIZE:
            raise TreeDamaged(
                f"Tile {tile.path()} has {len(data)} bytes, expected {needed_bytes}. Run fsck and restore it.",
                tile=tile.path(),
                found_bytes=len(data),
                needed_bytes=needed_bytes,
            )
        tiles[tile] = bytes(data[:needed_bytes])
    return tiles


def _require_leaf_hash(leaf: bytes) -> None:
    if len(leaf) != HASH_SIZE:
        raise BadInput("A leaf hash has 32 bytes. Hash the entry with leaf_hash first.", found_bytes=len(leaf))
