"""The dispatcher of one process: retries, parking, and work that is done once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from ledger.app.log.checkpoints import NoWitnesses, sign_checkpoint
from ledger.app.log.log_keys import LogIdentity
from ledger.app.log.restore_guard import RestoreGuard
from ledger.app.ports.store import Database
from ledger.app.work.outbox import LEASE_NS, MAX_ATTEMPTS, OutboxRunner, Stage
from ledger.attest.crypto.signing import verify
from ledger.errors import NotYet, Refused, StageFailed, Unavailable, VersionConflict
from ledger.merkle.checkpoint import Checkpoint
from ledger.merkle.checkpoint import sign_checkpoint as sign_note
from ledger.merkle.note import VerifierKey
from tests.conformance.samples import LOG_KEY, MemoryPin, windows
from tests.unit.app.conftest import Desk


def runner(desk: Desk, work: Callable[[str], None]) -> OutboxRunner:
    return OutboxRunner(
        desk.database, {Stage.PROVE: lambda _database, event_id: work(event_id)}, desk.clock, holder="this test"
    )


def sleeper(desk: Desk) -> Callable[[float], None]:
    """Lets the desk's clock pass instead of waiting."""

    def sleep(seconds: float) -> None:
        desk.clock.now += round(seconds * 10**9)

    return sleep


def queue(desk: Desk, count: int = 1) -> list[str]:
    """Events with a stage queued twice each; their ids."""
    with desk.database.begin() as tx:
        ids = [receipt.event_id for receipt in tx.events.append("s", windows(count), expected_version=0)]
        for event_id in [*ids, *ids]:
            tx.outbox.add(event_id, Stage.PROVE)
    return ids


def test_each_stage_is_worked_once(desk: Desk) -> None:
    done: list[str] = []
    ids = queue(desk, 2)
    runner(desk, done.append).run_until_idle(sleeper(desk))
    assert done == ids
    with desk.database.read() as tx:
        assert tx.outbox.pending() == 0


def test_an_outage_is_tried_again_later_and_parked_in_the_end(desk: Desk) -> None:
    tries: list[str] = []

    def fail(event_id: str) -> None:
        tries.append(event_id)
        raise Unavailable("the prover did not answer")

    (only,) = queue(desk)
    run = runner(desk, fail)
    for _ in range(MAX_ATTEMPTS * 20):
        run.run_once()
        desk.clock.now += 10**9
    assert len(tries) == MAX_ATTEMPTS
    with desk.database.read() as tx:
        ((event_id, stage, attempts, error),) = tx.outbox.parked()
    assert (event_id, stage, attempts) == (only, "prove", MAX_ATTEMPTS)
    assert "did not answer" in error


def test_running_until_idle_waits_for_what_is_to_be_tried_again(desk: Desk) -> None:
    done: list[str] = []
    outages = [Unavailable("the prover did not answer"), ValueError("a fault of the program")]

    def work(event_id: str) -> None:
        if outages:
            raise outages.pop()
        done.append(event_id)

    ids = queue(desk, 2)
    runner(desk, work).run_until_idle(sleeper(desk))
    assert sorted(done) == sorted(ids)


def test_an_outage_that_lasts_is_said(desk: Desk) -> None:
    def fail(event_id: str) -> None:
        raise Unavailable("the prover did not answer")

    queue(desk)
    with pytest.raises(StageFailed, match=f"after {MAX_ATTEMPTS} attempt.* did not answer"):
        runner(desk, fail).run_until_idle(sleeper(desk))
    # What was parked before is the operator's, and no failure of the next run.
    runner(desk, fail).run_until_idle(sleeper(desk))


def test_work_that_ends_its_process_each_time_is_parked(desk: Desk) -> None:
    def crash(event_id: str) -> None:
        raise KeyboardInterrupt

    queue(desk)
    for _ in range(MAX_ATTEMPTS):
        with pytest.raises(KeyboardInterrupt):
            runner(desk, crash).run_once()
        desk.clock.now += LEASE_NS
    assert runner(desk, crash).run_once()
    with desk.database.read() as tx:
        ((_, _, _, error),) = tx.outbox.parked()
    assert "ended each time" in error


def test_what_is_refused_is_parked_at_once_and_does_not_stop_the_others(desk: Desk) -> None:
    bad, good = queue(desk, 2)
    done: list[str] = []

    def work(event_id: str) -> None:
        if event_id == bad:
            raise Refused("no honest proof exists")
        done.append(event_id)

    with pytest.raises(StageFailed, match="no honest proof exists"):
        runner(desk, work).run_until_idle(sleeper(desk))
    assert done == [good]


def test_a_crash_leaves_the_work_to_whoever_comes_after_the_lease(desk: Desk) -> None:
    def crash(event_id: str) -> None:
        raise KeyboardInterrupt

    (only,) = queue(desk)
    with pytest.raises(KeyboardInterrupt):
        runner(desk, crash).run_once()
    done: list[str] = []
    assert not runner(desk, done.append).run_once()
    desk.clock.now += LEASE_NS
    assert runner(desk, done.append).run_once()
    assert done == [only]


def test_what_is_not_possible_yet_waits_as_long_as_it_says_and_as_often_as_it_takes(desk: Desk) -> None:
    looks: list[int] = []

    def work(event_id: str) -> None:
        looks.append(desk.clock.now)
        if len(looks) <= 3 * MAX_ATTEMPTS:
            raise NotYet("the block is not final", retry_after_s=30)

    queue(desk)
    runner(desk, work).run_until_idle(sleeper(desk))
    assert len(looks) == 3 * MAX_ATTEMPTS + 1
    assert all(later - earlier >= 30 * 10**9 for earlier, later in pairwise(looks))
    with desk.database.read() as tx:
        (entry,) = tx.outbox.entries(states=["done"], limit=9)
    assert entry.attempts == 1


