"""The migrations build exactly the tables the code works with."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from ledger.app.ports.chain import StoredTransaction
from ledger.resources import resource_dir
from ledger.store.database import SqliteDatabase
from ledger.store.migrate import SCHEMA_REVISION, current_revision
from ledger.store.tables import metadata
from tests.conformance.samples import SeededRandomness, StepClock

pytestmark = pytest.mark.slow


def definitions(connection: sqlite3.Connection) -> dict[str, str]:
    """CREATE TABLE and INDEX as SQLite keeps them; constraints in any order, triggers and alembic's table left out."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'index') AND sql NOT NULL")
    return {
        name: "\n".join(sorted(re.sub(r"\s+", " ", line).strip(" ,") for line in sql.splitlines()))
        for name, sql in rows
        if name != "alembic_version"
    }


def test_the_schema_is_that_of_the_tables(path: Path, database: SqliteDatabase, tmp_path: Path) -> None:
    with database._write() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    expected = tmp_path / "expected.db"
    metadata.create_all(create_engine(f"sqlite:///{expected}"))
    assert definitions(sqlite3.connect(path)) == definitions(sqlite3.connect(expected))


def test_the_comparison_sees_a_difference(database: SqliteDatabase) -> None:
    with database._write() as connection:
        connection.exec_driver_sql("ALTER TABLE outbox ADD COLUMN extra TEXT")
        assert compare_metadata(MigrationContext.configure(connection), metadata) != []


def test_there_is_one_newest_migration_and_the_code_names_it(database: SqliteDatabase) -> None:
    config = Config()
    config.set_main_option("script_location", str(resource_dir("migrations")))
    assert ScriptDirectory.from_config(config).get_heads() == [SCHEMA_REVISION]
    with database._write() as connection:
        assert current_revision(connection) == SCHEMA_REVISION


def test_a_migration_that_fails_leaves_no_half_schema(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ledger.store import database as module
    from ledger.store.migrate import upgrade

    def fail_after(connection: object) -> None:
        upgrade(connection)  # type: ignore[arg-type]
        raise RuntimeError

    monkeypatch.setattr(module, "upgrade", fail_after)
    with pytest.raises(RuntimeError):
        SqliteDatabase(path, StepClock(), SeededRandomness(1))
    assert sqlite3.connect(path).execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def test_transactions_that_were_stored_before_chains_were_counted_stay(path: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    upgrade = [sys.executable, "-m", "alembic", "-x", f"url=sqlite:///{path}", "upgrade"]
    subprocess.run([*upgrade, "0003"], cwd=root, check=True, capture_output=True)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "INSERT INTO chain_transaction VALUES "
            "(0, '131277322940537', '0xA', 0, 'deploy', '0xa1', x'02', 9, 1, '0xb2')"
        )
    connection.close()
    database = SqliteDatabase(path, StepClock(), SeededRandomness(1))
    with database.read() as tx:
        (stored,) = tx.chain.of_chain(131277322940537)
    database.close()
    assert stored == StoredTransaction(
        ordinal=0,
        chain_id=131277322940537,
        sender="0xA",
        nonce=0,
        purpose="deploy",
        effect="0xa1",
        tx_hash="0xa1",
        raw=b"\x02",
        block_timestamp_s=9,
        block_number=1,
        block_hash="0xb2",
        state="finalized",
    )


def test_the_command_line_works_on_a_named_file(path: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    for command in (["upgrade", "head"], ["current"]):
        done = subprocess.run(
            [sys.executable, "-m", "alembic", "-x", f"url=sqlite:///{path}", *command],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert SCHEMA_REVISION in done.stdout
