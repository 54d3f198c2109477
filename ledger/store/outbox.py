"""Work queued together with the events that cause it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Select, case, func, select, update
from sqlalchemy.sql.elements import ColumnElement

from ledger.app.ports.outbox import Lease, OutboxEntry, StageWait
from ledger.errors import BrokerUnavailable, NotFound, Refused
from ledger.store import tables
from ledger.store.appending import no_event
from ledger.store.dialects import insert_for, is_postgresql

MAX_ERROR_CHARS = 2000
NOT_TOLD = f"{BrokerUnavailable.code}:"
"""How the reason begins of work that waits because the broker took no message."""

_outbox = tables.outbox.c
_event = tables.event.c
_SEQUENCED = select(tables.leaf.c.seq).where(tables.leaf.c.event_id == _outbox.event_id).exists()
_WITH_TENANT = tables.outbox.join(tables.event, _event.id == _outbox.event_id)


class SqlOutbox:
    """``ledger.app.ports.outbox.Outbox``. Rows are handed out in the order they were added.

    Leasing counts as an attempt, so that work which kills its worker is seen to fail. A row that is done stays,
    so that queueing the same stage again does nothing.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, event_id: str, stage: str) -> None:
        """Raises ``NotFound`` for an event that is not in the store."""
        known = self._connection.scalar(select(_event.id).where(_event.id == event_id))
        if known is None:
            raise no_event(event_id)
        row = {"event_id": event_id, "stage": stage, "state": "pending", "attempts": 0, "due_at_ns": 0, "token": 0}
        self._connection.execute(insert_for(self._connection, tables.outbox).values(row).on_conflict_do_nothing())

    def lease(self, now_ns: int, lease_ns: int, *, holder: str, stages: Collection[str] | None = None) -> Lease | None:
        leases = self._hand_out(now_ns, now_ns + lease_ns, holder, stages, 1)
        return leases[0] if leases else None

    def ring(
        self, now_ns: int, again_ns: int, *, stages: Collection[str] | None = None, limit: int = 100
    ) -> Sequence[Lease]:
        return self._hand_out(now_ns, now_ns + again_ns, None, stages, limit)

    def claim(self, event_id: str, stage: str, token: int, now_ns: int, lease_ns: int, *, holder: str) -> Lease | None:
        claimed = Lease(event_id, "", stage, 0, token)
        changes = {
            "token": token + 1,
            "attempts": _outbox.attempts + 1,
            "due_at_ns": now_ns + lease_ns,
            "holder": holder,
        }
        if not self._update(claimed, changes):
            return None
        row = self._connection.execute(
            select(_event.tenant, _outbox.attempts).select_from(_WITH_TENANT).where(_is(event_id, stage))
        ).one()
        return Lease(event_id, row.tenant, stage, row.attempts, token + 1)

    def renew(self, lease: Lease, until_ns: int) -> bool:
        return self._end(lease, {"due_at_ns": until_ns})

    def done(self, lease: Lease) -> bool:
        """Raises ``NotFound`` for a stage that was never queued, as all that take a lease do."""
        return self._end(lease, {"state": "done", "error": None, "holder": None})

    def fail(self, lease: Lease, *, error: str, retry_at_ns: int | None) -> bool:
        then: dict[str, Any] = {"state": "parked"} if retry_at_ns is None else {"due_at_ns": retry_at_ns}
        return self._end(lease, {"error": error[:MAX_ERROR_CHARS], "holder": None, **then})

    def postpone(self, lease: Lease, *, reason: str, retry_at_ns: int) -> bool:
        changes = {"attempts": lease.attempt - 1, "due_at_ns": retry_at_ns, "error": reason[:MAX_ERROR_CHARS]}
        return self._end(lease, {**changes, "holder": None})

    def release(self, holder: str) -> None:
        held = (_outbox.state == "pending") & (_outbox.holder == holder)
        self._connection.execute(update(tables.outbox).where(held).values(due_at_ns=0, holder=None))

    def retry(self, event_id: str, stage: str) -> None:
        parked = _is(event_id, stage) & (_outbox.state == "parked")
        changed = self._connection.execute(
            update(tables.outbox).where(parked).values(state="pending", attempts=0, due_at_ns=0)
        )
        if not changed.rowcount:
            raise not_parked(event_id, stage, self._require(event_id, stage))

    def entries(self, *, states: Collection[str], limit: int) -> Sequence[OutboxEntry]:
        columns = (_outbox.event_id, _event.tenant, _outbox.stage, _outbox.state, _outbox.attempts)
        rows = self._connection.execute(
            select(*columns, _outbox.due_at_ns, _outbox.holder, _outbox.error)
            .select_from(_WITH_TENANT)
            .where(_outbox.state.in_(states))
            .order_by(_outbox.ordinal)
            .limit(limit)
        )
        return [OutboxEntry(*row) for row in rows]

    def parked(self) -> Sequence[tuple[str, str, int, str]]:
        rows = self._connection.execute(
            select(_outbox.event_id, _outbox.stage, _outbox.attempts, _outbox.error)
            .where(_outbox.state == "parked")
            .order_by(_outbox.ordinal)
        )
        return [(event_id, stage, attempts, error) for event_id, stage, attempts, error in rows]

    def pending(self) -> int:
        count = select(func.count()).select_from(tables.outbox).where(_outbox.state == "pending")
        return int(self._connection.scalar(count) or 0)

    def waiting(self, now_ns: int) -> Sequence[StageWait]:
        since = case((_outbox.due_at_ns > _event.recorded_at_ns, _outbox.due_at_ns), else_=_event.recorded_at_ns)
        untold = _outbox.due_at_ns <= now_ns
        untried = (_outbox.attempts == 0) & (_outbox.error.is_(None) | _outbox.error.startswith(NOT_TOLD))
        worked = _outbox.holder.is_not(None) & (_outbox.due_at_ns > now_ns)
        rows = self._connection.execute(
            select(
                _outbox.stage,
                func.min(case((untold, since))),
                func.min(case((untried, _event.recorded_at_ns))),
                func.count(case((worked, 1))),
            )
            .select_from(_WITH_TENANT)
            .where(_outbox.state == "pending", _SEQUENCED)
            .group_by(_outbox.stage)
            .order_by(_outbox.stage)
        )
        return [StageWait(*row) for row in rows]

    def unfinished(self, event_ids: Collection[str], *, stages: Collection[str]) -> bool:
        waiting = select(_outbox.event_id).where(
            _outbox.event_id.in_(event_ids), _outbox.stage.in_(stages), _outbox.state != "done"
        )
        return self._connection.execute(waiting.limit(1)).first() is not None

    def unplaced(self) -> Sequence[str]:
        waiting = select(_outbox.event_id).where(_outbox.state == "pending", ~_SEQUENCED).distinct()
        return list(self._connection.scalars(waiting))

    def _hand_out(
        self, now_ns: int, until_ns: int, holder: str | None, stages: Collection[str] | None, limit: int
    ) -> list[Lease]:
        leases = []
        for ordinal, event_id, tenant, stage, attempts, token in self._connection.execute(
            self._due(now_ns, stages, limit)
        ).all():
            changes: dict[str, Any] = {"token": token + 1, "due_at_ns": until_ns, "holder": holder}
            if holder is not None:
                changes["attempts"] = attempts + 1
            self._connection.execute(update(tables.outbox).where(_outbox.ordinal == ordinal).values(changes))
            leases.append(Lease(event_id, tenant, stage, attempts + 1, token + 1))
        return leases

    def _due(self, now_ns: int, stages: Collection[str] | None, limit: int) -> Select[Any]:
        columns = (_outbox.ordinal, _outbox.event_id, _event.tenant, _outbox.stage, _outbox.attempts, _outbox.token)
        due = (
            select(*columns)
            .select_from(_WITH_TENANT)
            .where(_outbox.state == "pending", _outbox.due_at_ns <= now_ns, _SEQUENCED)
            .order_by(_outbox.ordinal)
            .limit(limit)
        )
        if stages is not None:
            due = due.where(_outbox.stage.in_(stages))
        if is_postgresql(self._connection):
            due = due.with_for_update(skip_locked=True, of=tables.outbox)
        return due

    def _end(self, lease: Lease, changes: dict[str, Any]) -> bool:
        if self._update(lease, changes):
            return True
        self._require(lease.event_id, lease.stage)
        return False

    def _update(self, lease: Lease, changes: dict[str, Any]) -> bool:
        """Change a row that is still handed out with the lease's token: one statement, so that two cannot both."""
        held = _is(lease.event_id, lease.stage) & (_outbox.state == "pending") & (_outbox.token == lease.token)
        return bool(self._connection.execute(update(tables.outbox).where(held).values(changes)).rowcount)

    def _require(self, event_id: str, stage: str) -> str:
        state: str | None = self._connection.scalar(select(_outbox.state).where(_is(event_id, stage)))
        if state is None:
            raise no_stage(event_id, stage)
        return state


def no_stage(event_id: str, stage: str) -> NotFound:
    """The error for work that was never queued."""
    return NotFound(f"stage {stage!r} of event {event_id} was never queued", event_id=event_id, stage=stage)


def not_parked(event_id: str, stage: str, state: str) -> Refused:
    """The error for a retry of work that nobody has given up."""
    return Refused(
        f"stage {stage!r} of event {event_id} is {state}, not parked: there is nothing to retry",
        event_id=event_id,
        stage=stage,
        state=state,
    )


def _is(event_id: str, stage: str) -> ColumnElement[bool]:
    return (_outbox.event_id == event_id) & (_outbox.stage == stage)
