"""``fsck`` aimed at by someone who owns the file: every way of changing a stored log is named, with its seq.

The forger here drops all triggers first. The template has 300 events in one stream, one full tile of leaves and one
partial one, a checkpoint of size 300 and an idempotency key.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from ledger.app.log.erasure import erase_payload
from ledger.app.log.fsck import MAX_FINDINGS, FsckReport, fsck
from ledger.app.log.restore_guard import KnownCheckpoint
from ledger.domain.record.events import commit_canonical, event_header, header_entry
from ledger.merkle.checkpoint import Checkpoint, sign_checkpoint
from ledger.merkle.hasher import leaf_hash
from ledger.merkle.tile import TileId
from ledger.merkle.tree import grow
from ledger.store.database import SqliteDatabase
from tests.conformance.samples import (
    LOG_KEY,
    TRUST,
    SeededRandomness,
    StepClock,
    agreement,
    erasable,
    line_issued,
    line_reversed,
    signed_checkpoint,
    statement,
    violation,
    windows,
)


@pytest.fixture
def forger(raw: sqlite3.Connection) -> sqlite3.Connection:
    drop_triggers(raw)
    return raw


def drop_triggers(raw: sqlite3.Connection) -> None:
    raw.execute("PRAGMA foreign_keys = OFF")
    for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        raw.execute(f"DROP TRIGGER {name}")


def check(database: SqliteDatabase, *known: KnownCheckpoint) -> FsckReport:
    with database.inspect() as inspection:
        return fsck(inspection, TRUST, known)


def found(report: FsckReport) -> set[tuple[str, int | None]]:
    return {(finding.what, finding.seq) for finding in report.findings}


def outside(database: SqliteDatabase, size: int = 300) -> KnownCheckpoint:
    """A checkpoint that somebody else has kept."""
    with database.read() as tx:
        return KnownCheckpoint(size, tx.log.root(size), "the witness")


def test_a_sound_log_is_clean(filled: SqliteDatabase) -> None:
    report = check(filled, outside(filled, 1), outside(filled, 256), outside(filled))
    assert report.clean
    assert (report.size, report.checkpoints, report.outside, report.root) == (300, 1, 3, outside(filled).root)


def test_an_empty_log_is_clean(database: SqliteDatabase) -> None:
    report = check(database)
    assert (report.clean, report.size) == (True, 0)


@pytest.mark.parametrize("at", [0, 1, 100, -1])
@pytest.mark.parametrize("seq", [0, 7, 255, 256, 299])
def test_one_flipped_payload_byte_and_fsck_names_the_seq(
    filled: SqliteDatabase, forger: sqlite3.Connection, seq: int, at: int
) -> None:
    (payload,) = forger.execute("SELECT payload FROM event WHERE version = ?", (seq,)).fetchone()
    flipped = bytearray(payload)
    flipped[at] ^= 1
    forger.execute("UPDATE event SET payload = ? WHERE version = ?", (bytes(flipped), seq))
    report = check(filled)
    assert ("event", seq) in found(report)
    # A byte that breaks the JSON, or that a view shows, leaves the view row without its event, too; and the last
    # event is one that an idempotency key is bound to.
    assert found(report) - {("event", seq), ("view", seq)} == ({("idempotency_key", None)} if seq == 299 else set())


@pytest.mark.parametrize(
    "change",
    [
        "salt = zeroblob(32)",
        "occurred_at_ns = occurred_at_ns + 1",
        "recorded_at_ns = recorded_at_ns - 1",
        "type = 'window_judged'",
        "schema_version = 3",
        "payload_class = 'other'",
        "tenant = 'other'",
        "payload = 7",
        "payload = 'text'",
        "recorded_at_ns = 'noon'",
        "salt = '12345678901234567890123456789012'",
    ],
)
def test_a_changed_column_of_an_event_names_the_seq(
    filled: SqliteDatabase, forger: sqlite3.Connection, change: str
) -> None:
    forger.execute(f"UPDATE event SET {change} WHERE version = 41")
    report = check(filled)
    assert ("event", 41) in found(report) or ("unreadable", 41) in found(report)
    others = {finding for finding in found(report) if finding[0] in ("event", "unreadable", "tile", "leaf")}
    assert {seq for _, seq in others} == {41}


FORGERIES: dict[str, tuple[str, set[tuple[str, int | None]]]] = {
    "leaf hash": ("UPDATE leaf SET leaf_hash = zeroblob(32) WHERE seq = 41", {("leaf", 41)}),
    "hash in a tile": (
        "UPDATE tile SET data = CAST(zeroblob(32) || substr(data, 33) AS BLOB) WHERE level = 0 AND tile_index = 1",
        {("tile", 256)},
    ),
    "hash in an upper tile": ("UPDATE tile SET data = zeroblob(32) WHERE level = 1", {("tile", 0)}),
    "no tile": ("DELETE FROM tile WHERE level = 0 AND tile_index = 0", {("tile_missing", 0)}),
    "no upper tile": ("DELETE FROM tile WHERE level = 1", {("tile_missing", 0)}),
    "a shorter tile": (
        "UPDATE tile SET data = substr(data, 1, 32), width = 1 WHERE level = 0 AND tile_index = 1",
        {("tile_missing", 256)},
    ),
    "a tile too many": ("INSERT INTO tile VALUES (0, 9, 1, zeroblob(32))", {("tile_extra", None)}),
    "no event": (
        "DELETE FROM event WHERE version = 299",
        {("event_missing", 299), ("view", 299), ("stream_head", None), ("idempotency_key", None)},
    ),
    "no leaf": (
        "DELETE FROM leaf WHERE seq = 41",
        {("leaf_missing", 41), ("size", None), ("unsequenced", None), ("view", 41)},
    ),
    "an event past the log": (
        """INSERT INTO event SELECT 'new', tenant, stream, 300, type, schema_version, payload_class, occurred_at_ns,
        recorded_at_ns, salt, payload FROM event WHERE version = 0""",
        {("unsequenced", None), ("stream_head", None)},
    ),
    "sequenced_at": ("UPDATE leaf SET sequenced_at_ns = 5 WHERE seq = 41", {("sequenced_at", 41)}),
    "the last instant": ("UPDATE log_state SET sequenced_at_ns = 5", {("sequenced_at", 299)}),
    "the size": ("UPDATE log_state SET size = 299", {("size", None)}),
    "no state": ("DELETE FROM log_state", {("size", None)}),
    "a stream head": ("UPDATE stream_head SET version = 7", {("stream_head", None)}),
    "no stream head": ("DELETE FROM stream_head", {("stream_head", None)}),
    "a head of nothing": ("INSERT INTO stream_head VALUES ('default', 'none', 3)", {("stream_head", None)}),
    "a key's digest": ("UPDATE append_request SET digest = zeroblob(32)", {("idempotency_key", None)}),
    "a key's events": ("UPDATE append_request SET events = 2", {("idempotency_key", None)}),
    "a key of another stream": ("UPDATE append_request SET stream = 'b'", {("idempotency_key", None)}),
    "a checkpoint's root": (
        "UPDATE checkpoint SET root = zeroblob(32)",
        {("checkpoint_root", 0), ("checkpoint_row", None)},
    ),
    "a checkpoint's size": (
        "UPDATE checkpoint SET size = 299",
        {("checkpoint_root", 0), ("checkpoint_row", None)},
    ),
    "a checkpoint ahead": ("UPDATE checkpoint SET size = 301", {("checkpoint_ahead", None)}),
    "a note that is none": ("UPDATE checkpoint SET note = x'00'", {("checkpoint_signature", None)}),
    "a note of another type": (
        "UPDATE checkpoint SET note = CAST(note AS TEXT)",
        {("checkpoint_signature", None)},
    ),
    "a payload where none may be": (
        "INSERT INTO event_payload SELECT id, salt, payload FROM event WHERE version = 3",
        {("stray_payload", None)},
    ),
    "a view row": ("UPDATE view_window SET body = x'7b7d' WHERE window_index = 41", {("view", 41)}),
    "a view row's seq": ("UPDATE view_window SET seq = 5 WHERE window_index = 41", {("view", 41)}),
    "no view row": ("DELETE FROM view_window WHERE window_index = 41", {("view", 41)}),
    "a view row of nothing": (
        "INSERT INTO view_window SELECT tenant, sla_id, period, 9999, start_ns, body, 9 FROM view_window LIMIT 1",
        {("view", 9)},
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_triggers_dropped_and_a_row_edited_is_found(
    filled: SqliteDatabase, forger: sqlite3.Connection, name: str
) -> None:
    forgery, expected = FORGERIES[name]
    assert forger.execute(forgery).rowcount > 0
    assert found(check(filled)) == expected


def test_two_events_that_change_places_are_found(filled: SqliteDatabase, forger: sqlite3.Connection) -> None:
    first, second = (forger.execute("SELECT event_id FROM leaf WHERE seq = ?", (seq,)).fetchone()[0] for seq in (4, 5))
    forger.execute("UPDATE leaf SET event_id = 'x' WHERE seq = 4")
    forger.execute("UPDATE leaf SET event_id = ? WHERE seq = 5", (first,))
    forger.execute("UPDATE leaf SET event_id = ? WHERE seq = 4", (second,))
    assert {("event", 4), ("event", 5), ("stream_order", 4)} <= found(check(filled))


def test_a_version_that_is_skipped_is_found(filled: SqliteDatabase, forger: sqlite3.Connection) -> None:
    forger.execute("UPDATE event SET version = version + 1 WHERE version = 299")
    assert {("event", 299), ("stream_version", 299), ("stream_head", None)} <= found(check(filled))


def rewrite(raw: sqlite3.Connection, seq: int, payload: bytes) -> None:
    """The whole forgery: payload, leaf hash and every tile over it, as if it had been so from the start."""
    columns = "id, tenant, stream, version, type, schema_version, payload_class, occurred_at_ns, recorded_at_ns, salt"
    row = raw.execute(f"SELECT {columns} FROM event WHERE version = ?", (seq,)).fetchone()
    names = ("id", "tenant", "stream", "version", "type", "schema", "payload_class", "occurred_at_ns", "recorded_at_ns")
    header = type("Header", (), dict(zip(names, row, strict=False)))()
    forged = leaf_hash(header_entry(event_header(header, commit_canonical(payload, row[-1]))))
    raw.execute("UPDATE event SET payload = ? WHERE version = ?", (payload, seq))
    raw.execute("UPDATE leaf SET leaf_hash = ? WHERE seq = ?", (forged, seq))
    leaves = [data for (data,) in raw.execute("SELECT leaf_hash FROM leaf ORDER BY seq")]
    tiles: dict[TileId, bytes] = dict(grow(0, leaves, lambda _wanted: {}).tiles)
    for tile, data in tiles.items():
        raw.execute("UPDATE tile SET data = ? WHERE level = ? AND tile_index = ?", (data, tile.level, tile.index))


def changed_payload(raw: sqlite3.Connection, seq: int) -> bytes:
    (payload,) = raw.execute("SELECT payload FROM event WHERE version = ?", (seq,)).fetchone()
    document = json.loads(payload)
    document["inputs"] = []
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def test_payload_leaf_hash_and_tiles_rewritten_together_are_found_against_an_external_checkpoint(
    filled: SqliteDatabase, forger: sqlite3.Connection
) -> None:
    early, late = outside(filled, 40), outside(filled)
    rewrite(forger, 41, changed_payload(forger, 41))
    # The forger has no key: the stored checkpoint gives the forgery away by itself ...
    assert found(check(filled)) == {("checkpoint_root", 0)}
    # ... and once it is gone, or signed anew by a forger who has the key, only what others kept does.
    forger.execute("DELETE FROM checkpoint")
    assert check(filled).clean
    with filled.begin() as tx:
        root = tx.log.root(300)
        tx.log.save_checkpoint(300, root, signed_checkpoint(300, root))
    assert check(filled).clean
    report = check(filled, early, late)
    assert found(report) == {("outside_root", 40)}
    assert (report.findings[0].expected, report.findings[0].found) == (late.root.hex(), root.hex())
    assert "from seq 40 to 299" in report.findings[0].message


def test_a_log_that_was_cut_off_is_found_against_an_external_checkpoint(path: Path, template: Path) -> None:
    shutil.copy(template, path)
    database = SqliteDatabase(path, StepClock(), SeededRandomness(4))
    with database.begin() as tx:
        tx.events.append("windows/b", windows(5), expected_version=0)
    known = outside(database, 305)
    database.close()
    shutil.copy(template, path)
    restored = SqliteDatabase(path, StepClock(), SeededRandomness(5))
    assert check(restored).clean
    assert found(check(restored, known)) == {("log_too_short", 300)}
    with restored.begin() as tx:
        tx.events.append("windows/b", windows(9), expected_version=0)
    assert found(check(restored, known)) == {("outside_root", 300)}


def test_a_checkpoint_by_another_key_or_of_another_log_is_found(
    filled: SqliteDatabase, forger: sqlite3.Connection
) -> None:
    root = outside(filled).root
    for origin in ("log.example/other", LOG_KEY.key.name):
        note = sign_checkpoint(Checkpoint(origin, 300, root), [LOG_KEY])
        forger.execute("UPDATE checkpoint SET note = ?", (note.replace(b"A", b"B") if "test" in origin else note,))
        assert ("checkpoint_signature", None) in found(check(filled))


def test_old_keys_hold_for_the_sizes_they_signed(filled: SqliteDatabase) -> None:
    asked: list[int] = []
    trust = type(TRUST)(TRUST.origin, lambda size: asked.append(size) or TRUST.keys_at(size), TRUST.verify)
    with filled.inspect() as inspection:
        assert fsck(inspection, trust).clean
    assert asked == [300]


def test_the_number_of_findings_is_bounded_and_all_are_counted(
    filled: SqliteDatabase, forger: sqlite3.Connection
) -> None:
    forger.execute("UPDATE event SET salt = zeroblob(32)")
    report = check(filled)
    assert len(report.findings) == MAX_FINDINGS
    assert report.counts["event"] == 300


def with_erasable(database: SqliteDatabase) -> tuple[str, str]:
    """Two erasable events at seq 300 and 301, the first of them erased by seq 302; their ids."""
    with database.begin() as tx:
        receipts = tx.events.append(
            "agreements",
            [erasable(agreement(1)), erasable(agreement(2))],
            expected_version=0,
            idempotency_key="agreements",
        )
        first, second = (receipt.event_id for receipt in receipts)
        erase_payload(tx, first, reason="r", requested_by=None, now_ns=1)
    return first, second


def test_an_erased_payload_is_accepted_with_its_record(filled: SqliteDatabase) -> None:
    with_erasable(filled)
    report = check(filled)
    assert (report.clean, report.erased, report.size) == (True, 1, 303)


def test_a_payload_that_is_gone_without_a_record_is_found(filled: SqliteDatabase, forger: sqlite3.Connection) -> None:
    with_erasable(filled)
    forger.execute("DELETE FROM event_payload")
    assert ("payload_missing", 301) in found(check(filled))


def test_an_erased_payload_that_came_back_is_found(filled: SqliteDatabase, forger: sqlite3.Connection) -> None:
    (payload,) = forger.execute("SELECT payload FROM event WHERE version = 0").fetchone()
    first, _ = with_erasable(filled)
    forger.execute("INSERT INTO event_payload VALUES (?, zeroblob(32), ?)", (first, payload))
    assert {("payload", 300), ("not_erased", 302)} <= found(check(filled))


def test_a_changed_erasable_payload_salt_or_commitment_is_found(
    filled: SqliteDatabase, forger: sqlite3.Connection
) -> None:
    with_erasable(filled)
    forger.execute("UPDATE event_payload SET payload = CAST(payload || x'20' AS BLOB)")
    assert ("payload", 301) in found(check(filled))
    forger.execute("UPDATE event_payload SET salt = zeroblob(32)")
    assert ("payload", 301) in found(check(filled))
    forger.execute("UPDATE event SET payload = zeroblob(32) WHERE stream = 'agreements' AND version = 0")
    assert ("event", 300) in found(check(filled))


def test_a_class_that_was_changed_to_hide_a_payload_is_found(
    filled: SqliteDatabase, forger: sqlite3.Connection
) -> None:
    forger.execute("UPDATE event SET payload_class = 'erasable' WHERE version = 41")
    assert {("event", 41), ("payload_missing", 41)} <= found(check(filled))


def test_views_of_every_kind_are_compared(filled: SqliteDatabase, forger: sqlite3.Connection) -> None:
    with filled.begin() as tx:
        tx.events.append("s", [agreement(), statement(), statement(2)], expected_version=0)
    assert check(filled).clean
    forger.execute("UPDATE view_credit SET start_ns = start_ns + 1")
    forger.execute("DELETE FROM view_agreement")
    assert found(check(filled)) == {("view", 300), ("view", 301), ("view", 302)}
    filled.rebuild_views()
    assert check(filled).clean


def test_views_that_several_types_set_are_compared(filled: SqliteDatabase, forger: sqlite3.Connection) -> None:
    events = [violation("opened"), violation("closed"), line_issued(1), line_issued(2), line_reversed(1)]
    with filled.begin() as tx:
        tx.events.append("s", events, expected_version=0)
    assert check(filled).clean
    forger.execute("UPDATE view_violation SET state = 'open'")
    forger.execute("UPDATE view_credit_line SET status = 'issued' WHERE line_id LIKE '%.l0001'")
    forger.execute("DELETE FROM view_credit_line WHERE line_id LIKE '%.l0002'")
    assert found(check(filled)) == {("view", 301), ("view", 303), ("view", 304)}
    filled.rebuild_views()
    assert check(filled).clean


def test_fsck_changes_nothing_and_sees_one_snapshot(path: Path, filled: SqliteDatabase) -> None:
    filled.close()
    before = path.read_bytes()
    with filled.inspect() as inspection:
        with filled.begin() as tx:
            tx.events.append("windows/b", windows(2), expected_version=0)
        report = fsck(inspection, TRUST)
    assert (report.clean, report.size) == (True, 300)
    assert len(before) > 0
