"""What must hold on PostgreSQL whatever writers, sequencers and the machine do."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from ledger.app.ports.store import Transaction
from ledger.domain.record.events import StoredEvent
from ledger.errors import BadInput, IdempotencyConflict, LogInconsistent, StorageUnavailable, VersionConflict
from ledger.merkle.hasher import leaf_hash
from ledger.merkle.proof import consistency_proof
from ledger.merkle.tile import TileId
from ledger.merkle.verify import verify_consistency
from ledger.store.inbox import Sequencer
from ledger.store.postgres import PostgresDatabase
from tests.conformance.samples import PERIOD, SLA_ID, agreement, naive_root, window, windows
from tests.support.postgres import Server
from tests.support.postgres_processes import open_postgres, sequence_and_die, start


@pytest.fixture
def database(postgres_url: str) -> Iterator[PostgresDatabase]:
    database = open_postgres(postgres_url)
    yield database
    database.close()


def log_of(database: PostgresDatabase) -> list[StoredEvent]:
    with database.read() as tx:
        return list(tx.events.since(0, limit=100_000))


def require_one_history(database: PostgresDatabase) -> list[StoredEvent]:
    """Contiguous places, every stream in order of version, and the root of just these leaves."""
    events = log_of(database)
    assert [event.seq for event in events] == list(range(len(events)))
    assert len({event.id for event in events}) == len(events)
    for stream in {event.stream for event in events}:
        versions = [event.version for event in events if event.stream == stream]
        assert versions == list(range(len(versions)))
    with database.read() as tx:
        assert tx.log.size() == len(events)
        assert tx.log.root(len(events)) == naive_root([leaf_hash(event.entry) for event in events])
    return events


def meet(postgres_url: str, *rivals: threading.Thread) -> None:
    """Start them, and return once each of them waits for a transaction that is open here."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    for rival in rivals:
        rival.start()
    give_up = time.monotonic() + 60
    with psycopg.connect(postgres_url, autocommit=True) as looking:
        while looking.execute(waiting).fetchone() != (len(rivals),):
            assert time.monotonic() < give_up, "they never met"
            time.sleep(0.01)


def test_the_one_character_that_no_text_of_it_may_have_is_bad_input(database: PostgresDatabase) -> None:
    """Whoever asks for ``/v1/statements/%00`` did something wrong, and not the server."""
    with pytest.raises(BadInput, match=r"U\+0000"), database.read() as tx:
        tx.views.statement("a\0b")


@pytest.mark.slow
def test_eight_processes_and_two_sequencers_write_one_root_history(
    postgres_url: str, database: PostgresDatabase
) -> None:
    sequencers = [start("sequence", postgres_url) for _ in range(2)]
    writers = [start("append", postgres_url, str(seed), "200") for seed in range(8)]
    for writer in writers:
        _, errors = writer.communicate(timeout=300)
        assert writer.returncode == 0, errors.decode()
    with database.read(min_seq=1599, timeout_s=60):
        pass
    for sequencer in sequencers:
        sequencer.send_signal(signal.SIGTERM)
        _, errors = sequencer.communicate(timeout=60)
        assert (sequencer.returncode, errors) == (0, b"")
    events = require_one_history(database)
    assert len(events) == 1600
    assert sum(event.stream == "windows/shared" for event in events) == 800


def test_a_transaction_held_open_while_others_commit_is_not_skipped(database: PostgresDatabase) -> None:
    reader: list[str] = []
    done = threading.Event()

    def follow() -> None:
        for page in database.subscribe(0, stopping=done.is_set):
            reader.extend(event.stream for event in page)

    thread = threading.Thread(target=follow)
    thread.start()
    with database.begin() as late:
        late.events.append("windows/late", windows(1), expected_version=0)
        for version in range(5):
            database.append("windows/early", windows(1), expected_version=version)
            assert database.sequence_once() == 1
    assert database.sequence_once() == 1
    for _ in range(1200):
        if len(reader) == 6:
            break
        done.wait(0.05)
    done.set()
    thread.join()
    assert reader == ["windows/early"] * 5 + ["windows/late"]
    require_one_history(database)


