"""The read model of published batch roots, and how proofs and statements are found by their place in the log.

Batches are over all tenants and what is published is everybody's, so the view has no wall between tenants.

Revision ID: 0016
Revises: 0015
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

BIGINT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TABLE = "view_root"


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("target", sa.String(length=78), nullable=False),
        sa.Column("number", BIGINT, nullable=False),
        sa.Column("from_seq", BIGINT, nullable=False),
        sa.Column("until_seq", BIGINT, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("seq", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "target", "number", name=op.f("pk_view_root")),
    )
    op.create_index(op.f("ix_view_root_until_seq"), TABLE, ["until_seq"], unique=False)
    for table in ("view_attestation", "view_statement"):
        op.create_index(op.f(f"ix_{table}_seq"), table, ["seq"], unique=False)
    if op.get_bind().dialect.name == "postgresql":
        _rights()


def downgrade() -> None:
    raise RuntimeError("the log only goes forward; restore a backup to go back")


def _rights() -> None:
    """As the other views: the application reads, the sequencer writes."""
    prefix = context.config.attributes.get("role_prefix") or op.get_bind().scalar(sa.text("SELECT current_database()"))
    quote = op.get_bind().dialect.identifier_preparer.quote_identifier
    owner, app, sequencer = (quote(f"{prefix}_{name}") for name in ("owner", "app", "sequencer"))
    op.execute(f"REVOKE ALL ON {TABLE} FROM PUBLIC")
    op.execute(f"GRANT SELECT ON {TABLE} TO {app}, {sequencer}")
    op.execute(f"GRANT INSERT, UPDATE, DELETE ON {TABLE} TO {sequencer}")
    op.execute(f"ALTER TABLE {TABLE} OWNER TO {owner}")
