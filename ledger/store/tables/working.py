"""Rows that work with: raw facts, the outbox, transactions of the chain, followers, secrets and keys."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
)

from ledger.store.tables.base import BIGINT, metadata

raw_batch = Table(
    "raw_batch",
    metadata,
    Column("tenant", String(120), nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("size", BIGINT, nullable=False),
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
    Column("ordinal", BIGINT, primary_key=True),
    Column("event_id", String(36), ForeignKey("event.id"), nullable=False),
    Column("stage", String(80), nullable=False),
    Column("state", String(10), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_at_ns", BIGINT, nullable=False),
    Column("error", String, nullable=True),
    Column("token", BIGINT, nullable=False),
    Column("holder", String(80), nullable=True),
    UniqueConstraint("event_id", "stage"),
    CheckConstraint("state IN ('pending', 'done', 'parked')", "state"),
    Index(None, "state", "ordinal"),
)

chain_transaction = Table(
    "chain_transaction",
    metadata,
    Column("ordinal", BIGINT, nullable=False),
    # An EVM chain id has up to 256 bits.
    Column("chain_id", String(78), nullable=False),
    Column("sender", String(42), nullable=False),
    Column("nonce", BIGINT, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("purpose", String(200), nullable=False),
    Column("effect", String(200), nullable=False),
    Column("tx_hash", String(66), nullable=False, unique=True),
    Column("raw", LargeBinary, nullable=False),
    Column("signed_at_block", BIGINT, nullable=True),
    Column("block_timestamp_s", BIGINT, nullable=True),
    Column("block_number", BIGINT, nullable=True),
    Column("block_hash", String(66), nullable=True),
    Column("signed_at_s", BIGINT, nullable=True),
    Column("state", String(10), nullable=False),
    PrimaryKeyConstraint("chain_id", "ordinal"),
    UniqueConstraint("chain_id", "sender", "nonce", "attempt"),
    Index(None, "chain_id", "effect"),
    Index(None, "chain_id", "block_number"),
    Index(None, "chain_id", "state"),
    CheckConstraint("state IN ('submitted', 'included', 'safe', 'finalized', 'failed')", "state"),
)

# Who looks at a contract's chain, until when, and what the last look found.
chain_look = Table(
    "chain_look",
    metadata,
    Column("chain_id", String(78), nullable=False),
    Column("contract", String(42), nullable=False),
    Column("next_block", BIGINT, nullable=False),
    Column("latest", BIGINT, nullable=True),
    Column("safe", BIGINT, nullable=True),
    Column("finalized", BIGINT, nullable=True),
    Column("looked_at_ns", BIGINT, nullable=False),
    Column("error", String, nullable=True),
    Column("unread_from", BIGINT, nullable=True),
    Column("unread_to", BIGINT, nullable=True),
    Column("of_others", BIGINT, nullable=False),
    Column("holder", String(80), nullable=True),
    Column("lease_until_ns", BIGINT, nullable=False),
    PrimaryKeyConstraint("chain_id", "contract"),
)

# How far a follower of the log has come: the next seq it has to look at.
follower = Table(
    "follower",
    metadata,
    Column("name", String(80), primary_key=True),
    Column("next_seq", BIGINT, nullable=False),
)

webhook_attempt = Table(
    "webhook_attempt",
    metadata,
    Column("ordinal", BIGINT, primary_key=True),
    Column("tenant", String(120), nullable=False),
    Column("endpoint_id", String(27), nullable=False),
    Column("event_id", String(36), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("at_ns", BIGINT, nullable=False),
    Column("duration_ms", Integer, nullable=False),
    Column("status", Integer, nullable=True),
    Column("error", String, nullable=True),
    Column("retry_at_ns", BIGINT, nullable=True),
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
    Column("created_at_ns", BIGINT, nullable=False),
    Column("expires_at_ns", BIGINT, nullable=True),
    Column("revoked_at_ns", BIGINT, nullable=True),
    CheckConstraint("length(secret_digest) = 32", "secret_digest"),
)
