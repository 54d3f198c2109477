"""Rows of the log cannot be changed, removed or replaced: the database itself refuses, whoever connects."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text

from ledger.errors import LogInconsistent
from ledger.merkle.hasher import leaf_hash
from ledger.merkle.verify import root_from_inclusion
from ledger.store.database import SqliteDatabase

UPDATES = [
    "UPDATE event SET payload = x'7b7d' WHERE version = 0",
    "UPDATE event SET stream = 'elsewhere'",
    "UPDATE OR REPLACE event SET version = 1 WHERE version = 0",
    "UPDATE append_request SET digest = x'00'",
    "UPDATE leaf SET leaf_hash = zeroblob(32) WHERE seq = 0",
    "UPDATE checkpoint SET root = zeroblob(32)",
    "UPDATE tile SET data = zeroblob(8192) WHERE tile_index = 0 AND level = 0",
    "UPDATE tile SET data = zeroblob(32 * width) WHERE tile_index = 1",
    "UPDATE tile SET data = substr(data, 1, 32), width = 1 WHERE tile_index = 1",
    "UPDATE tile SET data = zeroblob(8192), width = 256 WHERE tile_index = 1",
    "UPDATE tile SET tile_index = 9 WHERE tile_index = 1",
    "UPDATE stream_head SET version = 5",
    "UPDATE log_state SET size = 299",
    "UPDATE log_state SET size = 301, sequenced_at_ns = 0",
    "UPDATE secret SET value = x'02'",
]
DELETES = [
    f"DELETE FROM {table}"
    for table in ("event", "append_request", "leaf", "checkpoint", "tile", "stream_head", "log_state")
]
REST = "type, schema_version, payload_class, occurred_at_ns, recorded_at_ns, salt"
REPLACEMENTS = [
    f"INSERT OR REPLACE INTO event SELECT id, tenant, stream, version, {REST}, x'7b7d' FROM event WHERE version = 0",
    # Another id in the same place of the stream.
    f"INSERT OR REPLACE INTO event SELECT 'new', tenant, stream, version, {REST}, x'7b7d' FROM event WHERE version = 0",
    # Another event over the hidden rowid of an old one.
    f"""INSERT OR REPLACE INTO event (rowid, id, tenant, stream, version, {REST}, payload)
    SELECT 1, 'new', tenant, 'new', 0, {REST}, payload FROM event WHERE version = 5""",
    "REPLACE INTO append_request SELECT tenant, idempotency_key, x'00', stream, 0, 1 FROM append_request",
    "REPLACE INTO leaf SELECT seq, event_id, zeroblob(32), 0 FROM leaf WHERE seq = 0",
    "REPLACE INTO leaf SELECT 1000, event_id, zeroblob(32), 0 FROM leaf WHERE seq = 0",
    "REPLACE INTO checkpoint SELECT size, zeroblob(32), note FROM checkpoint",
    "REPLACE INTO tile SELECT level, tile_index, width, zeroblob(32 * width) FROM tile",
    "REPLACE INTO tile (rowid, level, tile_index, width, data) VALUES (1, 7, 7, 1, zeroblob(32))",
    "REPLACE INTO stream_head SELECT tenant, stream, 0 FROM stream_head",
    "REPLACE INTO log_state VALUES (0, 0, 0)",
    "REPLACE INTO secret SELECT tenant, name, x'02' FROM secret",
]


def contents(raw: sqlite3.Connection) -> list[list[tuple[object, ...]]]:
    names = ("event", "append_request", "leaf", "checkpoint", "tile", "stream_head", "log_state", "secret")
    return [raw.execute(f"SELECT rowid, * FROM {name} ORDER BY rowid").fetchall() for name in names]


@pytest.mark.parametrize("statement", UPDATES + DELETES + REPLACEMENTS)
@pytest.mark.parametrize("recursive_triggers", ["ON", "OFF"])
def test_the_database_itself_refuses(raw: sqlite3.Connection, statement: str, recursive_triggers: str) -> None:
    raw.execute(f"PRAGMA recursive_triggers = {recursive_triggers}")
    before = contents(raw)
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute(statement)
    assert contents(raw) == before


@pytest.mark.parametrize("statement", [UPDATES[0], DELETES[0], REPLACEMENTS[0]])
def test_the_products_own_connection_is_refused_too(filled: SqliteDatabase, statement: str) -> None:
    with pytest.raises(LogInconsistent), filled._write() as connection:
        connection.execute(text(statement))


def test_a_partial_tile_may_grow(raw: sqlite3.Connection) -> None:
    (data,) = raw.execute("SELECT data FROM tile WHERE tile_index = 1").fetchone()
    raw.execute("UPDATE tile SET data = ?, width = width + 1 WHERE tile_index = 1", (data + bytes(32),))


def test_what_is_rewritten_after_dropping_the_triggers_shows_in_the_proofs(
    path: Path, filled: SqliteDatabase, raw: sqlite3.Connection
) -> None:
    """Nothing in a file stops its owner for good; the signed root does."""
    with filled.read() as tx:
        before = tx.log.root(300)
    raw.execute("DROP TRIGGER tile_grows")
    raw.execute("UPDATE tile SET data = zeroblob(8192) WHERE level = 0 AND tile_index = 0")
    with filled.read() as tx:
        event = tx.events.at(3)
        assert root_from_inclusion(3, 300, leaf_hash(event.entry), tx.log.inclusion_proof(3, 300)) != before