@pytest.mark.slow
def test_a_sequencer_killed_at_every_statement_boundary_leaves_no_gap_and_no_fork(
    postgres_url: str, database: PostgresDatabase
) -> None:
    seed = 20261129
    print(f"seed {seed}")
    draw = random.Random(seed)
    checkpoints: dict[int, bytes] = {}
    killed, appended = 0, 0
    for serial in range(200):
        count = draw.choice([1, 1, 2, 7, 40, 300])
        database.append(f"windows/{serial % 7}", windows(count), expected_version=None)
        appended += count
        # Every boundary there is, then any of them; a batch has fewer than 30.
        boundary = serial + 1 if serial < 30 else draw.randint(1, 30)
        killed += sequence_and_die(postgres_url, boundary) == signal.SIGKILL
        with database.read() as tx:
            size = tx.log.size()
            if size:
                root = tx.log.root(size)
                assert checkpoints.setdefault(size, root) == root
                assert tx.events.at(size - 1).seq == size - 1
    assert killed > 100
    while database.sequence_once():
        pass
    assert len(require_one_history(database)) == appended
    require_consistent(database, checkpoints)


def require_consistent(database: PostgresDatabase, checkpoints: dict[int, bytes]) -> None:
    """Every pair; tiles are read once, since there are thousands of pairs."""
    with database.begin() as tx:
        rows = tx.log._rows._connection.execute(  # type: ignore[attr-defined]
            text("SELECT level, tile_index, data FROM tile")
        ).all()
    stored = {(level, index): data for level, index, data in rows}

    def tiles(wanted: Any) -> dict[TileId, bytes]:
        return {tile: stored[tile.level, tile.index] for tile in wanted}

    sizes = sorted(checkpoints)
    for old in sizes:
        for new in sizes[sizes.index(old) + 1 :]:
            proof = consistency_proof(old, new, tiles)
            verify_consistency(old, new, checkpoints[old], checkpoints[new], proof)


def test_a_unique_violation_does_not_stall_readers(postgres_url: str, database: PostgresDatabase) -> None:
    database.append("windows/a", windows(1), expected_version=0)
    assert database.sequence_once() == 1
    with psycopg.connect(postgres_url) as other:
        with pytest.raises(psycopg.errors.UniqueViolation):
            other.execute(
                "INSERT INTO event SELECT 'x', tenant, stream, version, type, schema_version, payload_class, "
                "occurred_at_ns, recorded_at_ns, salt, payload FROM event"
            )
        # Its transaction is still open, and has failed.
        with pytest.raises(VersionConflict):
            database.append("windows/a", windows(1), expected_version=0)
        database.append("windows/a", windows(1), expected_version=1)
        assert database.sequence_once() == 1
        assert [event.seq for event in log_of(database)] == [0, 1]


def test_two_sequencers_do_not_wait_for_each_other(database: PostgresDatabase) -> None:
    database.append("windows/a", windows(3), expected_version=0)
    with database._sequencer.begin() as leader:
        from ledger.store.inbox import sequence_inbox

        assert sequence_inbox(leader, 1, limit=2) == 2
        assert database.sequence_once() == 0
    assert database.sequence_once() == 1
    require_one_history(database)


def test_while_somebody_holds_the_log_nothing_comes_into_it(database: PostgresDatabase) -> None:
    database.append("windows/a", windows(1), expected_version=0)
    with database.begin() as tx:
        assert tx.log.hold() == 0
        assert database.sequence_once() == 0
    assert database.sequence_once() == 1
    require_one_history(database)


