"""Asking witnesses to cosign a checkpoint (C2SP tlog-witness, the log's side) before it is published.

What a witness knows of the log is also the outside memory that a restored copy of the database lacks: where one
has seen more, or something else, the log signs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ledger.app.ports.store import Database
from ledger.domain.time.instant import SECOND_NS, Clock
from ledger.errors import (
    CosignatureInvalid,
    LogBehindWitness,
    NoteInvalid,
    SlaLedgerError,
    WitnessesUnavailable,
)
from ledger.merkle.checkpoint import Checkpoint, parse_checkpoint
from ledger.merkle.cosignature import Cosignature, WitnessKey, open_cosignatures
from ledger.merkle.note import SignedNote, Verify, parse_note, parse_signature
from ledger.merkle.witness import AddCheckpoint

MAX_AGE_S = 3600
"""A cosignature made just now that claims to be older was not made just now."""
MAX_CONFLICTS = 3
"""How often a witness may name another size than the one it was asked about before it is left out."""
MAX_ANSWER_BYTES = 64 * 1024

_SIZE = re.compile(rb"(0|[1-9][0-9]{0,18})\n")


@dataclass(frozen=True, slots=True)
class WitnessAnswer:
    """What a witness answered: HTTP status and body."""

    status: int
    body: bytes


class WitnessConnection(Protocol):
    """One witness that can be reached."""

    @property
    def key(self) -> WitnessKey: ...

    def add_checkpoint(self, body: bytes) -> WitnessAnswer:
        """Raises ``WitnessesUnavailable`` where there was no answer."""
        ...


class WitnessedPublishing:
    """``ledger.app.log.checkpoints.Cosigners`` over witnesses, of which at least ``quorum`` must cosign."""

    def __init__(
        self,
        database: Database,
        witnesses: Sequence[WitnessConnection],
        quorum: int,
        *,
        verify: Verify,
        clock: Clock,
        notify: Callable[[str], None],
    ) -> None:
        self._database = database
        self._witnesses = witnesses
        self._quorum = quorum
        self._verify = verify
        self._clock = clock
        self._notify = notify
        self._cosigned_sizes: dict[WitnessKey, int] = {}

    def cosign(self, note: str) -> str:
        signed = parse_note(note.encode())
        checkpoint = parse_checkpoint(signed.text)
        found: list[Cosignature] = []
        for witness in self._witnesses:
            try:
                found.append(self._ask(witness, signed, checkpoint))
            except LogBehindWitness:
                raise
            except SlaLedgerError as error:
                self._notify(f"witness {witness.key.name} did not cosign size {checkpoint.size}: {error.message}")
        if len(found) < self._quorum:
            raise WitnessesUnavailable(
                f"{len(found)} of {self._quorum} required witnesses cosigned size {checkpoint.size}; "
                "it is not published until they do",
                size=checkpoint.size,
                cosigned=len(found),
                quorum=self._quorum,
            )
        lines = tuple(cosignature.line for cosignature in found)
        return SignedNote(signed.text, signed.signatures + lines).to_bytes().decode()

    def _ask(self, witness: WitnessConnection, signed: SignedNote, checkpoint: Checkpoint) -> Cosignature:
        old_size = self._cosigned_sizes.get(witness.key)
        if old_size is None:
            with self._database.read() as tx:
                old_size = tx.log.checkpoint_size() or 0
        answer = self._send(witness, signed, checkpoint, old_size)
        for _ in range(MAX_CONFLICTS):
            if answer.status != 409:
                break
            known = _known_size(witness, answer)
            if known > checkpoint.size or known == old_size:
                raise _behind(witness, known, checkpoint)
            old_size = known
            answer = self._send(witness, signed, checkpoint, old_size)
        if answer.status == 422:
            raise _behind(witness, old_size, checkpoint)
        if answer.status != 200:
            raise WitnessesUnavailable(f"it answered with status {answer.status}", status=answer.status)
        cosignature = self._accept(witness.key, signed.text, answer.body)
        self._cosigned_sizes[witness.key] = checkpoint.size
        return cosignature

    def _send(
        self, witness: WitnessConnection, signed: SignedNote, checkpoint: Checkpoint, old_size: int
    ) -> WitnessAnswer:
        proof: tuple[bytes, ...] = ()
        if 0 < old_size < checkpoint.size:
            with self._database.read() as tx:
                proof = tx.log.consistency_proof(old_size, checkpoint.size)
        return witness.add_checkpoint(AddCheckpoint(old_size, proof, signed.to_bytes()).to_bytes())

    def _accept(self, key: WitnessKey, text: str, body: bytes) -> Cosignature:
        try:
            lines = [parse_signature(line) for line in body.decode().removesuffix("\n").split("\n")]
        except UnicodeDecodeError as error:
            raise NoteInvalid("its answer is not UTF-8") from error
        now_s = self._clock.now_ns() // SECOND_NS
        found = open_cosignatures(text, lines, [key], self._verify, now_s=now_s)
        if not found:
            raise CosignatureInvalid("its answer has no cosignature of the key that is configured for it")
        if found[0].timestamp_s < now_s - MAX_AGE_S:
            raise CosignatureInvalid("its cosignature is too old to be of now; check the clocks")
        return found[0]


def _known_size(witness: WitnessConnection, answer: WitnessAnswer) -> int:
    match = _SIZE.fullmatch(answer.body)
    if match is None:
        raise WitnessesUnavailable("its conflict names no size", name=witness.key.name)
    return int(match[1])


def _behind(witness: WitnessConnection, known: int, checkpoint: Checkpoint) -> LogBehindWitness:
    return LogBehindWitness(
        f"witness {witness.key.name} cosigned size {known} of this log, and size {checkpoint.size} with this root does "
        "not extend it; the database may be an old copy. Nothing is signed: restore the newest data and run fsck",
        witness=witness.key.name,
        known_size=known,
        size=checkpoint.size,
    )
