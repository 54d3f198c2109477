"""Many statements under one root, bound to a checkpoint of the ledger: what one transaction publishes.

The words of docs/attestation-format.md, section 10. A path shows that a statement was published by whoever
anchored the node; it shows nothing about its proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ledger.attest.crypto.field import require_bytes
from ledger.attest.crypto.keccak import bytes32_word, keccak256, keccak_text, uint_word
from ledger.errors import AttestationValueInvalid, NotFound
from ledger.merkle.checkpoint import Checkpoint

NO_STATEMENTS: Final = bytes(32)
"""The batch root where the checkpoint is anchored alone."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The tree over a set of leaves. ``levels[0]`` holds them in ascending order, each once."""

    levels: tuple[tuple[bytes, ...], ...]

    @classmethod
    def of(cls, leaves: Iterable[bytes]) -> Batch:
        """Raises AttestationValueInvalid if there is no leaf, or one of another length than 32 bytes."""
        level = tuple(sorted({require_bytes(leaf, 32, "leaf") for leaf in leaves}))
        if not level:
            raise AttestationValueInvalid("a batch has at least one statement", field="leaves")
        levels = [level]
        while len(level) > 1:
            pairs = [_pair(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
            # A last node without a neighbour moves up as it is.
            level = (*pairs, *level[len(pairs) * 2 :])
            levels.append(level)
        return cls(tuple(levels))

    @property
    def root(self) -> bytes:
        return self.levels[-1][0]

    def path(self, leaf: bytes) -> tuple[bytes, ...]:
        """The siblings on the way from a leaf to the root, lowest first. Raises NotFound if it is no leaf of this."""
        if leaf not in self.levels[0]:
            raise NotFound("this statement is not in the batch", leaf="0x" + leaf.hex())
        index, siblings = self.levels[0].index(leaf), []
        for level in self.levels[:-1]:
            if index ^ 1 < len(level):
                siblings.append(level[index ^ 1])
            index //= 2
        return tuple(siblings)


def batch_root(leaf: bytes, siblings: Sequence[bytes]) -> bytes:
    """The root that a path leads to. A leaf must be worked out from its statement: any node would pass for one."""
    node = require_bytes(leaf, 32, "leaf")
    for sibling in siblings:
        node = _pair(node, require_bytes(sibling, 32, "siblings"))
    return node


def log_id(origin: str) -> bytes:
    """keccak256 of the origin in UTF-8: the name of a log on a chain."""
    return keccak256(origin.encode())


def batch_node(checkpoint: Checkpoint, root: bytes) -> bytes:
    """What is anchored of a batch: its root with origin, size and root of the ledger. The same on every chain."""
    return keccak256(
        keccak_text("sla-ledger/batch/v1")
        + log_id(checkpoint.origin)
        + uint_word(checkpoint.size, 64, "size")
        + bytes32_word(checkpoint.root, "root")
        + bytes32_word(root, "batch_root")
    )


def _pair(a: bytes, b: bytes) -> bytes:
    return keccak256(min(a, b) + max(a, b))
