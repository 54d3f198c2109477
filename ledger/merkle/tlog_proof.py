"""Inclusion proofs as files (C2SP tlog-proof): index, audit path and checkpoint in one text, checked offline."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass

from ledger.errors import TlogProofInvalid
from ledger.merkle.checkpoint import OpenedCheckpoint, open_checkpoint
from ledger.merkle.cosignature import WitnessPolicy, require_quorum
from ledger.merkle.hasher import HASH_SIZE
from ledger.merkle.note import MAX_NOTE_BYTES, VerifierKey, Verify, decode_base64
from ledger.merkle.tile import MAX_TREE_SIZE
from ledger.merkle.verify import verify_inclusion

HEADER = "c2sp.org/tlog-proof@v1"
MAX_PATH = 63
MAX_EXTRA_BYTES = 64 * 1024
MAX_PROOF_BYTES = MAX_NOTE_BYTES + 2 * MAX_EXTRA_BYTES

_INDEX = re.compile(r"index (0|[1-9][0-9]{0,18})")
_EXTRA = "extra "


@dataclass(frozen=True, slots=True)
class TlogProof:
    """What a file holds, nothing of it checked. ``checkpoint`` is the signed note as it stands; ``extra`` opaque.

    Raises TlogProofInvalid for an index, path, extra or checkpoint that no file holds.
    """

    index: int
    path: tuple[bytes, ...]
    checkpoint: bytes
    extra: bytes | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.index < MAX_TREE_SIZE:
            raise TlogProofInvalid("The index of a proof lies inside a tree.", index=self.index)
        if len(self.path) > MAX_PATH or any(len(step) != HASH_SIZE for step in self.path):
            raise TlogProofInvalid(f"A proof has at most {MAX_PATH} hashes of {HASH_SIZE} bytes.")
        if not self.checkpoint.endswith(b"\n") or self.checkpoint.startswith(b"\n"):
            raise TlogProofInvalid("The checkpoint of a proof is a signed note: it starts with its origin.")
        if len(self.checkpoint) > MAX_NOTE_BYTES:
            raise TlogProofInvalid("The checkpoint of a proof is longer than any signed note.")
        if self.extra is not None and not 0 < len(self.extra) <= MAX_EXTRA_BYTES:
            raise TlogProofInvalid(f"Extra data has between 1 and {MAX_EXTRA_BYTES} bytes, or is left out.")

    def to_bytes(self) -> bytes:
        """The file."""
        lines = [HEADER]
        if self.extra is not None:
            lines.append(_EXTRA + b64encode(self.extra).decode())
        lines.append(f"index {self.index}")
        lines += [b64encode(step).decode() for step in self.path]
        return "\n".join([*lines, "", ""]).encode() + self.checkpoint


def parse_tlog_proof(raw: bytes) -> TlogProof:
    """Take a file apart; nothing is verified yet. Raises TlogProofInvalid."""
    if len(raw) > MAX_PROOF_BYTES:
        raise TlogProofInvalid(f"The proof has {len(raw)} bytes; at most {MAX_PROOF_BYTES} are read.")
    head, blank_line, checkpoint = raw.partition(b"\n\n")
    if not blank_line:
        raise TlogProofInvalid("A proof has an empty line between its path and its checkpoint.")
    try:
        header, *lines = head.decode("ascii").split("\n")
    except UnicodeDecodeError as error:
        raise TlogProofInvalid("Above its checkpoint a proof is ASCII.", offset=error.start) from error
    if header != HEADER:
        raise TlogProofInvalid(f"Not a proof of this version: the first line must be {HEADER}.", line=header[:80])
    extra = None
    if lines and lines[0].startswith(_EXTRA):
        extra = decode_base64(lines.pop(0).removeprefix(_EXTRA))
        if extra is None:
            raise TlogProofInvalid("The extra data of the proof is not canonical base64.")
    index = _INDEX.fullmatch(lines[0]) if lines else None
    if index is None:
        raise TlogProofInvalid("After its head a proof has the line `index` with a plain decimal number.")
    if len(lines) - 1 > MAX_PATH:
        raise TlogProofInvalid(f"The proof has {len(lines) - 1} hashes; no tree needs more than {MAX_PATH}.")
    return TlogProof(int(index[1]), tuple(_hash(line) for line in lines[1:]), checkpoint, extra)


def verify_tlog_proof(
    proof: TlogProof,
    leaf: bytes,
    *,
    origin: str,
    log_keys: Iterable[VerifierKey],
    policy: WitnessPolicy,
    verify: Verify,
) -> OpenedCheckpoint:
    """The checkpoint under which ``leaf`` (a leaf hash) is in the log ``origin``, cosigned as ``policy`` asks.

    The extra data is not authenticated by any of this. Raises NoteInvalid, NoteUnverified, TreeProofInvalid.
    """
    opened = open_checkpoint(proof.checkpoint, origin, log_keys, verify)
    require_quorum(opened.note.text, opened.note.unverified, policy, verify)
    verify_inclusion(proof.index, opened.checkpoint.size, leaf, proof.path, opened.checkpoint.root)
    return opened


def _hash(line: str) -> bytes:
    decoded = decode_base64(line)
    if decoded is None or len(decoded) != HASH_SIZE:
        raise TlogProofInvalid("A line of the proof's path is not a SHA-256 hash in canonical base64.", line=line[:80])
    return decoded
