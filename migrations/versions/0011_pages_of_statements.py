"""Lists of statements and credits are read in pages: indexes in their order, ids by code points in every database.

Revision ID: 0011
Revises: 0010
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("view_statement", "view_credit"):
        if op.get_bind().dialect.name == "postgresql":
            ordered = sa.String(length=120, collation="C")
            op.alter_column(table, "statement_id", type_=ordered, existing_nullable=False)
        # The second of those below begins with the same columns.
        op.drop_index(op.f(f"ix_{table}_tenant_sla_id"), table_name=table)
        for names in (("tenant", "start_ns", "statement_id"), ("tenant", "sla_id", "start_ns", "statement_id")):
            op.create_index(op.f(f"ix_{table}_{'_'.join(names)}"), table, list(names), unique=False)


def downgrade() -> None:
    raise RuntimeError("the log only goes forward; restore a backup to go back")
