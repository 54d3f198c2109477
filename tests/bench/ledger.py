"""Measure the ledger: ``python -m tests.bench.ledger [NAME ...]`` prints a table and writes var/bench/ledger.json.

Appends are measured side by side with PyPI ``eventsourcing`` on the same PostgreSQL and SQLite: rounds of ours and
of the peer's take turns, and the medians are compared. Ours are timed until every event has its place in the tree.
"""

from __future__ import annotations

import atexit
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from uuid import uuid4

from ledger.store.database import SqliteDatabase
from ledger.store.inbox import Sequencer
from ledger.store.postgres import PostgresDatabase
from tests.bench.append_clients import (
    EVENT_BYTES,
    WARM_UP,
    SystemClock,
    SystemRandomness,
    event_of_500_bytes,
    our_client,
    peer_client,
    peer_recorder,
    run,
)
from tests.bench.main import ROOT, Goal, main, run_child
from tests.conformance.samples import windows
from tests.support.postgres import ROLE_PREFIX, Server, running_server

RESULT = ROOT / "var/bench/ledger.json"
ROUNDS = 5
LEAVES = 1_000_000

GOALS = {
    "pg_1x8_ratio": Goal("x", ">=", 3),
    "pg_100x4_ratio": Goal("x", ">=", 1.4),
    "sqlite_1000_ratio": Goal("x", ">=", 0.3),
    "inclusion_ms": Goal("ms", "<=", 5),
    "consistency_ms": Goal("ms", "<=", 5),
    "fsck_1m_s": Goal("s", "<=", 90),
    "fsck_mb": Goal("MB", "<=", 300),
    "rebuild_per_s": Goal("/s", ">=", 20_000),
}


def pg_1x8() -> dict[str, float]:
    """Single events, 8 clients: for seconds, because the wait for the last events' places is a tenth of one."""
    return {"pg_1x8_ratio": _postgres_ratio(batch=1, clients=8, appends=1500)}


def pg_100x4() -> dict[str, float]:
    """Batches of 100 events, 4 clients."""
    return {"pg_100x4_ratio": _postgres_ratio(batch=100, clients=4, appends=100)}


def _postgres_ratio(*, batch: int, clients: int, appends: int) -> float:
    size = {"batch": batch, "clients": clients, "appends": appends}
    ours, peers = [], []
    with running_server(durable=True) as server:
        for _ in range(ROUNDS):
            peers.append(_peer_rate(server, **size))
            ours.append(_our_rate(server, **size))
    return _compare(f"PostgreSQL {batch} x {clients}", ours, peers)


def _our_rate(server: Server, *, batch: int, clients: int, appends: int) -> float:
    """Events a second from the first append until the last event has its place in the log."""
    url = server.new_database()
    database = PostgresDatabase(url, SystemClock(), SystemRandomness(), role_prefix=ROLE_PREFIX)
    sequencer = Sequencer(database.sequence_once, _fail)
    sequencer.start()
    running = run(our_client, url, clients=clients, batch=batch, appends=appends)
    started = next(running)
    next(running)
    with database.read(min_seq=clients * batch * (WARM_UP + appends) - 1, timeout_s=60):
        ended = time.perf_counter()
    next(running, None)
    sequencer.stop()
    database.close()
    server.drop(url)
    return clients * batch * appends / (ended - started)


def _peer_rate(server: Server, *, batch: int, clients: int, appends: int) -> float:
    url = server.empty_database()
    recorder = peer_recorder(url)
    recorder.create_table()
    recorder.datastore.close()
    started, ended = run(peer_client, url, clients=clients, batch=batch, appends=appends)
    server.drop(url)
    return clients * batch * appends / (ended - started)


def sqlite_1000() -> dict[str, float]:
    """Batches of 1,000 events, one writer, a file on disk."""
    ours, peers = [], []
    with tempfile.TemporaryDirectory() as folder:
        for serial in range(ROUNDS):
            peers.append(_peer_sqlite_rate(Path(folder) / f"peer-{serial}.db", appends=50))
            ours.append(_our_sqlite_rate(Path(folder) / f"ours-{serial}.db", appends=25))
    return {"sqlite_1000_ratio": _compare("SQLite 1000", ours, peers)}