def test_without_its_lock_a_second_sequencer_still_cannot_fork_the_log(
    postgres_url: str, database: PostgresDatabase
) -> None:
    """The compare-and-swap is the fence: who read an old size writes nothing."""
    database.append("windows/a", windows(2), expected_version=0)
    outcomes: list[Any] = []

    def second() -> None:
        try:
            outcomes.append(database.sequence_once())
        except (StorageUnavailable, LogInconsistent) as error:
            outcomes.append(error)

    from ledger.store import inbox

    rival = threading.Thread(target=second)
    with database._sequencer.begin() as first:
        assert inbox.sequence_inbox(first, 1) == 2
        lock, inbox.LEADER_LOCK = inbox.LEADER_LOCK, 1
        try:
            meet(postgres_url, rival)
        finally:
            inbox.LEADER_LOCK = lock
    rival.join()
    assert isinstance(outcomes[0], StorageUnavailable | LogInconsistent)
    assert len(require_one_history(database)) == 2


def test_writers_of_one_key_at_the_same_moment_write_once(postgres_url: str, database: PostgresDatabase) -> None:
    other = open_postgres(postgres_url, seed=2)
    results: list[Any] = []

    def retry(events: list[Any]) -> None:
        try:
            results.append(other.append("windows/a", events, expected_version=0, idempotency_key="key"))
        except IdempotencyConflict as error:
            results.append(error)

    with database.begin() as tx:
        first = tx.events.append("windows/a", windows(2), expected_version=0, idempotency_key="key")
        threads = [threading.Thread(target=retry, args=(events,)) for events in (windows(2), [window(9)])]
        meet(postgres_url, *threads)
    for thread in threads:
        thread.join()
    other.close()
    (same,) = [each for each in results if not isinstance(each, Exception)]
    assert [each.event_id for each in same] == [each.event_id for each in first]
    assert len(results) == 2
    database.sequence_once()
    assert len(require_one_history(database)) == 2


def test_writers_of_one_stream_at_the_same_moment_both_write_where_any_version_will_do(
    postgres_url: str, database: PostgresDatabase
) -> None:
    other = open_postgres(postgres_url, seed=2)
    with database.begin() as tx:
        tx.events.append("windows/a", windows(2), expected_version=None)
        rival = threading.Thread(target=lambda: other.append("windows/a", windows(1), expected_version=None))
        meet(postgres_url, rival)
    rival.join()
    other.close()
    database.sequence_once()
    assert [event.version for event in require_one_history(database)] == [0, 1, 2]


def test_the_sequencer_works_in_the_background_and_survives_errors(database: PostgresDatabase) -> None:
    told: list[str] = []
    failures = [StorageUnavailable("the database is away"), StorageUnavailable("the database is away")]

    def flaky() -> int:
        if failures:
            raise failures.pop()
        return database.sequence_once()

    sequencer = Sequencer(flaky, told.append, period_s=0.01)
    sequencer.start()
    (receipt,) = database.append("any", [agreement()], expected_version=0)
    assert database.wait_sequenced([receipt.event_id]) == (0,)
    sequencer.stop()
    assert told == ["the sequencer goes on after an error: the database is away"]


def test_a_batch_of_any_size_gives_the_same_views(postgres_url: str, database: PostgresDatabase) -> None:
    from ledger.store.inbox import sequence_inbox

    database.append("any", [window(1), window(0), window(1, bad=4), agreement(), agreement(2)], expected_version=0)
    for _ in range(5):
        with database._sequencer.begin() as connection:
            assert sequence_inbox(connection, 1, limit=1) == 1
    with database.read() as tx:
        before = [tx.views.windows(SLA_ID, PERIOD), tx.views.agreements()]
    assert database.rebuild_views() == 5
    with database.read() as tx:
        assert [tx.views.windows(SLA_ID, PERIOD), tx.views.agreements()] == before


def test_a_queue_row_from_before_it_had_a_type_sets_its_views(postgres_url: str, database: PostgresDatabase) -> None:
    database.append("any", [window(0), agreement()], expected_version=0)
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("ALTER TABLE inbox DISABLE TRIGGER no_update")
        admin.execute("UPDATE inbox SET type = NULL")
        admin.execute("ALTER TABLE inbox ENABLE ALWAYS TRIGGER no_update")
    assert database.sequence_once() == 2
    with database.read() as tx:
        assert len(tx.views.agreements()) == 1
        assert len(tx.views.windows(SLA_ID, PERIOD)) == 1


