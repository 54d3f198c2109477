"""Export and import: a file that proves itself, and that nothing false gets into a database from.

Each lie about the file is told by someone who can write JSON and knows the format; the digest at the end is set
right after the change, so that every other check has to stand by itself.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.app.log.erasure import erase_payload
from ledger.app.log.fsck import fsck
from ledger.app.log.fsck_tree import LogTrust
from ledger.app.log.restore_guard import KnownCheckpoint
from ledger.app.log.transfer import Summary, export_log, import_log, verify_export
from ledger.domain.record.canonical import canonical_bytes
from ledger.errors import ExportInvalid, LogInconsistent, SlaLedgerError
from ledger.merkle.checkpoint import Checkpoint, sign_checkpoint
from ledger.store.database import SqliteDatabase
from tests.conformance.samples import (
    LOG_KEY,
    PERIOD,
    SLA_ID,
    TRUST,
    SeededRandomness,
    StepClock,
    agreement,
    erasable,
    signed_checkpoint,
    statement,
    window,
    windows,
)

pytestmark = pytest.mark.slow

ORIGIN = LOG_KEY.key.name
PART_BYTES = 100
Lines = list[bytes]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteDatabase]:
    """12 events, two checkpoints, two keys, two raw batches, an erasable payload that is there and one that is not."""
    path = tmp_path_factory.mktemp("source") / "ledger.db"
    database = SqliteDatabase(path, StepClock(), SeededRandomness(1))
    with database.begin() as tx:
        tx.events.append("windows/a", windows(5), expected_version=0, idempotency_key="windows")
        sign(tx)
        receipts = tx.events.append(
            "agreements",
            [agreement(), erasable(agreement(2, service="Zürich \U0001f600")), erasable(window(9))],
            expected_version=0,
            idempotency_key="agreements",
        )
        tx.events.append("s", [statement(), statement(2), statement(day=1)], expected_version=0)
        erase_payload(tx, receipts[-1].event_id, reason="asked", requested_by=None, now_ns=1)
        sign(tx)
        tx.batches.put(b"rows")
        tx.batches.put(bytes(2 * PART_BYTES + 5))
    yield database
    database.close()


def sign(tx: Any) -> None:
    size = tx.log.size()
    tx.log.save_checkpoint(size, tx.log.root(size), signed_checkpoint(size, tx.log.root(size)))


def exported(database: SqliteDatabase, *, batches: bool = True) -> bytes:
    out = io.BytesIO()
    # Small parts, so that a small batch has several.
    with pytest.MonkeyPatch.context() as patch, database.inspect() as inspection:
        patch.setattr("ledger.app.log.transfer.PART_BYTES", PART_BYTES)
        export_log(inspection, ORIGIN, out, batches=batches)
    return out.getvalue()


@pytest.fixture(scope="module")
def file(source: SqliteDatabase) -> bytes:
    return exported(source)


def known(database: SqliteDatabase, size: int) -> KnownCheckpoint:
    with database.read() as tx:
        return KnownCheckpoint(size, tx.log.root(size), "the checkpoint")


def restored(path: Path, file: bytes, trust: LogTrust | None = TRUST, *outside: KnownCheckpoint) -> SqliteDatabase:
    database = SqliteDatabase(path, StepClock(), SeededRandomness(8))
    with database.restore() as restoration:
        import_log(io.BytesIO(file), restoration, known=outside, trust=trust)
    return database


def everything(database: SqliteDatabase) -> list[Any]:
    with database.read() as tx:
        size = tx.log.size()
        return [
            tx.events.since(0),
            [tx.log.root(each) for each in range(size + 1)],
            tx.log.checkpoint(5),
            tx.log.checkpoint(),
            [
                tx.views.agreements(),
                tx.views.statements(),
                tx.views.credits(limit=9),
                tx.views.windows(SLA_ID, PERIOD),
            ],
        ]


def test_an_import_yields_the_same_ids_root_checkpoints_and_views(
    tmp_path: Path, source: SqliteDatabase, file: bytes
) -> None:
    database = restored(tmp_path / "new.db", file, TRUST, known(source, 5), known(source, 12))
    assert everything(database) == everything(source)
    with database.inspect() as inspection:
        assert fsck(inspection, TRUST, [known(source, 12)]).clean
    with database.begin() as tx:
        again = tx.events.append("windows/a", windows(5), expected_version=0, idempotency_key="windows")
        assert [receipt.seq for receipt in again] == [0, 1, 2, 3, 4]
        assert tx.batches.get(hashlib.sha256(b"rows").hexdigest()) == b"rows"
        (receipt,) = tx.events.append("windows/a", windows(1), expected_version=5)
        assert receipt.seq == 12
    assert exported(restored(tmp_path / "third.db", file)) == file


def test_a_file_can_be_proved_complete_against_a_checkpoint(source: SqliteDatabase, file: bytes) -> None:
    summary = verify_export(io.BytesIO(file), known=[known(source, 5), known(source, 12)], trust=TRUST)
    assert summary == Summary(ORIGIN, 12, known(source, 12).root, 1, 2, 2, 2, proved=12)
    assert verify_export(io.BytesIO(exported(source, batches=False))).batches == 0


def test_what_is_left_out_of_an_export(source: SqliteDatabase, tmp_path: Path) -> None:
    with source.begin() as tx:
        tx.secrets.put("salt/1/0", b"SECRET-SALT")
    file = exported(source)
    assert b"SECRET-SALT" not in file
    assert b"SECRET-SALT".hex().encode() not in file


def test_checkpoints_of_another_key_stay_behind(tmp_path: Path, source: SqliteDatabase, file: bytes) -> None:
    database = restored(tmp_path / "new.db", file, None)
    with database.read() as tx:
        assert (tx.log.size(), tx.log.root(12), tx.log.checkpoint()) == (12, known(source, 12).root, None)


def test_a_database_that_has_events_is_not_imported_into(source: SqliteDatabase, file: bytes) -> None:
    with pytest.raises(LogInconsistent, match="a new one"), source.restore() as restoration:
        import_log(io.BytesIO(file), restoration)


def entry_at(lines: Lines, seq: int) -> int:
    return [at for at, line in enumerate(lines) if line.startswith(b'{"header"')][seq]


def edit(lines: Lines, at: int, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(lines[at])
    change(document)
    lines[at] = canonical_bytes(document) + b"\n"


def edit_entry(seq: int, change: Callable[[dict[str, Any]], object]) -> Callable[[Lines], None]:
    return lambda lines: edit(lines, entry_at(lines, seq), change)


def edit_end(**changes: Any) -> Callable[[Lines], None]:
    return lambda lines: edit(lines, -1, lambda document: document["end"].update(changes))


def drop(prefix: bytes, nth: int = 0) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        del lines[[at for at, line in enumerate(lines) if line.startswith(prefix)][nth]]

    return change


def swap(first: int, second: int) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        a, b = entry_at(lines, first), entry_at(lines, second)
        lines[a], lines[b] = lines[b], lines[a]

    return change


def replace(old: bytes, new: bytes) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        at = next(at for at, line in enumerate(lines) if old in line)
        lines[at] = lines[at].replace(old, new, 1)

    return change


def erase_in_file(document: dict[str, Any]) -> None:
    document["payload"] = document["salt"] = None


def forge_record(lines: Lines) -> None:
    """The record of the erasure names another event, consistently from payload to header."""

    def change(document: dict[str, Any]) -> None:
        from ledger.domain.record.events import payload_commitment

        document["payload"]["event_id"] = "0" * 8 + "-0000" * 3 + "-" + "0" * 12
        commitment = payload_commitment(document["payload"], bytes.fromhex(document["salt"]))
        document["header"]["payload_commitment"] = commitment.hex()

    edit(lines, entry_at(lines, 11), change)


LIES: dict[str, Callable[[Lines], object]] = {
    "a payload": edit_entry(3, lambda document: document["payload"].update(state="excluded")),
    "a salt": edit_entry(3, lambda document: document.update(salt="00" * 32)),
    "a short salt": edit_entry(3, lambda document: document.update(salt="00")),
    "a commitment": edit_entry(3, lambda document: document["header"].update(payload_commitment="00" * 32)),
    "an instant": edit_entry(3, lambda document: document["header"].update(recorded_at_ns="1")),
    "an id": edit_entry(3, lambda document: document["header"].update(id="x")),
    "an id that is no text": edit_entry(3, lambda document: document["header"].update(id=5)),
    "a header member too many": edit_entry(3, lambda document: document["header"].update(extra=1)),
    "a header member too few": edit_entry(3, lambda document: document["header"].pop("stream")),
    "a member too many": edit_entry(3, lambda document: document.update(extra=1)),
    "sequenced_at": edit_entry(3, lambda document: document.update(sequenced_at_ns="1")),
    "a negative version": edit_entry(3, lambda document: document["header"].update(version=-1)),
    "a missing payload": edit_entry(3, erase_in_file),
    "an erasable payload that is missing without a record": edit_entry(6, erase_in_file),
    "a record of an erasure that was not": forge_record,
    "no first event": drop(b'{"header"'),
    "no event in the middle": drop(b'{"header"', 4),
    "no last event": drop(b'{"header"', 11),
    "two events swapped": swap(2, 3),
    "an event twice": lambda lines: lines.insert(2, lines[1]),
    "no checkpoint": drop(b'{"checkpoint"'),
    "a checkpoint elsewhere": lambda lines: lines.insert(3, lines.pop(entry_at(lines, 4) + 1)),
    "no key": drop(b'{"request"'),
    "no batch": drop(b'{"batch"'),
    "half a batch": drop(b'{"batch"', -1),
    "a note without signature": replace("\\n\\n\N{EM DASH}".encode(), b"\\n"),
    "the format": replace(b"export/v1", b"export/v2"),
    "no first line": lambda lines: lines.pop(0),
    "white space": replace(b'{"header":', b'{ "header":'),
    "an unknown line": lambda lines: lines.insert(1, b'{"other":1}\n'),
    "no JSON": lambda lines: lines.insert(1, b"x\n"),
    "deep JSON": lambda lines: lines.insert(1, b"[" * 100_000 + b"\n"),
    "a list": lambda lines: lines.insert(1, b"[]\n"),
    "a float": lambda lines: lines.insert(1, lines[1].replace(b'"index":0', b'"index":0.0')),
    "a size": edit_end(size=11),
    "a root": edit_end(root="00" * 32),
    "a count": edit_end(requests=1),
    "no end": lambda lines: lines.pop(),
    "something after the end": lambda lines: lines.append(b"\n"),
    "two ends": lambda lines: lines.append(lines[-1]),
    "nothing": lambda lines: lines.clear(),
}


def told(file: bytes, lie: Callable[[Lines], object]) -> bytes:
    """The file with a lie in it and a digest that fits, as far as there still is an end to put it in."""
    lines = file.splitlines(keepends=True)
    lie(lines)
    if lines and lines[-1].startswith(b'{"end"'):
        digest = hashlib.sha256(b"".join(lines[:-1])).hexdigest()
        edit(lines, -1, lambda document: document["end"].update(sha256=digest))
    return b"".join(lines)


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused_and_nothing_of_it_stays(
    tmp_path: Path, source: SqliteDatabase, file: bytes, lie: str
) -> None:
    false = told(file, LIES[lie])
    assert false != file
    with pytest.raises(SlaLedgerError):
        verify_export(io.BytesIO(false), known=[known(source, 12)], trust=TRUST)
    with pytest.raises(SlaLedgerError):
        restored(tmp_path / "new.db", false, TRUST, known(source, 12))
    left = SqliteDatabase(tmp_path / "new.db", StepClock(), SeededRandomness(8))
    with left.read() as tx:
        assert (tx.log.size(), tx.events.since(0), tx.log.checkpoint()) == (0, [], None)


@pytest.mark.parametrize("cut", [1, 2, 100, 1000, 5000])
def test_a_file_that_is_cut_off_is_refused(file: bytes, cut: int) -> None:
    with pytest.raises(ExportInvalid):
        verify_export(io.BytesIO(file[:-cut]))


def test_a_byte_that_flips_anywhere_is_seen(file: bytes) -> None:
    for at in range(0, len(file), 97):
        flipped = bytearray(file)
        flipped[at] ^= 1
        with pytest.raises(SlaLedgerError):
            verify_export(io.BytesIO(bytes(flipped)), trust=TRUST)


def test_a_shorter_log_is_not_complete(tmp_path: Path, source: SqliteDatabase) -> None:
    database = SqliteDatabase(tmp_path / "short.db", StepClock(), SeededRandomness(1))
    with database.begin() as tx:
        tx.events.append("windows/a", windows(5), expected_version=0)
    short = exported(database)
    assert verify_export(io.BytesIO(short), known=[known(source, 5)]).proved == 5
    with pytest.raises(SlaLedgerError, match="not complete"):
        verify_export(io.BytesIO(short), known=[known(source, 12)])


def test_another_log_is_refused_at_the_checkpoint(tmp_path: Path, source: SqliteDatabase, file: bytes) -> None:
    other = KnownCheckpoint(5, b"\x01" * 32, "the checkpoint of another log")
    with pytest.raises(SlaLedgerError, match="another log"):
        verify_export(io.BytesIO(file), known=[other])
    with pytest.raises(SlaLedgerError, match="another log"):
        restored(tmp_path / "new.db", file, TRUST, other)


def test_a_checkpoint_in_the_file_that_the_log_did_not_sign_is_refused(source: SqliteDatabase, file: bytes) -> None:
    forged = sign_checkpoint(Checkpoint("log.example/other", 5, known(source, 5).root), [LOG_KEY]).decode()
    lines = told(
        file,
        lambda lines: edit(lines, entry_at(lines, 4) + 1, lambda document: document["checkpoint"].update(note=forged)),
    )
    with pytest.raises(SlaLedgerError, match=r"No trusted key|not of"):
        verify_export(io.BytesIO(lines), trust=TRUST)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE event SET payload = x'7b7d' WHERE type = 'agreement_registered' AND payload_class = 'standard'",
        "UPDATE leaf SET leaf_hash = zeroblob(32) WHERE seq = 3",
        "UPDATE event_payload SET salt = zeroblob(32)",
        "DELETE FROM leaf WHERE seq = 3",
        "DELETE FROM leaf WHERE seq = 11",
        "UPDATE raw_batch SET zlib = x'00'",
    ],
)
def test_a_damaged_log_is_not_exported(tmp_path: Path, file: bytes, damage: str) -> None:
    database = restored(tmp_path / "new.db", file)
    with database._write() as connection:
        for (name,) in connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.exec_driver_sql(f"DROP TRIGGER {name}")
        connection.exec_driver_sql(damage)
    with pytest.raises(LogInconsistent):
        exported(database)
