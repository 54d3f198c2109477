"""Tile names of C2SP tlog-tiles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import OutsideTree, TilePathInvalid
from ledger.merkle.tile import TileId, parse_tile_path


@pytest.mark.parametrize(
    ("tile", "path"),
    [
        (TileId(0, 0), "tile/0/000"),
        (TileId(0, 1067), "tile/0/x001/067"),
        (TileId(0, 1234067), "tile/0/x001/x234/067"),
        (TileId(1, 0, 8), "tile/1/000.p/8"),
        (TileId(2, 999, 255), "tile/2/999.p/255"),
        (TileId(0, 1000, 1), "tile/0/x001/000.p/1"),
    ],
)
def test_paths_are_those_of_the_specification(tile: TileId, path: str) -> None:
    assert tile.path() == path
    assert parse_tile_path(path) == tile


@given(level=st.integers(0, 2), index=st.integers(0, 2**38), width=st.integers(1, 256))
def test_a_path_names_its_tile_and_no_other(level: int, index: int, width: int) -> None:
    tile = TileId(level, index, width)
    assert parse_tile_path(tile.path()) == tile


@pytest.mark.parametrize(
    "path",
    [
        "",
        "tile/0/0",
        "tile/0/00",
        "tile/0/0000",
        "tile/0/x000/067",
        "tile/0/001/067",
        "tile/0/x001",
        "tile/0/x01/067",
        "tile/00/067",
        "tile/01/067",
        "tile/64/000",
        "tile/-1/000",
        "tile/0/-01",
        "tile/0/067.p/0",
        "tile/0/067.p/01",
        "tile/0/067.p/256",
        "tile/0/067.p/",
        "tile/0/067.p",
        "tile/0/067.p/8/",
        "tile/0/067/",
        "/tile/0/067",
        "tile/0/067\n",
        " tile/0/067",
        "tile/0/../067",
        "tile/entries/067",
        "tile/0/٠٦٧",
        "tile/0/067.p/٨",
        "tile/7/999",
        "tile/0/" + "x999/" * 7 + "999",
        "tile/0/" + "x001/" * 100_000 + "067",
    ],
)
def test_every_other_spelling_is_refused(path: str) -> None:
    with pytest.raises(TilePathInvalid) as caught:
        parse_tile_path(path)
    assert len(caught.value.data["path"]) <= 64


@pytest.mark.parametrize("tile", [(-1, 0, 1), (64, 0, 1), (0, -1, 1), (0, 0, 0), (0, 0, 257), (0, 2**60, 1)])
def test_tiles_of_no_tree_are_refused(tile: tuple[int, int, int]) -> None:
    with pytest.raises(OutsideTree):
        TileId(*tile)
