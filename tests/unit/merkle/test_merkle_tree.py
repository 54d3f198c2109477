"""Tree, tiles and proofs against the recursive definitions of RFC 6962, written out naively below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import BadInput, OutsideTree, TreeDamaged, TreeProofInvalid
from ledger.merkle.hasher import EMPTY_ROOT, leaf_hash
from ledger.merkle.proof import consistency_proof, inclusion_proof
from ledger.merkle.tile import TILE_WIDTH, TileId, edge_tiles
from ledger.merkle.tree import Frontier, TileReader, frontier_at, grow, tree_root
from ledger.merkle.verify import root_from_inclusion, verify_consistency, verify_inclusion

LEAVES = [leaf_hash(str(i).encode()) for i in range(70_000)]


def split(n: int) -> int:
    k = 1
    while 2 * k < n:
        k *= 2
    return k


def mth(leaves: Sequence[bytes]) -> bytes:
    if len(leaves) < 2:
        return leaves[0] if leaves else sha256(b"").digest()
    k = split(len(leaves))
    return sha256(b"\x01" + mth(leaves[:k]) + mth(leaves[k:])).digest()


def path(m: int, leaves: Sequence[bytes]) -> list[bytes]:
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if m < k:
        return [*path(m, leaves[:k]), mth(leaves[k:])]
    return [*path(m - k, leaves[k:]), mth(leaves[:k])]


def subproof(m: int, leaves: Sequence[bytes], whole: bool) -> list[bytes]:
    if m == len(leaves):
        return [] if whole else [mth(leaves)]
    k = split(len(leaves))
    if m <= k:
        return [*subproof(m, leaves[:k], whole), mth(leaves[k:])]
    return [*subproof(m - k, leaves[k:], False), mth(leaves[:k])]


class Store:
    """Tiles in memory, counting what is read. With ``widest_only`` earlier widths are gone, as after a clean-up."""

    def __init__(self, widest_only: bool = False) -> None:
        self.tiles: dict[TileId, bytes] = {}
        self.widest_only = widest_only
        self.size = 0
        self.root = EMPTY_ROOT
        self.calls = 0
        self.tiles_read = 0

    def append(self, leaves: Sequence[bytes]) -> None:
        growth = grow(self.size, leaves, self.read)
        self.tiles |= growth.tiles
        self.size, self.root = growth.size, growth.root

    def read(self, wanted: Sequence[TileId]) -> Mapping[TileId, bytes]:
        self.calls += 1
        self.tiles_read += len(wanted)
        return {tile: self._find(tile) for tile in wanted}

    def _find(self, tile: TileId) -> bytes:
        widths = range(tile.width, TILE_WIDTH + 1)
        candidates = [TileId(tile.level, tile.index, width) for width in widths]
        present = [candidate for candidate in candidates if candidate in self.tiles]
        return self.tiles[present[-1] if self.widest_only else present[0]]


def store_of(size: int) -> Store:
    store = Store()
    store.append(LEAVES[:size])
    return store


@pytest.fixture(scope="module")
def large() -> Store:
    """70,000 leaves: three levels, none of them a round number of tiles."""
    return store_of(70_000)


sizes = st.integers(0, 300)


# --- roots -------------------------------------------------------------------------------------


@given(size=sizes, cut=st.integers(0, 300))
def test_frontier_and_tiles_give_the_recursive_root(size: int, cut: int) -> None:
    leaves = LEAVES[:size]
    frontier = Frontier().extend(leaves[:cut]).extend(leaves[cut:])
    assert frontier.root() == mth(leaves)
    store = store_of(size)
    assert store.root == tree_root(size, store.read) == mth(leaves)
    assert frontier_at(size, store.read) == frontier


def test_appending_one_by_one_gives_every_root() -> None:
    frontier = Frontier()
    for size in range(66):
        assert frontier.root() == mth(LEAVES[:size])
        frontier = frontier.append(LEAVES[size])


def test_a_frontier_must_fit_its_size() -> None:
    with pytest.raises(BadInput):
        Frontier(3, (LEAVES[0],))
    with pytest.raises(BadInput):
        Frontier(1, (b"short",))


@pytest.mark.parametrize("append", [Frontier().append, lambda leaf: grow(0, [leaf], lambda _wanted: {})])
def test_an_entry_in_place_of_its_hash_is_refused(append: object) -> None:
    assert callable(append)
    with pytest.raises(BadInput, match="leaf_hash"):
        append(b"an entry, not a hash")


# --- tiles -------------------------------------------------------------------------------------


def tiles_of(size: int) -> set[TileId]:
    """All tiles that a tree of this size has."""
    full = {TileId(level, index) for level in range(3) for index in range(size >> (8 * level + 8))}
    return full | set(edge_tiles(size))


@given(batches=st.lists(st.integers(0, 700), max_size=6), widest_only=st.booleans())
def test_tiles_grown_in_batches_equal_tiles_made_at_once(batches: list[int], widest_only: bool) -> None:
    store = Store(widest_only)
    for batch in batches:
        old_size = store.size
        growth = grow(old_size, LEAVES[old_size : old_size + batch], store.read)
        assert set(growth.tiles) == tiles_of(growth.size) - tiles_of(old_size)
        store.append(LEAVES[old_size : old_size + batch])
    at_once = store_of(store.size)
    assert store.root == at_once.root
    assert at_once.tiles.items() <= store.tiles.items()


def test_the_example_of_the_tile_specification(large: Store) -> None:
    full = [tile for tile in large.tiles if tile.is_full]
    assert sum(tile.level == 0 for tile in full) == 273
    assert sum(tile.level == 1 for tile in full) == 1
    assert edge_tiles(70_000) == [TileId(0, 273, 112), TileId(1, 1, 17), TileId(2, 0, 1)]
    assert set(large.tiles) == {*full, *edge_tiles(70_000)}
    assert large.root == Frontier().extend(LEAVES).root()


def test_a_full_tile_leaves_a_hash_above_and_no_partial_below() -> None:
    assert set(grow(255, LEAVES[255:256], store_of(255).read).tiles) == {TileId(0, 0, 256), TileId(1, 0, 1)}
    assert edge_tiles(256) == [TileId(1, 0, 1)]
    assert store_of(256).tiles[TileId(1, 0, 1)] == mth(LEAVES[:256])


def test_a_missing_tile_is_named() -> None:
    with pytest.raises(TreeDamaged, match=r"tile/0/000\.p/3 is missing"):
        tree_root(3, lambda _wanted: {})


@pytest.mark.parametrize("bad", [b"", b"\0" * 64, b"\0" * 97, b"\0" * (257 * 32)])
def test_a_tile_of_wrong_length_is_named(bad: bytes) -> None:
    def damaged(_wanted: Sequence[TileId]) -> dict[TileId, bytes]:
        return {TileId(0, 0, 3): bad}

    with pytest.raises(TreeDamaged, match=r"tile/0/000\.p/3"):
        tree_root(3, damaged)
    with pytest.raises(TreeDamaged):
        grow(3, [LEAVES[3]], damaged)


def test_a_tile_wider_than_the_log_is_read_only_as_far_as_the_log_goes() -> None:
    """A wider tile may be left behind by a writer that never moved the log's size forward."""
    leftover = b"".join([*LEAVES[:3], EMPTY_ROOT, EMPTY_ROOT])
    growth = grow(3, LEAVES[3:5], lambda _wanted: {TileId(0, 0, 3): leftover})
    assert growth.root == mth(LEAVES[:5])
    assert growth.tiles == {TileId(0, 0, 5): b"".join(LEAVES[:5])}


