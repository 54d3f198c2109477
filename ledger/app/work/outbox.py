"""Work that follows a commit, and the runner that does it, whoever hands it out.

One row of the outbox is one stage of one event. A stage is leased, worked outside the lease's transaction and then
marked done; a crash in between leaves the lease to run out, so every stage must be safe to run twice. The embedded
dispatcher leases what is due; a worker of a larger deployment claims what a queue told it of. Both work it here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from ledger.app.ports.outbox import Lease
from ledger.app.ports.store import Database
from ledger.app.work.leases import kept
from ledger.domain.time.instant import SECOND_NS, Clock
from ledger.errors import NotYet, Refused, SlaLedgerError, StageFailed, VersionConflict

LEASE_NS = 30 * SECOND_NS
"""How long work stays with a worker that does not renew its lease: after this a dead one's work is due again."""

MAX_ATTEMPTS = 5

StageWork = Callable[[Database, str], None]
"""Does one stage for an event id, in the database as the event's tenant sees it."""

Sleep = Callable[[float], None]
"""Waits for some seconds, as ``time.sleep`` does."""


class Stage(StrEnum):
    """What follows an event."""

    REGISTER = "register"
    EVALUATE = "evaluate"
    COMPENSATE = "compensate"
    PROVE = "prove"
    ANCHOR = "anchor"
    CONFIRM = "confirm"
    PUBLISH = "publish"
    PUBLISH_FURTHER = "publish_further"
    DELIVER = "deliver"


class OutboxRunner:
    """Works stages, one at a time: those that are due in the order in which they were queued, or one that is named.

    ``holder`` names the worker in its leases. Stages that are not in ``work`` are left to others.
    """

    def __init__(
        self,
        database: Database,
        work: Mapping[Stage, StageWork],
        clock: Clock,
        *,
        holder: str,
        lease_ns: int = LEASE_NS,
    ) -> None:
        self._database = database
        self._work = work
        self._clock = clock
        self._holder = holder
        self._lease_ns = lease_ns
        self._retry_at_ns: int | None = None

    def run_once(self) -> bool:
        """Work one due stage; False where nothing is due.

        A stage that the present state refuses is parked at once, since trying again cannot help; one that is not
        possible yet waits as long as it says, as often as it takes; any other failure is retried after 1, 2, 4 ...
        seconds and parked after ``MAX_ATTEMPTS``. Parked errors are in the outbox, not raised: one bad statement must
        not stop the others.
        """
        with self._database.begin() as tx:
            lease = tx.outbox.lease(self._clock.now_ns(), self._lease_ns, holder=self._holder, stages=tuple(self._work))
        if lease is None:
            return False
        self._run(lease)
        return True

    def run_claimed(self, event_id: str, stage: str, token: int) -> bool:
        """Work the stage that was rung with ``token``; False where it is somebody else's by now, or done."""
        with self._database.begin() as tx:
            lease = tx.outbox.claim(event_id, stage, token, self._clock.now_ns(), self._lease_ns, holder=self._holder)
        if lease is None:
            return False
        self._run(lease)
        return True

    def run_until_idle(self, sleep: Sleep) -> None:
        """Work everything that is due, and what fails on the way until it is done or parked.

        Raises ``StageFailed`` naming the first stage that was parked meanwhile.
        """
        before = {(event_id, stage) for event_id, stage, _, _ in self._parked()}
        while self.run_once() or self._wait_for_places() or self._wait_for_retry(sleep):
            pass
        for event_id, stage, attempts, error in self._parked():
            if (event_id, stage) not in before:
                raise StageFailed(
                    f"the stage {stage} failed after {attempts} attempt(s): {error}", event_id=event_id, stage=stage
                )

    def _run(self, lease: Lease) -> None:
        try:
            if lease.attempt > MAX_ATTEMPTS:
                raise StageFailed("the process that worked it ended each time before it was done")
            with kept(self._database, lease, self._clock, self._lease_ns):
                self._work[Stage(lease.stage)](self._database.of_tenant(lease.tenant), lease.event_id)
        except NotYet as error:
            self._postpone(lease, error)
        # A fault of the program, too: raised, it would stop every other stage and hold this one's lease.
        except Exception as error:
            self._fail(lease, error)
        else:
            with self._database.begin() as tx:
                tx.outbox.done(lease)

    def _postpone(self, lease: Lease, error: NotYet) -> None:
        retry_at_ns = self._clock.now_ns() + round(error.data["retry_after_s"] * SECOND_NS)
        with self._database.begin() as tx:
            tx.outbox.postpone(lease, reason=f"{error.code}: {error.message}", retry_at_ns=retry_at_ns)
        self._due_by(retry_at_ns)

    def _fail(self, lease: Lease, error: Exception) -> None:
        said = f"{error.code}: {error.message}" if isinstance(error, SlaLedgerError) else f"internal: {error!r}"
        # Somebody else wrote first: the next attempt sees what.
        refused = isinstance(error, Refused) and not isinstance(error, VersionConflict)
        retry_at_ns = None
        if not refused and lease.attempt < MAX_ATTEMPTS:
            retry_at_ns = self._clock.now_ns() + 2 ** (lease.attempt - 1) * SECOND_NS
        with self._database.begin() as tx:
            tx.outbox.fail(lease, error=said, retry_at_ns=retry_at_ns)
        if retry_at_ns is not None:
            self._due_by(retry_at_ns)

    def _due_by(self, retry_at_ns: int) -> None:
        # By the latest of several, the others are due as well.
        self._retry_at_ns = max(retry_at_ns, self._retry_at_ns or 0)

    def _wait_for_places(self) -> bool:
        """Wait until the events of every pending stage are in the log; False where they are already."""
        with self._database.read() as tx:
            unplaced = tx.outbox.unplaced()
        self._database.wait_sequenced(unplaced)
        return bool(unplaced)

    def _wait_for_retry(self, sleep: Sleep) -> bool:
        """Wait until every stage that failed here is due again; False where there is none."""
        if self._retry_at_ns is None:
            return False
        while (left_ns := self._retry_at_ns - self._clock.now_ns()) > 0:
            sleep(left_ns / SECOND_NS)
        self._retry_at_ns = None
        return True

    def _parked(self) -> Sequence[tuple[str, str, int, str]]:
        with self._database.read() as tx:
            return tx.outbox.parked()
