"""Leaves with the rows of their events, as they lie in the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select, type_coerce
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.types import NullType

from ledger.app.log.inspection import RawEntry
from ledger.store import tables

_event = tables.event.c
_kept = tables.event_payload.c
_leaf = tables.leaf.c


def as_is(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Bytes as the driver gives them: no conversion that fails where somebody stored another type."""
    return type_coerce(column, NullType())


ENTRIES = (
    select(
        _leaf.seq,
        as_is(_leaf.leaf_hash),
        _leaf.sequenced_at_ns,
        _leaf.event_id,
        _event.id,
        _event.tenant,
        _event.stream,
        _event.version,
        _event.type,
        _event.schema_version,
        _event.payload_class,
        _event.occurred_at_ns,
        _event.recorded_at_ns,
        as_is(_event.salt),
        as_is(_event.payload),
        as_is(_kept.salt),
        as_is(_kept.payload),
    )
    .select_from(tables.leaf)
    .outerjoin(tables.event, _event.id == _leaf.event_id)
    .outerjoin(tables.event_payload, _kept.event_id == _event.id)
    .order_by(_leaf.seq)
)


def entries_at(connection: Connection, seqs: Sequence[int]) -> Mapping[int, RawEntry]:
    """The entries at these places in the log, by seq."""
    rows = connection.execute(ENTRIES.where(_leaf.seq.in_(set(seqs))))
    return {entry.seq: entry for entry in map(RawEntry._make, rows)}
