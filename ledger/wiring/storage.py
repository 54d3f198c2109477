"""Which database a process works with: the SQLite file of its data directory, or a PostgreSQL with a sequencer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ledger.app.ports.store import Randomness
from ledger.domain.time.instant import Clock
from ledger.errors import DataDirectoryInvalid
from ledger.store.database import SqliteDatabase
from ledger.store.inbox import Sequencer
from ledger.store.postgres import PostgresDatabase
from ledger.wiring.clock import SystemClock, SystemRandomness
from ledger.wiring.data_directory import DATABASE_FILE, SqlDatabase


def make_storage(folder: Path, url: str | None, clock: Clock, randomness: Randomness) -> None:
    """Bring the database to the newest schema, making it where it is a file that is not there."""
    if url is not None:
        PostgresDatabase(url, clock, randomness).close()
        return
    # The database holds salts and raw rows; SQLite gives its side files the same mode.
    (folder / DATABASE_FILE).touch(mode=0o600)
    SqliteDatabase(folder / DATABASE_FILE, clock, randomness).close()


def open_storage(
    folder: Path,
    url: str | None,
    clock: Clock,
    randomness: Randomness,
    notify: Callable[[str], None],
    *,
    sequences: bool = True,
) -> tuple[SqlDatabase, Sequencer | None]:
    """The database, and the running sequencer that it needs, if any; close both, the sequencer first.

    A process that never ``sequences`` needs no right to, and leaves it to others.
    """
    if url is None:
        return SqliteDatabase(folder / DATABASE_FILE, clock, randomness), None
    database = PostgresDatabase(url, clock, randomness)
    if not sequences:
        return database, None
    sequencer = Sequencer(database.sequence_once, notify)
    sequencer.start()
    return database, sequencer


@contextmanager
def looked_at(folder: Path, url: str | None) -> Iterator[SqlDatabase]:
    """The database to be looked at: its schema stays as it is, and no file is made. Raises ``DataDirectoryInvalid``."""
    clock, randomness, file = SystemClock(), SystemRandomness(), folder / DATABASE_FILE
    if url is None and not file.is_file():
        raise DataDirectoryInvalid(f"{folder} holds no ledger ({DATABASE_FILE} is missing)", path=str(folder))
    database: SqlDatabase
    if url is None:
        database = SqliteDatabase(file, clock, randomness, migrated=True)
    else:
        database = PostgresDatabase(url, clock, randomness, migrated=True)
    with closing(database):
        yield database
