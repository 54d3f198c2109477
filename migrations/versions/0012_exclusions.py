"""The read model of exclusions of time.

Nothing is filled here: no event of the types it shows can be in a log of an earlier schema.

Revision ID: 0012
Revises: 0011
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

BIGINT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

OWN_TENANT = "USING (coalesce(current_setting('sla_ledger.tenant', true), '') IN ('', tenant))"
"""Without the setting there is no wall: sequencer, checks and workers are about all tenants."""


def upgrade() -> None:
    op.create_table(
        "view_exclusion",
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("sla_id", sa.String(length=66), nullable=False),
        sa.Column("exclusion_id", sa.String(length=40), nullable=False),
        sa.Column("start_ns", BIGINT, nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("seq", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "sla_id", "exclusion_id", name=op.f("pk_view_exclusion")),
    )
    if op.get_bind().dialect.name == "postgresql":
        _rights("view_exclusion")


def downgrade() -> None:
    raise RuntimeError("the log only goes forward; restore a backup to go back")


def _rights(table: str) -> None:
    """Those of the views of migration 0003: everybody reads, the sequencer writes; a tenant sees its own rows."""
    prefix = context.config.attributes.get("role_prefix") or op.get_bind().scalar(sa.text("SELECT current_database()"))
    quote = op.get_bind().dialect.identifier_preparer.quote_identifier
    owner, app, sequencer = (quote(f"{prefix}_{name}") for name in ("owner", "app", "sequencer"))
    op.execute(f"REVOKE ALL ON {table} FROM PUBLIC")
    op.execute(f"GRANT SELECT ON {table} TO {app}, {sequencer}")
    op.execute(f"GRANT INSERT, UPDATE, DELETE ON {table} TO {sequencer}")
    op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    op.execute(sa.text(f"CREATE POLICY own_tenant ON {table} {OWN_TENANT}".replace(":", r"\:")))
    op.execute(f"ALTER TABLE {table} OWNER TO {owner}")
