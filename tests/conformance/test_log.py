"""The transparency log: roots, proofs and checkpoints of a tree that grows by appends."""

from __future__ import annotations

import hashlib
import random

import pytest

from ledger.errors import LogInconsistent, NoteInvalid, NotFound, OutsideTree, Refused
from ledger.merkle.hasher import leaf_hash
from ledger.merkle.verify import verify_consistency, verify_inclusion
from tests.conformance.conftest import AnyDatabase
from tests.conformance.samples import naive_root, signed_checkpoint, windows


def fill(database: AnyDatabase, sizes: list[int]) -> list[bytes]:
    """Append in transactions of these sizes; the leaf hashes."""
    for count in sizes:
        with database.begin() as tx:
            tx.events.append("windows/a", windows(count), expected_version=None)
    with database.read() as tx:
        return [leaf_hash(event.entry) for event in tx.events.since(0, limit=sum(sizes))]


def test_every_size_up_to_70_one_append_at_a_time(database: AnyDatabase) -> None:
    leaves = fill(database, [1] * 70)
    with database.read() as tx:
        roots = [tx.log.root(size) for size in range(71)]
        assert roots == [naive_root(leaves[:size]) for size in range(71)]
        for size in range(1, 71):
            for seq in range(size):
                verify_inclusion(seq, size, leaves[seq], tx.log.inclusion_proof(seq, size), roots[size])
            for old in range(1, size + 1):
                verify_consistency(old, size, roots[old], roots[size], tx.log.consistency_proof(old, size))


def test_sizes_across_the_edges_of_tiles(database: AnyDatabase) -> None:
    seed = 20231219
    print(f"seed {seed}")
    chance = random.Random(seed)
    leaves = fill(database, [255, 1, 1, 200, 55, 1, 87])
    sizes = sorted({1, 2, 255, 256, 257, 511, 512, 513, 600, *chance.sample(range(1, 601), 12)})
    with database.read() as tx:
        assert tx.log.size() == 600
        for size in sizes:
            root = tx.log.root(size)
            assert root == naive_root(leaves[:size])
            for seq in {0, size - 1, *chance.choices(range(size), k=6)}:
                verify_inclusion(seq, size, leaves[seq], tx.log.inclusion_proof(seq, size), root)
            for old in [old for old in sizes if old <= size]:
                verify_consistency(old, size, tx.log.root(old), root, tx.log.consistency_proof(old, size))


def test_who_holds_the_log_is_told_its_size(database: AnyDatabase) -> None:
    fill(database, [3])
    with database.begin() as tx:
        assert tx.log.hold() == tx.log.size() == 3
        tx.events.append("windows/a", windows(1), expected_version=None)
    fill(database, [2])
    with database.read() as tx:
        assert tx.log.size() == 6


@pytest.mark.slow
def test_a_third_level_of_tiles(database: AnyDatabase) -> None:
    leaves = fill(database, [1, 65_534, 1, 3, 700])
    with database.read() as tx:
        for size in (65_535, 65_536, 65_537, 66_239):
            root = tx.log.root(size)
            assert root == naive_root(leaves[:size])
            for seq in (0, 256, 65_534, size - 1):
                verify_inclusion(seq, size, leaves[seq], tx.log.inclusion_proof(seq, size), root)
            verify_consistency(257, size, tx.log.root(257), root, tx.log.consistency_proof(257, size))


def test_what_the_log_has_not_reached_is_not_found(database: AnyDatabase) -> None:
    fill(database, [3])
    with database.read() as tx:
        for ask in (
            lambda: tx.log.root(4),
            lambda: tx.log.inclusion_proof(0, 4),
            lambda: tx.log.consistency_proof(1, 4),
        ):
            with pytest.raises(NotFound):
                ask()
        with pytest.raises(OutsideTree):
            tx.log.inclusion_proof(3, 3)
        with pytest.raises(OutsideTree):
            tx.log.consistency_proof(0, 3)


def test_checkpoints_are_kept_by_size(database: AnyDatabase) -> None:
    fill(database, [5])
    with database.begin() as tx:
        assert (tx.log.checkpoint(), tx.log.checkpoint_size()) == (None, None)
        notes = {size: signed_checkpoint(size, tx.log.root(size)) for size in (2, 5)}
        for size, note in notes.items():
            tx.log.save_checkpoint(size, tx.log.root(size), note)
    with database.begin() as tx:
        tx.log.save_checkpoint(5, tx.log.root(5), notes[5])
        tx.log.save_checkpoint(2, tx.log.root(2), notes[2])
    with database.read() as tx:
        assert (tx.log.checkpoint(), tx.log.checkpoint_size()) == (notes[5], 5)
        assert (tx.log.checkpoint(2), tx.log.checkpoint(3)) == (notes[2], None)


def test_a_checkpoint_that_contradicts_the_tree_is_refused(database: AnyDatabase) -> None:
    fill(database, [5])
    false_root = hashlib.sha256(b"another tree").digest()
    with pytest.raises(LogInconsistent, match="contradicts the tree"), database.begin() as tx:
        tx.log.save_checkpoint(5, false_root, signed_checkpoint(5, false_root))
    with pytest.raises(LogInconsistent, match="ahead of the log"), database.begin() as tx:
        tx.log.save_checkpoint(6, false_root, signed_checkpoint(6, false_root))
    with pytest.raises(LogInconsistent, match="states size"), database.begin() as tx:
        tx.log.save_checkpoint(5, tx.log.root(5), signed_checkpoint(4, tx.log.root(4)))
    with pytest.raises(LogInconsistent, match="states size"), database.begin() as tx:
        tx.log.save_checkpoint(5, tx.log.root(5), signed_checkpoint(5, false_root))
    with pytest.raises(NoteInvalid), database.begin() as tx:
        tx.log.save_checkpoint(5, tx.log.root(5), "no note")
    with database.read() as tx:
        assert tx.log.checkpoint() is None


def test_checkpoints_only_go_forward(database: AnyDatabase) -> None:
    fill(database, [5])
    with database.begin() as tx:
        tx.log.save_checkpoint(4, tx.log.root(4), signed_checkpoint(4, tx.log.root(4)))
    with pytest.raises(Refused, match="only go forward"), database.begin() as tx:
        tx.log.save_checkpoint(3, tx.log.root(3), signed_checkpoint(3, tx.log.root(3)))
    with database.read() as tx:
        root = tx.log.root(4)
    note = signed_checkpoint(4, root)
    with_another_signature = note + note.splitlines(keepends=True)[-1].replace("test", "copy")
    with pytest.raises(Refused, match="has a checkpoint already"), database.begin() as tx:
        tx.log.save_checkpoint(4, root, with_another_signature)


def test_tiles_in_every_width_that_the_log_has_reached(database: AnyDatabase) -> None:
    leaves = fill(database, [255, 1, 44])
    with database.read() as tx:
        for index, width in ((0, 1), (0, 200), (0, 256), (1, 1), (1, 44)):
            first = 256 * index
            assert tx.log.tile(0, index, width) == b"".join(leaves[first : first + width])
        assert tx.log.tile(1, 0, 1) == naive_root(leaves[:256])
        for level, index, width in ((0, 1, 45), (0, 1, 256), (0, 2, 1), (1, 0, 2), (2, 0, 1)):
            with pytest.raises(NotFound):
                tx.log.tile(level, index, width)
        for level, index, width in ((64, 0, 1), (-1, 0, 1), (0, -1, 1), (0, 0, 0), (0, 0, 257)):
            with pytest.raises(OutsideTree):
                tx.log.tile(level, index, width)