def _our_sqlite_rate(path: Path, *, appends: int) -> float:
    database = SqliteDatabase(path, SystemClock(), SystemRandomness())
    events = [event_of_500_bytes(serial) for serial in range(1000)]
    started = time.perf_counter()
    for at in range(appends):
        database.append("seals/a", events, expected_version=1000 * at)
    seconds = time.perf_counter() - started
    database.close()
    return 1000 * appends / seconds


def _peer_sqlite_rate(path: Path, *, appends: int) -> float:
    from eventsourcing.persistence import StoredEvent
    from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

    recorder = SQLiteApplicationRecorder(SQLiteDatastore(str(path)))
    recorder.create_table()
    originator, state = uuid4(), b"x" * EVENT_BYTES
    started = time.perf_counter()
    for at in range(appends):
        recorder.insert_events(
            [StoredEvent(originator, 1000 * at + index, "bench:Event", state) for index in range(1000)]
        )
    seconds = time.perf_counter() - started
    recorder.datastore.close()
    return 1000 * appends / seconds


def proofs_1m() -> dict[str, float]:
    """Inclusion and consistency proofs of a tree of 1,000,000 leaves, each in a transaction; the medians."""
    draw = random.Random(1)
    inclusion, consistency = [], []
    with opened(filled_directory()) as database:
        for _ in range(500):
            started = time.perf_counter()
            with database.read() as tx:
                tx.log.inclusion_proof(draw.randrange(LEAVES), LEAVES)
            between = time.perf_counter()
            with database.read() as tx:
                tx.log.consistency_proof(draw.randrange(1, LEAVES), LEAVES)
            inclusion.append(between - started)
            consistency.append(time.perf_counter() - between)
    return {
        "inclusion_ms": 1000 * statistics.median(inclusion),
        "consistency_ms": 1000 * statistics.median(consistency),
    }


def rebuild_1m() -> dict[str, float]:
    """Every view anew from 1,000,000 events, each of which sets a row."""
    with opened(filled_directory()) as database:
        started = time.perf_counter()
        count = database.rebuild_views()
        return {"rebuild_per_s": count / (time.perf_counter() - started)}


def fsck_1m() -> dict[str, float]:
    """The command over 1,000,000 events, from outside."""
    ran = run_child([sys.executable, "-m", "ledger.cli.main", "fsck", "--data", str(filled_directory())])
    return {"fsck_1m_s": ran.seconds, "fsck_mb": ran.peak_mb}


MEASUREMENTS: dict[str, Callable[[], dict[str, float]]] = {
    "pg_1x8": pg_1x8,
    "pg_100x4": pg_100x4,
    "sqlite_1000": sqlite_1000,
    "proofs_1m": proofs_1m,
    "rebuild_1m": rebuild_1m,
    "fsck_1m": fsck_1m,
}


@cache
def filled_directory() -> Path:
    """A data directory whose log has 1,000,000 judged windows and a checkpoint; removed when the run ends."""
    from ledger.wiring import create_data

    print(f"  filling a log with {LEAVES:,} events ...", file=sys.stderr, flush=True)
    parent = Path(tempfile.mkdtemp(prefix="sla-ledger-bench-"))
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    services = create_data(parent / "data", key_cache=parent / "keys", notify=lambda _: None)
    for start in range(0, LEAVES, 1000):
        services.database.append("windows/bench", windows(1000, start), expected_version=start)
    services.sign_log()
    services.close()
    return parent / "data"


@contextmanager
def opened(folder: Path) -> Iterator[SqliteDatabase]:
    database = SqliteDatabase(folder / "ledger.db", SystemClock(), SystemRandomness())
    try:
        yield database
    finally:
        database.close()


def _compare(name: str, ours: Sequence[float], peers: Sequence[float]) -> float:
    """The ratio of the medians; both with their spread go to stderr."""
    for who, rates in (("ours", ours), ("eventsourcing", peers)):
        spread = f"{min(rates):,.0f} to {max(rates):,.0f}"
        print(f"  {name} {who}: {statistics.median(rates):,.0f}/s ({spread})", file=sys.stderr)
    return statistics.median(ours) / statistics.median(peers)


def _fail(message: str) -> None:
    print(message, file=sys.stderr)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], MEASUREMENTS, GOALS, RESULT))