def test_a_batch_reads_no_more_of_the_leaves_than_its_own(postgres_url: str, database: PostgresDatabase) -> None:
    """The guard of the queue asks for each leaf by its index, however many there are."""
    from ledger.store.inbox import sequence_inbox

    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(
            "INSERT INTO leaf SELECT 1000000 + n, 'other-' || n, decode(repeat('00', 32), 'hex'), 0 "
            "FROM generate_series(1, 50000) AS n"
        )
        admin.execute("ANALYZE leaf")
    database.append("windows/a", windows(2000), expected_version=0)
    with database._sequencer.begin() as connection:
        assert sequence_inbox(connection, 1) == 2000
        scans = connection.execute(
            text("SELECT seq_scan, idx_scan FROM pg_stat_xact_user_tables WHERE relname = 'leaf'")
        ).one()
    assert scans.seq_scan == 0
    assert scans.idx_scan >= 2000


def test_sequenced_at_never_goes_back(database: PostgresDatabase) -> None:
    for version, jump_ns in enumerate((0, -(10**15), 10**12, -(10**9))):
        database._clock.now += jump_ns  # type: ignore[attr-defined]
        database.append("windows/a", windows(1), expected_version=version)
        database.sequence_once()
    with database._app.begin() as connection:
        times = list(connection.scalars(text("SELECT sequenced_at_ns FROM leaf ORDER BY seq")))
    assert all(earlier <= later for earlier, later in pairwise(times))


class TestWhatFails:
    def test_a_read_only_database_says_so_and_loses_nothing(
        self, postgres_server: Server, postgres_url: str, database: PostgresDatabase
    ) -> None:
        database.append("windows/a", windows(2), expected_version=0)
        name = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
        with psycopg.connect(postgres_server.url, autocommit=True) as admin:
            admin.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
            database.close()
            with pytest.raises(StorageUnavailable, match="is read-only"):
                database.append("windows/a", windows(1), expected_version=2)
            with pytest.raises(StorageUnavailable, match="is read-only"):
                database.sequence_once()
            admin.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
        database.close()
        database.append("windows/a", windows(1), expected_version=2)
        assert database.sequence_once() == 3

    def test_a_full_disk_says_so_and_loses_nothing(self, postgres_url: str, database: PostgresDatabase) -> None:
        """The error is the server's own code for a full disk, raised in the middle of an append and of a batch."""
        database.append("windows/a", windows(2), expected_version=0)
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            admin.execute(
                "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$"
            )
            for table in ("inbox", "leaf"):
                admin.execute(f"CREATE TRIGGER full_disk BEFORE INSERT ON {table} EXECUTE FUNCTION full_disk()")
            with pytest.raises(StorageUnavailable, match="no room left"):
                database.append("windows/a", windows(1), expected_version=2)
            with pytest.raises(StorageUnavailable, match="no room left"):
                database.sequence_once()
            for table in ("inbox", "leaf"):
                admin.execute(f"DROP TRIGGER full_disk ON {table}")
        database.append("windows/a", windows(1), expected_version=2)
        assert database.sequence_once() == 3
        require_one_history(database)

    def test_a_connection_that_breaks_says_that_the_outcome_is_open(
        self, postgres_url: str, database: PostgresDatabase
    ) -> None:
        def append_and_break(tx: Transaction) -> None:
            tx.events.append("windows/a", windows(1), expected_version=0)
            with psycopg.connect(postgres_url, autocommit=True) as admin:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE pid <> pg_backend_pid() AND datname = current_database()"
                )

        with pytest.raises(StorageUnavailable, match="may have been written"), database.begin() as tx:
            append_and_break(tx)
        database.append("windows/a", windows(1), expected_version=0)

    def test_a_server_that_is_not_there(self) -> None:
        with pytest.raises(StorageUnavailable, match="did not answer"):
            open_postgres("postgresql://nobody:secret@127.0.0.1:1/nothing")
