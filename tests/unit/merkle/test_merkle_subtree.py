"""Subtree proofs: every one that is made holds, and none holds for anything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import OutsideTree, TreeProofInvalid
from ledger.merkle.hasher import EMPTY_ROOT, leaf_hash
from ledger.merkle.proof import consistency_proof
from ledger.merkle.subtree import (
    covering_subtrees,
    is_subtree,
    subtree_consistency_proof,
    subtree_hash,
    subtree_inclusion_proof,
    verify_subtree_consistency,
    verify_subtree_inclusion,
)
from ledger.merkle.tile import MAX_TREE_SIZE, TileId
from ledger.merkle.tree import Frontier, grow

LEAVES = [leaf_hash(b"%d" % number) for number in range(600)]
TILES = grow(0, LEAVES, lambda _: {}).tiles
WIDEST = {(tile.level, tile.index): data for tile, data in TILES.items()}


def read(wanted: Sequence[TileId]) -> Mapping[TileId, bytes]:
    return {tile: WIDEST[tile.level, tile.index] for tile in wanted}


@st.composite
def subtrees(draw: st.DrawFn) -> tuple[int, int]:
    length = draw(st.integers(1, len(LEAVES)))
    step = 1 << (length - 1).bit_length()
    start = step * draw(st.integers(0, (len(LEAVES) - length) // step))
    return start, start + length


@given(subtrees(), st.data())
def test_a_subtree_hashes_as_a_tree_of_its_own(run: tuple[int, int], data: st.DataObject) -> None:
    start, end = run
    assert is_subtree(start, end)
    root = subtree_hash(start, end, read)
    assert root == Frontier().extend(LEAVES[start:end]).root()
    index = data.draw(st.integers(start, end - 1))
    path = subtree_inclusion_proof(index, start, end, read)
    verify_subtree_inclusion(index, start, end, LEAVES[index], path, root)
    other = data.draw(st.integers(start, end - 1).filter(lambda each: each != index)) if end - start > 1 else None
    if other is not None:
        with pytest.raises(TreeProofInvalid):
            verify_subtree_inclusion(other, start, end, LEAVES[index], path, root)
    with pytest.raises(TreeProofInvalid):
        verify_subtree_inclusion(index, start, end, leaf_hash(b"never logged"), path, root)


@given(subtrees(), st.data())
def test_a_tree_holds_its_subtrees_and_no_others(run: tuple[int, int], data: st.DataObject) -> None:
    start, end = run
    size = data.draw(st.integers(end, len(LEAVES)))
    part, whole = subtree_hash(start, end, read), Frontier().extend(LEAVES[:size]).root()
    path = subtree_consistency_proof(start, end, size, read)
    verify_subtree_consistency(start, end, size, part, whole, path)
    lies = [
        (part, leaf_hash(b"x"), path),
        (leaf_hash(b"x"), whole, path),
        (part, whole, (*path, leaf_hash(b"x"))),
        (part, whole, (leaf_hash(b"x"), *path)),
    ]
    if path:
        at = data.draw(st.integers(0, len(path) - 1))
        lies += [
            (part, whole, path[:at] + path[at + 1 :]),
            (part, whole, (*path[:at], leaf_hash(b"x"), *path[at + 1 :])),
            (part, whole, (*path[:at], path[at][:-1], *path[at + 1 :])),
        ]
    for lie in lies:
        with pytest.raises(TreeProofInvalid):
            verify_subtree_consistency(start, end, size, *lie)


@given(st.integers(1, 600), st.integers(1, 600))
def test_a_subtree_from_the_first_leaf_is_an_older_tree(one: int, other: int) -> None:
    old, new = sorted((one, other))
    assert subtree_consistency_proof(0, old, new, read) == consistency_proof(old, new, read)


@given(st.integers(0, MAX_TREE_SIZE), st.integers(0, MAX_TREE_SIZE))
def test_two_subtrees_cover_any_run(one: int, other: int) -> None:
    start, end = sorted((one, other))
    (first, cut), (again, last) = covering_subtrees(start, end)
    assert cut == again
    assert last == end
    assert first <= start <= cut <= end
    assert is_subtree(first, cut)
    assert is_subtree(cut, end)
    # No more is covered than twice the run, rounded up to whole subtrees.
    assert start - first <= max(end - start, 1)


def test_an_empty_subtree_says_nothing() -> None:
    root = Frontier().extend(LEAVES[:7]).root()
    assert subtree_hash(3, 3, read) == EMPTY_ROOT
    verify_subtree_consistency(3, 3, 7, EMPTY_ROOT, root, ())
    for lie in ((root, root, ()), (EMPTY_ROOT, root, (root,))):
        with pytest.raises(TreeProofInvalid):
            verify_subtree_consistency(3, 3, 7, *lie)


@pytest.mark.parametrize(("start", "end"), [(1, 3), (2, 5), (2, 6), (1, 15), (5, 3), (-1, 0), (0, MAX_TREE_SIZE + 1)])
def test_what_is_no_subtree_is_refused(start: int, end: int) -> None:
    root = LEAVES[0]
    assert not is_subtree(start, end)
    with pytest.raises(OutsideTree):
        subtree_hash(start, end, read)
    with pytest.raises(TreeProofInvalid):
        verify_subtree_consistency(start, end, 600, root, root, ())
    with pytest.raises(TreeProofInvalid):
        verify_subtree_inclusion(start, start, end, root, (), root)


def test_places_outside_are_refused() -> None:
    with pytest.raises(OutsideTree):
        subtree_inclusion_proof(8, 4, 8, read)
    with pytest.raises(OutsideTree):
        subtree_consistency_proof(4, 8, 7, read)
    with pytest.raises(OutsideTree):
        covering_subtrees(2, 1)
    with pytest.raises(TreeProofInvalid):
        verify_subtree_inclusion(8, 4, 8, LEAVES[8], (), LEAVES[8])
    with pytest.raises(TreeProofInvalid):
        verify_subtree_consistency(4, 8, 7, LEAVES[0], LEAVES[0], ())
