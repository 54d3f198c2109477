"""How an append reaches the log: at once (SQLite), or by way of a queue that one sequencer empties (PostgreSQL)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from sqlalchemy import Connection, bindparam, insert, select, update

from ledger.domain.events import ERASABLE_CLASS, SALT_BYTES, StoredEvent
from ledger.errors import StorageUnavailable
from ledger.store import tables
from ledger.store.appending import AppendRequest, Drafts, first_version
from ledger.store.bulk import insert_rows, raw_cursor
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
    """Many writers at a time: one call of ``append_events`` (migration 0003) writes events, queue rows and head.

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
            outcome = self._append(order, version, drafts)
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

    def _append(self, order: Order, version: int, drafts: Sequence[Draft]) -> str:
        request = order.request(version, drafts)
        digest = b"" if request is None else request.digest
        values: list[Any] = [order.tenant, order.stream, version, order.key, digest, drafts[0].recorded_at_ns]
        columns: tuple[list[Any], ...] = (
            [each.id for each in drafts],
            [each.type for each in drafts],
            [each.schema for each in drafts],
            [each.payload_class for each in drafts],
            [each.occurred_at_ns for each in drafts],
            [_open_salt(each) for each in drafts],
            [_open_payload(each) for each in drafts],
            [each.leaf_hash() for each in drafts],
        )
        erasable = any(each.erasable for each in drafts)
        if erasable:
            columns += (
                [each.salt if each.erasable else None for each in drafts],
                [each.payload_bytes if each.erasable else None for each in drafts],
            )
        single = len(drafts) == 1
        call = _call(keyed=order.key is not None, single=single, erasable=erasable)
        values += [column[0] for column in columns] if single else map(_array, _ARRAYS + _KEPT_ARRAYS, columns)
        with raw_cursor(self._connection) as cursor:
            return str(cursor.execute(call, values, prepare=True).fetchone()[0])


_ARRAYS = ("text", "text", "int4", "text", "int8", "bytea", "bytea", "bytea")
_KEPT_ARRAYS = ("bytea", "bytea")


def _array(kind: str, column: list[Any]) -> Any:
    """A column as the database's array literal; bytes stay a list for the driver.

    The driver looks into each text for what must be quoted. There is nothing here: ids are UUIDs, types and classes
    are registered names, all checked before.
    """
    return column if kind == "bytea" else "{" + ",".join(map(str, column)) + "}"


@cache
def _call(*, keyed: bool, single: bool, erasable: bool) -> str:
    """The call of the function of migration 0003. Bytes go in binary form: as text each would take two digits."""
    # The driver makes an array from a list more slowly than the database makes one from a value.
    form = "ARRAY[{}::{}]" if single else "{}::{}[]"
    kinds = _ARRAYS + _KEPT_ARRAYS if erasable else _ARRAYS
    arrays = [form.format("%b" if kind == "bytea" else "%s", kind) for kind in kinds]
    function = "append_events_once" if keyed else "append_events"
    return f"SELECT {function}(%s, %s, %s::int8, %s, %b::bytea, %s::int8, {', '.join(arrays)})"


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
