"""What a witness remembers, in a SQLite file of its own: the largest cosigned tree of each log."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ledger.errors import StorageUnavailable
from ledger.merkle.witness import SeenTree

_TIMEOUT_S = 10
_SCHEMA = """
CREATE TABLE IF NOT EXISTS seen (
    origin TEXT PRIMARY KEY,
    size INTEGER NOT NULL CHECK (size >= 0),
    root BLOB NOT NULL CHECK (length(root) = 32)
) STRICT;
CREATE TRIGGER IF NOT EXISTS seen_grows BEFORE UPDATE ON seen
    WHEN NEW.size < OLD.size OR NEW.origin <> OLD.origin OR (NEW.size = OLD.size AND NEW.root <> OLD.root)
    BEGIN SELECT RAISE(ABORT, 'a witness only goes forward'); END;
CREATE TRIGGER IF NOT EXISTS seen_no_delete BEFORE DELETE ON seen
    BEGIN SELECT RAISE(ABORT, 'a witness forgets no log'); END;
"""


class SqliteSeenTrees:
    """``ledger.app.log.witness.SeenTrees``; a connection for each call, so that threads and processes may share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._connection() as connection:
            connection.executescript(_SCHEMA)

    def seen(self, origin: str) -> SeenTree:
        with self._connection() as connection:
            row = connection.execute("SELECT size, root FROM seen WHERE origin = ?", (origin,)).fetchone()
        return SeenTree() if row is None else SeenTree(*row)

    def advance(self, origin: str, before: SeenTree, after: SeenTree) -> bool:
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            row = connection.execute("SELECT size, root FROM seen WHERE origin = ?", (origin,)).fetchone()
            if (SeenTree() if row is None else SeenTree(*row)) != before:
                connection.execute("ROLLBACK")
                return False
            connection.execute(
                "INSERT INTO seen VALUES (?, ?, ?) "
                "ON CONFLICT (origin) DO UPDATE SET size = excluded.size, root = excluded.root",
                (origin, after.size, after.root),
            )
            connection.execute("COMMIT")
        return True

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(self._path, timeout=_TIMEOUT_S, isolation_level=None)
            try:
                connection.execute("PRAGMA synchronous = FULL")
                yield connection
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise StorageUnavailable(f"the witness's memory {self._path} cannot be used: {error}") from error
