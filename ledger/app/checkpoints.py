"""Signing the log: a checkpoint commits its signer to every event so far."""

from __future__ import annotations

from typing import Protocol

from ledger.app.ports import Database


class CheckpointSigner(Protocol):
    """Signs a C2SP tlog-checkpoint for a size and root; the origin and key are the signer's own."""

    def sign(self, size: int, root: bytes) -> str: ...


def sign_checkpoint(database: Database, signer: CheckpointSigner) -> int:
    """Sign the present size of the log unless that is done; returns the size.

    Reading the root and keeping the note are one transaction, so no append can come between.
    """
    with database.begin() as tx:
        size = tx.log.size()
        if size and tx.log.checkpoint(size) is None:
            root = tx.log.root(size)
            tx.log.save_checkpoint(size, root, signer.sign(size, root))
    return size
