"""Inserting many rows at the driver's speed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from typing import Any

from sqlalchemy import BigInteger, Column, Connection, Integer, LargeBinary, Table

_ROWS_A_STATEMENT = (100, 10, 1)
"""Of the widest table 1,100 values: SQLite takes 32,766."""


def upsert_rows(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Like ``insert_rows``; a row whose primary key exists takes the new values, the last one winning.

    The table's first columns are its primary key.
    """
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        # All rows in one statement, which sets no row twice.
        width = len(table.primary_key.columns)
        last = {row[:width]: row for row in rows}
        with raw_cursor(connection) as cursor:
            cursor.execute(_upsert_arrays_sql(table), [list(column) for column in zip(*last.values(), strict=True)])
    else:
        connection.exec_driver_sql(_upsert_sql(table), list(rows))


def insert_rows(connection: Connection, table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows given as tuples in the order of the table's columns.

    Passes by SQLAlchemy's handling of each value, which takes longer than the insertion itself: columns must be
    of types the driver takes as they are (integers, texts, bytes).
    """
    if connection.dialect.name == "postgresql":
        _copy(connection, table, rows)
    else:
        _insert_many(connection, table, list(rows))


@contextmanager
def raw_cursor(connection: Connection) -> Iterator[Any]:
    """The driver's own cursor in the connection's transaction: SQLAlchemy's way to a row can take longer than
    the database's."""
    cursor: Any = connection.connection.cursor()
    try:
        yield cursor
    finally:
        cursor.close()


def _insert_many(connection: Connection, table: Table, rows: list[tuple[Any, ...]]) -> None:
    """Many rows a statement: where a table has triggers, SQLite keeps a copy of every page that a statement changes,
    and with one row a statement it copies the same few pages for every row."""
    at = 0
    with raw_cursor(connection) as cursor:
        for size in _ROWS_A_STATEMENT:
            whole = (len(rows) - at) // size
            statement = _insert_sql(table, size)
            ends = range(at + size, at + size * whole + 1, size)
            cursor.executemany(statement, [list(chain.from_iterable(rows[end - size : end])) for end in ends])
            at += size * whole


def _copy(connection: Connection, table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
    names = ", ".join(column.name for column in table.columns)
    with (
        raw_cursor(connection) as cursor,
        cursor.copy(f"COPY {table.name} ({names}) FROM STDIN (FORMAT BINARY)") as copy,
    ):
        copy.set_types([_postgres_type(column) for column in table.columns])
        for row in rows:
            copy.write_row(row)


def _postgres_type(column: Column[Any]) -> str:
    for kind, name in ((BigInteger, "int8"), (Integer, "int4"), (LargeBinary, "bytea")):
        if isinstance(column.type, kind):
            return name
    return "text"


@lru_cache(maxsize=64)
def _upsert_sql(table: Table) -> str:
    return _upsert(table, f"VALUES ({', '.join('?' * len(table.columns))})")


@lru_cache(maxsize=64)
def _upsert_arrays_sql(table: Table) -> str:
    kinds = [_postgres_type(column) for column in table.columns]
    arrays = ", ".join(f"{'%b' if kind == 'bytea' else '%s'}::{kind}[]" for kind in kinds)
    return _upsert(table, f"SELECT * FROM unnest({arrays})")  # noqa: S608 - types from _postgres_type


def _upsert(table: Table, source: str) -> str:
    names = [column.name for column in table.columns]
    key = [column.name for column in table.primary_key.columns]
    others = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
    return (
        f"INSERT INTO {table.name} ({', '.join(names)}) {source} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {others}"
    )


@lru_cache(maxsize=64)
def _insert_sql(table: Table, rows: int) -> str:
    names = ", ".join(column.name for column in table.columns)
    row = f"({', '.join('?' * len(table.columns))})"
    return f"INSERT INTO {table.name} ({names}) VALUES {', '.join([row] * rows)}"  # noqa: S608 - names of tables.py
