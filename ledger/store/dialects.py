"""Statements that SQLite and PostgreSQL have in common, but SQLAlchemy only for each of them."""

from __future__ import annotations

from typing import TypeAlias

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

ConflictInsert: TypeAlias = sqlite.Insert | postgresql.Insert


def insert_for(connection: Connection, table: Table) -> ConflictInsert:
    """An INSERT with ON CONFLICT for the connection's database."""
    return postgresql.insert(table) if is_postgresql(connection) else sqlite.insert(table)


def is_postgresql(connection: Connection) -> bool:
    """Whether this is PostgreSQL, where many transactions write at a time; else SQLite, where one does."""
    return connection.dialect.name == "postgresql"
