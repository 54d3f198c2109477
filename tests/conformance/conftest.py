"""One suite over every storage adapter: each test runs once for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from ledger.store.database import SqliteDatabase
from ledger.store.memory import MemoryDatabase
from tests.conformance.samples import SeededRandomness, StepClock

AnyDatabase: TypeAlias = MemoryDatabase | SqliteDatabase
OpenSqlite: TypeAlias = Callable[..., SqliteDatabase]


@pytest.fixture
def clock() -> StepClock:
    return StepClock()


@pytest.fixture
def open_sqlite(tmp_path: Path, clock: StepClock) -> Iterator[OpenSqlite]:
    """``open_sqlite(seed=..., tenant=...)`` opens the test's one SQLite file, each time with new connections."""
    opened: list[SqliteDatabase] = []

    def open_(seed: int = 1, tenant: str = "default") -> SqliteDatabase:
        opened.append(SqliteDatabase(tmp_path / "ledger.db", clock, SeededRandomness(seed), tenant))
        return opened[-1]

    yield open_
    for database in opened:
        database.close()


@pytest.fixture(params=["memory", "sqlite"])
def database(request: pytest.FixtureRequest, clock: StepClock) -> AnyDatabase:
    if request.param == "memory":
        return MemoryDatabase(clock, SeededRandomness(1))
    opener: OpenSqlite = request.getfixturevalue("open_sqlite")
    return opener()
