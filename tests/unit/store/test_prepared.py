"""Statements in PostgreSQL's binary form: the server reads the arrays that were packed, and connections recover."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.app.ports.store import Transaction
from ledger.errors import StorageUnavailable, VersionConflict
from ledger.store import postgres_session
from ledger.store.postgres import PostgresDatabase
from ledger.store.prepared import bytea_array, int4_array, int8_array, optional_bytea_array, text_array
from tests.conformance.samples import windows
from tests.support.postgres import Server
from tests.support.postgres_processes import open_postgres


class SecondThoughts(Exception):
    """The caller gives up its transaction."""


ARRAYS = [
    (int4_array, "int4", st.integers(-(2**31), 2**31 - 1)),
    (int8_array, "int8", st.integers(-(2**63), 2**63 - 1)),
    (text_array, "text", st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))),
    (bytea_array, "bytea", st.binary()),
    (optional_bytea_array, "bytea", st.binary() | st.none()),
]


@pytest.fixture(scope="module")
def raw(postgres_server: Server) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_server.url, autocommit=True, client_encoding="utf8") as connection:
        yield connection


@pytest.fixture
def database(postgres_url: str) -> Iterator[PostgresDatabase]:
    database = open_postgres(postgres_url)
    yield database
    database.close()


@given(data=st.data())
@pytest.mark.parametrize(("pack", "kind", "values"), ARRAYS, ids=lambda part: getattr(part, "__name__", None))
def test_the_server_reads_an_array_as_it_was_packed(
    raw: psycopg.Connection[Any],
    pack: Callable[[Sequence[Any]], bytes],
    kind: str,
    values: st.SearchStrategy[Any],
    data: st.DataObject,
) -> None:
    expected = data.draw(st.lists(values, min_size=1))
    packed = raw.pgconn.exec_params(f"SELECT $1::{kind}[]::text".encode(), [pack(expected)], None, [1], 0)
    assert packed.error_message == b""
    written = packed.get_value(0, 0)
    cursor = raw.execute(f"SELECT (%s::{kind}[])::text", [expected])
    row = cursor.fetchone()
    assert row is not None
    assert written == row[0].encode()


def end_backends(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )


def test_after_a_server_ended_its_connections_one_append_fails_and_the_next_takes_a_new_one(
    postgres_url: str, database: PostgresDatabase
) -> None:
    database.append("windows/a", windows(1), expected_version=0)
    with database._singles.connection(), database._singles.connection():
        pass
    end_backends(postgres_url)
    with pytest.raises(StorageUnavailable, match="may have been written"):
        database.append("windows/a", windows(1), expected_version=1)
    # The other connection that was held is gone as well: nobody finds it broken a second time.
    database.append("windows/a", windows(1), expected_version=1)
    with database._singles.connection(), database._singles.connection():
        pass
    database.append("windows/a", windows(2), expected_version=2)
    assert database.sequence_once() == 4


def test_a_connection_that_was_made_to_forget_its_statements_prepares_them_again(database: PostgresDatabase) -> None:
    for version in range(2):
        database.append("windows/a", windows(1), expected_version=version)
    for count, version in ((1, 2), (2, 3)):
        with database._singles.connection() as connection:
            connection.exec_driver_sql("DEALLOCATE ALL")
        database.append("windows/a", windows(count), expected_version=version)
    assert database.sequence_once() == 5


def test_an_append_that_is_refused_keeps_its_connection(database: PostgresDatabase) -> None:
    database.append("windows/a", windows(1), expected_version=0)
    with database._singles.connection() as connection:
        before = connection
    for expected in (0, 5):
        with pytest.raises(VersionConflict):
            database.append("windows/a", windows(1), expected_version=expected)
    with database._singles.connection() as connection:
        assert connection is before
        assert not connection.in_transaction()


def test_no_more_connections_are_held_than_the_pool_keeps(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_session, "POOL_SIZE", 1)
    with database._singles.connection(), database._singles.connection(), database._singles.connection():
        pass
    assert len(database._singles._idle) == 1


def test_an_append_in_a_transaction_ends_with_it(database: PostgresDatabase) -> None:
    def append_and_give_up(tx: Transaction) -> None:
        tx.events.append("windows/a", windows(1), expected_version=0)
        tx.events.append("windows/a", windows(1), expected_version=1)
        raise SecondThoughts

    for _ in range(3):
        with pytest.raises(SecondThoughts), database.begin() as tx:
            append_and_give_up(tx)
    with database.begin() as tx:
        assert not list(tx.events.stream("windows/a"))
