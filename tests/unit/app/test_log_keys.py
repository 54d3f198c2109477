"""Rotating the log's key: logged, endorsed, and without an end to what the old key signed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledger.app.bundles.tlog import PublicLog
from ledger.app.log.checkpoints import NoWitnesses, sign_checkpoint
from ledger.app.log.log_keys import LogIdentity, log_keys, rotate_log_key
from ledger.attest.crypto.signing import NoteKey, SigningKey, verify
from ledger.domain.record.events import NewEvent
from ledger.domain.record.naming import LOG_KEYS_STREAM
from ledger.errors import LogInconsistent, NoteUnverified, NotFound
from ledger.merkle.checkpoint import open_checkpoint
from ledger.merkle.key_history import key_at
from ledger.merkle.tile import MAX_TREE_SIZE
from tests.conformance.samples import LOG_KEY, START_NS
from tests.unit.app.witnessing import Log

ORIGIN = LOG_KEY.key.name
NEW, NEXT = (NoteKey(ORIGIN, SigningKey(bytes([number]) * 32)) for number in (8, 9))


@pytest.fixture
def log() -> Log:
    return Log(keys=(LOG_KEY, NEW, NEXT)).grow(5)


def rotate(log: Log, new: NoteKey) -> int:
    with log.database.begin() as tx:
        rotated = rotate_log_key(tx, log.identity, new.key, sign_with=lambda key: log.keys[key].sign, now_ns=START_NS)
    return rotated.from_size


def publish(log: Log) -> tuple[int, bytes]:
    size = sign_checkpoint(log.database, log, NoWitnesses(), log.guard)
    with log.database.read() as tx:
        return size, (tx.log.checkpoint(size) or "").encode()


def test_old_checkpoints_stay_good_and_new_ones_need_the_new_key(log: Log) -> None:
    before = publish(log)
    from_size = rotate(log, NEW)
    after = publish(log)
    assert (before[0], from_size, after[0]) == (5, 6, 6)
    open_checkpoint(before[1], ORIGIN, [LOG_KEY.key], verify)
    open_checkpoint(after[1], ORIGIN, [NEW.key], verify)
    for note, key in ((before[1], NEW), (after[1], LOG_KEY)):
        with pytest.raises(NoteUnverified):
            open_checkpoint(note, ORIGIN, [key.key], verify)
    rotate(log.grow(3), NEXT)
    with log.database.read() as tx:
        keys = log_keys(tx, log.identity)
    assert [(each.key, each.from_size, each.until_size) for each in keys] == [
        (LOG_KEY.key, 0, 6),
        (NEW.key, 6, 10),
        (NEXT.key, 10, None),
    ]
    assert key_at(keys, MAX_TREE_SIZE) == NEXT.key
    assert PublicLog(log.database, log.identity).describe().keys == keys


def test_the_rotation_is_an_entry_of_the_log(log: Log) -> None:
    rotate(log, NEW)
    with log.database.read() as tx:
        event = tx.events.at(5)
    assert (event.type, event.stream) == ("log_key_rotated", LOG_KEYS_STREAM)
    assert (event.payload["origin"], event.payload["new_vkey"]) == (ORIGIN, NEW.key.vkey())


def test_rotations_that_are_refused_leave_nothing_behind(log: Log) -> None:
    elsewhere = NoteKey("log.example/other", SigningKey(b"\x0a" * 32))
    for new in (LOG_KEY, elsewhere):
        with pytest.raises(LogInconsistent):
            rotate(log, new)
    with log.database.read() as tx:
        assert tx.log.size() == 5


def test_a_rotation_that_nobody_endorsed_stops_the_signing(log: Log) -> None:
    """Whoever can write events but holds no key cannot make the log sign with another one."""
    payload = {
        "origin": ORIGIN,
        "old_vkey": LOG_KEY.key.vkey(),
        "new_vkey": NEW.key.vkey(),
        "from_size": 6,
        "endorsement": "00" * 64,
    }
    with log.database.begin() as tx:
        tx.events.append(LOG_KEYS_STREAM, [NewEvent("log_key_rotated", payload, START_NS)], expected_version=0)
    with pytest.raises(LogInconsistent, match="did not sign"):
        publish(log)


def test_another_first_key_is_another_log(log: Log) -> None:
    rotate(log, NEW)
    with log.database.read() as tx, pytest.raises(LogInconsistent):
        log_keys(tx, LogIdentity(NEXT.key, verify))


def test_nothing_is_public_before_the_first_checkpoint(log: Log) -> None:
    public = PublicLog(log.database, log.identity)
    assert public.describe().size == 0
    for ask in (public.checkpoint, lambda: public.resource("tile/0/000.p/1"), lambda: public.proof(0)):
        with pytest.raises(NotFound):
            ask()


def test_entries_that_the_tree_does_not_hold_are_not_served(log: Log) -> None:
    publish(log)
    public = PublicLog(log.database, log.identity)
    whole = public.resource("tile/entries/000.p/5")
    events = log.database._committed.state.log
    honest = list(events)
    for damaged in (
        [*honest[:3], replace(honest[3], payload={**honest[3].payload, "index": 99}), honest[4]],
        [honest[1], honest[0], *honest[2:]],
    ):
        events[:] = damaged
        with pytest.raises(LogInconsistent, match="run fsck"):
            public.resource("tile/entries/000.p/5")
    events[:] = honest
    assert public.resource("tile/entries/000.p/5") == whole
