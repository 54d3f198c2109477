"""Signing the log: a checkpoint commits its signer to every event so far."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from ledger.app.log.log_keys import LogIdentity, log_keys
from ledger.app.log.restore_guard import RestoreGuard
from ledger.app.ports.store import Database
from ledger.errors import Refused
from ledger.merkle.key_history import key_at
from ledger.merkle.note import VerifierKey


class CheckpointSigner(Protocol):
    """Signs C2SP tlog-checkpoints with any of the log's keys that it holds."""

    @property
    def identity(self) -> LogIdentity: ...

    def sign(self, size: int, root: bytes, key: VerifierKey) -> str:
        """The note; raises ``KeyFileUnusable`` where the private half of ``key`` is not at hand."""
        ...


class Cosigners(Protocol):
    """Witnesses that see a checkpoint before anyone else does."""

    def cosign(self, note: str) -> str:
        """The note with their cosignatures.

        Raises ``WitnessesUnavailable`` where too few answered, and ``LogBehindWitness`` where one knows of a larger
        or another tree: then nothing may be published.
        """
        ...


class NoWitnesses:
    """A log that nobody cosigns."""

    def cosign(self, note: str) -> str:
        return note


def sign_checkpoint(database: Database, signer: CheckpointSigner, cosigners: Cosigners, guard: RestoreGuard) -> int:
    """Sign the present size of the log, have it cosigned and publish it, unless that is done; returns the size.

    No transaction is open while witnesses answer. What is saved in the end is checked against the tree again, and
    a size that another process went past meanwhile is left out. The pin is durable before the note leaves: a crash
    in between leaves a pin of leaves that are in the log, which is signed again. Raises ``LogRolledBack`` for a log
    that does not contain what was signed before.
    """
    with guard.pin.held():
        with database.read() as tx:
            size = tx.log.size()
            guard.require_extends(tx.log, size)
            if not size or tx.log.checkpoint(size) is not None:
                return size
            root = tx.log.root(size)
            key = key_at(log_keys(tx, signer.identity), size)
        note = signer.sign(size, root, key)
        guard.pin.write(size, root, note)
    note = cosigners.cosign(note)
    # Refused where another process went past this size.
    with database.begin() as tx, suppress(Refused):
        tx.log.save_checkpoint(size, root, note)
    return size
