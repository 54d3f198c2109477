"""The pin: what a key signed last, in a file beside the key."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ledger.app.log.restore_guard import KnownCheckpoint
from ledger.domain.record.canonical import canonical_bytes, parse_json
from ledger.errors import SlaLedgerError, StorageDamaged, StorageUnavailable
from ledger.merkle.checkpoint import parse_checkpoint
from ledger.merkle.note import MAX_NOTE_BYTES, parse_note
from ledger.wiring.files import replace_file

PIN_FORMAT = "sla-ledger/pin/v1"


class PinFile:
    """``ledger.app.log.restore_guard.Pin``: ``{"format", "size", "root", "note"}``, replaced whole and fsynced.

    Take it along when the key moves to another machine. It is no secret, but whoever may write it can switch the
    guard off, so it lies in the key folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def held(self) -> Iterator[None]:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._unavailable(error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def read(self) -> KnownCheckpoint | None:
        """Raises ``StorageDamaged`` for a pin that is malformed or whose note says something else."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unavailable(error) from error
        try:
            document = parse_json(content, max_bytes=2 * MAX_NOTE_BYTES)
            stated = parse_checkpoint(parse_note(document["note"].encode()).text)
            pinned = (document["format"], int(document["size"]), bytes.fromhex(document["root"]))
            if pinned != (PIN_FORMAT, stated.size, stated.root):
                raise ValueError("its note states something else")
        except (SlaLedgerError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise StorageDamaged(
                f"the pin {self._path} cannot be used ({error}); nothing is signed. Put it back from a copy of the "
                "key folder, or write the newest checkpoint anybody has seen into it",
                path=str(self._path),
            ) from error
        return KnownCheckpoint(stated.size, stated.root, f"the pin {self._path}")

    def write(self, size: int, root: bytes, note: str) -> None:
        content = canonical_bytes({"format": PIN_FORMAT, "note": note, "root": root.hex(), "size": str(size)})
        try:
            replace_file(self._path, content)
        except OSError as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: OSError) -> StorageUnavailable:
        return StorageUnavailable(
            f"the pin {self._path} cannot be read or written ({error.strerror}); nothing is signed",
            path=str(self._path),
        )
