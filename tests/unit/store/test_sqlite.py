"""SQLite: durability, transactions, and clear errors when the file cannot be used."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.event import listen

from ledger.domain.record.events import StoredEvent
from ledger.errors import LogInconsistent, ReadOnlyTransaction, StorageDamaged, StorageUnavailable, TreeDamaged
from ledger.merkle.hasher import leaf_hash
from ledger.store.database import SqliteDatabase
from ledger.store.session import open_engine
from tests.conformance.samples import (
    SLA_ID,
    SeededRandomness,
    StepClock,
    agreement,
    naive_root,
    signed_checkpoint,
    windows,
)


def reopen(path: Path, tenant: str = "default", seed: int = 3) -> SqliteDatabase:
    return SqliteDatabase(path, StepClock(), SeededRandomness(seed), tenant, busy_timeout_ms=200)


def all_events(database: SqliteDatabase) -> list[StoredEvent]:
    with database.read() as tx:
        return list(tx.events.since(0, limit=10_000))


def test_data_survives_a_reopening(path: Path, filled: SqliteDatabase) -> None:
    before = all_events(filled)
    with filled.begin() as tx:
        digest = tx.batches.put(b"rows")
        tx.outbox.add(before[0].id, "attest")
        tx.identities.add(SLA_ID, "gateway", [(b"1" * 16, b"body")])
    filled.close()
    again = reopen(path)
    assert all_events(again) == before
    with again.begin() as tx:
        assert tx.log.checkpoint() == signed_checkpoint(300, tx.log.root(300))
        assert (tx.batches.get(digest), tx.secrets.get("salt"), tx.outbox.pending()) == (b"rows", b"\x01", 1)
        assert tx.identities.known(SLA_ID, "gateway", [b"1" * 16]) == {b"1" * 16: frozenset({b"body"})}
        (receipt,) = tx.events.append("windows/a", windows(1), expected_version=300)
        assert receipt.seq == 300
    again.close()


def test_every_commit_is_synchronous_and_readers_do_not_block(database: SqliteDatabase) -> None:
    with database._write() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "recursive_triggers")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "recursive_triggers": 1}


def test_streams_views_and_secrets_belong_to_a_tenant_but_the_log_is_one(path: Path) -> None:
    first, second = reopen(path, "a"), reopen(path, "b", seed=4)
    with first.begin() as tx:
        tx.events.append("agreements", [agreement()], expected_version=0, idempotency_key="key")
        tx.secrets.put("salt", b"a")
        tx.batches.put(b"rows")
    with second.begin() as tx:
        assert (list(tx.events.stream("agreements")), tx.views.agreements()) == ([], [])
        (receipt,) = tx.events.append("agreements", windows(1), expected_version=0, idempotency_key="key")
        tx.secrets.put("salt", b"b")
        assert receipt.seq == 1
        assert [event.tenant for event in tx.events.since(0)] == ["a", "b"]
    with first.read() as tx:
        assert len(tx.views.agreements()) == 1
        assert tx.secrets.get("salt") == b"a"
    for database in (first, second):
        database.close()


def test_a_reading_connection_cannot_write_at_all(filled: SqliteDatabase) -> None:
    with pytest.raises(ReadOnlyTransaction), filled.read() as tx:
        tx.outbox._connection.execute(text("DELETE FROM outbox"))  # type: ignore[attr-defined]


def test_a_writer_that_another_process_holds_up_says_so(path: Path, filled: SqliteDatabase) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageUnavailable, match="locked by another process"), filled.begin() as tx:
        tx.events.append("windows/a", windows(1), expected_version=300)
    other.execute("ROLLBACK")
    other.close()
    with filled.begin() as tx:
        tx.events.append("windows/a", windows(1), expected_version=300)


def test_a_writer_inside_a_writer_says_so(database: SqliteDatabase) -> None:
    with database.begin(), pytest.raises(StorageUnavailable, match="of this process"), database.begin():
        pass


def test_a_full_disk_loses_nothing_that_was_acknowledged(filled: SqliteDatabase) -> None:
    before = all_events(filled)
    with filled._write() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StorageUnavailable, match="no room left"), filled.begin() as tx:
        tx.events.append("windows/a", windows(1000), expected_version=300)
    assert all_events(filled) == before
    with filled._write() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
    with filled.begin() as tx:
        (receipt,) = tx.events.append("windows/a", windows(1), expected_version=300)
    assert receipt.seq == 300


@contextmanager
def ordinary_user() -> Iterator[None]:
    """The superuser may write to everything: step down for a while."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def open_and_append(path: Path) -> None:
    database = reopen(path)
    with database.begin() as tx:
        tx.events.append("windows/a", windows(1), expected_version=None)


