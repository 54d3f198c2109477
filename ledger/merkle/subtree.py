"""Proofs about subtrees (draft-ietf-plants-merkle-tree-certs, section 4): a stretch of leaves inside a larger log.

A subtree is a run of leaves ``[start, end)`` whose start is a multiple of the least power of two not below its
length, so that it hashes on its own as a tree of RFC 6962. Empty runs count as subtrees, as in the draft's
published vectors; their hash is that of the empty tree and nothing about the log follows from them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ledger.errors import OutsideTree, TreeProofInvalid
from ledger.merkle.hasher import EMPTY_ROOT, HASH_SIZE, node_hash
from ledger.merkle.proof import inclusion_spans, split
from ledger.merkle.tile import MAX_TREE_SIZE
from ledger.merkle.tree import Span, TileReader, span_hashes
from ledger.merkle.verify import verify_inclusion

_MAX_PROOF = MAX_TREE_SIZE.bit_length() + 1


def is_subtree(start: int, end: int) -> bool:
    """Whether ``[start, end)`` is a subtree of some tree up to MAX_TREE_SIZE."""
    if not 0 <= start <= end <= MAX_TREE_SIZE:
        return False
    if start == end:
        return True
    return start % (1 << (end - start - 1).bit_length()) == 0


def covering_subtrees(start: int, end: int) -> tuple[Span, Span]:
    """Two neighbouring subtrees that cover ``[start, end)`` and end with it (draft, section 4.5.1).

    The cut is the middle of the smallest perfect tree around the run. The left subtree may begin before ``start``;
    the right one is empty for a run of no leaf or one. Raises OutsideTree for a run that no tree has.
    """
    if not 0 <= start <= end <= MAX_TREE_SIZE:
        raise OutsideTree("A run of leaves ends inside a tree and not before its start.", start=start, end=end)
    if end - start <= 1:
        return (start, end), (end, end)
    below = (1 << ((start ^ (end - 1)).bit_length() - 1)) - 1
    middle = (end - 1) & ~below
    left_height = (~start & below).bit_length()
    return (start >> left_height << left_height, middle), (middle, end)


def subtree_hash(start: int, end: int, read_tiles: TileReader) -> bytes:
    """The root over leaves ``[start, end)``. Raises OutsideTree where that is no subtree, TreeDamaged."""
    _require_subtree(start, end)
    if start == end:
        return EMPTY_ROOT
    return span_hashes([(start, end)], end, read_tiles)[0]


def subtree_inclusion_proof(index: int, start: int, end: int, read_tiles: TileReader) -> tuple[bytes, ...]:
    """The audit path of leaf ``index`` (counted in the log) up to the subtree's root.

    Raises OutsideTree unless ``start <= index < end`` is a place in a subtree, TreeDamaged.
    """
    _require_subtree(start, end)
    if not start <= index < end:
        raise OutsideTree(f"Leaf {index} is not among leaves {start} to {end - 1}.", index=index, start=start, end=end)
    spans = [(start + first, start + last) for first, last in inclusion_spans(index - start, end - start)]
    return tuple(span_hashes(spans, end, read_tiles))


def subtree_consistency_proof(start: int, end: int, size: int, read_tiles: TileReader) -> tuple[bytes, ...]:
    """The proof that the tree of ``size`` leaves holds the subtree ``[start, end)`` at its place.

    Empty for an empty subtree and for the whole tree. Raises OutsideTree, TreeDamaged.
    """
    _require_subtree(start, end)
    if not end <= size <= MAX_TREE_SIZE:
        raise OutsideTree(f"Leaves {start} to {end} are not in a tree of {size} leaves.", end=end, size=size)
    if start == end:
        return ()
    return tuple(span_hashes(_consistency_spans(start, end, size), size, read_tiles))


def verify_subtree_inclusion(index: int, start: int, end: int, leaf: bytes, path: Sequence[bytes], root: bytes) -> None:
    """Return quietly only if leaf hash ``leaf`` is leaf ``index`` of the log, under the subtree's root.

    Raises TreeProofInvalid.
    """
    if not is_subtree(start, end) or not start <= index < end:
        raise TreeProofInvalid(
            f"Leaf {index} of leaves {start} to {end} is no place in a subtree.", index=index, start=start, end=end
        )
    verify_inclusion(index - start, end - start, leaf, path, root)


def verify_subtree_consistency(
    start: int, end: int, size: int, subtree_root: bytes, root: bytes, path: Sequence[bytes]
) -> None:
    """Return quietly only if the tree (size, root) holds the subtree (start, end, subtree_root).

    An empty subtree is held by every tree; then the path must be empty, and nothing is said about ``root``.
    Raises TreeProofInvalid.
    """
    if not is_subtree(start, end) or not end <= size <= MAX_TREE_SIZE:
        raise TreeProofInvalid(
            f"Leaves {start} to {end} are no subtree of a tree of {size} leaves.", start=start, end=end, size=size
        )
    if len(path) > _MAX_PROOF or any(len(step) != HASH_SIZE for step in path):
        raise _no_proof(start, end, size)
    if start == end:
        if path or subtree_root != EMPTY_ROOT:
            raise _no_proof(start, end, size)
        return
    if (start, end) == (0, size):
        if path or subtree_root != root:
            raise _no_proof(start, end, size)
        return
    if _roots_from_path(start, end, size, subtree_root, path) != (subtree_root, root):
        raise _no_proof(start, end, size)


def _roots_from_path(
    start: int, end: int, size: int, subtree_root: bytes, path: Sequence[bytes]
) -> tuple[bytes, bytes]:
    """The roots of subtree and tree that the path leads to.

    Three positions climb together: the subtree's first leaf, its last one, and the tree's last one. The path
    begins at the largest perfect subtree that ends the subtree (left out where that is the subtree itself).
    """
    first, last, edge = start, end - 1, size - 1
    at_edge = last == edge
    while first != last and (at_edge or last & 1):
        first, last, edge = first >> 1, last >> 1, edge >> 1
    steps = [subtree_root, *path] if first == last else list(path)
    if not steps or len(steps[0]) != HASH_SIZE:
        raise _no_proof(start, end, size)
    part = whole = steps[0]
    for step in steps[1:]:
        if edge == 0:
            raise _no_proof(start, end, size)
        if last & 1 or last == edge:
            if first < last:
                part = node_hash(step, part)
            whole = node_hash(step, whole)
            while last and not last & 1:
                first, last, edge = first >> 1, last >> 1, edge >> 1
        else:
            whole = node_hash(whole, step)
        first, last, edge = first >> 1, last >> 1, edge >> 1
    if edge:
        raise _no_proof(start, end, size)
    return part, whole


def _consistency_spans(start: int, end: int, size: int) -> list[Span]:
    low, high = 0, size
    known = True
    spans: list[Span] = []
    while (low, high) != (start, end):
        middle = split(low, high)
        if end <= middle:
            spans.append((middle, high))
            high = middle
        else:
            spans.append((low, middle))
            if start < middle:
                # The subtree crosses: its left part is this very span, and its root alone is not known any more.
                known = False
                start = middle
            low = middle
    if not known:
        spans.append((low, high))
    return spans[::-1]


def _require_subtree(start: int, end: int) -> None:
    if not is_subtree(start, end):
        raise OutsideTree(
            f"Leaves {start} to {end} are no subtree: the start must be a multiple of the least power of two "
            "not below the length.",
            start=start,
            end=end,
        )


def _no_proof(start: int, end: int, size: int) -> TreeProofInvalid:
    return TreeProofInvalid(
        f"The proof does not show that leaves {start} to {end} stand so in the tree of {size} leaves.",
        start=start,
        end=end,
        size=size,
    )
