"""The queue before the log on PostgreSQL, and the sequencer that empties it.

One transaction a batch: take what is visible off the queue, append it to the log, set the views. Whoever
commits late joins a later batch, so there is never a gap; whoever fails leaves no queue row, so nobody waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from sqlalchemy import ARRAY, BigInteger, Connection, any_, bindparam, text

from ledger.domain.events.event_types import PAYLOAD_ERASED
from ledger.domain.record.events import StoredEvent
from ledger.errors import LogInconsistent, SlaLedgerError
from ledger.merkle.hasher import HASH_SIZE
from ledger.store import tables
from ledger.store.bulk import raw_cursor
from ledger.store.dialects import LEADER_LOCK
from ledger.store.events import LOGGED, events_before, stored_event
from ledger.store.projections import SHOWN_TYPES, apply, restore_rows
from ledger.store.sequencer import grow_log, next_place
from ledger.store.views import SqlViewWriter

BATCH = 5000
"""Events that get their place in one transaction at most."""

PERIOD_S = 0.1
"""How long the sequencer rests when the queue is empty."""

Notify = Callable[[str], None]

_TRY_LEAD = text("SELECT pg_try_advisory_xact_lock(:key)")
_TAKE = """
WITH batch AS (
    SELECT ctid AS place FROM inbox ORDER BY id LIMIT %(limit)s
), gone AS (
    DELETE FROM inbox USING batch WHERE inbox.ctid = batch.place RETURNING id, event_id, leaf_hash, type
), next AS (
    SELECT %(first)s::int8 - 1 + row_number() OVER (ORDER BY id) AS seq, event_id, leaf_hash, type FROM gone
), placed AS (
    INSERT INTO leaf (seq, event_id, leaf_hash, sequenced_at_ns)
    SELECT seq, event_id, leaf_hash, %(sequenced_at_ns)s FROM next ORDER BY seq
)
SELECT (SELECT count(*) FROM batch), string_agg(leaf_hash, ''::bytea ORDER BY seq),
       array_agg(seq) FILTER (WHERE type IS NULL OR type = ANY (%(shown)s))
FROM next"""
"""From queue to leaves: how many rows were there, their leaf hashes in one, and the ``seq`` of those with views."""

_SHOWN = sorted({*SHOWN_TYPES, PAYLOAD_ERASED})
_EVENTS_AT = (
    LOGGED.where(tables.leaf.c.seq == any_(bindparam("seqs", type_=ARRAY(BigInteger))))
    .where(tables.event.c.type.in_(_SHOWN))
    .order_by(tables.leaf.c.seq)
)
_BY_ID = LOGGED.where(tables.event.c.id == bindparam("id"))


def sequence_inbox(connection: Connection, now_ns: int, *, limit: int = BATCH) -> int:
    """Give the next events of the queue their place in the log and the views; how many.

    0 where the queue is empty or another sequencer is at it. Queue rows are in the order of their writing, and
    writers to one stream wait for each other, so that a stream's events stand in the log in order of version.
    Raises ``LogInconsistent`` where another sequencer took the same rows.
    """
    if not connection.scalar(_TRY_LEAD, {"key": LEADER_LOCK}):
        return 0
    first, sequenced_at_ns = next_place(connection, now_ns)
    values = {"limit": limit, "first": first, "sequenced_at_ns": sequenced_at_ns, "shown": _SHOWN}
    with raw_cursor(connection) as cursor:
        # Planned anew for each batch: the plan for an empty queue would go through a full one for every row.
        waiting, joined, shown = cursor.execute(_TAKE, values, prepare=False, binary=True).fetchone()
    if not waiting:
        return 0
    hashes = joined or b""
    if len(hashes) != HASH_SIZE * waiting:
        raise LogInconsistent(f"another sequencer moved the log past size {first}; nothing was written", size=first)
    grow_log(
        connection, first, [hashes[at : at + HASH_SIZE] for at in range(0, len(hashes), HASH_SIZE)], sequenced_at_ns
    )
    if shown:
        _show(connection, [stored_event(row) for row in connection.execute(_EVENTS_AT, {"seqs": shown})])
    return int(waiting)


def _show(connection: Connection, events: Sequence[StoredEvent]) -> None:
    """Set the views after these events of the log."""
    SqlViewWriter(connection).write([change for event in events for change in apply(event)])
    for event in events:
        if event.type == PAYLOAD_ERASED:
            _take_back(connection, event)


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