# --- proofs ------------------------------------------------------------------------------------


@given(data=st.data(), size=st.integers(1, 300))
def test_inclusion_proofs_are_those_of_the_rfc_and_verify(data: st.DataObject, size: int) -> None:
    index = data.draw(st.integers(0, size - 1))
    proof = inclusion_proof(index, size, store_of(300).read)
    assert list(proof) == path(index, LEAVES[:size])
    verify_inclusion(index, size, LEAVES[index], proof, mth(LEAVES[:size]))


@given(data=st.data(), new_size=st.integers(1, 300))
def test_consistency_proofs_are_those_of_the_rfc_and_verify(data: st.DataObject, new_size: int) -> None:
    old_size = data.draw(st.integers(1, new_size))
    proof = consistency_proof(old_size, new_size, store_of(300).read)
    assert list(proof) == subproof(old_size, LEAVES[:new_size], True)
    verify_consistency(old_size, new_size, mth(LEAVES[:old_size]), mth(LEAVES[:new_size]), proof)


@given(data=st.data(), size=st.integers(1, 70_000))
def test_proofs_across_tile_levels(data: st.DataObject, size: int, large: Store) -> None:
    index = data.draw(st.integers(0, size - 1))
    root = tree_root(size, large.read)
    verify_inclusion(index, size, LEAVES[index], inclusion_proof(index, size, large.read), root)
    old_root = Frontier().extend(LEAVES[: index + 1]).root()
    verify_consistency(index + 1, size, old_root, root, consistency_proof(index + 1, size, large.read))


