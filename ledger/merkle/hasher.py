"""SHA-256 hashing of RFC 6962 section 2.1 (the same in RFC 9162 section 2.1.1).

The prefix byte keeps leaves and inner nodes apart, so that no entry can pose as an inner node. That
holds only while both children of a node are exactly 32 bytes: whoever takes hashes from outside checks
their length first.
"""

from __future__ import annotations

from hashlib import sha256

HASH_SIZE = 32
EMPTY_ROOT = sha256(b"").digest()

_LEAF_PREFIX = b"\x00"
_NODE_PREFIX = b"\x01"


def leaf_hash(entry: bytes) -> bytes:
    """The hash of one log entry: SHA-256(0x00 || entry)."""
    return sha256(_LEAF_PREFIX + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node over its two 32-byte children: SHA-256(0x01 || left || right)."""
    return sha256(_NODE_PREFIX + left + right).digest()


def perfect_root(row: bytes) -> bytes:
    """The root over concatenated 32-byte hashes whose number is a power of two."""
    while len(row) > HASH_SIZE:
        # A list: join makes one of a generator, which takes longer.
        row = b"".join(
            [sha256(_NODE_PREFIX + row[at : at + 2 * HASH_SIZE]).digest() for at in range(0, len(row), 2 * HASH_SIZE)]
        )
    return row


def fold_right(hashes: list[bytes] | tuple[bytes, ...]) -> bytes:
    """Join neighbouring subtrees, largest first, into the root of the ragged tree they make up.

    RFC 6962 splits at the largest power of two, so the smallest subtrees, on the right, are joined first.
    No hashes at all is the empty tree.
    """
    if not hashes:
        return EMPTY_ROOT
    root = hashes[-1]
    for left in reversed(hashes[:-1]):
        root = node_hash(left, root)
    return root
