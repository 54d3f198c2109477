"""The tree half of ``fsck``: leaves against tiles, tiles against each other, roots against checkpoints.

Two ways lead from the leaves to the roots, and both are walked: a ``Frontier`` of all leaves for the roots of
checkpoints, and the tiles, each of whose full ones makes one hash of the tile above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ledger.app.log.inspection import Inspection, RawCheckpoint, TileRow
from ledger.app.log.restore_guard import KnownCheckpoint
from ledger.errors import SlaLedgerError
from ledger.merkle.checkpoint import open_checkpoint, parse_checkpoint
from ledger.merkle.hasher import HASH_SIZE, perfect_root
from ledger.merkle.note import VerifierKey, Verify, parse_note
from ledger.merkle.tile import TILE_BYTES, TILE_WIDTH
from ledger.merkle.tree import Frontier

_PAGE = 1000

Report = Callable[..., None]
"""``report(what, message, seq=..., expected=..., found=...)`` keeps a finding."""


@dataclass(frozen=True, slots=True)
class LogTrust:
    """Whose checkpoints these are: the log's origin, and the keys that may sign a checkpoint of a size."""

    origin: str
    keys_at: Callable[[int], Sequence[VerifierKey]]
    verify: Verify


class TileCheck:
    """Rebuilds every tile from the leaves and compares it with the stored one, whole tiles at a time."""

    def __init__(self, inspection: Inspection, report: Report) -> None:
        self._inspection = inspection
        self._report = report
        self._rows: list[bytearray] = [bytearray()]
        self._done: list[int] = [0]

    def add_full(self, tile: bytes) -> None:
        """The next 256 leaf hashes. Level 0 itself is compared by the caller, leaf by leaf."""
        self._done[0] += 1
        self._raise(1, perfect_root(tile))

    def finish(self, partial: bytes) -> None:
        """The leaf hashes after the last full tile; compares the partial tiles and looks for tiles too many."""
        for level in range(1, len(self._rows)):
            if self._rows[level]:
                self._compare(level, bytes(self._rows[level]))
        expected = {
            level: self._done[level] + bool(partial if level == 0 else self._rows[level])
            for level in range(len(self._rows))
        }
        for level, count in self._inspection.tile_counts().items():
            if count > expected.get(level, 0):
                self._report(
                    "tile_extra",
                    f"level {level} has tiles that the tree does not have",
                    expected=str(expected.get(level, 0)),
                    found=str(count),
                )

    def _raise(self, level: int, node: bytes) -> None:
        if level == len(self._rows):
            self._rows.append(bytearray())
            self._done.append(0)
        row = self._rows[level]
        row += node
        if len(row) == TILE_BYTES:
            tile = bytes(row)
            self._compare(level, tile)
            row.clear()
            self._done[level] += 1
            self._raise(level + 1, perfect_root(tile))

    def _compare(self, level: int, tile: bytes) -> None:
        index = self._done[level]
        stored = self._inspection.tiles(level, index, 1).get(index)
        first = (index * TILE_WIDTH) << (8 * level)
        name = f"tile {index} of level {level}"
        if stored is None:
            self._report("tile_missing", f"{name} is missing", seq=first)
        elif stored.data != tile or stored.width * HASH_SIZE != len(tile):
            at = first_difference(stored.data, tile)
            leaves = 1 << (8 * level)
            start = first + at * leaves
            self._report(
                "tile",
                f"{name} differs at its hash {at}, which stands for seq {start} to {start + leaves - 1}",
                seq=start,
                expected=tile[at * HASH_SIZE : (at + 1) * HASH_SIZE].hex(),
                found=stored.data[at * HASH_SIZE : (at + 1) * HASH_SIZE].hex(),
            )


