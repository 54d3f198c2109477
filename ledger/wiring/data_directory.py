"""The names in a data directory, and opening no more of one than maintenance needs: database, key and pin."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ledger.app.log.fsck_tree import LogTrust, known_checkpoint
from ledger.app.log.log_keys import LogIdentity, log_keys
from ledger.app.log.restore_guard import KnownCheckpoint
from ledger.attest.crypto.signing import load_key, verify
from ledger.errors import BadInput, DataDirectoryInvalid, NoteInvalid
from ledger.merkle.key_history import key_at
from ledger.merkle.note import MAX_NOTE_BYTES, VerifierKey, parse_vkey
from ledger.store.database import SqliteDatabase
from ledger.store.postgres import PostgresDatabase
from ledger.wiring.clock import SystemClock, SystemRandomness
from ledger.wiring.marker import read_marker, write_marker
from ledger.wiring.needs import KeyGroup, folder_of
from ledger.wiring.pin import PinFile

SqlDatabase: TypeAlias = SqliteDatabase | PostgresDatabase

DATABASE_FILE = "ledger.db"
KEY_FOLDER = "keys"
LOG_KEY_FILE = "log.key"
PIN_FILE = "log.pin"


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """A data directory opened for maintenance. ``trust`` is None where no key of the log is at hand."""

    database: SqlDatabase
    pin: PinFile
    trust: LogTrust | None
    now_ns: Callable[[], int]

    def outside(self, checkpoints: Sequence[Path]) -> list[KnownCheckpoint]:
        """Sizes and roots known from outside the database: the pin, and signed checkpoints in files.

        Raises ``BadInput`` for a file that is no checkpoint of this log.
        """
        pinned = self.pin.read()
        known = [] if pinned is None else [pinned]
        return known + [read_checkpoint(path, require_trust(self.trust)) for path in checkpoints]

    def settle_erasure(self, record: str) -> int:
        """The place in the log of an erasure's record, once the payload is out of views and write-ahead log as well.

        PostgreSQL keeps deleted rows in its files until they are vacuumed. Raises ``NotSequencedYet``.
        """
        if isinstance(self.database, SqliteDatabase):
            self.database.empty_write_ahead_log()
        else:
            # No other process needs to run for this.
            while self.database.sequence_once():
                pass
        (seq,) = self.database.wait_sequenced([record])
        return seq


@contextmanager
def open_data_directory(
    folder: Path, vkeys: Sequence[str] = (), *, database_url: str | None = None
) -> Iterator[DataDirectory]:
    """Open the data directory ``folder``, without chain, prover or sequencer. ``vkeys`` are keys of the log to trust
    instead of the one in its key folder; ``database_url`` names the PostgreSQL that holds the log, if one does.
    Raises ``DataDirectoryInvalid``, ``VerifierKeyInvalid`` or ``SettingInvalid``."""
    first = read_marker(folder).first_log_key
    if database_url is None and not (folder / DATABASE_FILE).is_file():
        raise DataDirectoryInvalid(
            f"{folder} holds no ledger ({DATABASE_FILE} is missing); restore it from a backup, or name the PostgreSQL "
            "that holds it with --database",
            path=str(folder),
        )
    with _opened(folder, vkeys, first, database_url) as data:
        yield data


@contextmanager
def new_data_directory(
    folder: Path, vkeys: Sequence[str] = (), *, database_url: str | None = None
) -> Iterator[DataDirectory]:
    """Make a data directory to import into. ``folder`` is absent, empty, or has nothing but the key folder of the
    log that comes in; after an error only that is left. The database of ``database_url`` must be empty.
    Raises ``DataDirectoryInvalid``."""
    try:
        present = {path.name for path in folder.iterdir()} if folder.exists() else set()
    except OSError as error:
        raise DataDirectoryInvalid(f"{folder} is not a directory ({error.strerror})", path=str(folder)) from error
    if present - {KEY_FOLDER}:
        raise DataDirectoryInvalid(
            f"{folder} is not empty; name a new directory, or one with nothing but the log's {KEY_FOLDER}/",
            path=str(folder),
        )
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _opened(folder, vkeys, None, database_url) as data:
            yield data
        write_marker(folder, time.time_ns(), None)
    except BaseException:
        for path in folder.glob(f"{DATABASE_FILE}*"):
            path.unlink(missing_ok=True)
        raise


def read_checkpoint(path: Path, trust: LogTrust) -> KnownCheckpoint:
    """A signed checkpoint from a file. Raises ``BadInput`` for one that is malformed or not of this log."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_NOTE_BYTES + 1)
        return known_checkpoint(raw, trust, f"the checkpoint {path}")
    except OSError as error:
        raise BadInput(f"the checkpoint {path} cannot be read: {error.strerror}", path=str(path)) from error
    except NoteInvalid as error:
        raise BadInput(
            f"{path} is no checkpoint of this log: {error.message} If another key signed it, name it with --vkey",
            path=str(path),
        ) from error


def trust_keys(vkeys: Sequence[str]) -> LogTrust:
    """Trust in the keys given as ``name+hash+base64`` lines; the first one's name is the log's origin."""
    keys = [parse_vkey(line) for line in vkeys]
    return _trust(keys)


def require_trust(trust: LogTrust | None) -> LogTrust:
    """Raises ``BadInput`` where no key of the log is known."""
    if trust is None:
        raise BadInput(f"the log's key is not at hand ({KEY_FOLDER}/{LOG_KEY_FILE}); name it with --vkey")
    return trust


def local_origin(public_key: bytes) -> str:
    """The origin of a log whose key was made here: it names the log by its key."""
    return f"sla-ledger.local/{public_key.hex()[:16]}"


@contextmanager
def _opened(
    folder: Path, vkeys: Sequence[str], first: VerifierKey | None, database_url: str | None = None
) -> Iterator[DataDirectory]:
    keys = folder_of(folder / KEY_FOLDER, KeyGroup.LOG)
    if first is None and not vkeys and (keys / LOG_KEY_FILE).exists():
        public_key = load_key(keys / LOG_KEY_FILE).public_key
        first = VerifierKey(local_origin(public_key), public_key)
    clock = SystemClock()
    database: SqlDatabase
    if database_url is None:
        database = SqliteDatabase(folder / DATABASE_FILE, clock, SystemRandomness())
    else:
        database = PostgresDatabase(database_url, clock, SystemRandomness())
    try:
        trust = trust_keys(vkeys) if vkeys else None if first is None else _own_trust(database, first)
        yield DataDirectory(database, PinFile(keys / PIN_FILE), trust, clock.now_ns)
    finally:
        database.close()


def _own_trust(database: SqlDatabase, first: VerifierKey) -> LogTrust:
    """Trust in the log's first key and those it was rotated to, each for its own sizes."""
    with database.read() as tx:
        keys = log_keys(tx, LogIdentity(first, verify))
    return LogTrust(first.name, lambda size: [key_at(keys, size)], verify)


def _trust(keys: Sequence[VerifierKey]) -> LogTrust:
    return LogTrust(keys[0].name, lambda _size: keys, verify)