def test_a_proof_reads_few_tiles_in_one_call(large: Store) -> None:
    for make in (inclusion_proof, consistency_proof):
        large.calls = large.tiles_read = 0
        make(12_345, 69_999, large.read)
        assert large.calls == 1
        assert large.tiles_read <= 6


def test_proofs_of_nothing_are_refused(large: Store) -> None:
    read: TileReader = large.read
    for index, size in ((5, 5), (0, 0), (-1, 5)):
        with pytest.raises(OutsideTree):
            inclusion_proof(index, size, read)
    for old_size, new_size in ((0, 5), (0, 0), (6, 5), (-1, 5)):
        with pytest.raises(OutsideTree):
            consistency_proof(old_size, new_size, read)
    with pytest.raises(OutsideTree):
        tree_root(-1, read)


# --- lies --------------------------------------------------------------------------------------

ROOTS = [mth(LEAVES[:size]) for size in range(302)]
flips = st.integers(0, 255)


def flip(hash_: bytes, bit: int) -> bytes:
    return (int.from_bytes(hash_, "big") ^ (1 << bit)).to_bytes(32, "big")


def damaged_paths(proof: tuple[bytes, ...], at: int, bit: int) -> list[list[bytes]]:
    """The same proof with a bit flipped, a hash dropped, doubled, added, emptied or moved."""
    steps = list(proof)
    lies = [[*steps, ROOTS[7]], [ROOTS[7], *steps], [*steps, b""], [b"", *steps]]
    if steps:
        at %= len(steps)
        lies += [
            [*steps[:at], flip(steps[at], bit), *steps[at + 1 :]],
            [*steps[:at], *steps[at + 1 :]],
            [*steps[:at], steps[at], *steps[at:]],
            [*steps[:at], steps[at][:31], *steps[at + 1 :]],
            [*steps[:at], steps[at] + b"\0", *steps[at + 1 :]],
        ]
        if len(steps) > 1:
            lies.append(steps[::-1])
    return lies


@given(data=st.data(), size=st.integers(1, 300), bit=flips)
def test_no_altered_inclusion_proof_verifies(data: st.DataObject, size: int, bit: int) -> None:
    index = data.draw(st.integers(0, size - 1))
    proof = tuple(path(index, LEAVES[:size]))
    root, leaf = ROOTS[size], LEAVES[index]
    lies: list[tuple[int, int, bytes, Sequence[bytes], bytes]] = [
        (index, size, leaf, lie, root) for lie in damaged_paths(proof, data.draw(st.integers(0, 8)), bit)
    ]
    lies += [(other, size, leaf, proof, root) for other in range(size) if other != index]
    lies += [(other, size, leaf, proof, root) for other in (-1, size, size + 1, 2**63, 2**64 - 1)]
    lies += [(index, other, leaf, proof, ROOTS[other]) for other in range(302) if other != size]
    lies += [(index, size, other, proof, root) for other in (flip(leaf, bit), root if size > 1 else leaf[:31], b"")]
    lies += [(index, size, leaf, proof, other) for other in (flip(root, bit), root[:31], b"", EMPTY_ROOT)]
    for lie in lies:
        with pytest.raises(TreeProofInvalid):
            verify_inclusion(*lie)


