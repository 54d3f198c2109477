"""Checking inclusion and consistency proofs (RFC 9162 sections 2.1.3.2 and 2.1.4.2).

A proof binds hashes and positions, not the tree size on its own: some paths fit two neighbouring sizes
(leaf 0 has the same path shape in trees of 3 and 4 leaves). Size and root must therefore come together,
from one verified checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence

from ledger.errors import TreeProofInvalid
from ledger.merkle.hasher import HASH_SIZE, node_hash
from ledger.merkle.tile import MAX_TREE_SIZE


def root_from_inclusion(index: int, size: int, leaf: bytes, path: Sequence[bytes]) -> bytes:
    """The root a tree of ``size`` leaves must have if ``leaf`` (a leaf hash) is its leaf ``index``.

    Raises TreeProofInvalid for a size, index, hash or path length that no tree has.
    """
    _require_size("size", size)
    _require_size("index", index)
    if index >= size:
        raise TreeProofInvalid(f"The proof places leaf {index} in a tree of {size} leaves.", index=index, size=size)
    _require_hash("leaf", leaf)
    _require_path(path)
    position, last = index, size - 1
    root = leaf
    for sibling in path:
        if last == 0:
            raise _wrong_length(path)
        if position & 1 or position == last:
            root = node_hash(sibling, root)
            while position and not position & 1:
                position >>= 1
                last >>= 1
        else:
            root = node_hash(root, sibling)
        position >>= 1
        last >>= 1
    if last:
        raise _wrong_length(path)
    return root


def verify_inclusion(index: int, size: int, leaf: bytes, path: Sequence[bytes], root: bytes) -> None:
    """Return quietly only if ``path`` proves that leaf hash ``leaf`` is leaf ``index`` of the tree (size, root).

    Raises TreeProofInvalid otherwise.
    """
    if root_from_inclusion(index, size, leaf, path) != root:
        raise TreeProofInvalid(
            f"The inclusion proof of leaf {index} does not lead to the root of size {size}.",
            index=index,
            size=size,
            root=root.hex(),
        )


def verify_consistency(old_size: int, new_size: int, old_root: bytes, new_root: bytes, path: Sequence[bytes]) -> None:
    """Return quietly only if ``path`` proves that the tree (new_size, new_root) extends (old_size, old_root).

    Between equal sizes the path must be empty and the roots equal. ``old_size`` 0 is always refused, even
    to itself: every tree extends the empty one, so a proof of it says nothing. The witness protocol (C2SP
    tlog-witness) does allow old size 0 with an empty proof; a caller speaking it treats that case before it
    comes here. Raises TreeProofInvalid.
    """
    _require_size("old_size", old_size)
    _require_size("new_size", new_size)
    sizes = {"old_size": old_size, "new_size": new_size}
    if not 1 <= old_size <= new_size:
        raise TreeProofInvalid(
            f"No proof shows consistency from size {old_size} to {new_size}: "
            "the old size must be at least 1 and not above the new one.",
            **sizes,
        )
    _require_path(path)
    if old_size == new_size:
        if path:
            raise _wrong_length(path)
        if old_root != new_root:
            raise TreeProofInvalid(f"Two different roots are claimed for size {old_size}.", **sizes)
        return
    found_old, found_new = _roots_from_consistency(old_size, new_size, old_root, path)
    for claim, found, size in ((old_root, found_old, old_size), (new_root, found_new, new_size)):
        if claim != found:
            raise TreeProofInvalid(
                f"The consistency proof from size {old_size} to {new_size} does not lead to the root of size {size}.",
                **sizes,
                root=claim.hex(),
            )


def _roots_from_consistency(
    old_size: int, new_size: int, old_root: bytes, path: Sequence[bytes]
) -> tuple[bytes, bytes]:
    """Both roots the path leads to, for 0 < old_size < new_size."""
    if old_size & (old_size - 1) == 0:
        # The old tree is one perfect subtree of the new one: the proof leaves its root out.
        _require_hash("old_root", old_root)
        steps = [old_root, *path]
    else:
        steps = list(path)
    if len(steps) < 2:
        raise _wrong_length(path)
    position, last = old_size - 1, new_size - 1
    while position & 1:
        position >>= 1
        last >>= 1
    old = new = steps[0]
    for step in steps[1:]:
        if last == 0:
            raise _wrong_length(path)
        if position & 1 or position == last:
            old = node_hash(step, old)
            new = node_hash(step, new)
            while position and not position & 1:
                position >>= 1
                last >>= 1
        else:
            new = node_hash(new, step)
        position >>= 1
        last >>= 1
    if last:
        raise _wrong_length(path)
    return old, new


def _require_size(what: str, value: int) -> None:
    # Sizes come out of documents: True is an int in Python, and a float would compare as one.
    if type(value) is not int or not 0 <= value <= MAX_TREE_SIZE:
        raise TreeProofInvalid(f"The proof's {what} must be an integer between 0 and {MAX_TREE_SIZE}.")


def _require_hash(what: str, value: bytes) -> None:
    if len(value) != HASH_SIZE:
        raise TreeProofInvalid(f"The proof's {what} has {len(value)} bytes instead of {HASH_SIZE}.")


def _require_path(path: Sequence[bytes]) -> None:
    if len(path) > MAX_TREE_SIZE.bit_length() + 1:
        raise _wrong_length(path)
    for position, step in enumerate(path):
        _require_hash(f"hash {position}", step)


def _wrong_length(path: Sequence[bytes]) -> TreeProofInvalid:
    return TreeProofInvalid(f"A proof of {len(path)} hashes does not fit its tree sizes.", path_length=len(path))
