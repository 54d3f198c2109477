"""API keys in the database: revoked once, never otherwise changed, whoever connects."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest
from psycopg import errors, sql

from ledger.store.database import SqliteDatabase
from tests.conformance.test_working_rows import KEY
from tests.support.postgres import ROLE_PREFIX
from tests.support.postgres_processes import open_postgres

CHANGES = [
    "UPDATE api_key SET role = 'operator'",
    "UPDATE api_key SET tenant = 'bob'",
    "UPDATE api_key SET secret_digest = secret_digest || secret_digest",
    "UPDATE api_key SET sla_ids = ''",
    "UPDATE api_key SET expires_at_ns = NULL",
    "UPDATE api_key SET revoked_at_ns = 3, role = 'operator'",
    "DELETE FROM api_key",
]
REVOKED = ["UPDATE api_key SET revoked_at_ns = NULL", "UPDATE api_key SET revoked_at_ns = 99"]


def test_sqlite_refuses(path: Path, database: SqliteDatabase) -> None:
    with database.begin() as tx:
        tx.keys.add(KEY)
    raw = sqlite3.connect(path)
    replacement = "INSERT OR REPLACE INTO api_key SELECT * FROM api_key"
    for statement in [*CHANGES, replacement]:
        with pytest.raises(sqlite3.IntegrityError):
            raw.execute(statement)
    raw.execute("UPDATE api_key SET revoked_at_ns = 3")
    for statement in [*CHANGES, *REVOKED, replacement]:
        with pytest.raises(sqlite3.IntegrityError):
            raw.execute(statement)


def test_postgresql_refuses_every_role(postgres_url: str) -> None:
    database = open_postgres(postgres_url)
    with database.begin() as tx:
        tx.keys.add(KEY)
    database.close()
    refusals = (errors.InsufficientPrivilege, errors.RestrictViolation)
    for revoked in (False, True):
        for role in ("superuser", "owner", "app", "sequencer"):
            with psycopg.connect(postgres_url, autocommit=True) as connection:
                if role != "superuser":
                    connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(f"{ROLE_PREFIX}_{role}")))
                for statement in [*CHANGES, "TRUNCATE api_key", *(REVOKED if revoked else [])]:
                    with pytest.raises(refusals):
                        connection.execute(statement)
                if role == "sequencer":
                    with pytest.raises(errors.InsufficientPrivilege):
                        connection.execute("SELECT * FROM api_key")
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("UPDATE api_key SET revoked_at_ns = 3 WHERE revoked_at_ns IS NULL")
