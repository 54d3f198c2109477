"""A witness cosigns what extends what it saw, once, and nothing else."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from ledger.attest.crypto.signing import NoteKey, SigningKey, verify
from ledger.errors import (
    NoteInvalid,
    NoteUnverified,
    NotFound,
    SlaLedgerError,
    StorageUnavailable,
    TreeProofInvalid,
    WitnessConflict,
    WitnessRequestInvalid,
)
from ledger.merkle.checkpoint import Checkpoint, sign_checkpoint
from ledger.merkle.cosignature import open_cosignatures
from ledger.merkle.hasher import EMPTY_ROOT
from ledger.merkle.note import parse_note, parse_signature
from ledger.merkle.witness import MAX_REQUEST_BYTES, AddCheckpoint, SeenTree
from ledger.store.witness import SqliteSeenTrees
from tests.conformance.samples import LOG_KEY
from tests.unit.app.witnessing import Connection, Log

ORIGIN = LOG_KEY.key.name


@pytest.fixture
def log() -> Log:
    return Log().grow(12)


@pytest.fixture
def watching(tmp_path: Path) -> Connection:
    return Connection(tmp_path)


def note_of(log: Log, size: int, key: NoteKey = LOG_KEY, origin: str = ORIGIN) -> bytes:
    with log.database.read() as tx:
        return sign_checkpoint(Checkpoint(origin, size, tx.log.root(size)), [key])


def request(log: Log, old: int, size: int, note: bytes | None = None) -> bytes:
    with log.database.read() as tx:
        proof = tx.log.consistency_proof(old, size) if 0 < old < size else ()
    return AddCheckpoint(old, proof, note or note_of(log, size)).to_bytes()


def cosigned(watching: Connection, body: bytes) -> int:
    """The time of the one cosignature that the witness gives."""
    (line,) = watching.witness.add_checkpoint(body).decode().splitlines()
    text = parse_note(body.partition(b"\n\n")[2]).text
    (found,) = open_cosignatures(text, [parse_signature(line)], [watching.key], verify)
    return found.timestamp_s


def test_it_follows_a_log_from_nothing_on(log: Log, watching: Connection) -> None:
    for old, size in ((0, 5), (5, 5), (5, 8), (8, 12)):
        assert cosigned(watching, request(log, old, size)) > 0
        with log.database.read() as tx:
            assert watching.trees.seen(ORIGIN) == SeenTree(size, tx.log.root(size))


def test_the_empty_log_can_be_cosigned(watching: Connection) -> None:
    empty = sign_checkpoint(Checkpoint(ORIGIN, 0, EMPTY_ROOT), [LOG_KEY])
    assert cosigned(watching, AddCheckpoint(0, (), empty).to_bytes())


def test_from_size_zero_there_is_no_proof(log: Log, watching: Connection) -> None:
    with log.database.read() as tx:
        proof = tx.log.consistency_proof(4, 5)
    with pytest.raises(TreeProofInvalid):
        watching.witness.add_checkpoint(AddCheckpoint(0, proof, note_of(log, 5)).to_bytes())
    assert watching.trees.seen(ORIGIN) == SeenTree()


def test_a_rewound_size_is_a_conflict_that_names_what_was_seen(log: Log, watching: Connection) -> None:
    cosigned(watching, request(log, 0, 8))
    for old, size in ((0, 5), (5, 8), (0, 8), (7, 12), (0, 12), (9, 12)):
        with pytest.raises(WitnessConflict) as caught:
            watching.witness.add_checkpoint(request(log, old, size))
        assert caught.value.data["size"] == 8
    with pytest.raises(WitnessRequestInvalid, match="above"):
        watching.witness.add_checkpoint(AddCheckpoint(8, (), note_of(log, 5)).to_bytes())
    assert watching.trees.seen(ORIGIN).size == 8


def test_a_replayed_request_is_a_conflict(log: Log, watching: Connection) -> None:
    body = request(log, 0, 5)
    cosigned(watching, body)
    with pytest.raises(WitnessConflict):
        watching.witness.add_checkpoint(body)
    cosigned(watching, request(log, 5, 8))
    with pytest.raises(WitnessConflict):
        watching.witness.add_checkpoint(body)


def test_a_forked_log_is_refused_at_the_same_size_and_at_a_larger_one(log: Log, watching: Connection) -> None:
    fork = Log(seed=2).grow(12)
    cosigned(watching, request(log, 0, 8))
    with pytest.raises(WitnessConflict, match="two histories"):
        watching.witness.add_checkpoint(request(fork, 8, 8))
    with pytest.raises(TreeProofInvalid):
        watching.witness.add_checkpoint(request(fork, 8, 12))
    with pytest.raises(TreeProofInvalid):
        watching.witness.add_checkpoint(AddCheckpoint(8, (), note_of(log, 12)).to_bytes())
    with pytest.raises(TreeProofInvalid):
        watching.witness.add_checkpoint(AddCheckpoint(8, (bytes(32),), note_of(log, 8)).to_bytes())
    cosigned(watching, request(log, 8, 12))


def test_only_keys_of_the_log_speak_for_it(log: Log, watching: Connection) -> None:
    stranger = NoteKey(ORIGIN, SigningKey(b"\x55" * 32))
    with pytest.raises(NoteUnverified):
        watching.witness.add_checkpoint(request(log, 0, 5, note_of(log, 5, stranger)))
    false = note_of(log, 5).replace(b"\n5\n", b"\n6\n")
    with pytest.raises(NoteUnverified, match="false"):
        watching.witness.add_checkpoint(AddCheckpoint(0, (), false).to_bytes())
    both = parse_note(note_of(log, 5, stranger)).signatures + parse_note(note_of(log, 5)).signatures
    note = parse_note(note_of(log, 5)).text.encode() + b"\n" + "".join(each.line() for each in both).encode()
    assert cosigned(watching, request(log, 0, 5, note))


def test_another_log_is_not_known(log: Log, watching: Connection) -> None:
    other = NoteKey("log.example/other", SigningKey(b"\x07" * 32))
    for key, origin in ((other, other.key.name), (LOG_KEY, other.key.name)):
        with pytest.raises(NotFound):
            watching.witness.add_checkpoint(request(log, 0, 5, note_of(log, 5, key, origin)))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"old 0\n",
        b"old 0\n\n",
        b"old 0\n\nnot a note\n",
        b"old -1\n\nx\n",
        b"old 0\n" + b"A" * 43 + b"=\n" * 1 + (b"A" * 43 + b"=\n") * 63 + b"\nx\n",
        b"old 0\n" + b"A" * 44 + b"\n\nx\n",
        b"old 0\n\xff\n\nx\n",
        b"old 0\n\n" + b"x" * MAX_REQUEST_BYTES,
    ],
)
def test_what_is_no_request(watching: Connection, body: bytes) -> None:
    with pytest.raises((WitnessRequestInvalid, NoteInvalid)):
        watching.witness.add_checkpoint(body)


def test_what_it_saw_outlives_the_process_and_cannot_be_set_back(
    log: Log, watching: Connection, tmp_path: Path
) -> None:
    cosigned(watching, request(log, 0, 8))
    again = Connection(tmp_path)
    with pytest.raises(WitnessConflict):
        again.witness.add_checkpoint(request(log, 0, 5))
    with pytest.raises(StorageUnavailable, match="only goes forward"):
        again.trees.advance(ORIGIN, again.trees.seen(ORIGIN), SeenTree(5, bytes(32)))
    with sqlite3.connect(tmp_path / "witness1.db") as raw:
        for statement in ("DELETE FROM seen", "UPDATE seen SET size = 1", "UPDATE seen SET root = zeroblob(32)"):
            with pytest.raises(sqlite3.Error):
                raw.execute(statement)


def test_of_two_requests_at_once_one_is_a_conflict(log: Log, tmp_path: Path) -> None:
    one, other = Connection(tmp_path), Connection(tmp_path)
    start = threading.Barrier(2)
    outcomes: list[str] = []

    def submit(watching: Connection, size: int) -> None:
        body = request(log, 0, size)
        start.wait()
        try:
            watching.witness.add_checkpoint(body)
            outcomes.append("cosigned")
        except WitnessConflict:
            outcomes.append("conflict")

    threads = [threading.Thread(target=submit, args=pair) for pair in ((one, 5), (other, 9))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["conflict", "cosigned"]


def test_a_tree_that_moved_on_meanwhile_is_not_overwritten(log: Log, tmp_path: Path) -> None:
    class Late(SqliteSeenTrees):
        """Another process is faster between the look and the write."""

        def advance(self, origin: str, before: SeenTree, after: SeenTree) -> bool:
            super().advance(origin, before, SeenTree(9, bytes(32)))
            return super().advance(origin, before, after)

    watching = Connection(tmp_path)
    watching.witness._trees = Late(tmp_path / "witness1.db")
    with pytest.raises(WitnessConflict) as caught:
        watching.witness.add_checkpoint(request(log, 0, 5))
    assert caught.value.data["size"] == 9
    assert watching.trees.seen(ORIGIN).size == 9


def test_a_memory_that_cannot_be_written_gives_no_cosignature(log: Log, watching: Connection, tmp_path: Path) -> None:
    (tmp_path / "witness1.db").write_bytes(b"not a database" * 100)
    with pytest.raises(StorageUnavailable):
        watching.witness.add_checkpoint(request(log, 0, 5))


def test_every_single_byte_of_a_request_matters(log: Log, watching: Connection) -> None:
    cosigned(watching, request(log, 0, 5))
    body = request(log, 5, 12)
    for at in range(len(body)):
        altered = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        with pytest.raises(SlaLedgerError):
            watching.witness.add_checkpoint(altered)
    assert watching.trees.seen(ORIGIN).size == 5
    cosigned(watching, body)
