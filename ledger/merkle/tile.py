"""Tiles: how the tree's hashes are cut up for storage and serving (C2SP tlog-tiles).

A tile of level L holds up to 256 consecutive hashes, each the root over 256**L leaves. Level 0 holds leaf
hashes; a hash of level L+1 exists once the tile below it is full. A tile that is not yet full is partial
and named with its width. Tiles never change: growth makes wider ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ledger.errors import OutsideTree, TilePathInvalid
from ledger.merkle.hasher import HASH_SIZE

TILE_HEIGHT = 8
TILE_WIDTH = 1 << TILE_HEIGHT
TILE_BYTES = TILE_WIDTH * HASH_SIZE
MAX_TREE_SIZE = (1 << 63) - 1
"""The largest tree this package deals with: what a signed 64-bit database column holds."""

_MAX_LEVEL = 63
_MAX_PATH_CHARS = 64
_PATH = re.compile(
    r"tile/(?P<level>0|[1-9][0-9]?|entries)/(?P<index>(?:x[0-9]{3}/)*[0-9]{3})(?:\.p/(?P<width>[1-9][0-9]{0,2}))?"
)


@dataclass(frozen=True, slots=True, order=True)
class TileId:
    """One tile: its level, its index within the level and how many hashes (1..256) it holds.

    Raises OutsideTree for values no tile of a tree up to MAX_TREE_SIZE can have.
    """

    level: int
    index: int
    width: int = TILE_WIDTH

    def __post_init__(self) -> None:
        in_range = 0 <= self.level <= _MAX_LEVEL and 1 <= self.width <= TILE_WIDTH and self.index >= 0
        if not in_range or self.index << (TILE_HEIGHT * (self.level + 1)) > MAX_TREE_SIZE:
            raise OutsideTree(
                "No tree has this tile: level must be 0..63, width 1..256 and the index within the tree.",
                level=self.level,
                index=self.index,
                width=self.width,
            )

    @property
    def is_full(self) -> bool:
        return self.width == TILE_WIDTH

    def path(self) -> str:
        """Where the tile is served, for example ``tile/0/x001/067`` or ``tile/1/000.p/8``."""
        return f"tile/{self.level}/{_numbered(self.index, self.width)}"


@dataclass(frozen=True, slots=True)
class BundleId:
    """One bundle of up to 256 log entries: those under the hashes of the tile (0, index, width)."""

    index: int
    width: int = TILE_WIDTH

    @property
    def first(self) -> int:
        """The position in the log of the bundle's first entry."""
        return self.index * TILE_WIDTH

    def path(self) -> str:
        """Where the bundle is served, for example ``tile/entries/x001/067`` or ``tile/entries/000.p/8``."""
        return f"tile/entries/{_numbered(self.index, self.width)}"


def parse_tile_path(path: str) -> TileId:
    """The tile a path names. Only the one canonical spelling passes; anything else is TilePathInvalid."""
    found = parse_log_path(path)
    if isinstance(found, TileId):
        return found
    raise _no_path(path)


def parse_log_path(path: str) -> TileId | BundleId:
    """The tile or entry bundle a path names, in its one canonical spelling. Raises TilePathInvalid."""
    match = _PATH.fullmatch(path) if len(path) <= _MAX_PATH_CHARS else None
    if match is not None:
        index = int(match["index"].replace("x", "").replace("/", ""))
        width = int(match["width"]) if match["width"] else TILE_WIDTH
        entries = match["level"] == "entries"
        try:
            tile = TileId(0 if entries else int(match["level"]), index, width)
        except OutsideTree as error:
            raise TilePathInvalid(error.message, path=path) from error
        found = BundleId(index, width) if entries else tile
        if found.path() == path:
            return found
    raise _no_path(path)


def is_covered(tile: TileId | BundleId, tree_size: int) -> bool:
    """Whether a tree of ``tree_size`` leaves has all hashes, or entries, of a tile, or bundle, of this width."""
    level = tile.level if isinstance(tile, TileId) else 0
    return tile.index * TILE_WIDTH + tile.width <= tree_size >> (TILE_HEIGHT * level)


def require_size(size: int) -> None:
    """Raise OutsideTree unless ``size`` is a possible number of leaves."""
    if not 0 <= size <= MAX_TREE_SIZE:
        raise OutsideTree(f"A tree size must be between 0 and {MAX_TREE_SIZE}.", size=size)


def tile_at(level: int, index: int, tree_size: int) -> TileId:
    """The tile (level, index) with the width it has in a tree of ``tree_size`` leaves.

    Raises OutsideTree where that tree has no such tile.
    """
    hashes_in_level = tree_size >> (TILE_HEIGHT * level)
    return TileId(level, index, min(TILE_WIDTH, hashes_in_level - index * TILE_WIDTH))


def edge_tiles(tree_size: int) -> list[TileId]:
    """The partial tiles of a tree, lowest level first; at most one a level.

    They are all that a root, or growing the tree, needs: full tiles are already summed up above.
    """
    require_size(tree_size)
    edge = []
    level = 0
    while hashes_in_level := tree_size >> (TILE_HEIGHT * level):
        index, width = divmod(hashes_in_level, TILE_WIDTH)
        if width:
            edge.append(TileId(level, index, width))
        level += 1
    return edge


def _numbered(index: int, width: int) -> str:
    groups = [f"{index % 1000:03d}"]
    rest = index // 1000
    while rest:
        groups.append(f"x{rest % 1000:03d}")
        rest //= 1000
    suffix = "" if width == TILE_WIDTH else f".p/{width}"
    return "/".join(reversed(groups)) + suffix


def _no_path(path: str) -> TilePathInvalid:
    return TilePathInvalid(
        "Not a tile path. Expected tile/<level>/<index in groups of three digits>[.p/<width 1..255>], "
        "such as tile/0/x001/067 or tile/1/000.p/8, and `entries` in place of the level for log entries.",
        path=path[:_MAX_PATH_CHARS],
    )