@given(data=st.data(), new_size=st.integers(1, 300), bit=flips)
def test_no_altered_consistency_proof_verifies(data: st.DataObject, new_size: int, bit: int) -> None:
    old_size = data.draw(st.integers(1, new_size))
    proof = tuple(subproof(old_size, LEAVES[:new_size], True))
    old_root, new_root = ROOTS[old_size], ROOTS[new_size]
    lies: list[tuple[int, int, bytes, bytes, Sequence[bytes]]] = [
        (old_size, new_size, old_root, new_root, lie) for lie in damaged_paths(proof, data.draw(st.integers(0, 8)), bit)
    ]
    lies += [(other, new_size, ROOTS[other], new_root, proof) for other in range(302) if other != old_size]
    lies += [(old_size, other, old_root, ROOTS[other], proof) for other in range(302) if other != new_size]
    lies += [
        (old_size, new_size, flip(old_root, bit), new_root, proof),
        (old_size, new_size, old_root, flip(new_root, bit), proof),
        (old_size, new_size, old_root, b"", proof),
        (old_size, new_size, b"", new_root, proof),
    ]
    if old_size != new_size:
        lies.append((new_size, old_size, new_root, old_root, proof))
    for lie in lies:
        with pytest.raises(TreeProofInvalid):
            verify_consistency(*lie)


def test_the_old_root_must_hold_even_where_the_proof_starts_from_it() -> None:
    """With an old size that is a power of two the proof leaves the old root out, so a forged one enters the walk."""
    with pytest.raises(TreeProofInvalid):
        verify_consistency(4, 7, ROOTS[3], ROOTS[7], subproof(4, LEAVES[:7], True))


@given(data=st.data(), size=st.integers(1, 255))
def test_a_path_that_climbs_past_its_tree_is_refused(data: st.DataObject, size: int) -> None:
    """The claimed tree is the right part of a larger one: the whole path, taken literally, ends at a true root."""
    left = 256
    index = data.draw(st.integers(0, size - 1))
    leaves = LEAVES[: left + size]
    with pytest.raises(TreeProofInvalid, match="does not fit"):
        root_from_inclusion(index, size, leaves[left + index], path(left + index, leaves))
    old_size = index + 1
    if old_size < size:
        proof = subproof(left + old_size, leaves, True)
        with pytest.raises(TreeProofInvalid, match="does not fit"):
            verify_consistency(old_size, size, mth(leaves[: left + old_size]), mth(leaves), proof)


@pytest.mark.parametrize("new_size", [0, 1, 2, 255])
def test_consistency_from_the_empty_tree_is_refused(new_size: int) -> None:
    """Witnesses accept old size 0 with an empty proof; that is their protocol's rule, not a proof."""
    with pytest.raises(TreeProofInvalid):
        verify_consistency(0, new_size, EMPTY_ROOT, ROOTS[new_size], [])


@pytest.mark.parametrize("wrong", [True, 1.0, "1", None])
def test_sizes_of_another_type_are_refused(wrong: object) -> None:
    with pytest.raises(TreeProofInvalid):
        root_from_inclusion(0, wrong, LEAVES[0], [])  # type: ignore[arg-type]
    with pytest.raises(TreeProofInvalid):
        verify_consistency(wrong, 1, ROOTS[1], ROOTS[1], [])  # type: ignore[arg-type]


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_path_holds_nothing_but_32_byte_hashes(length: int) -> None:
    with pytest.raises(TreeProofInvalid, match=f"hash 1 has {length} bytes"):
        verify_inclusion(0, 3, LEAVES[0], [LEAVES[1], bytes(length)], ROOTS[3])
    with pytest.raises(TreeProofInvalid, match=f"hash 1 has {length} bytes"):
        verify_consistency(1, 3, ROOTS[1], ROOTS[3], [LEAVES[1], bytes(length)])


def test_an_endless_path_is_refused_before_hashing() -> None:
    with pytest.raises(TreeProofInvalid, match="100000 hashes"):
        root_from_inclusion(0, 2**62, LEAVES[0], [b""] * 100_000)


def test_a_lone_size_is_not_bound() -> None:
    """Why size and root must come from one checkpoint: leaf 0 has the same path shape in trees of 3 and 4."""
    assert root_from_inclusion(0, 4, LEAVES[0], path(0, LEAVES[:3])) == ROOTS[3]
