"""A SQLite file with an event, and a second, uncontrolled way into it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.store.database import SqliteDatabase
from tests.conformance.samples import START_NS, SeededRandomness, StepClock, signed_checkpoint, windows
from tests.support.sqlite import with_schema


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def database(path: Path) -> Iterator[SqliteDatabase]:
    database = SqliteDatabase(with_schema(path), StepClock(), SeededRandomness(1), busy_timeout_ms=200)
    yield database
    database.close()


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 events, so one full tile and one partial; a checkpoint, a secret, and a key that was used."""
    path = tmp_path_factory.mktemp("template") / "ledger.db"
    database = SqliteDatabase(path, StepClock(), SeededRandomness(1))
    with database.begin() as tx:
        tx.events.append("windows/a", windows(299), expected_version=0)
        tx.events.append("windows/a", windows(1), expected_version=299, idempotency_key="key")
        tx.log.save_checkpoint(300, tx.log.root(300), signed_checkpoint(300, tx.log.root(300)))
        tx.secrets.put("salt", b"\x01")
    database.close()
    return path


@pytest.fixture
def filled(path: Path, template: Path) -> Iterator[SqliteDatabase]:
    """A database of its own that begins as the template."""
    shutil.copy(template, path)
    database = SqliteDatabase(path, StepClock(START_NS + 10**12), SeededRandomness(2), busy_timeout_ms=200)
    yield database
    database.close()


@pytest.fixture
def raw(path: Path, filled: SqliteDatabase) -> Iterator[sqlite3.Connection]:
    """A plain connection of somebody who wants to change the log; its pragmas are SQLite's defaults."""
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()
