"""Many workers at a time on one PostgreSQL: every stage is worked once, and by one of them at a time."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from ledger.app.periods.closing import Cause, close_period
from ledger.app.ports.outbox import Lease
from ledger.app.ports.store import Database
from ledger.app.work.outbox import OutboxRunner, Stage
from ledger.store.postgres import PostgresDatabase
from ledger.wiring.clock import SystemClock, SystemRandomness
from ledger.workers.relay import Relay
from tests.conformance.samples import windows
from tests.support.postgres import ROLE_PREFIX
from tests.unit.app.conftest import make_desk

WORKERS = 8
STAGES = 60


@pytest.fixture
def database(postgres_url: str) -> PostgresDatabase:
    return PostgresDatabase(postgres_url, SystemClock(), SystemRandomness(), role_prefix=ROLE_PREFIX)


def queue(database: PostgresDatabase, count: int = STAGES) -> list[str]:
    with database.begin() as tx:
        ids = [receipt.event_id for receipt in tx.events.append("s", windows(count), expected_version=0)]
        for event_id in ids:
            tx.outbox.add(event_id, Stage.PROVE)
    while database.sequence_once():
        pass
    return ids


def at_once(work: Callable[[int], None]) -> None:
    """``work`` in eight threads that begin together; raises what one of them raised."""
    gate = threading.Barrier(WORKERS)

    def run(number: int) -> None:
        gate.wait()
        work(number)

    with ThreadPoolExecutor(WORKERS) as pool:
        for done in [pool.submit(run, number) for number in range(WORKERS)]:
            done.result()


class Watched:
    """Work that notices when two do it at a time."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.together = 0
        self._running: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, _database: Database, event_id: str) -> None:
        with self._lock:
            self.together += event_id in self._running
            self._running.add(event_id)
        time.sleep(0.002)
        with self._lock:
            self._running.discard(event_id)
            self.done[event_id] += 1


def test_dispatchers_of_several_directories_share_the_work(database: PostgresDatabase) -> None:
    ids, watched = queue(database), Watched()

    def work(number: int) -> None:
        run = OutboxRunner(database, {Stage.PROVE: watched}, SystemClock(), holder=f"directory {number}")
        # Another one starts meanwhile, and makes due what it held itself: nothing.
        with database.begin() as tx:
            tx.outbox.release(f"directory {number}")
        while run.run_once():
            pass

    at_once(work)
    assert (watched.done, watched.together) == (Counter(ids), 0)


def test_relays_and_workers_that_get_every_message_three_times(database: PostgresDatabase) -> None:
    ids, watched = queue(database), Watched()
    sent: list[Lease] = []

    def ring(_number: int) -> None:
        relay = Relay(database, sent.append, SystemClock(), again_ns=60 * 10**9)
        while relay.ring_due():
            pass

    at_once(ring)
    assert sorted(lease.event_id for lease in sent) == sorted(ids)

    def work(number: int) -> None:
        run = OutboxRunner(database, {Stage.PROVE: watched}, SystemClock(), holder=f"worker {number}")
        for lease in sent[number % 3 :] + sent[: number % 3]:
            run.run_claimed(lease.event_id, lease.stage, lease.token)

    at_once(work)
    assert (watched.done, watched.together) == (Counter(ids), 0)
    with database.read() as tx:
        assert (tx.outbox.pending(), tx.outbox.parked()) == (0, [])


def test_closing_by_all_at_once_is_one_closing(database: PostgresDatabase) -> None:
    desk = make_desk()
    desk.database = database  # type: ignore[assignment]
    registered = desk.register()
    receipts = []

    def close(number: int) -> None:
        with database.begin() as tx:
            cause = Cause.REQUEST if number % 2 else Cause.SCHEDULE
            now_ns = SystemClock().now_ns()
            receipts.append(close_period(tx, registered, desk.period, cause=cause, now_ns=now_ns))

    at_once(close)
    assert len({receipt.event_id for receipt in receipts}) == 1
    with database.read() as tx:
        assert [entry.stage for entry in tx.outbox.entries(states=["pending"], limit=9)] == ["evaluate"]
