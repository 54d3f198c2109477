"""Work that follows a commit, and the loop that does it in this process.

One row of the outbox is one stage of one event. A stage is leased, worked outside the lease's transaction and then
marked done; a crash in between leaves the lease to run out, so every stage must be safe to run twice. The
dispatcher of a larger deployment sends the same stages to a queue instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from ledger.app.ports import Database
from ledger.domain.instant import SECOND_NS, Clock
from ledger.errors import Refused, SlaLedgerError, StageFailed

LEASE_NS = 600 * SECOND_NS
MAX_ATTEMPTS = 5

StageWork = Callable[[str], None]
"""Does one stage for an event id."""

Sleep = Callable[[float], None]
"""Waits for some seconds, as ``time.sleep`` does."""


class Stage(StrEnum):
    """What follows an event."""

    REGISTER = "register"
    PROVE = "prove"
    ANCHOR = "anchor"
    CONFIRM = "confirm"


class OutboxRunner:
    """Works the outbox in this process: one stage at a time, in the order in which they were queued."""

    def __init__(self, database: Database, work: Mapping[Stage, StageWork], clock: Clock) -> None:
        self._database = database
        self._work = work
        self._clock = clock
        self._retry_at_ns: int | None = None

    def run_once(self) -> bool:
        """Work one due stage; False where nothing is due.

        A stage that the present state refuses is parked at once, since trying again cannot help; any other
        failure is retried after 1, 2, 4 ... seconds and parked after ``MAX_ATTEMPTS``. Parked errors are in the
        outbox, not raised: one bad statement must not stop the others.
        """
        with self._database.begin() as tx:
            leased = tx.outbox.lease(self._clock.now_ns(), LEASE_NS)
        if leased is None:
            return False
        event_id, stage, attempt = leased
        try:
            if attempt > MAX_ATTEMPTS:
                raise StageFailed("the process that worked it ended each time before it was done")
            self._work[Stage(stage)](event_id)
        # A fault of the program, too: raised, it would stop every other stage and hold this one's lease.
        except Exception as error:
            said = f"{error.code}: {error.message}" if isinstance(error, SlaLedgerError) else f"internal: {error!r}"
            final = isinstance(error, Refused) or attempt >= MAX_ATTEMPTS
            self._fail(event_id, stage, said, None if final else 2 ** (attempt - 1) * SECOND_NS)
        else:
            with self._database.begin() as tx:
                tx.outbox.done(event_id, stage)
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

    def _fail(self, event_id: str, stage: str, error: str, retry_after_ns: int | None) -> None:
        retry_at_ns = None if retry_after_ns is None else self._clock.now_ns() + retry_after_ns
        with self._database.begin() as tx:
            tx.outbox.fail(event_id, stage, error=error, retry_at_ns=retry_at_ns)
        if retry_at_ns is not None:
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
