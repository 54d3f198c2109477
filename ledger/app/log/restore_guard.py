"""The restore guard: a log never signs less than, or other than, what it is known to have signed.

A database brought back from an older dump would grow again along another path, and its key would sign two
histories. What was signed last is therefore known outside the database as well: in the pin beside the key, and
with whoever else was told (witnesses, an anchor contract).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from ledger.app.ports.store import TransparencyLog
from ledger.errors import LogRolledBack, SlaLedgerError
from ledger.merkle.verify import verify_consistency


@dataclass(frozen=True, slots=True)
class KnownCheckpoint:
    """A size and root known from outside the database; ``source`` says where from."""

    size: int
    root: bytes
    source: str


class Pin(Protocol):
    """The last signed checkpoint, kept beside the signing key (``ledger.wiring.pin``)."""

    def held(self) -> AbstractContextManager[None]:
        """Keeps other signers with the same key waiting."""
        ...

    def read(self) -> KnownCheckpoint | None:
        """None before the first signature. Raises ``StorageDamaged`` for a pin that cannot be read."""
        ...

    def write(self, size: int, root: bytes, note: str) -> None:
        """Durable on return."""
        ...


@dataclass(frozen=True, slots=True)
class RestoreGuard:
    """Stands before the signer. ``others`` gives what is known from elsewhere whenever it is asked."""

    pin: Pin
    others: Callable[[], Iterable[KnownCheckpoint]] = tuple

    def require_extends(self, log: TransparencyLog, size: int) -> None:
        """Refuse a log whose first ``size`` leaves do not contain everything that is known to be signed.

        Raises ``LogRolledBack``.
        """
        for known in self._known():
            if known.size > size:
                raise LogRolledBack(
                    f"{known.source} knows {known.size} signed events and this database has {size}: it is an older "
                    "copy. It is not signed. Restore a newer backup; if there is none, export this log and import "
                    "it under a new key, since the present one must never sign a second history",
                    size=size,
                    known_size=known.size,
                    source=known.source,
                )
            if not _extends(log, size, known):
                raise LogRolledBack(
                    f"this database has another history than {known.source} knows: its first {known.size} events "
                    "are not those that were signed. It is not signed. Run: sla-ledger fsck, and restore a backup "
                    "that is consistent",
                    size=size,
                    known_size=known.size,
                    source=known.source,
                )

    def _known(self) -> Iterator[KnownCheckpoint]:
        pinned = self.pin.read()
        if pinned is not None:
            yield pinned
        yield from self.others()


def _extends(log: TransparencyLog, size: int, known: KnownCheckpoint) -> bool:
    if known.size == 0:
        return True
    try:
        proof = log.consistency_proof(known.size, size)
        verify_consistency(known.size, size, known.root, log.root(size), proof)
    except SlaLedgerError:
        return False
    return True