@pytest.mark.parametrize("folder_mode", [0o777, 0o555], ids=["file", "file and folder"])
def test_a_read_only_database_says_why_it_cannot_be_written(folder_mode: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        database = reopen(path)
        with database.begin() as tx:
            tx.events.append("windows/a", windows(2), expected_version=0)
        database.close()
        path.chmod(0o444)
        Path(folder).chmod(folder_mode)
        with ordinary_user(), pytest.raises(StorageUnavailable, match="read-only"):
            open_and_append(path)
        Path(folder).chmod(0o755)
        assert len(all_events(reopen(path))) == 2


def test_a_file_that_is_no_database_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database " * 100)
    with pytest.raises(StorageDamaged):
        reopen(path)
    assert path.read_text() == "not a database " * 100


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable, match="could not be opened"):
        reopen(tmp_path / "nowhere" / "ledger.db")


def test_a_database_of_a_newer_version_is_left_alone(path: Path, filled: SqliteDatabase) -> None:
    with filled._write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StorageUnavailable, match="9999"):
        reopen(path)


def test_no_question_about_the_log_reads_a_whole_table(filled: SqliteDatabase) -> None:
    """Proofs, pages, streams, and the next piece of work are found by index, however long the log is."""
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, values: Any, *_rest: Any) -> None:
        asked.append((statement, values))

    listen(filled._writer, "before_cursor_execute", note)
    with filled.begin() as tx:
        (receipt,) = tx.events.append("windows/a", windows(1), expected_version=300, idempotency_key="new")
        tx.log.inclusion_proof(7, 301)
        tx.log.consistency_proof(100, 301)
        tx.log.checkpoint()
        list(tx.events.stream("windows/a"))
        tx.events.since(250)
        tx.events.by_id(receipt.event_id)
        tx.outbox.add(receipt.event_id, "attest")
        tx.outbox.lease(1, 1, holder="worker")
    plans = set()
    with filled._write() as connection:
        for statement, values in [each for each in asked if each[0].startswith(("SELECT", "UPDATE"))]:
            plans |= {
                (row[3], statement) for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
            }
    scans = {plan for plan in plans if plan[0].startswith("SCAN") and "log_state" not in plan[0]}
    # The newest checkpoint is the last row of its table, which is in order of size.
    assert {statement for _, statement in scans if "ORDER BY checkpoint.size DESC" not in statement} == set()
    assert len(plans) > 10


def test_a_batch_that_was_changed_is_not_handed_out(filled: SqliteDatabase) -> None:
    with filled.begin() as tx:
        digest = tx.batches.put(b"rows" * 100)
    for damage in (zlib.compress(b"other"), zlib.compress(b"rows" * 1_000_000), b"no zlib"):
        with filled._write() as connection:
            connection.execute(text("UPDATE raw_batch SET zlib = :data"), {"data": damage})
        with pytest.raises(StorageDamaged, match=digest), filled.read() as tx:
            tx.batches.get(digest)


def test_a_missing_tile_stops_the_log(filled: SqliteDatabase) -> None:
    with filled._write() as connection:
        for statement in ("DROP TRIGGER tile_no_delete", "DELETE FROM tile WHERE level = 0 AND tile_index = 1"):
            connection.exec_driver_sql(statement)
    with pytest.raises(TreeDamaged, match="fsck"), filled.begin() as tx:
        tx.events.append("windows/a", windows(1), expected_version=300)
    assert len(all_events(filled)) == 300


