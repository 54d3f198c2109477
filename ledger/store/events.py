"""The event store in SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, Select, bindparam, delete, insert, select, update

from ledger.app.erasure import not_erasable
from ledger.app.ports import Randomness, Receipt
from ledger.domain import upcast
from ledger.domain.events import ERASABLE_CLASS, SALT_BYTES, ErasedPayload, NewEvent, StoredEvent
from ledger.domain.instant import Clock
from ledger.errors import StorageDamaged
from ledger.store import tables
from ledger.store.appending import (
    AppendRequest,
    Draft,
    checked_payloads,
    draft,
    first_version,
    no_event,
    no_event_at,
    request_digest,
    requested,
    require_same_request,
)
from ledger.store.bulk import insert_rows
from ledger.store.projections import ViewWriter, apply, forget
from ledger.store.sequencer import sequence

_PAGE = 1000

_event = tables.event.c
_kept = tables.event_payload.c
_leaf = tables.leaf.c
_STORED = (
    select(
        _leaf.seq,
        _event.id,
        _event.tenant,
        _event.stream,
        _event.version,
        _event.type,
        _event.schema_version,
        _event.payload_class,
        _event.occurred_at_ns,
        _event.recorded_at_ns,
        _event.payload,
        _event.salt,
        _kept.payload.label("kept_payload"),
        _kept.salt.label("kept_salt"),
    )
    .join_from(tables.leaf, tables.event, _leaf.event_id == _event.id)
    .outerjoin(tables.event_payload, _kept.event_id == _event.id)
)


class SqlEvents:
    """``ledger.app.ports.EventStore`` of one tenant over one write or read transaction.

    An append writes events, leaves, tiles and views together: what was acknowledged is in the log.
    """

    def __init__(
        self, connection: Connection, *, tenant: str, clock: Clock, randomness: Randomness, views: ViewWriter
    ) -> None:
        self._connection = connection
        self._tenant = tenant
        self._clock = clock
        self._randomness = randomness
        self._views = views

    def append(
        self,
        stream: str,
        events: Sequence[NewEvent],
        *,
        expected_version: int | None,
        idempotency_key: str | None = None,
    ) -> tuple[Receipt, ...]:
        payloads = checked_payloads(stream, events, idempotency_key)
        if idempotency_key is not None and (known := self._request(idempotency_key)) is not None:
            again = requested(events, payloads, self._salts(known))
            require_same_request(known, request_digest(stream, again))
            return self._receipts(known)
        head = self._head(stream)
        version = first_version(stream, expected_version, head)
        now_ns = self._clock.now_ns()
        drafts = draft(
            events,
            payloads,
            tenant=self._tenant,
            stream=stream,
            version=version,
            now_ns=now_ns,
            randomness=self._randomness,
        )
        insert_rows(self._connection, tables.event, [_event_row(each) for each in drafts])
        kept = [(each.id, each.salt, each.payload_bytes) for each in drafts if each.erasable]
        insert_rows(self._connection, tables.event_payload, kept)
        self._move_head(stream, head, version + len(events) - 1)
        if idempotency_key is not None:
            digest = request_digest(stream, requested(events, payloads, [each.salt for each in drafts]))
            self._remember(AppendRequest(idempotency_key, digest, stream, version, len(events)))
        first = sequence(self._connection, [(each.id, each.leaf_hash()) for each in drafts], now_ns)
        changes = [change for at, each in enumerate(drafts) for change in apply(each.stored(first + at))]
        self._views.write(changes)
        return tuple(Receipt(each.id, stream, each.version, first + at) for at, each in enumerate(drafts))

    def stream(self, stream: str) -> Iterator[StoredEvent]:
        page = (
            _STORED.where(_event.tenant == self._tenant, _event.stream == stream, _event.version >= bindparam("start"))
            .order_by(_event.version)
            .limit(_PAGE)
        )
        start = 0
        while found := self._fetch(page, start=start):
            yield from found
            start = found[-1].version + 1

    def since(self, seq: int, *, limit: int = 1000) -> Sequence[StoredEvent]:
        return self._fetch(_STORED.where(_leaf.seq >= seq).order_by(_leaf.seq).limit(limit))

    def at(self, seq: int) -> StoredEvent:
        for event in self._fetch(_STORED.where(_leaf.seq == seq)):
            return event
        raise no_event_at(seq)

    def by_id(self, event_id: str) -> StoredEvent:
        for event in self._fetch(_STORED.where(_event.id == event_id)):
            return event
        raise no_event(event_id)

    def forget_payload(self, event_id: str) -> None:
        event = self.by_id(event_id)
        if event.payload_class != ERASABLE_CLASS:
            raise not_erasable(event)
        if event.erased:
            return
        if self._connection.dialect.name == "sqlite":
            # Overwrite what is deleted from here on instead of leaving it in the file's free space.
            self._connection.exec_driver_sql("PRAGMA secure_delete = ON")
        forget(event, self._before(event), self._views)
        self._connection.execute(delete(tables.event_payload).where(_kept.event_id == event_id))

    def _before(self, event: StoredEvent) -> Iterator[StoredEvent]:
        """The events of the same tenant and type before this one, newest first."""
        page = (
            _STORED.where(_event.tenant == event.tenant, _event.type == event.type, _leaf.seq < bindparam("end"))
            .order_by(_leaf.seq.desc())
            .limit(_PAGE)
        )
        end = event.seq
        while found := self._fetch(page, end=end):
            yield from found
            end = found[-1].seq

    def _fetch(self, statement: Select[Any], **values: Any) -> list[StoredEvent]:
        return [_stored(row) for row in self._connection.execute(statement, values)]

    def _head(self, stream: str) -> int | None:
        head = tables.stream_head.c
        found: int | None = self._connection.scalar(
            select(head.version).where(head.tenant == self._tenant, head.stream == stream)
        )
        return found

    def _move_head(self, stream: str, head: int | None, version: int) -> None:
        if head is None:
            row = {"tenant": self._tenant, "stream": stream, "version": version}
            self._connection.execute(insert(tables.stream_head), row)
        else:
            columns = tables.stream_head.c
            self._connection.execute(
                update(tables.stream_head)
                .where(columns.tenant == self._tenant, columns.stream == stream, columns.version == head)
                .values(version=version)
            )

    def _request(self, key: str) -> AppendRequest | None:
        columns = tables.append_request.c
        row = self._connection.execute(
            select(
                columns.idempotency_key, columns.digest, columns.stream, columns.first_version, columns.events
            ).where(columns.tenant == self._tenant, columns.idempotency_key == key)
        ).one_or_none()
        return None if row is None else AppendRequest(*row)

    def _salts(self, request: AppendRequest) -> list[bytes]:
        """The salts of a request's erasable events, in order; empty for another class or an erased payload."""
        last = request.first_version + request.events - 1
        rows = self._connection.execute(
            select(_kept.salt)
            .join_from(tables.event, tables.event_payload, _kept.event_id == _event.id, isouter=True)
            .where(
                _event.tenant == self._tenant,
                _event.stream == request.stream,
                _event.version.between(request.first_version, last),
            )
            .order_by(_event.version)
        )
        return [salt or b"" for (salt,) in rows]

    def _remember(self, request: AppendRequest) -> None:
        self._connection.execute(
            insert(tables.append_request),
            {
                "tenant": self._tenant,
                "idempotency_key": request.key,
                "digest": request.digest,
                "stream": request.stream,
                "first_version": request.first_version,
                "events": request.events,
            },
        )

    def _receipts(self, request: AppendRequest) -> tuple[Receipt, ...]:
        last = request.first_version + request.events - 1
        rows = self._connection.execute(
            select(_event.id, _event.version, _leaf.seq)
            .join_from(tables.event, tables.leaf, _leaf.event_id == _event.id)
            .where(
                _event.tenant == self._tenant,
                _event.stream == request.stream,
                _event.version.between(request.first_version, last),
            )
            .order_by(_event.version)
        )
        return tuple(Receipt(event_id, request.stream, version, seq) for event_id, version, seq in rows)