class RootCheck:
    """Holds the roots of a growing tree against stored checkpoints and those known from outside."""

    def __init__(
        self, inspection: Inspection, trust: LogTrust, known: Iterable[KnownCheckpoint], report: Report
    ) -> None:
        self._trust = trust
        self._report = report
        self._frontier = Frontier()
        self._last_good = 0
        self._stored = all_checkpoints(inspection)
        self._outside = sorted(known, key=lambda each: each.size)
        self._next: RawCheckpoint | None = next(self._stored, None)
        self.checkpoints = 0

    def add(self, leaf_hashes: Sequence[bytes]) -> None:
        """The next leaves."""
        at = 0
        while (size := self._next_size()) is not None and size <= self._frontier.size + len(leaf_hashes) - at:
            count = size - self._frontier.size
            self._frontier = self._frontier.extend(leaf_hashes[at : at + count])
            at += count
            self._judge_here()
        self._frontier = self._frontier.extend(leaf_hashes[at:])

    def finish(self) -> None:
        """Whatever states more leaves than there are."""
        size = self._frontier.size
        while self._next is not None:
            self._report(
                "checkpoint_ahead",
                f"the stored checkpoint of size {self._next.size} is ahead of the log",
                expected=f"at most {size}",
                found=str(self._next.size),
            )
            self._advance()
        for known in self._outside:
            self._report(
                "log_too_short",
                f"{known.source} knows {known.size} leaves: what comes after seq {size - 1} was lost or cut off",
                seq=size,
                expected=str(known.size),
                found=str(size),
            )

    @property
    def root(self) -> bytes:
        return self._frontier.root()

    def _next_size(self) -> int | None:
        sizes = [self._next.size] if self._next is not None else []
        return min([*sizes, *(known.size for known in self._outside[:1])], default=None)

    def _advance(self) -> None:
        self.checkpoints += 1
        self._next = next(self._stored, None)

    def _judge_here(self) -> None:
        size, root = self._frontier.size, self._frontier.root()
        good = True
        if self._next is not None and self._next.size == size:
            self._judge_note(self._next)
            good = self._judge_root("the stored checkpoint", "checkpoint_root", self._next.root, root) and good
            self._advance()
        while self._outside and self._outside[0].size == size:
            known = self._outside.pop(0)
            good = self._judge_root(known.source, "outside_root", known.root, root) and good
        if good:
            self._last_good = size

    def _judge_root(self, source: str, what: str, stated: bytes, root: bytes) -> bool:
        if stated == root:
            return True
        size = self._frontier.size
        where = f"a leaf from seq {self._last_good} to {size - 1} was changed, unless that root is false"
        self._report(
            what,
            f"{source} has another root at size {size}: {where}",
            seq=self._last_good,
            expected=stated.hex(),
            found=root.hex(),
        )
        return False

    def _judge_note(self, row: RawCheckpoint) -> None:
        try:
            stated = parse_checkpoint(parse_note(row.note).text)
            if (stated.size, stated.root) != (row.size, row.root):
                self._report(
                    "checkpoint_row",
                    f"the checkpoint row of size {row.size} differs from its note",
                    expected=f"{stated.size} {stated.root.hex()}",
                    found=f"{row.size} {row.root.hex()}",
                )
            open_checkpoint(row.note, self._trust.origin, self._trust.keys_at(row.size), self._trust.verify)
        except SlaLedgerError as error:
            self._report("checkpoint_signature", f"the checkpoint of size {row.size} does not hold: {error.message}")


def known_checkpoint(raw: bytes, trust: LogTrust, source: str) -> KnownCheckpoint:
    """An external checkpoint, signed by the log. Raises ``NoteInvalid`` or ``NoteUnverified``."""
    size = parse_checkpoint(parse_note(raw).text).size
    checkpoint = open_checkpoint(raw, trust.origin, trust.keys_at(size), trust.verify).checkpoint
    return KnownCheckpoint(checkpoint.size, checkpoint.root, source)


def first_difference(found: bytes, expected: bytes) -> int:
    """The index of the first of ``expected``'s hashes that ``found`` does not have in its place."""
    for at in range(0, len(expected), HASH_SIZE):
        if found[at : at + HASH_SIZE] != expected[at : at + HASH_SIZE]:
            return at // HASH_SIZE
    return len(expected) // HASH_SIZE - 1


def leaf_tiles(stored: Mapping[int, TileRow], first: int, count: int) -> Sequence[bytes | None]:
    """The stored level 0 hashes of ``count`` leaves from ``first`` on; None where a tile lacks them."""
    hashes: list[bytes | None] = []
    for seq in range(first, first + count):
        row = stored.get(seq // TILE_WIDTH)
        at = seq % TILE_WIDTH * HASH_SIZE
        data = row.data[at : at + HASH_SIZE] if row is not None else b""
        hashes.append(data if len(data) == HASH_SIZE else None)
    return hashes


def all_checkpoints(inspection: Inspection) -> Iterator[RawCheckpoint]:
    """Every stored checkpoint by size."""
    above = -1
    while page := inspection.checkpoints(above, _PAGE):
        yield from page
        above = page[-1].size
