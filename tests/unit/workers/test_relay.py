"""The relay tells of due work until it is taken; a broker that is away costs nothing but time."""

from __future__ import annotations

import threading

import pytest

from ledger.app.ports.outbox import Lease
from ledger.app.work.outbox import OutboxRunner, Stage
from ledger.app.work.repeating import repeat
from ledger.errors import BrokerUnavailable
from ledger.store.memory import MemoryDatabase
from ledger.workers.relay import BATCH, Relay
from tests.conformance.samples import SeededRandomness, StepClock, windows

AGAIN_NS = 15 * 10**9


class Broker:
    """Takes messages, or after ``room`` of them none."""

    def __init__(self, room: int | None = None) -> None:
        self.room = room
        self.sent: list[Lease] = []

    def __call__(self, lease: Lease) -> None:
        if self.room is not None and len(self.sent) >= self.room:
            raise BrokerUnavailable("the broker does not answer")
        self.sent.append(lease)


@pytest.fixture
def clock() -> StepClock:
    return StepClock()


@pytest.fixture
def database(clock: StepClock) -> MemoryDatabase:
    return MemoryDatabase(clock, SeededRandomness(1))


def queue(database: MemoryDatabase, count: int) -> list[str]:
    with database.begin() as tx:
        ids = [receipt.event_id for receipt in tx.events.append("s", windows(count), expected_version=0)]
        for event_id in ids:
            tx.outbox.add(event_id, Stage.EVALUATE)
    return ids


def test_everything_due_is_told_once_and_again_when_nobody_took_it(database: MemoryDatabase, clock: StepClock) -> None:
    ids, broker = queue(database, 3), Broker()
    relay = Relay(database, broker, clock, again_ns=AGAIN_NS)
    assert [relay.ring_due(), relay.ring_due()] == [3, 0]
    assert [lease.event_id for lease in broker.sent] == ids
    clock.now += AGAIN_NS
    assert relay.ring_due() == 3
    assert [lease.token for lease in broker.sent] == [1, 1, 1, 2, 2, 2]


def test_what_was_done_is_not_told_again(database: MemoryDatabase, clock: StepClock) -> None:
    (only,), broker = queue(database, 1), Broker()
    relay = Relay(database, broker, clock, again_ns=AGAIN_NS)
    relay.ring_due()
    run = OutboxRunner(database, {Stage.EVALUATE: lambda *_: None}, clock, holder="worker")
    assert run.run_claimed(only, "evaluate", broker.sent[0].token)
    clock.now += 100 * AGAIN_NS
    assert relay.ring_due() == 0


def test_a_long_queue_is_told_batch_by_batch(database: MemoryDatabase, clock: StepClock) -> None:
    queue(database, BATCH + 1)
    relay = Relay(database, Broker(), clock, again_ns=AGAIN_NS)
    assert [relay.ring_due() for _ in range(3)] == [BATCH, 1, 0]


def test_what_the_broker_did_not_take_is_due_at_once(database: MemoryDatabase, clock: StepClock) -> None:
    ids, broker = queue(database, 4), Broker(room=1)
    relay = Relay(database, broker, clock, again_ns=10**18)
    for _ in range(20):
        with pytest.raises(BrokerUnavailable):
            relay.ring_due()
    broker.room = None
    assert relay.ring_due() == 3
    assert [lease.event_id for lease in broker.sent] == ids
    # However long the broker was away, all attempts are left.
    assert {lease.attempt for lease in broker.sent} == {1}


def test_a_loop_backs_off_and_says_an_error_once() -> None:
    said: list[str] = []
    stopping = threading.Event()
    outcomes = [False, BrokerUnavailable("away"), BrokerUnavailable("away"), True, False]

    def step() -> bool:
        outcome = outcomes.pop(0)
        if not outcomes:
            stopping.set()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    repeat(step, name="the relay", rest_s=0.001, stopping=stopping, notify=said.append)
    assert outcomes == []
    assert said == ["the relay goes on after an error: away", "the relay is at work again"]
