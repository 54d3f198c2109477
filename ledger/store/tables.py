"""The database schema as SQLAlchemy Core tables; ``migrations`` builds exactly these.

Three kinds of tables. *Immutable* (event, append_request, leaf, checkpoint, and tile as far as it is filled):
guarded by triggers, rows are only ever added. A row of event_payload goes when an event of the log says so, and
never changes. *Working rows* (stream_head, log_state, outbox, chain_transaction,
identity, raw_batch, secret). *Views* (view_*): derived from events alone and rebuilt at will.

All instants are integer nanoseconds, all digests raw bytes, payloads RFC 8785 bytes: never a JSON column type,
whose key order or number format could change what was hashed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

# SQLite's INTEGER has 64 bits, and only a column of that very name can be the row's own key.
_BIGINT = BigInteger().with_variant(Integer(), "sqlite")

# An event of an erasable class has its commitment as ``payload`` and 32 zero bytes as ``salt``, so that its row
# stays as it is when the payload is forgotten; what can be forgotten is in event_payload.
event = Table(
    "event",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("tenant", String(120), nullable=False),
    Column("stream", String(300), nullable=False),
    Column("version", _BIGINT, nullable=False),
    Column("type", String(80), nullable=False),
    Column("schema_version", Integer, nullable=False),
    Column("payload_class", String(40), nullable=False),
    Column("occurred_at_ns", _BIGINT, nullable=False),
    Column("recorded_at_ns", _BIGINT, nullable=False),
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
    Column("first_version", _BIGINT, nullable=False),
    Column("events", Integer, nullable=False),
    PrimaryKeyConstraint("tenant", "idempotency_key"),
)

stream_head = Table(
    "stream_head",
    metadata,
    Column("tenant", String(120), nullable=False),
    Column("stream", String(300), nullable=False),
    Column("version", _BIGINT, nullable=False),
    PrimaryKeyConstraint("tenant", "stream"),
)

leaf = Table(
    "leaf",
    metadata,
    Column("seq", _BIGINT, primary_key=True, autoincrement=False),
    Column("event_id", String(36), ForeignKey("event.id"), nullable=False, unique=True),
    Column("leaf_hash", LargeBinary, nullable=False),
    Column("sequenced_at_ns", _BIGINT, nullable=False),
    CheckConstraint("seq >= 0", "seq"),
    CheckConstraint("length(leaf_hash) = 32", "leaf_hash"),
)

# One row per tile: a partial tile grows in place, by whole hashes at its end, until it is full.
tile = Table(
    "tile",
    metadata,
    Column("level", Integer, nullable=False),
    Column("tile_index", _BIGINT, nullable=False),
    Column("width", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),
    PrimaryKeyConstraint("level", "tile_index"),
    CheckConstraint("width BETWEEN 1 AND 256 AND length(data) = 32 * width", "width"),
)

checkpoint = Table(
    "checkpoint",
    metadata,
    Column("size", _BIGINT, primary_key=True, autoincrement=False),
    Column("root", LargeBinary, nullable=False),
    Column("note", LargeBinary, nullable=False),
)

log_state = Table(
    "log_state",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("size", _BIGINT, nullable=False),
    Column("sequenced_at_ns", _BIGINT, nullable=False),
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

raw_batch = Table(
    "raw_batch",
    metadata,
    Column("tenant", String(120), nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("size", _BIGINT, nullable=False),
    Column("zlib", LargeBinary, nullable=False),
    PrimaryKeyConstraint("tenant", "digest"),
)

# The long names stand once, not in each of a million rows.
identity_scope = Table(
    "identity_scope",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("tenant", String(120), nullable=False),
    Column("sla_id", String(66), nullable=False),
    Column("source", String(120), nullable=False),
    UniqueConstraint("tenant", "sla_id", "source"),
)

identity = Table(
    "identity",
    metadata,
    Column("scope_id", Integer, ForeignKey("identity_scope.id"), nullable=False),
    Column("id_digest", LargeBinary, nullable=False),
    Column("body_digest", LargeBinary, nullable=False),
    PrimaryKeyConstraint("scope_id", "id_digest", "body_digest"),
    sqlite_with_rowid=False,
)

outbox = Table(
    "outbox",
    metadata,
    Column("ordinal", _BIGINT, primary_key=True),
    Column("event_id", String(36), ForeignKey("event.id"), nullable=False),
    Column("stage", String(80), nullable=False),
    Column("state", String(10), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_at_ns", _BIGINT, nullable=False),
    Column("error", String, nullable=True),
    Column("token", _BIGINT, nullable=False),
    Column("holder", String(80), nullable=True),
    UniqueConstraint("event_id", "stage"),
    CheckConstraint("state IN ('pending', 'done', 'parked')", "state"),
    Index(None, "state", "ordinal"),
)

chain_transaction = Table(
    "chain_transaction",
    metadata,
    Column("ordinal", _BIGINT, nullable=False),
    # An EVM chain id has up to 256 bits.
    Column("chain_id", String(78), nullable=False),
    Column("sender", String(42), nullable=False),
    Column("nonce", _BIGINT, nullable=False),
    Column("purpose", String(200), nullable=False),
    Column("effect", String(200), nullable=False),
    Column("tx_hash", String(66), nullable=False, unique=True),
    Column("raw", LargeBinary, nullable=False),
    Column("block_timestamp_s", _BIGINT, nullable=True),
    Column("block_number", _BIGINT, nullable=True),
    Column("block_hash", String(66), nullable=True),
    Column("failed", Boolean, nullable=False),
    PrimaryKeyConstraint("chain_id", "ordinal"),
    UniqueConstraint("chain_id", "sender", "nonce"),
    Index(None, "chain_id", "effect"),
    Index(None, "chain_id", "block_number"),
)

# How far a follower of the log has come: the next seq it has to look at.
follower = Table(
    "follower",
    metadata,
    Column("name", String(80), primary_key=True),
    Column("next_seq", _BIGINT, nullable=False),
)

webhook_attempt = Table(
    "webhook_attempt",
    metadata,
    Column("ordinal", _BIGINT, primary_key=True),
    Column("tenant", String(120), nullable=False),
    Column("endpoint_id", String(27), nullable=False),
    Column("event_id", String(36), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("at_ns", _BIGINT, nullable=False),
    Column("duration_ms", Integer, nullable=False),
    Column("status", Integer, nullable=True),
    Column("error", String, nullable=True),
    Column("retry_at_ns", _BIGINT, nullable=True),
    UniqueConstraint("tenant", "endpoint_id", "event_id", "attempt"),
    Index(None, "tenant", "endpoint_id", "ordinal"),
)

secret = Table(
    "secret",
    metadata,
    Column("tenant", String(120), nullable=False),
    Column("name", String(300), nullable=False),
    Column("value", LargeBinary, nullable=False),
    PrimaryKeyConstraint("tenant", "name"),
)


# Of a key's secret there is only the hash. Nothing but revoked_at_ns ever changes.
api_key = Table(
    "api_key",
    metadata,
    Column("key_id", String(16), primary_key=True),
    Column("tenant", String(120), nullable=False),
    Column("role", String(40), nullable=False),
    Column("label", String(120), nullable=False),
    # Blanks between; empty: all of the tenant's.
    Column("sla_ids", String, nullable=False),
    Column("secret_digest", LargeBinary, nullable=False),
    Column("created_at_ns", _BIGINT, nullable=False),
    Column("expires_at_ns", _BIGINT, nullable=True),
    Column("revoked_at_ns", _BIGINT, nullable=True),
    CheckConstraint("length(secret_digest) = 32", "secret_digest"),
)


def _view(name: str, key: Sequence[Column[Any]], others: Sequence[Column[Any]] = ()) -> Table:
    """A read model: what it is asked or ordered by as columns, the rest as JSON in ``body``."""
    return Table(
        name,
        metadata,
        Column("tenant", String(120), nullable=False),
        *key,
        *others,
        Column("body", LargeBinary, nullable=False),
        Column("seq", _BIGINT, nullable=False),
        PrimaryKeyConstraint("tenant", *(column.name for column in key)),
    )


def _sla_id() -> Column[str]:
    return Column("sla_id", String(66), nullable=False)


def _statement_id() -> Column[str]:
    return Column("statement_id", String(120), nullable=False)


def _text_key(name: str, length: int) -> Column[str]:
    """An id that a list is continued by: ordered by code points in every database."""
    ordered = String(length, collation="C")
    return Column(name, String(length).with_variant(ordered, "postgresql"), nullable=False)


def _start_ns() -> Column[int]:
    return Column("start_ns", _BIGINT, nullable=False)


view_agreement = _view("view_agreement", [_sla_id()])
view_window = _view(
    "view_window",
    [_sla_id(), Column("period", String(16), nullable=False), Column("window_index", Integer, nullable=False)],
    [_start_ns()],
)
view_statement = _view("view_statement", [_text_key("statement_id", 120)], [_sla_id(), _start_ns()])
view_credit = _view("view_credit", [_text_key("statement_id", 120)], [_sla_id(), _start_ns()])
# Of the versions of a statement those that nothing replaced are listed, and found once they are due to be final.
view_standing = _view(
    "view_standing",
    [_text_key("statement_id", 120)],
    [
        _sla_id(),
        _start_ns(),
        Column("standing", String(10), nullable=False),
        Column("credited", Integer, nullable=False),
        Column("due_ns", _BIGINT, nullable=False),
    ],
)
view_attestation = _view("view_attestation", [_statement_id()])
view_anchor = _view("view_anchor", [_statement_id()])
view_anchor_confirmation = _view("view_anchor_confirmation", [_statement_id()])


view_violation = _view(
    "view_violation",
    [_text_key("violation_id", 120)],
    [
        _sla_id(),
        Column("objective", String(40), nullable=False),
        Column("state", String(10), nullable=False),
        _start_ns(),
    ],
)
view_exclusion = _view(
    "view_exclusion",
    [_sla_id(), Column("exclusion_id", String(40), nullable=False)],
    [_start_ns(), Column("state", String(10), nullable=False)],
)
view_credit_line = _view(
    "view_credit_line",
    [_text_key("line_id", 140)],
    [
        _statement_id(),
        _sla_id(),
        Column("violation_id", String(120), nullable=True),
        Column("status", String(10), nullable=False),
        _start_ns(),
    ],
)


# Evidence is asked for by service and time. A point covers at most an hour, so that the index finds those that touch
# an interval; ``series`` says which rows are of one thing, of which the most telling one is enough.
_SERVICE_COLUMN = 120


def _service() -> Column[str]:
    return Column("service", String(_SERVICE_COLUMN), nullable=False)


def _event_id() -> Column[str]:
    return Column("event_id", String(36), nullable=False)


def _evidence_columns() -> list[Column[Any]]:
    return [
        Column("from_ns", _BIGINT, nullable=False),
        Column("to_ns", _BIGINT, nullable=False),
        Column("severity", Integer, nullable=False),
        Column("series", String(420), nullable=False),
    ]


view_telemetry = _view(
    "view_telemetry",
    [_service(), _event_id(), Column("point", Integer, nullable=False)],
    _evidence_columns(),
)
view_breaker = _view("view_breaker", [_service(), _event_id()], _evidence_columns())
view_telemetry_source = _view(
    "view_telemetry_source", [_service(), Column("source", String(_SERVICE_COLUMN), nullable=False)]
)

Index(None, view_telemetry.c.tenant, view_telemetry.c.service, view_telemetry.c.from_ns)
Index(None, view_breaker.c.tenant, view_breaker.c.service, view_breaker.c.from_ns)
view_webhook = _view(
    "view_webhook", [Column("endpoint_id", String(27), nullable=False)], [Column("state", String(10), nullable=False)]
)

for _table, _key in (
    (view_statement, "statement_id"),
    (view_credit, "statement_id"),
    (view_standing, "statement_id"),
    (view_violation, "violation_id"),
    (view_credit_line, "line_id"),
):
    Index(None, _table.c.tenant, _table.c.start_ns, _table.c[_key])
    Index(None, _table.c.tenant, _table.c.sla_id, _table.c.start_ns, _table.c[_key])
Index(
    None,
    view_credit_line.c.tenant,
    view_credit_line.c.statement_id,
    view_credit_line.c.start_ns,
    view_credit_line.c.line_id,
)
Index(None, view_credit_line.c.tenant, view_credit_line.c.violation_id)
Index(None, view_standing.c.tenant, view_standing.c.standing, view_standing.c.due_ns, view_standing.c.statement_id)

VIEW_TABLES = {
    table.name: table
    for table in (
        view_agreement,
        view_window,
        view_statement,
        view_credit,
        view_standing,
        view_attestation,
        view_anchor,
        view_violation,
        view_exclusion,
        view_credit_line,
        view_anchor_confirmation,
        view_telemetry,
        view_breaker,
        view_telemetry_source,
        view_webhook,
    )
}
