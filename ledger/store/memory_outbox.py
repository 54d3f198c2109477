"""The outbox in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ledger.app.ports.outbox import Lease, OutboxEntry, StageWait
from ledger.domain.record.events import StoredEvent
from ledger.store.appending import no_event
from ledger.store.outbox import MAX_ERROR_CHARS, NOT_TOLD, no_stage, not_parked


@dataclass(slots=True)
class Job:
    """One stage of one event."""

    state: str = "pending"
    attempts: int = 0
    due_at_ns: int = 0
    error: str = ""
    token: int = 0
    holder: str | None = None


class OutboxRows(Protocol):
    """Where the work is, by event and stage, and the events it follows."""

    jobs: dict[tuple[str, str], Job]

    @property
    def log(self) -> Sequence[StoredEvent]: ...


class OutboxHandle(Protocol):
    """The state of a database transaction; ``changing`` refuses where it only reads."""

    @property
    def state(self) -> OutboxRows: ...

    @property
    def changing(self) -> OutboxRows: ...


@dataclass(frozen=True, slots=True)
class MemoryOutbox:
    """``ledger.app.ports.outbox.Outbox`` of all tenants."""

    handle: OutboxHandle

    def add(self, event_id: str, stage: str) -> None:
        state = self.handle.changing
        if not any(event.id == event_id for event in state.log):
            raise no_event(event_id)
        state.jobs.setdefault((event_id, stage), Job())

    def lease(self, now_ns: int, lease_ns: int, *, holder: str, stages: Collection[str] | None = None) -> Lease | None:
        for key in self._due(now_ns, stages):
            return self._hand_out(key, now_ns + lease_ns, holder)
        return None

    def ring(
        self, now_ns: int, again_ns: int, *, stages: Collection[str] | None = None, limit: int = 100
    ) -> Sequence[Lease]:
        return [self._hand_out(key, now_ns + again_ns, None) for key in list(self._due(now_ns, stages))[:limit]]

    def claim(self, event_id: str, stage: str, token: int, now_ns: int, lease_ns: int, *, holder: str) -> Lease | None:
        job = self.handle.changing.jobs.get((event_id, stage))
        if job is None or job.state != "pending" or job.token != token:
            return None
        return self._hand_out((event_id, stage), now_ns + lease_ns, holder)

    def renew(self, lease: Lease, until_ns: int) -> bool:
        return self._end(lease, due_at_ns=until_ns)

    def done(self, lease: Lease) -> bool:
        return self._end(lease, state="done", error="", holder=None)

    def fail(self, lease: Lease, *, error: str, retry_at_ns: int | None) -> bool:
        said = error[:MAX_ERROR_CHARS]
        if retry_at_ns is None:
            return self._end(lease, state="parked", error=said, holder=None)
        return self._end(lease, due_at_ns=retry_at_ns, error=said, holder=None)

    def postpone(self, lease: Lease, *, reason: str, retry_at_ns: int) -> bool:
        said = reason[:MAX_ERROR_CHARS]
        return self._end(lease, attempts=lease.attempt - 1, due_at_ns=retry_at_ns, error=said, holder=None)

    def release(self, holder: str) -> None:
        for job in self.handle.changing.jobs.values():
            if job.state == "pending" and job.holder == holder:
                job.due_at_ns, job.holder = 0, None

    def retry(self, event_id: str, stage: str) -> None:
        job = self.handle.changing.jobs.get((event_id, stage))
        if job is None:
            raise no_stage(event_id, stage)
        if job.state != "parked":
            raise not_parked(event_id, stage, job.state)
        job.state, job.attempts, job.due_at_ns = "pending", 0, 0

    def entries(self, *, states: Collection[str], limit: int) -> Sequence[OutboxEntry]:
        found = [
            OutboxEntry(
                event_id,
                self._tenant(event_id),
                stage,
                job.state,
                job.attempts,
                job.due_at_ns,
                job.holder,
                job.error or None,
            )
            for (event_id, stage), job in self.handle.state.jobs.items()
            if job.state in states
        ]
        return found[:limit]

    def parked(self) -> Sequence[tuple[str, str, int, str]]:
        jobs = self.handle.state.jobs.items()
        return [(event_id, stage, job.attempts, job.error) for (event_id, stage), job in jobs if job.state == "parked"]

    def waiting(self, now_ns: int) -> Sequence[StageWait]:
        recorded = {event.id: event.recorded_at_ns for event in self.handle.state.log}
        stages: dict[str, list[tuple[int, Job]]] = {}
        for (event_id, stage), job in self.handle.state.jobs.items():
            if job.state == "pending":
                stages.setdefault(stage, []).append((recorded[event_id], job))
        return [_stage_wait(stage, jobs, now_ns) for stage, jobs in sorted(stages.items())]

    def unfinished(self, event_ids: Collection[str], *, stages: Collection[str]) -> bool:
        jobs = self.handle.state.jobs
        found = (jobs.get((event_id, stage)) for event_id in event_ids for stage in stages)
        return any(job is not None and job.state != "done" for job in found)

    def unplaced(self) -> Sequence[str]:
        return []

    def pending(self) -> int:
        return sum(job.state == "pending" for job in self.handle.state.jobs.values())

    def _due(self, now_ns: int, stages: Collection[str] | None) -> Iterator[tuple[str, str]]:
        for key, job in self.handle.changing.jobs.items():
            if job.state == "pending" and job.due_at_ns <= now_ns and (stages is None or key[1] in stages):
                yield key

    def _hand_out(self, key: tuple[str, str], until_ns: int, holder: str | None) -> Lease:
        job = self.handle.changing.jobs[key]
        attempt = job.attempts + 1
        job.token, job.due_at_ns, job.holder = job.token + 1, until_ns, holder
        if holder is not None:
            job.attempts = attempt
        event_id, stage = key
        return Lease(event_id, self._tenant(event_id), stage, attempt, job.token)

    def _end(self, lease: Lease, **values: Any) -> bool:
        job = self.handle.changing.jobs.get((lease.event_id, lease.stage))
        if job is None:
            raise no_stage(lease.event_id, lease.stage)
        if job.state != "pending" or job.token != lease.token:
            return False
        for name, value in values.items():
            setattr(job, name, value)
        return True

    def _tenant(self, event_id: str) -> str:
        return next(event.tenant for event in self.handle.state.log if event.id == event_id)


def _stage_wait(stage: str, jobs: Sequence[tuple[int, Job]], now_ns: int) -> StageWait:
    """``jobs`` are pending, each with the time its event was recorded."""
    untold = [max(at_ns, job.due_at_ns) for at_ns, job in jobs if job.due_at_ns <= now_ns]
    untried = [at_ns for at_ns, job in jobs if not job.attempts and (not job.error or job.error.startswith(NOT_TOLD))]
    worked = sum(job.holder is not None and job.due_at_ns > now_ns for _, job in jobs)
    return StageWait(stage, min(untold, default=None), min(untried, default=None), worked)
