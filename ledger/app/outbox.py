"""Work that follows a commit, and the loop that does it in this process.

One row of the outbox is one stage of one event. A stage is leased, worked outside the lease's transaction and then
marked done; a crash in between leaves the lease to run out, so every stage must be safe to run twice. The
dispatcher of a larger deployment sends the same stages to a queue instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from ledger.app.ports import Database
from ledger.domain.instant import SECOND_NS, Clock
from ledger.errors import Refused, SlaLedgerError, Unavailable

LEASE_NS = 600 * SECOND_NS
MAX_ATTEMPTS = 5

StageWork = Callable[[str], None]
"""Does one stage for an event id."""


class Stage(StrEnum):
    """What follows an event."""

    REGISTER = "register"
    PROVE = "prove"
    ANCHOR = "anchor"


class StageFailed(Unavailable):
    """A stage was tried as often as it is worth and is parked for an operator."""

    code = "stage_failed"


class OutboxRunner:
    """Works the outbox in this process: one stage at a time, in the order in which they were queued."""

    def __init__(self, database: Database, work: Mapping[Stage, StageWork], clock: Clock) -> None:
        self._database = database
        self._work = work
        self._clock = clock

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
            self._work[Stage(stage)](event_id)
        except SlaLedgerError as error:
            final = isinstance(error, Refused) or attempt >= MAX_ATTEMPTS
            retry_at_ns = None if final else self._clock.now_ns() + 2 ** (attempt - 1) * SECOND_NS
            with self._database.begin() as tx:
                tx.outbox.fail(event_id, stage, error=f"{error.code}: {error.message}", retry_at_ns=retry_at_ns)
        else:
            with self._database.begin() as tx:
                tx.outbox.done(event_id, stage)
        return True

    def run_until_idle(self) -> None:
        """Work everything that is due now; raises ``StageFailed`` naming the first parked stage."""
        while self.run_once():
            pass
        with self._database.read() as tx:
            parked = tx.outbox.parked()
        if parked:
            event_id, stage, attempts, error = parked[0]
            raise StageFailed(
                f"the stage {stage} failed after {attempts} attempt(s): {error}", event_id=event_id, stage=stage
            )
