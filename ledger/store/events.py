"""The event store in SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, repeat
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, Select, bindparam, delete, select

from ledger.app.log.erasure import not_erasable
from ledger.app.ports.store import Randomness, Receipt
from ledger.domain.events import upcast
from ledger.domain.record.events import ERASABLE_CLASS, ErasedPayload, NewEvent, StoredEvent
from ledger.domain.time.instant import Clock
from ledger.errors import StorageDamaged
from ledger.store import tables
from ledger.store.appending import (
    AppendRequest,
    Drafts,
    checked_payloads,
    draft,
    no_event,
    no_event_at,
    request_digest,
    requested,
    require_same_request,
)
from ledger.store.placing import Order, Placing, stream_head
from ledger.store.projections import types_beside

_PAGE = 1000
_CHUNK = 1000
"""Ids asked for in one statement: well below every database's limit of parameters."""

_event = tables.event.c
_kept = tables.event_payload.c
_leaf = tables.leaf.c
EVENT_COLUMNS = (
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
"""What ``stored_event`` needs after ``seq``, in this order; those of event_payload by an outer join."""

LOGGED: Select[Any] = (
    select(_leaf.seq, *EVENT_COLUMNS)
    .join_from(tables.leaf, tables.event, _leaf.event_id == _event.id)
    .outerjoin(tables.event_payload, _kept.event_id == _event.id)
)
"""Events that are in the log, as ``stored_event`` takes them."""

_STORED = (
    select(_leaf.seq, *EVENT_COLUMNS)
    .join_from(tables.event, tables.leaf, _leaf.event_id == _event.id, isouter=True)
    .outerjoin(tables.event_payload, _kept.event_id == _event.id)
)
_PLACES = select(_leaf.event_id, _leaf.seq).where(_leaf.event_id.in_(bindparam("ids", expanding=True)))


class SqlEvents:
    """``ledger.app.ports.store.EventStore`` of one tenant over one write or read transaction."""

    def __init__(
        self, connection: Connection, *, tenant: str, clock: Clock, randomness: Randomness, placing: Placing
    ) -> None:
        self._connection = connection
        self._tenant = tenant
        self._clock = clock
        self._randomness = randomness
        self._placing = placing

    def append(
        self,
        stream: str,
        events: Sequence[NewEvent],
        *,
        expected_version: int | None,
        idempotency_key: str | None = None,
    ) -> tuple[Receipt, ...]:
        payloads = checked_payloads(stream, events, idempotency_key)

        def drafts(version: int) -> Drafts:
            return draft(
                events,
                payloads,
                tenant=self._tenant,
                stream=stream,
                version=version,
                now_ns=self._clock.now_ns(),
                randomness=self._randomness,
            )

        def digest(salts: Sequence[bytes]) -> bytes:
            return request_digest(stream, requested(events, payloads, salts))

        order = Order(self._tenant, stream, expected_version, idempotency_key, digest, drafts)
        placed = self._placing.place(order)
        if isinstance(placed, AppendRequest):
            require_same_request(placed, digest(self._salts(placed)))
            return self._receipts(placed)
        ids, versions = placed.drafts.ids, placed.drafts.versions
        seqs = repeat(None) if placed.first_seq is None else count(placed.first_seq)
        return tuple(map(Receipt, ids, repeat(stream), versions, seqs))

    def stream(self, stream: str, *, start: int = 0) -> Iterator[StoredEvent]:
        page = (
            _STORED.where(_event.tenant == self._tenant, _event.stream == stream, _event.version >= bindparam("start"))
            .order_by(_event.version)
            .limit(_PAGE)
        )
        while found := self._fetch(page, start=start):
            yield from found
            start = found[-1].version + 1

    def length(self, stream: str) -> int:
        head = stream_head(self._connection, self._tenant, stream)
        return 0 if head is None else head + 1

    def since(self, seq: int, *, limit: int = 1000) -> Sequence[StoredEvent]:
        return self._fetch(LOGGED.where(_leaf.seq >= seq).order_by(_leaf.seq).limit(limit))

    def at(self, seq: int) -> StoredEvent:
        for event in self._fetch(LOGGED.where(_leaf.seq == seq)):
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
        self._placing.take_back(event, events_before(self._connection, event))
        self._connection.execute(delete(tables.event_payload).where(_kept.event_id == event_id))

    def places(self, event_ids: Sequence[str]) -> Mapping[str, int]:
        chunks = (event_ids[start : start + _CHUNK] for start in range(0, len(event_ids), _CHUNK))
        return {
            event_id: seq for ids in chunks for event_id, seq in self._connection.execute(_PLACES, {"ids": list(ids)})
        }

    def _fetch(self, statement: Select[Any], **values: Any) -> list[StoredEvent]:
        return [stored_event(row) for row in self._connection.execute(statement, values)]

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

    def _receipts(self, request: AppendRequest) -> tuple[Receipt, ...]:
        last = request.first_version + request.events - 1
        rows = self._connection.execute(
            select(_event.id, _event.version, _leaf.seq)
            .join_from(tables.event, tables.leaf, _leaf.event_id == _event.id, isouter=True)
            .where(
                _event.tenant == self._tenant,
                _event.stream == request.stream,
                _event.version.between(request.first_version, last),
            )
            .order_by(_event.version)
        )
        return tuple(Receipt(event_id, request.stream, version, seq) for event_id, version, seq in rows)


def events_before(connection: Connection, event: StoredEvent) -> Iterator[StoredEvent]:
    """The events before this one in the log of the same tenant, of types that set the same views, newest first."""
    types = sorted(types_beside(event.type))
    page = (
        LOGGED.where(_event.tenant == event.tenant, _event.type.in_(types), _leaf.seq < bindparam("end"))
        .order_by(_leaf.seq.desc())
        .limit(_PAGE)
    )
    end = event.place
    while found := [stored_event(row) for row in connection.execute(page, {"end": end})]:
        yield from found
        end = found[-1].place


def stored_event(row: Row[Any]) -> StoredEvent:
    """A row of ``seq`` and ``EVENT_COLUMNS``, taken apart by place: a rebuild reads a million of them.

    Raises ``StorageDamaged`` where the payload is not JSON.
    """
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


def _decoded(seq: int | None, payload: bytes) -> Any:
    try:
        return msgspec.json.decode(payload)
    except (ValueError, RecursionError) as error:
        raise StorageDamaged(f"the payload at seq {seq} is not JSON; run fsck", seq=seq) from error
