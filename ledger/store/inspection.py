"""Everything stored, read row by row in one snapshot (``ledger.app.log.inspection``)."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Select, and_, func, not_, or_, select

from ledger.app.log.inspection import (
    HeadDifference,
    LogState,
    RawBatch,
    RawCheckpoint,
    RawEntry,
    RawRequest,
    RequestCheck,
    StreamPlace,
    TileRow,
)
from ledger.domain.record.events import ERASABLE_CLASS
from ledger.errors import SlaLedgerError
from ledger.store import tables
from ledger.store.appending import RequestedEvent, request_digest
from ledger.store.dialects import is_postgresql
from ledger.store.raw_entries import ENTRIES, as_is
from ledger.store.view_check import SqlViewCheck

_event = tables.event.c
_kept = tables.event_payload.c
_leaf = tables.leaf.c
_head = tables.stream_head.c
_request = tables.append_request.c


_REQUESTED = (
    select(
        *(_request[name] for name in ("tenant", "idempotency_key", "digest", "stream", "first_version", "events")),
        _event.type,
        _event.schema_version,
        _event.payload_class,
        as_is(_event.payload),
        as_is(_kept.salt),
        as_is(_kept.payload),
    )
    .select_from(tables.append_request)
    .outerjoin(
        tables.event,
        and_(
            _event.tenant == _request.tenant,
            _event.stream == _request.stream,
            _event.version >= _request.first_version,
            _event.version < _request.first_version + _request.events,
        ),
    )
    .outerjoin(tables.event_payload, _kept.event_id == _event.id)
    .order_by(_request.tenant, _request.idempotency_key, _event.version)
)


class SqlInspection:
    """``ledger.app.log.inspection.Inspection`` over one read transaction, which must see one snapshot throughout."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def state(self) -> LogState | None:
        columns = tables.log_state.c
        row = self._connection.execute(select(columns.size, columns.sequenced_at_ns)).one_or_none()
        return None if row is None else LogState(*row)

    def entries(self, first: int, limit: int) -> Sequence[RawEntry]:
        rows = self._connection.execute(ENTRIES.where(_leaf.seq >= first).limit(limit))
        return list(map(RawEntry._make, rows))

    def tiles(self, level: int, first: int, count: int) -> Mapping[int, TileRow]:
        columns = tables.tile.c
        rows = self._connection.execute(
            select(columns.level, columns.tile_index, columns.width, as_is(columns.data)).where(
                columns.level == level, columns.tile_index >= first, columns.tile_index < first + count
            )
        )
        return {row[1]: TileRow(row[0], row[1], row[2], _bytes(row[3])) for row in rows}

    def tile_counts(self) -> Mapping[int, int]:
        columns = tables.tile.c
        rows = self._connection.execute(select(columns.level, func.count()).group_by(columns.level))
        return {row[0]: row[1] for row in rows}

    def checkpoints(self, above: int, limit: int) -> Sequence[RawCheckpoint]:
        columns = tables.checkpoint.c
        rows = self._connection.execute(
            select(columns.size, as_is(columns.root), as_is(columns.note))
            .where(columns.size > above)
            .order_by(columns.size)
            .limit(limit)
        )
        return [RawCheckpoint(row[0], _bytes(row[1]), _bytes(row[2])) for row in rows]

    def requests(self) -> Iterator[RawRequest]:
        return map(
            RawRequest._make,
            self._stream(select(tables.append_request).order_by(_request.tenant, _request.idempotency_key)),
        )

    def bad_requests(self) -> Iterator[RequestCheck]:
        for request, group in groupby(self._stream(_REQUESTED), lambda row: RawRequest._make(row[:6])):
            problem = _request_problem(request, [row[6:] for row in group])
            if problem is not None:
                yield RequestCheck(request, problem)

    def places(self) -> Iterator[StreamPlace]:
        found = (
            select(_event.tenant, _event.stream, _event.version, _leaf.seq)
            .join_from(tables.event, tables.leaf, _leaf.event_id == _event.id, isouter=True)
            .order_by(_event.tenant, _event.stream, _event.version)
        )
        return map(StreamPlace._make, self._stream(found))

    def head_differences(self) -> Iterator[HeadDifference]:
        same = and_(_event.tenant == _head.tenant, _event.stream == _head.stream)
        last = select(func.max(_event.version)).where(same).correlate(tables.stream_head).scalar_subquery()
        wrong = select(_head.tenant, _head.stream, _head.version, last).where(
            or_(last.is_(None), last != _head.version)
        )
        yield from map(HeadDifference._make, self._stream(wrong))
        headless = (
            select(_event.tenant, _event.stream, func.max(_event.version))
            .where(not_(select(_head.version).where(same).correlate(tables.event).exists()))
            .group_by(_event.tenant, _event.stream)
        )
        for row in self._stream(headless):
            yield HeadDifference(row[0], row[1], None, row[2])

    def unsequenced(self, limit: int) -> Sequence[str]:
        """Events without a leaf; on PostgreSQL without those that wait for one in the queue."""
        astray = [not_(select(_leaf.seq).where(_leaf.event_id == _event.id).exists())]
        if is_postgresql(self._connection):
            queue = tables.inbox.c
            astray.append(not_(select(queue.id).where(queue.event_id == _event.id).exists()))
        return list(self._connection.scalars(select(_event.id).where(*astray).limit(limit)))

    def stray_payloads(self, limit: int) -> Sequence[str]:
        erasable = select(_event.id).where(_event.id == _kept.event_id, _event.payload_class == ERASABLE_CLASS).exists()
        return list(self._connection.scalars(select(_kept.event_id).where(not_(erasable)).limit(limit)))

    def batches(self) -> Iterator[RawBatch]:
        columns = tables.raw_batch.c
        found = select(columns.tenant, columns.digest, columns.size, columns.zlib)
        for row in self._stream(found, rows=1):
            yield RawBatch(row[0], row[1], _unpacked(row[3], row[2]))

    def view_check(self) -> SqlViewCheck:
        return SqlViewCheck(self._connection)

    def _stream(self, statement: Select[Any], rows: int = 1000) -> Iterator[Sequence[Any]]:
        yield from self._connection.execution_options(yield_per=rows).execute(statement)


def _request_problem(request: RawRequest, events: Iterable[Sequence[Any]]) -> str | None:
    """What is wrong with an idempotency row, given type, schema, class, payload, kept salt and kept payload of each
    event it names; a digest over an erased payload cannot be made any more and is not judged."""
    found: list[RequestedEvent] = []
    erased = False
    for kind, schema, payload_class, payload, kept_salt, kept_payload in events:
        if kind is None:
            continue
        erasable = payload_class == ERASABLE_CLASS
        erased = erased or (erasable and kept_payload is None)
        data = kept_payload if erasable else payload
        found.append(RequestedEvent(kind, schema, payload_class, data or b"", kept_salt or b""))
    if len(found) != request.events:
        return f"names {request.events} events of which {len(found)} are there"
    try:
        same = erased or request_digest(request.stream, found) == request.digest
    except (SlaLedgerError, TypeError):
        same = False
    if not same:
        return "is bound to another request than the events it names"
    return None


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else b""


def _unpacked(packed: bytes, size: int) -> bytes | None:
    try:
        return zlib.decompressobj().decompress(packed, size + 1)
    except zlib.error:
        return None
