"""The first schema: event log, transparency log, working rows and views.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIGINT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

IMMUTABLE = {
    "event": ("id = NEW.id", "(tenant, stream, version) = (NEW.tenant, NEW.stream, NEW.version)"),
    "append_request": ("(tenant, idempotency_key) = (NEW.tenant, NEW.idempotency_key)",),
    "leaf": ("seq = NEW.seq", "event_id = NEW.event_id"),
    "checkpoint": ("size = NEW.size",),
}
"""Tables whose rows are never changed or removed, each with the conditions under which a row exists already."""

GROWING = {
    "tile": (
        "(level, tile_index) = (NEW.level, NEW.tile_index)",
        """(NEW.level, NEW.tile_index) IS NOT (OLD.level, OLD.tile_index)
        OR NEW.width <= OLD.width OR substr(NEW.data, 1, length(OLD.data)) IS NOT OLD.data""",
    ),
    "stream_head": (
        "(tenant, stream) = (NEW.tenant, NEW.stream)",
        "(NEW.tenant, NEW.stream) IS NOT (OLD.tenant, OLD.stream) OR NEW.version <= OLD.version",
    ),
    "log_state": (
        "id = NEW.id",
        "NEW.id IS NOT OLD.id OR NEW.size <= OLD.size OR NEW.sequenced_at_ns < OLD.sequenced_at_ns",
    ),
}
"""Tables whose rows only grow: the condition under which a row exists, and that of a change which is no growth."""


def upgrade() -> None:
    _log_tables()
    _working_tables()
    _views()
    if op.get_bind().dialect.name == "sqlite":
        _sqlite_guards()
    op.execute("INSERT INTO log_state (id, size, sequenced_at_ns) VALUES (0, 0, 0)")


def downgrade() -> None:
    raise RuntimeError("the log only goes forward; restore a backup to go back")


def _log_tables() -> None:
    """Events, the tree over them, and what an append keeps up to date."""
    op.create_table(
        "event",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("stream", sa.String(length=300), nullable=False),
        sa.Column("version", BIGINT, nullable=False),
        sa.Column("type", sa.String(length=80), nullable=False),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("payload_class", sa.String(length=40), nullable=False),
        sa.Column("occurred_at_ns", BIGINT, nullable=False),
        sa.Column("recorded_at_ns", BIGINT, nullable=False),
        sa.Column("salt", sa.LargeBinary(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("length(salt) = 32", name=op.f("ck_event_salt")),
        sa.CheckConstraint("version >= 0", name=op.f("ck_event_version")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
        sa.UniqueConstraint("tenant", "stream", "version", name=op.f("uq_event_tenant_stream_version")),
    )
    op.create_table(
        "append_request",
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("idempotency_key", sa.String(length=200), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("stream", sa.String(length=300), nullable=False),
        sa.Column("first_version", BIGINT, nullable=False),
        sa.Column("events", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "idempotency_key", name=op.f("pk_append_request")),
    )
    op.create_table(
        "stream_head",
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("stream", sa.String(length=300), nullable=False),
        sa.Column("version", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "stream", name=op.f("pk_stream_head")),
    )
    op.create_table(
        "leaf",
        sa.Column("seq", BIGINT, autoincrement=False, nullable=False),
        sa.Column("event_id", sa.String(length=36), nullable=False),
        sa.Column("leaf_hash", sa.LargeBinary(), nullable=False),
        sa.Column("sequenced_at_ns", BIGINT, nullable=False),
        sa.CheckConstraint("length(leaf_hash) = 32", name=op.f("ck_leaf_leaf_hash")),
        sa.CheckConstraint("seq >= 0", name=op.f("ck_leaf_seq")),
        sa.ForeignKeyConstraint(["event_id"], ["event.id"], name=op.f("fk_leaf_event_id")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_leaf")),
        sa.UniqueConstraint("event_id", name=op.f("uq_leaf_event_id")),
    )
    op.create_table(
        "tile",
        sa.Column("level", sa.Integer(), nullable=False),
        sa.Column("tile_index", BIGINT, nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("width BETWEEN 1 AND 256 AND length(data) = 32 * width", name=op.f("ck_tile_width")),
        sa.PrimaryKeyConstraint("level", "tile_index", name=op.f("pk_tile")),
    )
    op.create_table(
        "checkpoint",
        sa.Column("size", BIGINT, autoincrement=False, nullable=False),
        sa.Column("root", sa.LargeBinary(), nullable=False),
        sa.Column("note", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("size", name=op.f("pk_checkpoint")),
    )
    op.create_table(
        "log_state",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("size", BIGINT, nullable=False),
        sa.Column("sequenced_at_ns", BIGINT, nullable=False),
        sa.CheckConstraint("id = 0", name=op.f("ck_log_state_single")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_log_state")),
    )


def _working_tables() -> None:
    """Rows that commit together with events and are no part of the log."""
    op.create_table(
        "raw_batch",
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("size", BIGINT, nullable=False),
        sa.Column("zlib", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "digest", name=op.f("pk_raw_batch")),
    )
    op.create_table(
        "identity_scope",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("sla_id", sa.String(length=66), nullable=False),
        sa.Column("source", sa.String(length=120), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_identity_scope")),
        sa.UniqueConstraint("tenant", "sla_id", "source", name=op.f("uq_identity_scope_tenant_sla_id_source")),
    )
    op.create_table(
        "identity",
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("id_digest", sa.LargeBinary(), nullable=False),
        sa.Column("body_digest", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["scope_id"], ["identity_scope.id"], name=op.f("fk_identity_scope_id")),
        sa.PrimaryKeyConstraint("scope_id", "id_digest", "body_digest", name=op.f("pk_identity")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "outbox",
        sa.Column("ordinal", BIGINT, nullable=False),
        sa.Column("event_id", sa.String(length=36), nullable=False),
        sa.Column("stage", sa.String(length=80), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at_ns", BIGINT, nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.CheckConstraint("state IN ('pending', 'done', 'parked')", name=op.f("ck_outbox_state")),
        sa.ForeignKeyConstraint(["event_id"], ["event.id"], name=op.f("fk_outbox_event_id")),
        sa.PrimaryKeyConstraint("ordinal", name=op.f("pk_outbox")),
        sa.UniqueConstraint("event_id", "stage", name=op.f("uq_outbox_event_id_stage")),
    )
    op.create_index(op.f("ix_outbox_state_ordinal"), "outbox", ["state", "ordinal"], unique=False)
    op.create_table(
        "chain_transaction",
        sa.Column("ordinal", BIGINT, autoincrement=False, nullable=False),
        sa.Column("chain_id", sa.String(length=78), nullable=False),
        sa.Column("sender", sa.String(length=42), nullable=False),
        sa.Column("nonce", BIGINT, nullable=False),
        sa.Column("purpose", sa.String(length=200), nullable=False),
        sa.Column("tx_hash", sa.String(length=66), nullable=False),
        sa.Column("raw", sa.LargeBinary(), nullable=False),
        sa.Column("block_timestamp_s", BIGINT, nullable=False),
        sa.Column("block_number", BIGINT, nullable=True),
        sa.Column("block_hash", sa.String(length=66), nullable=True),
        sa.PrimaryKeyConstraint("ordinal", name=op.f("pk_chain_transaction")),
        sa.UniqueConstraint("chain_id", "sender", "nonce", name=op.f("uq_chain_transaction_chain_id_sender_nonce")),
        sa.UniqueConstraint("tx_hash", name=op.f("uq_chain_transaction_tx_hash")),
    )
    op.create_table(
        "secret",
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("name", sa.String(length=300), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "name", name=op.f("pk_secret")),
    )


def _views() -> None:
    """Read models."""
    op.create_table(
        "view_agreement",
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("sla_id", sa.String(length=66), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("seq", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "sla_id", name=op.f("pk_view_agreement")),
    )
    op.create_table(
        "view_window",
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("sla_id", sa.String(length=66), nullable=False),
        sa.Column("period", sa.String(length=16), nullable=False),
        sa.Column("window_index", sa.Integer(), nullable=False),
        sa.Column("start_ns", BIGINT, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("seq", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "sla_id", "period", "window_index", name=op.f("pk_view_window")),
    )
    op.create_table(
        "view_statement",
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("statement_id", sa.String(length=120), nullable=False),
        sa.Column("sla_id", sa.String(length=66), nullable=False),
        sa.Column("start_ns", BIGINT, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("seq", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "statement_id", name=op.f("pk_view_statement")),
    )
    op.create_index(op.f("ix_view_statement_tenant_sla_id"), "view_statement", ["tenant", "sla_id"], unique=False)
    op.create_table(
        "view_credit",
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("statement_id", sa.String(length=120), nullable=False),
        sa.Column("sla_id", sa.String(length=66), nullable=False),
        sa.Column("start_ns", BIGINT, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("seq", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "statement_id", name=op.f("pk_view_credit")),
    )
    op.create_index(op.f("ix_view_credit_tenant_sla_id"), "view_credit", ["tenant", "sla_id"], unique=False)
    op.create_table(
        "view_attestation",
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("statement_id", sa.String(length=120), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("seq", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "statement_id", name=op.f("pk_view_attestation")),
    )
    op.create_table(
        "view_anchor",
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("statement_id", sa.String(length=120), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("seq", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "statement_id", name=op.f("pk_view_anchor")),
    )


def _sqlite_guards() -> None:
    """Refuse UPDATE, DELETE and INSERT OR REPLACE where the log would lose something.

    REPLACE deletes the row in its way without firing DELETE triggers unless the connection asks for them, so an
    insertion over an existing row is refused by itself. It may also aim at the hidden rowid.
    """
    for table, existing in IMMUTABLE.items():
        _trigger(f"{table}_no_update", f"BEFORE UPDATE ON {table}", f"{table} is append-only")
        _trigger(f"{table}_no_delete", f"BEFORE DELETE ON {table}", f"{table} is append-only")
        _no_replace(table, *existing)
    for table, (existing, shrinks) in GROWING.items():
        _trigger(f"{table}_grows", f"BEFORE UPDATE ON {table} WHEN {shrinks}", f"{table} only grows")
        _trigger(f"{table}_no_delete", f"BEFORE DELETE ON {table}", f"{table} only grows")
        _no_replace(table, existing)
    _trigger("secret_no_update", "BEFORE UPDATE ON secret", "secrets are written once")
    _no_replace("secret", "(tenant, name) = (NEW.tenant, NEW.name)")


def _no_replace(table: str, *existing: str) -> None:
    conditions = " OR ".join([*existing, "rowid = NEW.rowid"])
    when = f"BEFORE INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE {conditions})"  # noqa: S608 - names written here
    _trigger(f"{table}_no_replace", when, f"{table} has this row already")


def _trigger(name: str, when: str, message: str) -> None:
    op.execute(f"CREATE TRIGGER {name} {when} BEGIN SELECT RAISE(ABORT, '{message}'); END")
