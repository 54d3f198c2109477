"""How an append reaches the log: at once (SQLite), or by way of a queue that one sequencer empties (PostgreSQL)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import Connection, bindparam, insert, select, update

from ledger.domain.record.events import StoredEvent
from ledger.errors import StorageUnavailable
from ledger.store import tables
from ledger.store.appending import AppendRequest, Drafts, first_version
from ledger.store.bulk import insert_rows
from ledger.store.prepared import (
    Prepared,
    bytea_array,
    int4,
    int4_array,
    int8,
    int8_array,
    optional_bytea_array,
    run,
    text_array,
)
from ledger.store.projections import SHOWN_TYPES, ViewWriter, apply, forget
from ledger.store.sequencer import sequence

_ATTEMPTS = 100
_head = tables.stream_head.c
# Statements are made once: making one takes longer than SQLite does to run it.
_HEAD = select(_head.version).where(_head.tenant == bindparam("of"), _head.stream == bindparam("at"))
_LOCKED_HEAD = _HEAD.with_for_update()
_MOVE_HEAD = (
    update(tables.stream_head)
    .where(_head.tenant == bindparam("of"), _head.stream == bindparam("at"), _head.version == bindparam("before"))
    .values(version=bindparam("now"))
)


@dataclass(frozen=True, slots=True)
class Order:
    """What to append. ``drafts`` makes the events from the version that the first one gets; ``digest`` is what the
    idempotency key is bound to, given the salts of the events stored for it."""

    tenant: str
    stream: str
    expected_version: int | None
    key: str | None
    digest: Callable[[Sequence[bytes]], bytes]
    drafts: Callable[[int], Drafts]

    def request(self, drafts: Drafts) -> AppendRequest | None:
        """What is remembered under the idempotency key, if there is one."""
        if self.key is None:
            return None
        return AppendRequest(self.key, self.digest(drafts.salts), self.stream, drafts.first_version, len(drafts))


@dataclass(frozen=True, slots=True)
class Placed:
    """Events that were written; ``first_seq`` is None where they wait for the sequencer."""

    drafts: Drafts
    first_seq: int | None


class Placing(Protocol):
    """Writes an order."""

    def place(self, order: Order) -> Placed | AppendRequest:
        """The events written, or the request that used the key before. Raises ``VersionConflict``."""
        ...

    def take_back(self, event: StoredEvent, earlier: Iterable[StoredEvent]) -> None:
        """Before the payload of ``event`` goes: see to it that its view rows go, too."""
        ...


class InlinePlacing:
    """One writer at a time: events, leaves, tiles and views in the append itself."""

    def __init__(self, connection: Connection, views: ViewWriter) -> None:
        self._connection = connection
        self._views = views

    def place(self, order: Order) -> Placed | AppendRequest:
        known = find_request(self._connection, order.tenant, order.key)
        if known is not None:
            return known
        head = stream_head(self._connection, order.tenant, order.stream)
        version = first_version(order.stream, order.expected_version, head)
        drafts = order.drafts(version)
        insert_rows(self._connection, tables.event, drafts.rows())
        if erasable := drafts.erasable:
            kept = [(drafts.ids[at], drafts.salts[at], drafts.payloads[at]) for at in erasable]
            insert_rows(self._connection, tables.event_payload, kept)
        self._move_head(order, head, version + len(drafts) - 1)
        if (request := order.request(drafts)) is not None:
            self._remember(order.tenant, request)
        first = sequence(self._connection, drafts.ids, drafts.leaf_hashes, drafts.recorded_at_ns)
        shown = [at for at, event in enumerate(drafts.events) if event.type in SHOWN_TYPES]
        self._views.write([change for at in shown for change in apply(drafts.stored(at, first + at))])
        return Placed(drafts, first)

    def take_back(self, event: StoredEvent, earlier: Iterable[StoredEvent]) -> None:
        # Overwrite what is deleted from here on instead of leaving it in the file's free space.
        self._connection.exec_driver_sql("PRAGMA secure_delete = ON")
        forget(event, earlier, self._views)

    def _move_head(self, order: Order, head: int | None, version: int) -> None:
        if head is None:
            row = {"tenant": order.tenant, "stream": order.stream, "version": version}
            self._connection.execute(insert(tables.stream_head), row)
        else:
            values = {"of": order.tenant, "at": order.stream, "before": head, "now": version}
            self._connection.execute(_MOVE_HEAD, values)

    def _remember(self, tenant: str, request: AppendRequest) -> None:
        row = (tenant, request.key, request.digest, request.stream, request.first_version, request.events)
        insert_rows(self._connection, tables.append_request, [row])


class QueuedPlacing:
    """Many writers at a time: one call of ``append_events`` (migration 0004) writes events, queue rows and head.

    Writers to one stream meet at its head row alone. Who comes second waits for the first to end, then finds
    another version: no error of the database, so the transaction goes on.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def place(self, order: Order) -> Placed | AppendRequest:
        version = order.expected_version
        for _ in range(_ATTEMPTS):
            if version is None:
                head = stream_head(self._connection, order.tenant, order.stream, lock=True)
                version = 0 if head is None else head + 1
            drafts = order.drafts(version)
            outcome = self._append(order, drafts)
            if outcome == "appended":
                return Placed(drafts, None)
            if outcome == "known":
                known = find_request(self._connection, order.tenant, order.key)
                if known is not None:
                    return known
            version = self._next_version(order)
        raise StorageUnavailable(
            f"stream {order.stream!r} moved on {_ATTEMPTS} times while this append was tried; try again",
            stream=order.stream,
        )

    def take_back(self, event: StoredEvent, earlier: Iterable[StoredEvent]) -> None:
        """Nothing here: who appends has no right to the views. The sequencer does it when it places the record."""

    def _next_version(self, order: Order) -> int | None:
        if order.expected_version is None:
            return None
        head = stream_head(self._connection, order.tenant, order.stream)
        return first_version(order.stream, order.expected_version, head)

    def _append(self, order: Order, drafts: Drafts) -> str:
        erasable = drafts.erasable
        if len(drafts) == 1 and order.key is None and not erasable and self._append_one(drafts):
            return "appended"
        request = order.request(drafts)
        salts, payloads = drafts.lasting()
        values = [
            order.tenant.encode(),
            order.stream.encode(),
            int8(drafts.first_version),
            None if order.key is None else order.key.encode(),
            b"" if request is None else request.digest,
            int8(drafts.recorded_at_ns),
            text_array(drafts.ids),
            text_array([event.type for event in drafts.events]),
            int4_array([event.schema for event in drafts.events]),
            text_array([event.payload_class for event in drafts.events]),
            int8_array([event.occurred_at_ns for event in drafts.events]),
            bytea_array(salts),
            bytea_array(payloads),
            bytea_array(drafts.leaf_hashes),
            _kept(drafts.salts, erasable),
            _kept(drafts.payloads, erasable),
        ]
        (outcome,) = run(self._connection, _APPEND if order.key is None else _APPEND_ONCE, values) or (b"",)
        return (outcome or b"").decode()

    def _append_one(self, drafts: Drafts) -> bool:
        """The next event of a stream in one plain statement; False, and nothing written, where it is not the next."""
        (event,) = drafts.events
        values = [
            drafts.tenant.encode(),
            drafts.stream.encode(),
            int8(drafts.first_version),
            drafts.ids[0].encode(),
            event.type.encode(),
            int4(event.schema),
            event.payload_class.encode(),
            int8(event.occurred_at_ns),
            int8(drafts.recorded_at_ns),
            drafts.salts[0],
            drafts.payloads[0],
            drafts.leaf_hashes[0],
        ]
        return run(self._connection, _APPEND_ONE, values) is not None


