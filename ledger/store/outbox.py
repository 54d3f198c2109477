"""Work queued together with the events that cause it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, func, select, update
from sqlalchemy.sql.elements import ColumnElement

from ledger.errors import NotFound
from ledger.store import tables
from ledger.store.appending import no_event
from ledger.store.dialects import insert_for, is_postgresql

MAX_ERROR_CHARS = 2000

_outbox = tables.outbox.c
_SEQUENCED = select(tables.leaf.c.seq).where(tables.leaf.c.event_id == _outbox.event_id).exists()


class SqlOutbox:
    """``ledger.app.ports.Outbox``. Rows are leased in the order they were added.

    Leasing counts as an attempt, so that work which kills its worker is seen to fail. A row that is done stays,
    so that queueing the same stage again does nothing.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, event_id: str, stage: str) -> None:
        """Raises ``NotFound`` for an event that is not in the store."""
        known = self._connection.scalar(select(tables.event.c.id).where(tables.event.c.id == event_id))
        if known is None:
            raise no_event(event_id)
        row = {"event_id": event_id, "stage": stage, "state": "pending", "attempts": 0, "due_at_ns": 0}
        self._connection.execute(insert_for(self._connection, tables.outbox).values(row).on_conflict_do_nothing())

    def lease(self, now_ns: int, lease_ns: int) -> tuple[str, str, int] | None:
        """(event_id, stage, attempt), attempts counted from 1."""
        due = (
            select(_outbox.ordinal, _outbox.event_id, _outbox.stage, _outbox.attempts)
            .where(_outbox.state == "pending", _outbox.due_at_ns <= now_ns, _SEQUENCED)
            .order_by(_outbox.ordinal)
            .limit(1)
        )
        if is_postgresql(self._connection):
            due = due.with_for_update(skip_locked=True, of=tables.outbox)
        row = self._connection.execute(due).one_or_none()
        if row is None:
            return None
        ordinal, event_id, stage, attempts = row
        self._connection.execute(
            update(tables.outbox)
            .where(_outbox.ordinal == ordinal)
            .values(attempts=attempts + 1, due_at_ns=now_ns + lease_ns)
        )
        return event_id, stage, attempts + 1

    def done(self, event_id: str, stage: str) -> None:
        """Raises ``NotFound`` for a stage that was never queued."""
        self._require(event_id, stage)
        self._connection.execute(update(tables.outbox).where(_is(event_id, stage)).values(state="done", error=None))

    def fail(self, event_id: str, stage: str, *, error: str, retry_at_ns: int | None) -> None:
        """A stage that is done stays done: the failure came from an expired lease. Raises ``NotFound``."""
        if self._require(event_id, stage) == "done":
            return
        values = {"state": "parked"} if retry_at_ns is None else {"state": "pending", "due_at_ns": retry_at_ns}
        self._connection.execute(
            update(tables.outbox).where(_is(event_id, stage)).values(error=error[:MAX_ERROR_CHARS], **values)
        )

    def release(self) -> None:
        self._connection.execute(update(tables.outbox).where(_outbox.state == "pending").values(due_at_ns=0))

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

    def unplaced(self) -> Sequence[str]:
        waiting = select(_outbox.event_id).where(_outbox.state == "pending", ~_SEQUENCED).distinct()
        return list(self._connection.scalars(waiting))

    def _state(self, event_id: str, stage: str) -> str | None:
        state: str | None = self._connection.scalar(select(_outbox.state).where(_is(event_id, stage)))
        return state

    def _require(self, event_id: str, stage: str) -> str:
        state = self._state(event_id, stage)
        if state is None:
            raise no_stage(event_id, stage)
        return state


def no_stage(event_id: str, stage: str) -> NotFound:
    """The error for a result of work that was never queued."""
    return NotFound(f"stage {stage!r} of event {event_id} was never queued", event_id=event_id, stage=stage)


def _is(event_id: str, stage: str) -> ColumnElement[bool]:
    return (_outbox.event_id == event_id) & (_outbox.stage == stage)
