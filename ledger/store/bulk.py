"""Inserting many rows at the driver's speed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Dialect, Table, insert


def insert_rows(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows given as tuples in the order of the table's columns.

    Passes by SQLAlchemy's handling of each value, which takes longer than the insertion itself: columns must be
    of types the driver takes as they are (integers, texts, bytes).
    """
    if rows:
        connection.exec_driver_sql(_insert_sql(table, connection.dialect), list(rows))


@lru_cache(maxsize=64)
def _insert_sql(table: Table, dialect: Dialect) -> str:
    return str(insert(table).compile(dialect=dialect))
