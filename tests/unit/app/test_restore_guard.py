"""A key never signs two histories: what was signed is known outside the database, and the guard asks there first."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger.app.log.checkpoints import NoWitnesses, sign_checkpoint
from ledger.app.log.restore_guard import KnownCheckpoint, RestoreGuard
from ledger.errors import LogRolledBack, StorageDamaged, StorageUnavailable
from ledger.merkle.note import VerifierKey
from ledger.store.database import SqliteDatabase
from ledger.wiring.pin import PinFile
from tests.conformance.samples import (
    LogSigner,
    MemoryPin,
    SeededRandomness,
    StepClock,
    signed_checkpoint,
    windows,
)
from tests.support.sqlite import with_schema

Open = Callable[[str], SqliteDatabase]


@pytest.fixture
def open_(tmp_path: Path) -> Open:
    def opener(name: str) -> SqliteDatabase:
        return SqliteDatabase(with_schema(tmp_path / name), StepClock(), SeededRandomness(len(name)))

    return opener


def append(database: SqliteDatabase, count: int, stream: str = "windows/a") -> None:
    with database.begin() as tx:
        tx.events.append(stream, windows(count), expected_version=None)


def known(database: SqliteDatabase, size: int, source: str) -> KnownCheckpoint:
    with database.read() as tx:
        return KnownCheckpoint(size, tx.log.root(size), source)


def dumped(database: SqliteDatabase, tmp_path: Path, open_: Open) -> SqliteDatabase:
    """What a backup of this moment gives when it is restored."""
    database.close()
    shutil.copy(tmp_path / "ledger.db", tmp_path / "restored.db")
    return open_("restored.db")


@pytest.mark.parametrize("source", ["pin", "anchor", "witness"])
@pytest.mark.parametrize("grown_by", [0, 1, 3, 7])
def test_an_older_dump_restored_under_a_newer_pin_anchor_or_witness_refuses_to_sign(
    tmp_path: Path, open_: Open, source: str, grown_by: int
) -> None:
    database, pin = open_("ledger.db"), MemoryPin()
    append(database, 5)
    sign_checkpoint(database, LogSigner(), NoWitnesses(), RestoreGuard(pin))
    restored = dumped(database, tmp_path, open_)
    append(database, 3)
    newer = known(database, 8, f"the {source}")
    guard = RestoreGuard(pin, lambda: [newer]) if source != "pin" else RestoreGuard(pin)
    if source == "pin":
        sign_checkpoint(database, LogSigner(), NoWitnesses(), guard)
    if grown_by:
        # The restored log goes on with other events, up to and past the size that was signed.
        append(restored, grown_by, "windows/other")
    with pytest.raises(LogRolledBack, match=f"the {source}") as refused:
        sign_checkpoint(restored, LogSigner(), NoWitnesses(), guard)
    assert refused.value.data["known_size"] == 8
    with restored.read() as tx:
        assert tx.log.checkpoint_size() == 5
    assert sign_checkpoint(database, LogSigner(), NoWitnesses(), guard) == 8


def test_a_log_that_goes_on_from_what_is_known_is_signed(open_: Open) -> None:
    database, pin = open_("ledger.db"), MemoryPin()
    for count in (1, 6, 250, 20):
        append(database, count)
        before = pin.read()
        others = [] if before is None else [before]
        size = sign_checkpoint(database, LogSigner(), NoWitnesses(), RestoreGuard(pin, lambda others=others: others))
        assert pin.read() == known(database, size, "the pin")


def test_an_emptied_database_is_not_signed(open_: Open) -> None:
    database, pin = open_("ledger.db"), MemoryPin()
    append(database, 2)
    sign_checkpoint(database, LogSigner(), NoWitnesses(), RestoreGuard(pin))
    with pytest.raises(LogRolledBack):
        sign_checkpoint(open_("empty.db"), LogSigner(), NoWitnesses(), RestoreGuard(pin))


def test_a_crash_between_pin_and_commit_is_made_good(open_: Open) -> None:
    class Crash(Exception):
        pass

    class CrashingPin(MemoryPin):
        def write(self, size: int, root: bytes, note: str) -> None:
            super().write(size, root, note)
            raise Crash

    database, pin = open_("ledger.db"), CrashingPin()
    append(database, 4)
    with pytest.raises(Crash):
        sign_checkpoint(database, LogSigner(), NoWitnesses(), RestoreGuard(pin))
    with database.read() as tx:
        assert tx.log.checkpoint() is None
    after = MemoryPin()
    after.known = pin.known
    assert sign_checkpoint(database, LogSigner(), NoWitnesses(), RestoreGuard(after)) == 4
    with database.read() as tx:
        assert tx.log.checkpoint_size() == 4


def test_the_pin_is_durable_before_the_checkpoint_is_kept(tmp_path: Path, open_: Open) -> None:
    seen: list[tuple[int | None, bool]] = []
    database, pin = open_("ledger.db"), PinFile(tmp_path / "keys" / "log.pin")

    class Watching(LogSigner):
        def sign(self, size: int, root: bytes, key: VerifierKey) -> str:
            seen.append((None if (found := pin.read()) is None else found.size, False))
            return super().sign(size, root, key)

    append(database, 1)
    sign_checkpoint(database, Watching(), NoWitnesses(), RestoreGuard(pin))
    append(database, 1)
    sign_checkpoint(database, Watching(), NoWitnesses(), RestoreGuard(pin))
    assert [size for size, _ in seen] == [None, 1]
    assert pin.read() == known(database, 2, f"the pin {tmp_path / 'keys' / 'log.pin'}")
    assert [path.name for path in (tmp_path / "keys").iterdir() if path.name.startswith(".")] == []


def test_a_pin_that_cannot_be_written_lets_nothing_be_signed(tmp_path: Path, open_: Open) -> None:
    database = open_("ledger.db")
    append(database, 1)
    (tmp_path / "keys").write_text("a file where the folder should be")
    with pytest.raises(StorageUnavailable, match="nothing is signed"):
        sign_checkpoint(database, LogSigner(), NoWitnesses(), RestoreGuard(PinFile(tmp_path / "keys" / "log.pin")))
    with database.read() as tx:
        assert tx.log.checkpoint() is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"not JSON",
        b'{"format":"sla-ledger/pin/v1","note":"","root":"","size":"3"}',
        b'{"format":"sla-ledger/pin/v1","note":1,"root":"00","size":"3"}',
        None,
        "other size",
        "other root",
        "other format",
    ],
)
def test_a_pin_that_was_tampered_with_lets_nothing_be_signed(
    tmp_path: Path, open_: Open, content: bytes | str | None
) -> None:
    path = tmp_path / "log.pin"
    database, pin = open_("ledger.db"), PinFile(path)
    append(database, 3)
    sign_checkpoint(database, LogSigner(), NoWitnesses(), RestoreGuard(pin))
    good = path.read_bytes()
    root = known(database, 3, "").root.hex().encode()
    changed = {
        None: good[:-20],
        "other size": good.replace(b'"size":"3"', b'"size":"2"'),
        "other root": good.replace(b'"root":"' + root, b'"root":"' + root[::-1]),
        "other format": good.replace(b"pin/v1", b"pin/v2"),
    }.get(content if not isinstance(content, bytes) else "", content)
    assert isinstance(changed, bytes)
    assert changed != good
    path.write_bytes(changed)
    append(database, 1)
    with pytest.raises(StorageDamaged, match="pin"):
        sign_checkpoint(database, LogSigner(), NoWitnesses(), RestoreGuard(pin))


def test_a_pin_is_replaced_whole_and_says_what_was_signed(tmp_path: Path) -> None:
    pin = PinFile(tmp_path / "log.pin")
    assert pin.read() is None
    for size in (1, 300):
        root = bytes([size % 256]) * 32
        pin.write(size, root, signed_checkpoint(size, root))
        found = pin.read()
        assert found is not None
        assert (found.size, found.root) == (size, root)
