"""Inserting many rows at the driver's speed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Dialect, Table, insert


def upsert_rows(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Like ``insert_rows``; a row whose primary key exists takes the new values, the last one winning."""
    if rows:
        connection.exec_driver_sql(_upsert_sql(table, connection.dialect.paramstyle), list(rows))


def insert_rows(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows given as tuples in the order of the table's columns.

    Passes by SQLAlchemy's handling of each value, which takes longer than the insertion itself: columns must be
    of types the driver takes as they are (integers, texts, bytes).
    """
    if rows:
        connection.exec_driver_sql(_insert_sql(table, connection.dialect), list(rows))


@lru_cache(maxsize=64)
def _upsert_sql(table: Table, paramstyle: str) -> str:
    # Both databases read this one spelling; only the marks of the parameters differ.
    names = [column.name for column in table.columns]
    key = [column.name for column in table.primary_key.columns]
    marks = ", ".join(["?" if paramstyle == "qmark" else "%s"] * len(names))
    others = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
    return (
        f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks}) "  # noqa: S608 - names from tables.py
        f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {others}"
    )


@lru_cache(maxsize=64)
def _insert_sql(table: Table, dialect: Dialect) -> str:
    return str(insert(table).compile(dialect=dialect))
