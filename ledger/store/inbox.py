"""The queue before the log on PostgreSQL, and the sequencer that empties it.

One transaction a batch: read what is visible, append it to the log, take it off the queue, set the views. Whoever
commits late joins a later batch, so there is never a gap; whoever fails leaves no queue row, so nobody waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from sqlalchemy import ARRAY, BigInteger, Connection, String, any_, bindparam, delete, select, text

from ledger.domain.event_types import PAYLOAD_ERASED
from ledger.domain.events import StoredEvent
from ledger.errors import SlaLedgerError
from ledger.store import tables
from ledger.store.events import LOGGED, events_before, stored_event
from ledger.store.projections import SHOWN_TYPES, apply, restore_rows
from ledger.store.sequencer import sequence
from ledger.store.views import SqlViewWriter

BATCH = 5000
"""Events that get their place in one transaction at most."""

PERIOD_S = 0.1
"""How long the sequencer rests when the queue is empty."""

LEADER_LOCK = 0x534C4153
"""The advisory lock that elects one sequencer at a time; the compare-and-swap of the size is the fence."""

Notify = Callable[[str], None]

_inbox = tables.inbox.c
_TRY_LEAD = text("SELECT pg_try_advisory_xact_lock(:key)")
_WAITING = select(_inbox.id, _inbox.event_id, _inbox.leaf_hash).order_by(_inbox.id).limit(bindparam("limit"))
_REMOVE = delete(tables.inbox).where(_inbox.id == any_(bindparam("ids", type_=ARRAY(BigInteger))))
_SHOWN = LOGGED.where(
    tables.event.c.id == any_(bindparam("ids", type_=ARRAY(String))),
    tables.event.c.type.in_(sorted({*SHOWN_TYPES, PAYLOAD_ERASED})),
).order_by(tables.leaf.c.seq)
_BY_ID = LOGGED.where(tables.event.c.id == bindparam("id"))


def sequence_inbox(connection: Connection, now_ns: int, *, limit: int = BATCH) -> int:
    """Give the next events of the queue their place in the log and the views; how many.

    0 where the queue is empty or another sequencer is at it. Queue rows are in the order of their writing, and
    writers to one stream wait for each other, so that a stream's events stand in the log in order of version.
    """
    if not connection.scalar(_TRY_LEAD, {"key": LEADER_LOCK}):
        return 0
    waiting = connection.execute(_WAITING, {"limit": limit}).all()
    if not waiting:
        return 0
    sequence(connection, [(row.event_id, row.leaf_hash) for row in waiting], now_ns)
    connection.execute(_REMOVE, {"ids": [row.id for row in waiting]})
    rows = connection.execute(_SHOWN, {"ids": [row.event_id for row in waiting]})
    placed = [stored_event(row) for row in rows]
    SqlViewWriter(connection).write([change for event in placed for change in apply(event)])
    for event in placed:
        if event.type == PAYLOAD_ERASED:
            _take_back(connection, event)
    return len(waiting)


def _take_back(connection: Connection, record: StoredEvent) -> None:
    """Take back the view rows of the event whose payload a record says is erased.

    The payload is gone, so its rows are known by the ``seq`` they name. An event is in the log before its payload can
    be erased, so its rows are there or were set again since.
    """
    for row in connection.execute(_BY_ID, {"id": record.payload["event_id"]}):
        event = stored_event(row)
        if event.erased and event.type in SHOWN_TYPES:
            views = SqlViewWriter(connection)
            restore_rows(views.remove_of(event.place), events_before(connection, event), views)


class Sequencer:
    """Empties the queue in a thread of this process. Any number of processes may run one."""

    def __init__(self, sequence_once: Callable[[], int], notify: Notify, *, period_s: float = PERIOD_S) -> None:
        self._sequence_once = sequence_once
        self._notify = notify
        self._period_s = period_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="sequencer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when the batch at hand is done; what is still queued waits for the next sequencer."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _loop(self) -> None:
        told = ""
        while not self._stopping.is_set():
            try:
                if self._sequence_once() == BATCH:
                    continue
                told = ""
            except SlaLedgerError as error:
                # A database that is away for an hour is worth one line.
                if error.message != told:
                    self._notify(f"the sequencer goes on after an error: {error.message}")
                told = error.message
            self._stopping.wait(self._period_s)
