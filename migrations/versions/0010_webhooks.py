"""Webhooks: the read model of endpoints, how far followers of the log have come, and the log of deliveries.

Nothing is filled here: no event that configures an endpoint can be in a log of an earlier schema.

Revision ID: 0010
Revises: 0009
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

BIGINT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "view_webhook",
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("endpoint_id", sa.String(length=27), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("seq", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "endpoint_id", name=op.f("pk_view_webhook")),
    )
    op.create_table(
        "follower",
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("next_seq", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_follower")),
    )
    op.create_table(
        "webhook_attempt",
        sa.Column("ordinal", BIGINT, nullable=False),
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("endpoint_id", sa.String(length=27), nullable=False),
        sa.Column("event_id", sa.String(length=36), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("at_ns", BIGINT, nullable=False),
        sa.Column("duration_ms", sa.Integer(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("retry_at_ns", BIGINT, nullable=True),
        sa.PrimaryKeyConstraint("ordinal", name=op.f("pk_webhook_attempt")),
        sa.UniqueConstraint(
            "tenant",
            "endpoint_id",
            "event_id",
            "attempt",
            name=op.f("uq_webhook_attempt_tenant_endpoint_id_event_id_attempt"),
        ),
    )
    op.create_index(
        op.f("ix_webhook_attempt_tenant_endpoint_id_ordinal"),
        "webhook_attempt",
        ["tenant", "endpoint_id", "ordinal"],
        unique=False,
    )
    if op.get_bind().dialect.name == "postgresql":
        _rights()


def downgrade() -> None:
    raise RuntimeError("the log only goes forward; restore a backup to go back")


def _rights() -> None:
    """The view is the sequencer's to write; where followers stand and what was delivered is the app's."""
    prefix = context.config.attributes.get("role_prefix") or op.get_bind().scalar(sa.text("SELECT current_database()"))
    quote = op.get_bind().dialect.identifier_preparer.quote_identifier
    owner, app, sequencer = (quote(f"{prefix}_{name}") for name in ("owner", "app", "sequencer"))
    for table in ("view_webhook", "follower", "webhook_attempt"):
        op.execute(f"REVOKE ALL ON {table} FROM PUBLIC")
        op.execute(f"GRANT SELECT ON {table} TO {app}, {sequencer}")
    op.execute(f"GRANT INSERT, UPDATE, DELETE ON view_webhook TO {sequencer}")
    op.execute(f"GRANT INSERT, UPDATE ON follower TO {app}")
    op.execute(f"GRANT INSERT ON webhook_attempt TO {app}")
    op.execute(f"GRANT USAGE ON SEQUENCE webhook_attempt_ordinal_seq TO {app}")
    for table in ("view_webhook", "webhook_attempt"):
        op.execute(f"SELECT wall_tenants('{table}')")
    for table in ("view_webhook", "follower", "webhook_attempt"):
        op.execute(f"ALTER TABLE {table} OWNER TO {owner}")
