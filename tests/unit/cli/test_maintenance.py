"""``fsck``, ``rebuild``, ``erase``, ``export`` and ``import`` as an operator meets them: output and exit codes."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ledger.app.log.checkpoints import NoWitnesses, sign_checkpoint
from ledger.app.log.log_keys import LogIdentity
from ledger.app.log.restore_guard import RestoreGuard
from ledger.attest.crypto.signing import NoteKey, SigningKey, save_key, verify
from ledger.cli import output
from ledger.cli.main import main
from ledger.domain.record.canonical import canonical_bytes
from ledger.errors import LogRolledBack
from ledger.merkle.checkpoint import Checkpoint
from ledger.merkle.checkpoint import sign_checkpoint as sign_note
from ledger.merkle.note import VerifierKey
from ledger.store.database import SqliteDatabase
from ledger.wiring.data_directory import local_origin
from ledger.wiring.marker import DATA_FORMAT
from ledger.wiring.pin import PinFile
from tests.conformance.samples import SeededRandomness, StepClock, agreement, erasable, windows

pytestmark = pytest.mark.slow

KEY = SigningKey(b"\x09" * 32)
LOG = NoteKey(local_origin(KEY.public_key), KEY)


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


class Signer:
    identity = LogIdentity(LOG.key, verify)

    def sign(self, size: int, root: bytes, key: VerifierKey) -> str:
        return sign_note(Checkpoint(LOG.key.name, size, root), [LOG]).decode()


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def runner(*arguments: object) -> Ran:
        code = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Ran(code, captured.out, captured.err)

    return runner


@dataclass(frozen=True)
class Directory:
    path: Path
    erasable_id: str

    def open(self) -> SqliteDatabase:
        return SqliteDatabase(self.path / "ledger.db", StepClock(), SeededRandomness(7))

    @property
    def guard(self) -> RestoreGuard:
        return RestoreGuard(PinFile(self.path / "keys" / "log.pin"))

    def append_and_sign(self, count: int) -> Path:
        """More events under a new checkpoint; a file with it."""
        database = self.open()
        with database.begin() as tx:
            tx.events.append(f"more/{count}", windows(count), expected_version=0)
        size = sign_checkpoint(database, Signer(), NoWitnesses(), self.guard)
        with database.read() as tx:
            note = tx.log.checkpoint(size)
        database.close()
        file = self.path.parent / f"checkpoint-{size}"
        file.write_text(str(note))
        return file

    def forge(self, *statements: str) -> None:
        raw = sqlite3.connect(self.path / "ledger.db", isolation_level=None)
        for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            raw.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            raw.execute(statement)
        raw.close()


@pytest.fixture
def data(tmp_path: Path) -> Directory:
    """A signed log of ten windows and an agreement whose payload can be erased (seq 10)."""
    path = tmp_path / "data"
    (path / "keys").mkdir(parents=True, mode=0o700)
    save_key(path / "keys" / "log.key", KEY)
    (path / "data.json").write_bytes(canonical_bytes({"format": DATA_FORMAT, "genesis_timestamp_s": 1}))
    database = SqliteDatabase(path / "ledger.db", StepClock(), SeededRandomness(1))
    with database.begin() as tx:
        tx.events.append("windows/a", windows(10), expected_version=0)
        (receipt,) = tx.events.append("agreements", [erasable(agreement())], expected_version=0)
    directory = Directory(path, receipt.event_id)
    sign_checkpoint(database, Signer(), NoWitnesses(), directory.guard)
    database.close()
    return directory


def test_fsck_of_a_sound_ledger(data: Directory, run: Run) -> None:
    clean = run("fsck", "--data", data.path)
    assert (clean.code, clean.out[:31]) == (0, "clean: 11 events, 1 checkpoints")
    checkpoint = data.append_and_sign(4)
    again = run("fsck", "--data", data.path, "--checkpoint", checkpoint, "--json")
    assert again.code == 0
    assert (again.json["clean"], again.json["size"], again.json["outside_checkpoints"]) == (True, 15, 2)
    assert again.json["findings"] == []


def test_fsck_names_the_seq_and_ends_with_1(data: Directory, run: Run) -> None:
    data.forge("UPDATE event SET salt = zeroblob(32) WHERE stream = 'windows/a' AND version = 6")
    found = run("fsck", "--data", data.path)
    assert found.code == 1
    assert "event: seq 6: " in found.out
    as_json = run("fsck", "--data", data.path, "--json")
    assert as_json.code == 1
    (finding,) = as_json.json["findings"]
    assert (finding["what"], finding["seq"], as_json.json["counts"]) == ("event", 6, {"event": 1})
    assert finding["expected"] != finding["found"]


def test_a_restored_dump_is_found_by_the_pin_alone_and_not_signed(data: Directory, run: Run) -> None:
    shutil.copy(data.path / "ledger.db", data.path.parent / "dump.db")
    checkpoint = data.append_and_sign(4)
    shutil.copy(data.path.parent / "dump.db", data.path / "ledger.db")
    found = run("fsck", "--data", data.path, "--json")
    assert (found.code, found.json["counts"]) == (1, {"log_too_short": 1})
    assert run("fsck", "--data", data.path, "--checkpoint", checkpoint, "--json").json["counts"] == {"log_too_short": 2}
    with pytest.raises(LogRolledBack):
        data.append_and_sign(2)


def test_input_that_cannot_be_used_ends_with_2(data: Directory, run: Run, tmp_path: Path) -> None:
    other = NoteKey(LOG.key.name, SigningKey(b"\x08" * 32))
    forged = tmp_path / "forged"
    forged.write_bytes(sign_note(Checkpoint(LOG.key.name, 3, b"\x01" * 32), [other]))
    nothing = tmp_path / "nothing"
    nothing.write_bytes(b"\xff")
    for arguments in (
        ["--data", tmp_path / "nowhere"],
        ["--data", tmp_path],
        ["--data", data.path, "--checkpoint", tmp_path / "missing"],
        ["--data", data.path, "--checkpoint", nothing],
        ["--data", data.path, "--checkpoint", forged],
        ["--data", data.path, "--vkey", "x"],
        [],
    ):
        assert run("fsck", *arguments).code == 2
    (data.path / "keys" / "log.key").chmod(0o644)
    assert run("fsck", "--data", data.path).code == 2
    (data.path / "keys" / "log.key").unlink()
    assert "--vkey" in run("fsck", "--data", data.path).err
    assert run("fsck", "--data", data.path, "--vkey", LOG.key.vkey()).code == 0
    assert run("fsck", "--data", data.path, "--vkey", other.key.vkey()).code == 1


def test_long_work_tells_how_far_it_is(data: Directory, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "PROGRESS_AFTER_S", 0)
    shown = run("fsck", "--data", data.path)
    assert "checking leaves: 100 %" in shown.err
    monkeypatch.setattr(output, "PROGRESS_AFTER_S", 60)
    assert "checking" not in run("fsck", "--data", data.path).err


def test_rebuild_mends_the_views(data: Directory, run: Run) -> None:
    data.forge("DELETE FROM view_window")
    assert run("fsck", "--data", data.path, "--json").json["counts"] == {"view": 10}
    rebuilt = run("rebuild", "--data", data.path, "--json")
    assert (rebuilt.code, rebuilt.json["events"]) == (0, 11)
    assert run("fsck", "--data", data.path).code == 0


def test_erase_says_so_in_the_log_and_fsck_stays_clean(data: Directory, run: Run) -> None:
    arguments = ("erase", data.erasable_id, "--data", data.path, "--reason", "asked", "--json")
    done = run(*arguments)
    assert (done.code, done.json["seq"]) == (0, 11)
    assert run(*arguments).json == done.json
    assert b"chat-7b" not in (data.path / "ledger.db").read_bytes()
    clean = run("fsck", "--data", data.path, "--json")
    assert (clean.code, clean.json["erased_payloads"], clean.json["size"]) == (0, 1, 12)
    database = data.open()
    with database.read() as tx:
        kept = tx.events.at(0).id
    database.close()
    assert "kept for good" in run("erase", kept, "--data", data.path, "--reason", "asked").err
    assert run("erase", "unknown", "--data", data.path, "--reason", "asked").code == 1


def test_export_verify_import_and_fsck(data: Directory, run: Run, tmp_path: Path) -> None:
    file, new = tmp_path / "log.export", tmp_path / "new"
    checkpoint = data.append_and_sign(4)
    written = run("export", file, "--data", data.path)
    assert (written.code, "no secrets" in written.err, file.stat().st_mode & 0o777) == (0, True, 0o600)
    assert run("export", file, "--data", data.path).code == 2
    proof = ("--verify", "--checkpoint", checkpoint, "--vkey", LOG.key.vkey(), "--json")
    proved = run("export", file, *proof)
    assert (proved.code, proved.json["size"], proved.json["proved_size"]) == (0, 15, 15)
    shutil.copytree(data.path / "keys", new / "keys")
    assert run("import", file, "--data", new).code == 0
    assert run("import", file, "--data", new).code == 2
    first, second = (run("fsck", "--data", path, "--json") for path in (data.path, new))
    assert (first.code, second.code, first.json) == (0, 0, second.json)


def test_an_import_without_the_logs_key_begins_under_its_own(data: Directory, run: Run, tmp_path: Path) -> None:
    file, new = tmp_path / "log.export", tmp_path / "new"
    run("export", file, "--data", data.path)
    done = run("import", file, "--data", new)
    assert (done.code, "stay behind" in done.err) == (0, True)
    assert f"sla-ledger init --data {new}" in done.err
    assert run("fsck", "--data", new, "--vkey", LOG.key.vkey(), "--json").json["checkpoints"] == 0
    made = run("init", "--data", new, "--json")
    assert made.json["log_vkey"] != LOG.key.vkey()
    assert run("init", "--data", new, "--json").json == made.json
    assert run("fsck", "--data", new).code == 0


def test_keys_that_were_lost_are_not_made_anew(data: Directory, run: Run, tmp_path: Path) -> None:
    lost = tmp_path / "lost"
    assert run("init", "--data", lost).code == 0
    shutil.rmtree(lost / "keys")
    refused = run("init", "--data", lost)
    assert (refused.code, (lost / "keys").exists()) == (2, False)


def test_an_export_older_than_the_pin_is_not_imported_over_it(data: Directory, run: Run, tmp_path: Path) -> None:
    file, new = tmp_path / "log.export", tmp_path / "new"
    run("export", file, "--data", data.path)
    data.append_and_sign(4)
    shutil.copytree(data.path / "keys", new / "keys")
    refused = run("import", file, "--data", new)
    assert (refused.code, "not complete" in refused.err) == (1, True)
    assert {path.name for path in new.iterdir()} == {"keys"}


def test_a_changed_export_is_refused_and_leaves_nothing(data: Directory, run: Run, tmp_path: Path) -> None:
    file, new = tmp_path / "log.export", tmp_path / "new"
    run("export", file, "--data", data.path)
    file.write_bytes(file.read_bytes().replace(b'"good":10', b'"good":11', 1))
    assert run("export", file, "--verify").code == 2
    assert run("import", file, "--data", new).code == 2
    assert list(new.iterdir()) == []
    assert run("export", tmp_path / "missing", "--verify").code == 2
    assert run("export", tmp_path / "unnamed").code == 2
