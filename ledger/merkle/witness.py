"""What a witness is asked (C2SP tlog-witness, ``add-checkpoint``) and when it may cosign. Texts and rules only."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass

from ledger.errors import TreeProofInvalid, WitnessConflict, WitnessRequestInvalid
from ledger.merkle.checkpoint import Checkpoint
from ledger.merkle.hasher import EMPTY_ROOT, HASH_SIZE
from ledger.merkle.note import MAX_NOTE_BYTES, decode_base64
from ledger.merkle.verify import verify_consistency

MAX_PROOF_LINES = 63
_MAX_HEAD_BYTES = 64 * 48
MAX_REQUEST_BYTES = MAX_NOTE_BYTES + _MAX_HEAD_BYTES

_OLD = re.compile(r"old (0|[1-9][0-9]{0,18})")


@dataclass(frozen=True, slots=True)
class AddCheckpoint:
    """A request: the size the witness is thought to know, the proof from it, and the signed checkpoint."""

    old_size: int
    proof: tuple[bytes, ...]
    checkpoint: bytes

    def to_bytes(self) -> bytes:
        """The request's body."""
        lines = [f"old {self.old_size}", *(b64encode(step).decode() for step in self.proof)]
        return "\n".join([*lines, "", ""]).encode() + self.checkpoint


@dataclass(frozen=True, slots=True)
class SeenTree:
    """The largest tree of a log that a witness has cosigned."""

    size: int = 0
    root: bytes = EMPTY_ROOT


def parse_add_checkpoint(body: bytes) -> AddCheckpoint:
    """Take a request apart; the checkpoint inside is not looked at. Raises WitnessRequestInvalid."""
    if len(body) > MAX_REQUEST_BYTES:
        raise WitnessRequestInvalid(f"The request has {len(body)} bytes; at most {MAX_REQUEST_BYTES} are read.")
    head, blank_line, checkpoint = body.partition(b"\n\n")
    if not blank_line:
        raise WitnessRequestInvalid("A request has an empty line between its proof and its checkpoint.")
    try:
        old, *lines = head.decode("ascii").split("\n")
    except UnicodeDecodeError as error:
        raise WitnessRequestInvalid("Above its checkpoint a request is ASCII.", offset=error.start) from error
    match = _OLD.fullmatch(old)
    if match is None:
        raise WitnessRequestInvalid("The first line is not `old` and a tree size in plain decimal.", line=old[:40])
    if len(lines) > MAX_PROOF_LINES:
        raise WitnessRequestInvalid(f"The request has {len(lines)} proof lines; at most {MAX_PROOF_LINES} are read.")
    proof = [decode_base64(line) for line in lines]
    steps = tuple(step for step in proof if step is not None and len(step) == HASH_SIZE)
    if len(steps) != len(proof):
        raise WitnessRequestInvalid("A proof line is not a SHA-256 hash in canonical base64.")
    return AddCheckpoint(int(match[1]), steps, checkpoint)


def require_extends(seen: SeenTree, old_size: int, proof: Sequence[bytes], checkpoint: Checkpoint) -> None:
    """Return quietly only if a witness that saw ``seen`` may cosign the checkpoint. Its signature is checked before.

    Raises WitnessRequestInvalid for an old size above the checkpoint's, WitnessConflict where the witness knows
    another size or, at the same size, another root, TreeProofInvalid for a proof that does not hold.
    """
    if old_size > checkpoint.size:
        raise WitnessRequestInvalid(
            f"The old size {old_size} is above the checkpoint's size {checkpoint.size}.",
            old_size=old_size,
            size=checkpoint.size,
        )
    if old_size != seen.size:
        raise WitnessConflict(
            f"This witness last cosigned size {seen.size} of the log, not {old_size}.", size=seen.size, asked=old_size
        )
    if old_size == checkpoint.size:
        if proof:
            raise TreeProofInvalid("Between equal sizes the proof is empty.", path_length=len(proof))
        if seen.root != checkpoint.root:
            raise WitnessConflict(
                f"This witness cosigned another root of size {seen.size}: the log shows two histories.", size=seen.size
            )
    elif old_size == 0:
        # Every tree extends the empty one, so there is nothing a proof could show.
        if proof:
            raise TreeProofInvalid("From size 0 the proof is empty.", path_length=len(proof))
    else:
        verify_consistency(seen.size, checkpoint.size, seen.root, checkpoint.root, proof)
