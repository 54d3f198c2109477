"""Events, their log, and what the log is made from. What is immutable here is guarded by triggers."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
)

from ledger.store.tables.base import BIGINT, metadata

# An event of an erasable class has its commitment as ``payload`` and 32 zero bytes as ``salt``, so that its row
# stays as it is when the payload is forgotten; what can be forgotten is in event_payload.
event = Table(
    "event",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("tenant", String(120), nullable=False),
    Column("stream", String(300), nullable=False),
    Column("version", BIGINT, nullable=False),
    Column("type", String(80), nullable=False),
    Column("schema_version", Integer, nullable=False),
    Column("payload_class", String(40), nullable=False),
    Column("occurred_at_ns", BIGINT, nullable=False),
    Column("recorded_at_ns", BIGINT, nullable=False),
    Column("salt", LargeBinary, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    UniqueConstraint("tenant", "stream", "version"),
    CheckConstraint("version >= 0", "version"),
    CheckConstraint("length(salt) = 32", "salt"),
)

event_payload = Table(
    "event_payload",
    metadata,
    Column("event_id", String(36), ForeignKey("event.id"), primary_key=True),
    Column("salt", LargeBinary, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    CheckConstraint("length(salt) = 32", "salt"),
)

# An idempotency key stands for a whole append of one or more events, so it has a row of its own.
append_request = Table(
    "append_request",
    metadata,
    Column("tenant", String(120), nullable=False),
    Column("idempotency_key", String(200), nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("stream", String(300), nullable=False),
    Column("first_version", BIGINT, nullable=False),
    Column("events", Integer, nullable=False),
    PrimaryKeyConstraint("tenant", "idempotency_key"),
)

stream_head = Table(
    "stream_head",
    metadata,
    Column("tenant", String(120), nullable=False),
    Column("stream", String(300), nullable=False),
    Column("version", BIGINT, nullable=False),
    PrimaryKeyConstraint("tenant", "stream"),
)

leaf = Table(
    "leaf",
    metadata,
    Column("seq", BIGINT, primary_key=True, autoincrement=False),
    Column("event_id", String(36), ForeignKey("event.id"), nullable=False, unique=True),
    Column("leaf_hash", LargeBinary, nullable=False),
    Column("sequenced_at_ns", BIGINT, nullable=False),
    CheckConstraint("seq >= 0", "seq"),
    CheckConstraint("length(leaf_hash) = 32", "leaf_hash"),
)

# One row per tile: a partial tile grows in place, by whole hashes at its end, until it is full.
tile = Table(
    "tile",
    metadata,
    Column("level", Integer, nullable=False),
    Column("tile_index", BIGINT, nullable=False),
    Column("width", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),
    PrimaryKeyConstraint("level", "tile_index"),
    CheckConstraint("width BETWEEN 1 AND 256 AND length(data) = 32 * width", "width"),
)

checkpoint = Table(
    "checkpoint",
    metadata,
    Column("size", BIGINT, primary_key=True, autoincrement=False),
    Column("root", LargeBinary, nullable=False),
    Column("note", LargeBinary, nullable=False),
)

log_state = Table(
    "log_state",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("size", BIGINT, nullable=False),
    Column("sequenced_at_ns", BIGINT, nullable=False),
    CheckConstraint("id = 0", "single"),
)

# PostgreSQL alone: events that wait for their place in the log. SQLite gives it in the append.
queue_metadata = MetaData(naming_convention=metadata.naming_convention)
inbox = Table(
    "inbox",
    queue_metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("event_id", String(36), nullable=False),
    Column("leaf_hash", LargeBinary, nullable=False),
    # Of the event; NULL in rows from before this column.
    Column("type", String(80), nullable=True),
    CheckConstraint("length(leaf_hash) = 32", "leaf_hash"),
)
