"""Checkpoints (C2SP tlog-checkpoint): the signed note in which a log states its size and root."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ledger.errors import NoteInvalid, NoteUnverified
from ledger.merkle.hasher import EMPTY_ROOT, HASH_SIZE
from ledger.merkle.note import (
    MAX_NOTE_BYTES,
    NoteSigner,
    OpenedNote,
    VerifierKey,
    Verify,
    decode_base64,
    open_note,
    require_text,
    sign_note,
)
from ledger.merkle.tile import MAX_TREE_SIZE

_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")
_FIXED_LINES = 3


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a log states: its origin (identity), number of leaves and 32-byte root.

    ``extensions`` are further opaque lines, kept because the signature covers them. Raises NoteInvalid for
    values that have no checkpoint, among them size 0 with another root than the empty tree's.
    """

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.size <= MAX_TREE_SIZE:
            raise NoteInvalid(f"A checkpoint's tree size must be between 0 and {MAX_TREE_SIZE}.", size=self.size)
        if len(self.root) != HASH_SIZE:
            raise NoteInvalid(f"A checkpoint's root has {len(self.root)} bytes instead of {HASH_SIZE}.")
        if self.size == 0 and self.root != EMPTY_ROOT:
            raise NoteInvalid("The checkpoint gives the empty tree a root it cannot have.", root=self.root.hex())
        for line in (self.origin, *self.extensions):
            if not line or "\n" in line:
                raise NoteInvalid("The origin and the extension lines of a checkpoint are single, non-empty lines.")
        require_text(self.text())

    def text(self) -> str:
        """The note text: origin, size and root, each on a line, then the extensions."""
        root = b64encode(self.root).decode()
        return "".join(f"{line}\n" for line in (self.origin, str(self.size), root, *self.extensions))


@dataclass(frozen=True, slots=True)
class OpenedCheckpoint:
    """A checkpoint whose log signature holds, with the note around it (its other signatures: witnesses)."""

    checkpoint: Checkpoint
    note: OpenedNote


def parse_checkpoint(text: str) -> Checkpoint:
    """The checkpoint a note text states; the note's signatures are not looked at. Raises NoteInvalid."""
    if len(text) > MAX_NOTE_BYTES:
        raise NoteInvalid(f"The checkpoint has {len(text)} characters; at most {MAX_NOTE_BYTES} are read.")
    require_text(text)
    lines = text[:-1].split("\n")
    if len(lines) < _FIXED_LINES:
        raise NoteInvalid("A checkpoint has at least three lines: origin, tree size, root.", lines=len(lines))
    origin, size, encoded_root, *extensions = lines
    if not _SIZE.fullmatch(size):
        raise NoteInvalid("The checkpoint's second line is not a tree size in plain decimal.", line=size[:40])
    root = decode_base64(encoded_root)
    if root is None:
        raise NoteInvalid("The checkpoint's third line is not canonical base64.", line=encoded_root[:80])
    return Checkpoint(origin, int(size), root, tuple(extensions))


def open_checkpoint(raw: bytes, origin: str, log_keys: Iterable[VerifierKey], verify: Verify) -> OpenedCheckpoint:
    """The checkpoint of the log ``origin``, signed by at least one of that log's own keys.

    Pass only keys of the log (old and new ones while it rotates): a witness's key here would let the witness
    speak for the log. Raises NoteInvalid or NoteUnverified, the latter also for another log's checkpoint.
    """
    note = open_note(raw, log_keys, verify)
    checkpoint = parse_checkpoint(note.text)
    if checkpoint.origin != origin:
        raise NoteUnverified(
            f"The checkpoint is of log {checkpoint.origin!r}, not of {origin!r}.",
            expected=origin,
            found=checkpoint.origin,
        )
    return OpenedCheckpoint(checkpoint, note)


def sign_checkpoint(checkpoint: Checkpoint, signers: Sequence[NoteSigner]) -> bytes:
    """The signed note of a checkpoint.

    The caller has made sure that the log never signed anything this one does not extend.
    """
    return sign_note(checkpoint.text(), signers)
