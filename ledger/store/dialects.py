"""What SQLite and PostgreSQL have in common but SQLAlchemy says for each of them, and what one of them has alone."""

from __future__ import annotations

from typing import TypeAlias

from sqlalchemy import Connection, Table, text
from sqlalchemy.dialects import postgresql, sqlite

LEADER_LOCK = 0x534C4153
"""PostgreSQL's advisory lock on the log: it elects one sequencer at a time; the compare-and-swap of the size is the
fence."""

ConflictInsert: TypeAlias = sqlite.Insert | postgresql.Insert


def insert_for(connection: Connection, table: Table) -> ConflictInsert:
    """An INSERT with ON CONFLICT for the connection's database."""
    return postgresql.insert(table) if is_postgresql(connection) else sqlite.insert(table)


def is_postgresql(connection: Connection) -> bool:
    """Whether this is PostgreSQL, where many transactions write at a time; else SQLite, where one does."""
    return connection.dialect.name == "postgresql"


def hold_log(connection: Connection) -> None:
    """Wait for whoever gives events their place, and keep others from it until the transaction ends; PostgreSQL."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LEADER_LOCK})