def test_what_somebody_else_wrote_first_is_tried_again(desk: Desk) -> None:
    outages = [VersionConflict("somebody else appended")]

    def work(event_id: str) -> None:
        if outages:
            raise outages.pop()

    queue(desk)
    runner(desk, work).run_until_idle(sleeper(desk))
    with desk.database.read() as tx:
        assert (tx.outbox.pending(), tx.outbox.parked()) == (0, [])


@pytest.mark.parametrize("ending", [None, Refused("no"), Unavailable("away"), NotYet("wait", retry_after_s=1)])
def test_who_lost_the_lease_meanwhile_does_not_say_how_it_ended(desk: Desk, ending: Exception | None) -> None:
    (only,) = queue(desk)

    def work(event_id: str) -> None:
        # The worker stood still for longer than its lease, and another one has taken over.
        desk.clock.now += LEASE_NS
        with desk.database.begin() as tx:
            lease = tx.outbox.lease(desk.clock.now_ns(), LEASE_NS, holder="another")
            assert lease is not None
        if ending is not None:
            raise ending

    assert runner(desk, work).run_once()
    with desk.database.read() as tx:
        (entry,) = tx.outbox.entries(states=["pending", "done", "parked"], limit=9)
    assert (entry.event_id, entry.state, entry.attempts, entry.holder) == (only, "pending", 2, "another")


def test_a_lease_is_renewed_while_the_work_lasts(desk: Desk) -> None:
    queue(desk)
    lease_ns = 10**9 // 10
    run = OutboxRunner(desk.database, {Stage.PROVE: lambda *_: None}, desk.clock, holder="slow", lease_ns=lease_ns)

    def work(_database: Database, event_id: str) -> None:
        with desk.database.read() as tx:
            (before,) = tx.outbox.entries(states=["pending"], limit=9)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with desk.database.read() as tx:
                (now,) = tx.outbox.entries(states=["pending"], limit=9)
            if now.due_at_ns > before.due_at_ns:
                return
            time.sleep(0.01)
        pytest.fail("nobody renewed the lease")

    run._work = {Stage.PROVE: work}
    assert run.run_once()
    with desk.database.read() as tx:
        assert tx.outbox.pending() == 0
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lease of")]


def test_work_gets_the_database_of_the_events_tenant(desk: Desk) -> None:
    with desk.database.of_tenant("acme").begin() as tx:
        (receipt,) = tx.events.append("s", windows(1), expected_version=0)
        tx.outbox.add(receipt.event_id, Stage.PROVE)
    seen: list[int] = []

    def work(database: Database, event_id: str) -> None:
        with database.read() as tx:
            seen.append(len(list(tx.events.stream("s"))))

    assert OutboxRunner(desk.database, {Stage.PROVE: work}, desk.clock, holder="this test").run_once()
    assert seen == [1]


def test_stages_of_others_are_left_to_them(desk: Desk) -> None:
    (only,) = queue(desk)
    with desk.database.begin() as tx:
        tx.outbox.add(only, Stage.CONFIRM)
    done: list[str] = []
    runner(desk, done.append).run_until_idle(sleeper(desk))
    assert done == [only]
    with desk.database.read() as tx:
        assert [entry.stage for entry in tx.outbox.entries(states=["pending"], limit=9)] == ["confirm"]


def test_a_message_is_worked_once_however_often_it_comes(desk: Desk) -> None:
    (only,) = queue(desk)
    done: list[str] = []
    run = runner(desk, done.append)
    with desk.database.begin() as tx:
        (rung,) = tx.outbox.ring(desk.clock.now_ns(), LEASE_NS)
    # The dispatcher leaves to the worker what that was told of.
    assert not run.run_once()
    assert [run.run_claimed(only, "prove", rung.token) for _ in range(3)] == [True, False, False]
    assert not run.run_claimed(only, "prove", rung.token + 1)
    assert done == [only]


def test_a_message_comes_again_while_the_first_one_is_being_worked(desk: Desk) -> None:
    (only,) = queue(desk)
    with desk.database.begin() as tx:
        (rung,) = tx.outbox.ring(desk.clock.now_ns(), LEASE_NS)
    done: list[str] = []
    nested: list[bool] = []

    def work(event_id: str) -> None:
        nested.append(runner(desk, done.append).run_claimed(event_id, "prove", rung.token))
        done.append(event_id)

    assert runner(desk, work).run_claimed(only, "prove", rung.token)
    assert (nested, done) == ([False], [only])


class NoteSigner:
    identity = LogIdentity(LOG_KEY.key, verify)

    def sign(self, size: int, root: bytes, key: VerifierKey) -> str:
        assert key == LOG_KEY.key
        return sign_note(Checkpoint(LOG_KEY.key.name, size, root), [LOG_KEY]).decode()


def test_a_size_is_signed_once_and_an_empty_log_not_at_all(desk: Desk) -> None:
    guard = RestoreGuard(MemoryPin())
    assert sign_checkpoint(desk.database, NoteSigner(), NoWitnesses(), guard) == 0
    with desk.database.begin() as tx:
        assert tx.log.checkpoint() is None
        tx.events.append("s", windows(3), expected_version=0)
    assert sign_checkpoint(desk.database, NoteSigner(), NoWitnesses(), guard) == 3
    with desk.database.read() as tx:
        first = tx.log.checkpoint(3)
    assert sign_checkpoint(desk.database, NoteSigner(), NoWitnesses(), guard) == 3
    with desk.database.read() as tx:
        assert tx.log.checkpoint() == first
        assert tx.log.checkpoint_size() == 3
