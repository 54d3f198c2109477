"""Clients that append as fast as they can, ours and the peer's, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Barrier
from uuid import UUID, uuid4

from sqlalchemy.engine import make_url

from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.events import NewEvent
from tests.support.postgres import ROLE_PREFIX

EVENT_BYTES = 500
WARM_UP = 8
"""Appends of each client before the clock runs: connections open, statements prepared."""

Append = Callable[[int], None]
"""Appends one batch, given the version of its first event."""

Client = Callable[[str, int], Append]
"""Connects to a URL and returns a way to append batches of this many events to a stream of its own."""


class SystemClock:
    def now_ns(self) -> int:
        return time.time_ns()


class SystemRandomness:
    def bytes(self, count: int) -> bytes:
        return os.urandom(count)


def event_of_500_bytes(serial: int) -> NewEvent:
    """A sealed block whose canonical payload has ``EVENT_BYTES`` bytes."""
    payload = {
        "sla_id": "0x" + "5a" * 32,
        "seal_key": f"{serial:066}".replace("0", "1"),
        "block": 0,
        "block_hash": "7" * 40,
        "first_window": 0,
        "windows": 25,
        "inputs": ["ef" * 32, "cd" * 32, "ab" * 32],
    }
    missing = EVENT_BYTES - len(canonical_bytes(payload))
    return NewEvent("block_sealed", {**payload, "block_hash": "7" * (40 + missing)}, 1_702_944_000_000_000_000)


def our_client(url: str, batch: int) -> Append:
    """``PostgresDatabase.append``: schema and canonical form checked, leaf hashed, head moved, queued."""
    from ledger.store.postgres import PostgresDatabase

    database = PostgresDatabase(url, SystemClock(), SystemRandomness(), role_prefix=ROLE_PREFIX)
    stream = f"seals/{uuid4()}"
    events = [event_of_500_bytes(serial) for serial in range(batch)]

    def append(version: int) -> None:
        database.append(stream, events, expected_version=version)

    return append


def peer_client(url: str, batch: int) -> Append:
    """``eventsourcing`` in its default mode: a table lock, no database functions."""
    from eventsourcing.persistence import StoredEvent

    recorder = peer_recorder(url)
    originator, state = uuid4(), b"x" * EVENT_BYTES

    def append(version: int) -> None:
        recorder.insert_events(
            [StoredEvent(UUID(int=originator.int), version + at, "bench:Event", state) for at in range(batch)]
        )

    return append


def peer_recorder(url: str):  # type: ignore[no-untyped-def]
    """The peer's recorder over TCP."""
    from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore

    parts = make_url(url)
    datastore = PostgresDatastore(
        str(parts.database), str(parts.host), str(parts.port or 5432), str(parts.username), parts.password or "x"
    )
    return PostgresApplicationRecorder(datastore)


def run(client: Client, url: str, *, clients: int, batch: int, appends: int) -> Iterator[float]:
    """Let that many clients append at once; yields when they start and when all have ended (monotonic seconds)."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(clients + 1)
    processes = [context.Process(target=_work, args=(client, url, batch, appends, barrier)) for _ in range(clients)]
    for process in processes:
        process.start()
    barrier.wait(60)
    yield time.perf_counter()
    for process in processes:
        process.join()
    yield time.perf_counter()
    if any(process.exitcode for process in processes):
        raise SystemExit("a client failed; the figure would mean nothing")


def _work(client: Client, url: str, batch: int, appends: int, barrier: Barrier) -> None:
    append = client(url, batch)
    for at in range(WARM_UP):
        append(at * batch)
    barrier.wait(60)
    for at in range(WARM_UP, WARM_UP + appends):
        append(at * batch)