def _kept(values: Sequence[bytes], erasable: Sequence[int]) -> bytes | None:
    """Of events that can lose their payloads the values, NULL for the others; NULL where there is no such event."""
    if not erasable:
        return None
    which = set(erasable)
    return optional_bytea_array([value if at in which else None for at, value in enumerate(values)])


_ARRAYS = "$7::text[], $8::text[], $9::int4[], $10::text[], $11::int8[], $12::bytea[], $13::bytea[], $14::bytea[]"
_CALL = f"$1::text, $2::text, $3::int8, $4::text, $5::bytea, $6::int8, {_ARRAYS}, $15::bytea[], $16::bytea[]"
_APPEND = Prepared(b"sla_append", f"SELECT append_events({_CALL})".encode())
_APPEND_ONCE = Prepared(b"sla_append_once", f"SELECT append_events_once({_CALL})".encode())
# What append_events does, for the most frequent case: the function itself takes a third of the time of a small append.
_APPEND_ONE = Prepared(
    b"sla_append_one",
    b"""
WITH head AS (
    UPDATE stream_head SET version = $3::int8
    WHERE tenant = $1::text AND stream = $2::text AND version = $3::int8 - 1 RETURNING version
), added AS (
    INSERT INTO event (id, tenant, stream, version, type, schema_version, payload_class, occurred_at_ns,
                       recorded_at_ns, salt, payload)
    SELECT $4::text, $1::text, $2::text, version, $5::text, $6::int4, $7::text, $8::int8, $9::int8, $10::bytea,
           $11::bytea FROM head
)
INSERT INTO inbox (event_id, leaf_hash, type) SELECT $4::text, $12::bytea, $5::text FROM head RETURNING 1""",
)


def stream_head(connection: Connection, tenant: str, stream: str, *, lock: bool = False) -> int | None:
    """The last version of a stream, None where there is none; locked until the transaction ends."""
    version: int | None = connection.scalar(_LOCKED_HEAD if lock else _HEAD, {"of": tenant, "at": stream})
    return version


def find_request(connection: Connection, tenant: str, key: str | None) -> AppendRequest | None:
    """What an idempotency key was used for."""
    if key is None:
        return None
    columns = tables.append_request.c
    row = connection.execute(
        select(columns.idempotency_key, columns.digest, columns.stream, columns.first_version, columns.events).where(
            columns.tenant == tenant, columns.idempotency_key == key
        )
    ).one_or_none()
    return None if row is None else AppendRequest(*row)
