"""Work is handed out with a token, so that who comes too late changes nothing, and names who has it.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

BIGINT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
BEFORE = "ordinal, event_id, stage, state, attempts, due_at_ns, error"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.add_column("outbox", sa.Column("token", sa.BigInteger(), server_default=sa.text("0"), nullable=False))
        op.alter_column("outbox", "token", server_default=None)
        op.add_column("outbox", sa.Column("holder", sa.String(length=80), nullable=True))
        return
    # SQLite cannot add a column without a default and write the table down as the code defines it.
    op.drop_index(op.f("ix_outbox_state_ordinal"), "outbox")
    op.rename_table("outbox", "outbox_before")
    op.create_table(
        "outbox",
        sa.Column("ordinal", BIGINT, nullable=False),
        sa.Column("event_id", sa.String(length=36), nullable=False),
        sa.Column("stage", sa.String(length=80), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at_ns", BIGINT, nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("token", BIGINT, nullable=False),
        sa.Column("holder", sa.String(length=80), nullable=True),
        sa.CheckConstraint("state IN ('pending', 'done', 'parked')", name=op.f("ck_outbox_state")),
        sa.ForeignKeyConstraint(["event_id"], ["event.id"], name=op.f("fk_outbox_event_id")),
        sa.PrimaryKeyConstraint("ordinal", name=op.f("pk_outbox")),
        sa.UniqueConstraint("event_id", "stage", name=op.f("uq_outbox_event_id_stage")),
    )
    op.create_index(op.f("ix_outbox_state_ordinal"), "outbox", ["state", "ordinal"], unique=False)
    # All names are constants of this file.
    op.execute(f"INSERT INTO outbox ({BEFORE}, token) SELECT {BEFORE}, 0 FROM outbox_before")  # noqa: S608
    op.drop_table("outbox_before")


def downgrade() -> None:
    raise RuntimeError("the log only goes forward; restore a backup to go back")