def _event_row(each: Draft) -> tuple[Any, ...]:
    """In the order of the table's columns."""
    return (
        each.id,
        each.tenant,
        each.stream,
        each.version,
        each.type,
        each.schema,
        each.payload_class,
        each.occurred_at_ns,
        each.recorded_at_ns,
        bytes(SALT_BYTES) if each.erasable else each.salt,
        each.commitment() if each.erasable else each.payload_bytes,
    )


def _stored(row: Row[Any]) -> StoredEvent:
    """A row of ``_STORED``, taken apart by place: a rebuild reads a million of them."""
    values: tuple[Any, ...] = tuple(row)
    payload, salt, kept_payload, kept_salt = values[10:]
    if values[7] != ERASABLE_CLASS:
        payload = _decoded(values[0], payload)
    elif kept_payload is None:
        payload, salt = ErasedPayload(values[1], payload), b""
    else:
        payload, salt = _decoded(values[0], kept_payload), kept_salt
    members: list[Any] = [*values[:10], payload, salt]
    return upcast.current(StoredEvent(*members))


def _decoded(seq: int, payload: bytes) -> Any:
    try:
        return msgspec.json.decode(payload)
    except (ValueError, RecursionError) as error:
        raise StorageDamaged(f"the payload at seq {seq} is not JSON; run fsck", seq=seq) from error
