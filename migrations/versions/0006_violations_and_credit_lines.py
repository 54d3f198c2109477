"""Read models of violations and credit lines.

Nothing is filled here: no event of the types they show can be in a log of an earlier schema.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

BIGINT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

OWN_TENANT = "USING (coalesce(current_setting('sla_ledger.tenant', true), '') IN ('', tenant))"
"""Without the setting there is no wall: sequencer, checks and workers are about all tenants."""


def upgrade() -> None:
    op.create_table(
        "view_violation",
        sa.Column("tenant", sa.String(length=120), nullable=False),
        _text_key("violation_id", 120),
        sa.Column("sla_id", sa.String(length=66), nullable=False),
        sa.Column("objective", sa.String(length=40), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("start_ns", BIGINT, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("seq", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "violation_id", name=op.f("pk_view_violation")),
    )
    op.create_table(
        "view_credit_line",
        sa.Column("tenant", sa.String(length=120), nullable=False),
        _text_key("line_id", 140),
        sa.Column("statement_id", sa.String(length=120), nullable=False),
        sa.Column("sla_id", sa.String(length=66), nullable=False),
        sa.Column("violation_id", sa.String(length=120), nullable=True),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column("start_ns", BIGINT, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("seq", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "line_id", name=op.f("pk_view_credit_line")),
    )
    for table, key in (("view_violation", "violation_id"), ("view_credit_line", "line_id")):
        _index(table, "start_ns", key)
        _index(table, "sla_id", "start_ns", key)
    _index("view_credit_line", "statement_id", "start_ns", "line_id")
    _index("view_credit_line", "violation_id")
    if op.get_bind().dialect.name == "postgresql":
        for table in ("view_violation", "view_credit_line"):
            _rights(table)


def downgrade() -> None:
    raise RuntimeError("the log only goes forward; restore a backup to go back")


def _text_key(name: str, length: int) -> sa.Column[str]:
    ordered = sa.String(length=length, collation="C")
    return sa.Column(name, sa.String(length=length).with_variant(ordered, "postgresql"), nullable=False)


def _index(table: str, *columns: str) -> None:
    names = ["tenant", *columns]
    op.create_index(op.f(f"ix_{table}_{'_'.join(names)}"), table, names, unique=False)


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
