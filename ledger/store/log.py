"""The transparency log over stored tiles: roots, proofs and signed checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ledger.errors import LogInconsistent, NotFound, Refused
from ledger.merkle import proof, tree
from ledger.merkle.checkpoint import parse_checkpoint
from ledger.merkle.note import parse_note
from ledger.merkle.tile import TileId, is_covered


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A stored checkpoint; ``note`` is the whole signed note."""

    size: int
    root: bytes
    note: str


class LogRows(Protocol):
    """The stored parts of a log."""

    def size(self) -> int:
        """The number of sequenced leaves."""
        ...

    def hold(self) -> None:
        """Keep the size as it is until the transaction ends."""
        ...

    def tiles(self, wanted: Sequence[TileId]) -> Mapping[TileId, bytes]:
        """A ``ledger.merkle.tree.TileReader``."""
        ...

    def checkpoint(self, size: int | None) -> SignedCheckpoint | None:
        """The checkpoint of that size, or the newest."""
        ...

    def add_checkpoint(self, checkpoint: SignedCheckpoint) -> None: ...


class StoredLog:
    """``ledger.app.ports.store.TransparencyLog`` over stored rows; every proof reads O(log n) tiles."""

    def __init__(self, rows: LogRows) -> None:
        self._rows = rows

    def size(self) -> int:
        return self._rows.size()

    def hold(self) -> int:
        self._rows.hold()
        return self._rows.size()

    def root(self, size: int) -> bytes:
        self._require_reached(size)
        return tree.tree_root(size, self._rows.tiles)

    def tile(self, level: int, index: int, width: int) -> bytes:
        """Raises ``NotFound`` for a tile, or a width of it, that the log has not reached; ``TreeDamaged``."""
        wanted = TileId(level, index, width)
        if not is_covered(wanted, self.size()):
            raise NotFound(f"the log of {self.size()} leaves has no {wanted.path()} yet", log_size=self.size())
        return tree.fetch_tiles([wanted], self._rows.tiles)[wanted]

    def inclusion_proof(self, seq: int, size: int) -> tuple[bytes, ...]:
        """Raises ``NotFound`` for a size the log has not reached, ``OutsideTree`` unless 0 <= seq < size."""
        self._require_reached(size)
        return proof.inclusion_proof(seq, size, self._rows.tiles)

    def consistency_proof(self, old_size: int, new_size: int) -> tuple[bytes, ...]:
        """Raises ``NotFound`` for a size the log has not reached, ``OutsideTree`` unless 1 <= old <= new."""
        self._require_reached(new_size)
        return proof.consistency_proof(old_size, new_size, self._rows.tiles)

    def checkpoint(self, size: int | None = None) -> str | None:
        found = self._rows.checkpoint(size)
        return None if found is None else found.note

    def checkpoint_size(self) -> int | None:
        newest = self._rows.checkpoint(None)
        return None if newest is None else newest.size

    def save_checkpoint(self, size: int, root: bytes, note: str) -> None:
        """Keep a signed note. Saving the same one again is a no-op.

        Raises ``NoteInvalid`` for a text that is no checkpoint, ``LogInconsistent`` where note, arguments and
        tree differ, ``Refused`` for a size below the newest checkpoint or one that has another note already.
        """
        stated = parse_checkpoint(parse_note(note.encode()).text)
        if (stated.size, stated.root) != (size, root):
            raise LogInconsistent(
                f"the note states size {stated.size} and another root than the checkpoint of size {size} to save",
                size=size,
                stated_size=stated.size,
            )
        if size > self.size():
            raise LogInconsistent(
                f"a checkpoint of size {size} is ahead of the log, which has {self.size()} leaves; "
                "the database may be an old copy: do not sign, run fsck",
                size=size,
                log_size=self.size(),
            )
        if self.root(size) != root:
            raise LogInconsistent(
                f"the checkpoint contradicts the tree at size {size}; do not publish it, run fsck",
                size=size,
                root=root.hex(),
                tree_root=self.root(size).hex(),
            )
        newest = self._rows.checkpoint(None)
        if newest is not None and newest.size >= size:
            self._require_known(size, note, newest.size)
        else:
            self._rows.add_checkpoint(SignedCheckpoint(size, root, note))

    def _require_known(self, size: int, note: str, newest_size: int) -> None:
        known = self._rows.checkpoint(size)
        if known is None:
            raise Refused(
                f"size {size} was not signed before size {newest_size} was; checkpoints only go forward",
                size=size,
                newest_size=newest_size,
            )
        if known.note != note:
            raise Refused(f"size {size} has a checkpoint already, and it is kept as it was published", size=size)

    def _require_reached(self, size: int) -> None:
        if size > self.size():
            raise NotFound(f"the log has {self.size()} leaves, not yet {size}", size=size, log_size=self.size())
