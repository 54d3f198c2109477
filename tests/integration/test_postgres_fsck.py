"""``fsck``, erasure, export and import of a log on PostgreSQL; the forger here is a superuser who drops the guards."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ledger.app.log.checkpoints import NoWitnesses, sign_checkpoint
from ledger.app.log.erasure import erase_payload
from ledger.app.log.fsck import FsckReport, fsck
from ledger.app.log.restore_guard import KnownCheckpoint, RestoreGuard
from ledger.app.log.transfer import export_log, import_log
from ledger.attest.crypto.signing import NoteKey, SigningKey, save_key
from ledger.cli.main import main
from ledger.domain.record.canonical import canonical_bytes
from ledger.errors import LogInconsistent, NotSequencedYet
from ledger.store.postgres import PostgresDatabase
from ledger.wiring.data_directory import local_origin
from ledger.wiring.marker import DATA_FORMAT
from tests.conformance.samples import (
    LOG_KEY,
    SLA_ID,
    TRUST,
    LogSigner,
    MemoryPin,
    SeededRandomness,
    StepClock,
    agreement,
    erasable,
    statement,
    window,
    windows,
)
from tests.support.postgres import Server
from tests.support.postgres_processes import open_postgres

FORGERIES: dict[str, tuple[str, set[tuple[str, int | None]]]] = {
    "a payload byte": (
        "UPDATE event SET payload = set_byte(payload, 100, get_byte(payload, 100) # 1) WHERE version = 7",
        {("event", 7), ("view", 7)},
    ),
    "a salt": ("UPDATE event SET salt = decode(repeat('00', 32), 'hex') WHERE version = 41", {("event", 41)}),
    "an erasable payload": ("UPDATE event_payload SET payload = '{}'", {("payload", 300), ("view", 300)}),
    "no erasable payload": ("DELETE FROM event_payload", {("payload_missing", 300), ("view", 300)}),
    "a leaf": ("UPDATE leaf SET leaf_hash = decode(repeat('00', 32), 'hex') WHERE seq = 41", {("leaf", 41)}),
    "a tile": (
        "UPDATE tile SET data = set_byte(data, 0, get_byte(data, 0) # 1) WHERE level = 1",
        {("tile", 0)},
    ),
    "no event": (
        "DELETE FROM event WHERE version = 299",
        {("event_missing", 299), ("view", 299), ("stream_head", None), ("idempotency_key", None)},
    ),
    "an event past the log": (
        """INSERT INTO event SELECT 'new', tenant, 'b', 0, type, schema_version, payload_class, occurred_at_ns,
        recorded_at_ns, salt, payload FROM event WHERE version = 1""",
        {("unsequenced", None), ("stream_head", None)},
    ),
    "a key's digest": ("UPDATE append_request SET digest = ''", {("idempotency_key", None)}),
    "a checkpoint's root": ("UPDATE checkpoint SET root = ''", {("checkpoint_root", 0), ("checkpoint_row", None)}),
    "a view row": ("UPDATE view_window SET body = '{}' WHERE window_index = 41", {("view", 41)}),
    "no view row": ("DELETE FROM view_window WHERE window_index = 41", {("view", 41)}),
}


@pytest.fixture
def database(postgres_url: str) -> Iterator[PostgresDatabase]:
    """300 windows, an agreement that can be erased (seq 300), a key that was used; signed."""
    database = open_postgres(postgres_url)
    database.append("windows/a", windows(299), expected_version=0)
    database.append("windows/a", windows(1, 299), expected_version=299, idempotency_key="key")
    database.append("agreement/a", [erasable(agreement())], expected_version=0)
    sequence(database)
    sign_checkpoint(database, LogSigner(), NoWitnesses(), RestoreGuard(MemoryPin()))
    yield database
    database.close()


def sequence(database: PostgresDatabase) -> None:
    while database.sequence_once():
        pass


def check(database: PostgresDatabase, *known: KnownCheckpoint) -> FsckReport:
    with database.inspect() as inspection:
        return fsck(inspection, TRUST, known)


def erase(database: PostgresDatabase, seq: int) -> None:
    with database.begin() as tx:
        erase_payload(tx, tx.events.at(seq).id, reason="r", requested_by=None, now_ns=1)


def service(database: PostgresDatabase) -> str:
    with database.read() as tx:
        return str(tx.views.agreement(SLA_ID)["service"])


def test_a_sound_log_is_clean_while_events_wait_for_their_place(database: PostgresDatabase) -> None:
    database.append("windows/a", [window(0, bad=1)], expected_version=300, idempotency_key="waits")
    with database.read() as tx:
        outside = KnownCheckpoint(300, tx.log.root(300), "the witness")
    report = check(database, outside)
    assert report.findings == []
    assert (report.size, report.checkpoints) == (301, 1)


@pytest.mark.parametrize("name", FORGERIES)
def test_guards_dropped_and_a_row_edited_is_found(postgres_url: str, database: PostgresDatabase, name: str) -> None:
    forgery, expected = FORGERIES[name]
    with psycopg.connect(postgres_url, autocommit=True) as raw:
        raw.execute("SET session_replication_role = replica")
        triggers = "SELECT tgname, tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal"
        for trigger, table in raw.execute(triggers).fetchall():
            raw.execute(f"DROP TRIGGER {trigger} ON {table}")
        assert raw.execute(forgery).rowcount > 0
    assert {(finding.what, finding.seq) for finding in check(database).findings} == expected


def test_an_erasure_is_whole_once_its_record_is_in_the_log(database: PostgresDatabase) -> None:
    database.append("agreement/a", [erasable(agreement(2, service="second"))], expected_version=1)
    sequence(database)
    assert service(database) == "second"
    erase(database, 301)
    with pytest.raises(NotSequencedYet, match="1 erasures"), database.inspect(timeout_s=0):
        pass
    sequence(database)
    assert service(database) == "chat-7b"
    report = check(database)
    assert (report.findings, report.erased) == ([], 1)
    erase(database, 300)
    sequence(database)
    with database.read() as tx:
        assert tx.views.agreements() == []
    assert (check(database).findings, database.rebuild_views()) == ([], 304)


def test_an_erasure_while_the_row_is_set_again_leaves_the_later_row(database: PostgresDatabase) -> None:
    """The later event and the record of the erasure get their places in one batch."""
    database.append("agreement/a", [agreement(2, service="second")], expected_version=1)
    erase(database, 300)
    sequence(database)
    assert service(database) == "second"
    assert check(database).findings == []


def test_an_event_that_waits_for_its_place_cannot_be_erased_yet(database: PostgresDatabase) -> None:
    with database.begin() as tx:
        (receipt,) = tx.events.append("agreement/a", [erasable(agreement(2))], expected_version=1)
    with pytest.raises(NotSequencedYet), database.begin() as tx:
        erase_payload(tx, receipt.event_id, reason="r", requested_by=None, now_ns=1)


def test_the_app_forgets_no_payload_without_a_record(database: PostgresDatabase) -> None:
    with database.read() as tx:
        event_id = tx.events.at(300).id
    with pytest.raises(LogInconsistent, match="records this erasure"), database.begin() as tx:
        tx.events.forget_payload(event_id)
    assert check(database).findings == []


def test_an_export_becomes_the_same_log_in_another_database(
    database: PostgresDatabase, postgres_server: Server
) -> None:
    database.append("statements", [statement()], expected_version=0)
    erase(database, 300)
    sequence(database)
    exported = io.BytesIO()
    with database.inspect() as inspection:
        export_log(inspection, LOG_KEY.key.name, exported, batches=True)
    url = postgres_server.new_database()
    copy = open_postgres(url, seed=2)
    exported.seek(0)
    with copy.restore() as restoration:
        import_log(exported, restoration, trust=TRUST)
    with database.read() as one, copy.read() as other:
        assert one.log.root(303) == other.log.root(303)
        assert one.views.statements() == other.views.statements()
    assert check(copy).findings == []
    copy.append("windows/a", [window(0, bad=1)], expected_version=300)
    sequence(copy)
    assert check(copy).findings == []
    exported.seek(0)
    with pytest.raises(LogInconsistent, match="new one"), copy.restore():
        pass
    copy.close()
    postgres_server.drop(url)


def test_the_commands_look_after_a_log_on_postgresql(
    postgres_server: Server, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: object) -> Any:
        code = main([*map(str, arguments), "--json"])
        captured = capfd.readouterr()
        assert code == 0, captured.out + captured.err
        return json.loads(captured.out)

    key = SigningKey(b"\x09" * 32)
    data, url, copy_url = tmp_path / "data", postgres_server.empty_database(), postgres_server.empty_database()
    (data / "keys").mkdir(parents=True, mode=0o700)
    save_key(data / "keys" / "log.key", key)
    (data / "data.json").write_bytes(canonical_bytes({"format": DATA_FORMAT, "genesis_timestamp_s": 1}))
    vkey = NoteKey(local_origin(key.public_key), key).key.vkey()
    at = ("--data", data, "--database", url)
    assert run("fsck", *at)["size"] == 0
    database = PostgresDatabase(url, StepClock(), SeededRandomness(1))
    database.append("windows/a", windows(5), expected_version=0)
    database.append("agreement/a", [erasable(agreement())], expected_version=0)
    sequence(database)
    with database.read() as tx:
        event_id = tx.events.at(5).id
    database.close()
    assert run("erase", event_id, *at, "--reason", "asked")["seq"] == 6
    assert run("rebuild", *at)["events"] == 7
    found = run("fsck", *at)
    assert (found["clean"], found["size"], found["erased_payloads"]) == (True, 7, 1)
    wrote = run("export", tmp_path / "log.export", *at)
    copied = run("import", tmp_path / "log.export", "--data", tmp_path / "copy", "--database", copy_url)
    assert copied["root"] == wrote["root"] == found["root"]
    assert run("fsck", "--data", tmp_path / "copy", "--database", copy_url, "--vkey", vkey)["clean"]
    postgres_server.drop(url)
    postgres_server.drop(copy_url)


def test_the_key_of_a_log_on_postgresql_is_rotated(
    postgres_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: object) -> Any:
        assert main([*map(str, arguments), "--json"]) == 0
        return json.loads(capfd.readouterr().out)

    url = postgres_server.empty_database()
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("SLA_LEDGER_DATA", str(tmp_path / "data"))
    first = run("init")["log_vkey"]
    rotated = run("keys", "rotate")
    assert [(each["vkey"], each["until_size"]) for each in run("keys", "list")] == [
        (first, rotated["from_size"]),
        (rotated["vkey"], None),
    ]
    assert run("keys", "show")["vkey"] == rotated["vkey"]
    assert run("fsck")["clean"]
    postgres_server.drop(url)
