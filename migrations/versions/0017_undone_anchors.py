"""Anchors that a deep reorganisation may undo are found by their chain, and others' doings at a registry are counted.

Every anchor that was confirmed before is looked at until its block is final.

Revision ID: 0017
Revises: 0016
"""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

BIGINT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
VIEW = "view_anchor_confirmation"


def upgrade() -> None:
    connection = op.get_bind()
    found = connection.execute(sa.text("SELECT tenant, statement_id, body, seq FROM view_anchor_confirmation")).all()
    rows = [
        {
            "tenant": tenant,
            "statement_id": statement_id,
            "standing": "confirmed",
            "chain_id": json.loads(bytes(body))["chain_id"],
            "body": bytes(body),
            "seq": seq,
        }
        for tenant, statement_id, body, seq in found
    ]
    if connection.dialect.name == "postgresql":
        _alter(rows)
    else:
        _make_anew(rows)
    op.create_index(
        op.f("ix_view_anchor_confirmation_tenant_standing_chain_id_statement_id"),
        VIEW,
        ["tenant", "standing", "chain_id", "statement_id"],
        unique=False,
    )


def downgrade() -> None:
    raise RuntimeError("the log only goes forward; restore a backup to go back")


def _alter(rows: list[dict[str, object]]) -> None:
    for name, length in (("standing", 10), ("chain_id", 78)):
        op.add_column(VIEW, sa.Column(name, sa.String(length=length), nullable=True))
    table = sa.table(VIEW, *(sa.column(name) for name in ("tenant", "statement_id", "standing", "chain_id")))
    for row in rows:
        op.execute(
            sa.update(table)
            .where(table.c.tenant == row["tenant"], table.c.statement_id == row["statement_id"])
            .values(standing=row["standing"], chain_id=row["chain_id"])
        )
    for name in ("standing", "chain_id"):
        op.alter_column(VIEW, name, nullable=False)
    op.add_column("chain_look", sa.Column("of_others", BIGINT, nullable=False, server_default="0"))
    op.alter_column("chain_look", "of_others", server_default=None)


def _make_anew(rows: list[dict[str, object]]) -> None:
    """SQLite adds no column without a default; nobody has looked at a chain yet."""
    op.drop_table(VIEW)
    op.create_table(
        VIEW,
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("statement_id", sa.String(length=120), nullable=False),
        sa.Column("standing", sa.String(length=10), nullable=False),
        sa.Column("chain_id", sa.String(length=78), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("seq", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "statement_id", name=op.f("pk_view_anchor_confirmation")),
    )
    if rows:
        op.bulk_insert(sa.table(VIEW, *(sa.column(name) for name in rows[0])), rows)
    op.drop_table("chain_look")
    op.create_table(
        "chain_look",
        sa.Column("chain_id", sa.String(length=78), nullable=False),
        sa.Column("contract", sa.String(length=42), nullable=False),
        sa.Column("next_block", BIGINT, nullable=False),
        sa.Column("latest", BIGINT, nullable=True),
        sa.Column("safe", BIGINT, nullable=True),
        sa.Column("finalized", BIGINT, nullable=True),
        sa.Column("looked_at_ns", BIGINT, nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("unread_from", BIGINT, nullable=True),
        sa.Column("unread_to", BIGINT, nullable=True),
        sa.Column("of_others", BIGINT, nullable=False),
        sa.Column("holder", sa.String(length=80), nullable=True),
        sa.Column("lease_until_ns", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("chain_id", "contract", name=op.f("pk_chain_look")),
    )
