"""Whether the processes behind a ledger get on with their work, judged by the work alone.

A process can answer its heartbeat and still do nothing: its connection hangs, its queue lost the message, its thread
died. So nobody is asked here. What was to be done, and since when it is not, is in the database.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ledger.app.ports.outbox import StageWait
from ledger.app.ports.store import Database
from ledger.app.reading.readiness import SchemaState, unsigned_since_ns
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import SlaLedgerError


class Watched(StrEnum):
    """Whose work is looked at."""

    RELAY = "relay"
    """Hands out what is due."""
    WORKER = "worker"
    """Takes what was handed out."""
    BEAT = "beat"
    """Signs the log."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What waits, and since when. ``error`` is None where the database was read; without it the rest is empty.

    ``unsigned_since_ns``: since when the log has an event that no checkpoint covers, if it has one.
    """

    now_ns: int
    error: str | None
    schema: SchemaState | None
    stages: Sequence[StageWait] = ()
    unsigned_since_ns: int | None = None

    def faults(self, watched: Collection[Watched], stages: Collection[str] | None, max_wait_s: int) -> list[str]:
        """What is wrong with the work of ``watched``, a sentence each; of all stages where ``stages`` is None.

        Work that waits while another of its stage is worked is a queue, not a standstill.
        """
        if self.error is not None:
            return [self.error]
        if self.schema is not None and self.schema.current != self.schema.head:
            return [f"the database is at schema {self.schema.current}, this version works with {self.schema.head}"]
        before_ns = self.now_ns - max_wait_s * SECOND_NS
        found: list[str] = []
        chosen = [wait for wait in self.stages if stages is None or wait.stage in stages]
        if Watched.RELAY in watched:
            found += self._standing(chosen, before_ns, embedded=Watched.WORKER in watched)
        if Watched.WORKER in watched:
            found += self._untaken(chosen, before_ns)
        if Watched.BEAT in watched and _older(self.unsigned_since_ns, before_ns):
            found.append(f"the log is not signed since {self._age_s(self.unsigned_since_ns)} s")
        return found

    def _standing(self, chosen: Sequence[StageWait], before_ns: int, *, embedded: bool) -> Iterator[str]:
        # A dispatcher hands out the next work when it is done with the last.
        if embedded and any(wait.worked for wait in self.stages):
            return
        for wait in chosen:
            if _older(wait.untold_since_ns, before_ns):
                yield f"{wait.stage}: nobody is told of work that is due since {self._age_s(wait.untold_since_ns)} s"

    def _untaken(self, chosen: Sequence[StageWait], before_ns: int) -> Iterator[str]:
        for wait in chosen:
            if not wait.worked and _older(wait.untried_since_ns, before_ns):
                yield f"{wait.stage}: no worker takes work that waits since {self._age_s(wait.untried_since_ns)} s"

    def _age_s(self, since_ns: int | None) -> int:
        return 0 if since_ns is None else (self.now_ns - since_ns) // SECOND_NS


def read_progress(database: Database, schema: SchemaState, now_ns: int) -> Progress:
    """Never raises for a database that does not answer: that is an answer here."""
    if schema.current != schema.head:
        return Progress(now_ns, None, schema)
    try:
        with database.read() as tx:
            return Progress(now_ns, None, schema, tx.outbox.waiting(now_ns), unsigned_since_ns(tx))
    except SlaLedgerError as error:
        return Progress(now_ns, error.message, schema)


def _older(since_ns: int | None, before_ns: int) -> bool:
    return since_ns is not None and since_ns < before_ns