def test_events_and_leaves_stand_or_fall_together(filled: SqliteDatabase) -> None:
    """An id that comes twice cannot be told apart from a damaged log: the append is refused whole."""
    repeated = SqliteDatabase(filled._path, StepClock(), SeededRandomness(1))
    with pytest.raises(LogInconsistent), repeated.begin() as tx:
        tx.events.append("windows/b", windows(1), expected_version=0)
    repeated.close()
    assert len(all_events(filled)) == 300


def test_sequenced_at_never_goes_back(path: Path) -> None:
    clock = StepClock()
    database = SqliteDatabase(path, clock, SeededRandomness(1))
    for jump in (0, -(10**15), 10**12, -(10**9)):
        clock.now += jump
        with database.begin() as tx:
            tx.events.append("windows/a", windows(2), expected_version=None)
    with database.read() as tx:
        connection = tx.log._rows._connection  # type: ignore[attr-defined]
        times = list(connection.scalars(text("SELECT sequenced_at_ns FROM leaf ORDER BY seq")))
    database.close()
    assert times == sorted(times)


def test_threads_append_without_gap_or_loss(database: SqliteDatabase) -> None:
    patient = SqliteDatabase(database._path, StepClock(), SeededRandomness(9), busy_timeout_ms=60_000)
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for version in range(25):
                with patient.begin() as tx:
                    tx.events.append(name, windows(2), expected_version=2 * version)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"windows/{index}",)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    events = all_events(patient)
    patient.close()
    assert [event.seq for event in events] == list(range(200))
    for name in {event.stream for event in events}:
        assert [event.version for event in events if event.stream == name] == list(range(50))


def test_a_file_that_another_is_just_making_is_waited_for(path: Path) -> None:
    """SQLite itself refuses to change the mode of such a file at once."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    other.execute("CREATE TABLE t (x)")
    done = threading.Timer(0.2, lambda: other.execute("COMMIT"))
    done.start()
    engine = open_engine(path, writable=True, busy_timeout_ms=10_000)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    done.join()
    engine.dispose()
    other.close()


_APPENDER = """
import sys
from pathlib import Path
from typing import Any
from ledger.store.database import SqliteDatabase
from tests.conformance.samples import SeededRandomness, StepClock, windows
database = SqliteDatabase(Path(sys.argv[1]), StepClock(), SeededRandomness(int(sys.argv[2])), busy_timeout_ms=60_000)
for _ in range(40):
    with database.begin() as tx:
        tx.events.append("windows/shared", windows(3), expected_version=None)
"""


@pytest.mark.long
def test_processes_that_create_and_fill_one_file_write_one_history(path: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _APPENDER, str(path), str(seed)],
            env={**os.environ, "PYTHONPATH": str(root)},
            stderr=subprocess.PIPE,
        )
        for seed in (11, 12)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    database = reopen(path)
    events = all_events(database)
    assert [event.seq for event in events] == [event.version for event in events] == list(range(240))
    with database.read() as tx:
        assert tx.log.root(240) == naive_root([leaf_hash(event.entry) for event in events])
    database.close()


def test_rows_go_many_a_statement_and_each_of_them_once(path: Path, database: SqliteDatabase) -> None:
    """Around the sizes of the statements, 100 and 10 rows."""
    sizes = (1, 9, 10, 11, 99, 100, 101, 111, 219)
    for size in sizes:
        receipts = database.append(f"windows/{size}", windows(size), expected_version=0)
        assert [receipt.version for receipt in receipts] == list(range(size))
        ids = [receipt.event_id for receipt in receipts]
        assert ids == sorted(set(ids))
    with database.read() as tx:
        events = tx.events.since(0, limit=2000)
        assert len(events) == sum(sizes)
        assert tx.log.root(len(events)) == naive_root([leaf_hash(event.entry) for event in events])


def test_a_new_file_has_pages_that_hold_a_few_events(path: Path, database: SqliteDatabase) -> None:
    database.append("windows/a", windows(1), expected_version=0)
    assert sqlite3.connect(path).execute("PRAGMA page_size").fetchone() == (8192,)
