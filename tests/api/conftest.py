"""Fixtures of all tests of the API: a ledger of the test's own, and a server over it that asks for no credentials."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from api.edge import Edge
from ledger.attest.crypto.signing import NoteKey
from ledger.store.database import SqliteDatabase
from tests.api.asking import World
from tests.api.filled import LOG_KEY, Counted, Ledger, Seconds, objective
from tests.api.serving import app_over
from tests.api.settling import as_, services  # noqa: F401 - fixtures of several modules
from tests.support.sqlite import with_schema


@pytest.fixture
def make_objective() -> Callable[..., dict[str, Any]]:
    return objective


@pytest.fixture
def log_key() -> NoteKey:
    return LOG_KEY


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    database = SqliteDatabase(with_schema(tmp_path / "ledger.db"), Seconds(), Counted())
    yield Ledger(database)
    database.close()


@pytest.fixture
def app(ledger: Ledger) -> Edge:
    return app_over(ledger)


@pytest.fixture(scope="session")
def empty_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient[Any]]:
    """A client of a ledger without events, for what every answer has in common."""
    database = SqliteDatabase(tmp_path_factory.mktemp("empty") / "ledger.db", Seconds(), Counted())
    with TestClient(app_over(Ledger(database)), base_url="http://127.0.0.1") as client:
        yield client
    database.close()


@pytest.fixture
def client(app: Edge) -> Iterator[TestClient[Any]]:
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def world(ledger: Ledger, tmp_path: Path) -> World:
    """The ledger behind a server that requires credentials; who asks it names ``client_of_world`` its client."""
    return World(ledger, tmp_path)
