"""One suite over every storage adapter: each test runs once for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from ledger.store.database import SqliteDatabase
from ledger.store.memory import MemoryDatabase
from ledger.store.postgres import PostgresDatabase
from tests.conformance.samples import SeededRandomness, StepClock
from tests.support.postgres import ROLE_PREFIX, SequencedAfterCommit
from tests.support.sqlite import with_schema

AnyDatabase: TypeAlias = MemoryDatabase | SqliteDatabase | PostgresDatabase
OpenSqlite: TypeAlias = Callable[..., SqliteDatabase]


@pytest.fixture
def clock() -> StepClock:
    return StepClock()


@pytest.fixture
def open_sqlite(tmp_path: Path, clock: StepClock) -> Iterator[OpenSqlite]:
    """``open_sqlite(seed=..., tenant=...)`` opens the test's one SQLite file, each time with new connections."""
    opened: list[SqliteDatabase] = []

    def open_(seed: int = 1, tenant: str = "default") -> SqliteDatabase:
        opened.append(SqliteDatabase(with_schema(tmp_path / "ledger.db"), clock, SeededRandomness(seed), tenant))
        return opened[-1]

    yield open_
    for database in opened:
        database.close()


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, clock: StepClock) -> Iterator[AnyDatabase]:
    if request.param == "memory":
        yield MemoryDatabase(clock, SeededRandomness(1))
    elif request.param == "sqlite":
        opener: OpenSqlite = request.getfixturevalue("open_sqlite")
        yield opener()
    else:
        url: str = request.getfixturevalue("postgres_url")
        database = SequencedAfterCommit(url, clock, SeededRandomness(1), role_prefix=ROLE_PREFIX)
        yield database
        database.close()
