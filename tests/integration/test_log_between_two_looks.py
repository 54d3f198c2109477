"""What comes into the log between two looks of those who follow it or sign it: nothing is passed over, and every
checkpoint holds under the key of its size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from ledger.app.access import ROLE_SCOPES, Principal, Role
from ledger.app.log.checkpoints import NoWitnesses, sign_checkpoint
from ledger.app.log.log_keys import log_keys, rotate_log_key
from ledger.app.log.restore_guard import RestoreGuard
from ledger.app.ports.store import Database
from ledger.app.webhooks.delivery import queue_deliveries
from ledger.app.webhooks.desk import WebhookDesk
from ledger.app.work.outbox import Stage
from ledger.attest.crypto.signing import NoteKey, SigningKey, verify
from ledger.merkle.checkpoint import open_checkpoint
from ledger.merkle.key_history import key_at
from tests.conformance.samples import LOG_KEY, START_NS, MemoryPin, SeededRandomness, StepClock, statement, windows
from tests.support.interleaved import HURRY, Interleaved, Turn
from tests.support.postgres import ROLE_PREFIX, SequencedAfterCommit
from tests.unit.app.witnessing import Log

KEYS = (LOG_KEY, *(NoteKey(LOG_KEY.key.name, SigningKey(bytes([number]) * 32)) for number in range(20, 40)))


@pytest.fixture
def databases(postgres_url: str) -> Iterator[tuple[Database, Database]]:
    """The same for two writers, of whom the second waits for no lock."""
    opened = [
        SequencedAfterCommit(url, StepClock(), SeededRandomness(seed), role_prefix=ROLE_PREFIX, migrated=True)
        for seed, url in enumerate((postgres_url, f"{postgres_url}?{HURRY}"))
    ]
    yield opened[0], opened[1]
    for database in opened:
        database.close()


def at_every_look(database: Database, one: Callable[[Any], object], other: Callable[[int], object]) -> Iterator[Turn]:
    """``other`` right before each look of ``one``, which is done once for each."""
    for at in count(1):
        interleaved = Interleaved(database, lambda at=at: other(at), at)  # type: ignore[misc]
        one(interleaved)
        yield interleaved.turn
        if not interleaved.turn.came:
            return


def test_whoever_signs_while_the_key_is_rotated_signs_with_the_key_of_the_size(
    databases: tuple[Database, Database],
) -> None:
    database, hurried = databases
    log = Log(keys=KEYS)
    new = iter(KEYS[1:])

    def sign(at: int) -> None:
        with hurried.begin() as tx:
            tx.events.append("s", windows(2), expected_version=None)
        sign_checkpoint(hurried, log, NoWitnesses(), log.guard)

    def rotate(each: Database) -> None:
        with each.begin() as tx:
            rotate_log_key(tx, log.identity, next(new).key, sign_with=lambda key: log.keys[key].sign, now_ns=START_NS)

    sign(0)
    tries = [turn.waited for turn in at_every_look(database, rotate, sign)]
    assert len(tries) == 4, "beginning, two looks, and once after all"
    assert not any(tries)
    sign(0)
    with database.read() as tx:
        keys = log_keys(tx, log.identity)
        notes = [(size, tx.log.checkpoint(size)) for size in range(1, tx.log.size() + 1)]
    found = [(size, note) for size, note in notes if note is not None]
    assert len(found) > len(tries)
    for size, note in found:
        open_checkpoint(note.encode(), LOG_KEY.key.name, [key_at(keys, size)], verify)


def test_a_size_that_another_process_went_past_is_left_out(databases: tuple[Database, Database]) -> None:
    """Of two machines, each with a pin of its own."""
    database, hurried = databases
    log = Log()

    def sign(each: Database) -> None:
        with hurried.begin() as tx:
            tx.events.append("s", windows(1), expected_version=None)
        sign_checkpoint(each, log, NoWitnesses(), RestoreGuard(MemoryPin()))

    assert sum(1 for _ in at_every_look(database, sign, lambda at: sign(hurried))) == 3
    with database.read() as tx:
        assert tx.log.checkpoint_size() == tx.log.size()


@pytest.mark.parametrize("listened", [False, True])
def test_no_event_that_somebody_wants_to_know_of_is_passed_over(
    databases: tuple[Database, Database], *, listened: bool
) -> None:
    database, hurried = databases
    wanted: list[str] = []

    def listen(tenant: str) -> None:
        desk = WebhookDesk(hurried.of_tenant(tenant), StepClock(), SeededRandomness(3), tenant)
        admin = Principal("admin key", tenant, ROLE_SCOPES[Role.FINANCE])
        desk.register(admin, url="https://billing.example/hooks", types=["statement.issued"], request="r1")

    def issue(tenant: str) -> None:
        with hurried.of_tenant(tenant).begin() as tx:
            (receipt,) = tx.events.append("statement/x", [statement()], expected_version=None)
        wanted.append(receipt.event_id)

    def meanwhile(at: int) -> None:
        if listened:
            issue("always")
            queue_deliveries(hurried)
        listen(f"t{at}")
        issue(f"t{at}")

    def queue(each: Database) -> None:
        # Else it has nothing to do.
        with hurried.begin() as tx:
            tx.events.append("s", windows(1), expected_version=None)
        queue_deliveries(each)

    if listened:
        listen("always")
    assert sum(1 for _ in at_every_look(database, queue, meanwhile)) > 4
    queue_deliveries(database)
    with database.read() as tx:
        queued = [
            each.event_id for each in tx.outbox.entries(states=["pending"], limit=999) if each.stage == Stage.DELIVER
        ]
    assert sorted(queued) == sorted(wanted)
