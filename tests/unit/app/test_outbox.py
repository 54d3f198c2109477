"""The dispatcher of one process: retries, parking, and work that is done once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ledger.app.checkpoints import NoWitnesses, sign_checkpoint
from ledger.app.log_keys import LogIdentity
from ledger.app.outbox import LEASE_NS, MAX_ATTEMPTS, OutboxRunner, Stage
from ledger.app.restore_guard import RestoreGuard
from ledger.attest.signing import verify
from ledger.errors import Refused, StageFailed, Unavailable
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
