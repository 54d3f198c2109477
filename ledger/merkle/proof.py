"""Making inclusion and consistency proofs (RFC 6962 sections 2.1.1 and 2.1.2, RFC 9162 2.1.3.1 and 2.1.4.1).

First the subtrees a proof names are worked out from the sizes alone, then their roots are read from the
tiles in one go. A proof is the hashes in the order of the RFC: nearest the leaf first.
"""

from __future__ import annotations

from ledger.errors import OutsideTree
from ledger.merkle.tile import require_size
from ledger.merkle.tree import Span, TileReader, span_hashes


def inclusion_proof(index: int, size: int, read_tiles: TileReader) -> tuple[bytes, ...]:
    """The audit path of leaf ``index`` (from 0) in the tree's first ``size`` leaves.

    Raises OutsideTree unless 0 <= index < size, TreeDamaged when tiles are missing.
    """
    require_size(size)
    if not 0 <= index < size:
        raise OutsideTree(
            f"Leaf {index} is not in a tree of {size} leaves; ask for a later tree size.", index=index, size=size
        )
    return tuple(span_hashes(inclusion_spans(index, size), size, read_tiles))


def consistency_proof(old_size: int, new_size: int, read_tiles: TileReader) -> tuple[bytes, ...]:
    """The proof that the tree of ``new_size`` leaves begins with the tree of ``old_size``.

    Empty between equal sizes. From the empty tree there is no proof (every tree extends it), so
    ``old_size`` 0 raises OutsideTree, as does ``old_size`` above ``new_size``.
    """
    require_size(new_size)
    if not 1 <= old_size <= new_size:
        raise OutsideTree(
            f"There is no consistency proof from size {old_size} to {new_size}: "
            "the old size must be at least 1 and not above the new one.",
            old_size=old_size,
            new_size=new_size,
        )
    return tuple(span_hashes(_consistency_spans(old_size, new_size), new_size, read_tiles))


def split(start: int, end: int) -> int:
    """Where RFC 6962 cuts a subtree in two: after the largest power of two below its length."""
    return start + (1 << ((end - start - 1).bit_length() - 1))


def inclusion_spans(index: int, size: int) -> list[Span]:
    start, end = 0, size
    siblings: list[Span] = []
    while end - start > 1:
        middle = split(start, end)
        if index < middle:
            siblings.append((middle, end))
            end = middle
        else:
            siblings.append((start, middle))
            start = middle
    return siblings[::-1]


def _consistency_spans(old_size: int, new_size: int) -> list[Span]:
    start, end = 0, new_size
    spans: list[Span] = []
    while end != old_size:
        middle = split(start, end)
        if old_size <= middle:
            spans.append((middle, end))
            end = middle
        else:
            spans.append((start, middle))
            start = middle
    # The walk ends at a subtree of both trees. When that is the whole old tree, its root is known already.
    if start > 0:
        spans.append((start, end))
    return spans[::-1]
