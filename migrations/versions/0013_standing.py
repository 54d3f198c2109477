"""The read model of how statements stand: which were replaced, which are final, and when a draft is due to be.

It is filled from the statements that are there: none of an earlier schema has a later version or is final.

Revision ID: 0013
Revises: 0012
"""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import context, op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

BIGINT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
ACCEPTED_NS = 30 * 86_400 * 10**9

OWN_TENANT = "USING (coalesce(current_setting('sla_ledger.tenant', true), '') IN ('', tenant))"
"""Without the setting there is no wall: sequencer, checks and workers are about all tenants."""


def upgrade() -> None:
    name = sa.String(length=120)
    op.create_table(
        "view_standing",
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column(
            "statement_id", name.with_variant(sa.String(length=120, collation="C"), "postgresql"), nullable=False
        ),
        sa.Column("sla_id", sa.String(length=66), nullable=False),
        sa.Column("start_ns", BIGINT, nullable=False),
        sa.Column("standing", sa.String(length=10), nullable=False),
        sa.Column("credited", sa.Integer(), nullable=False),
        sa.Column("due_ns", BIGINT, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("seq", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "statement_id", name=op.f("pk_view_standing")),
    )
    for names in (
        ("tenant", "start_ns", "statement_id"),
        ("tenant", "sla_id", "start_ns", "statement_id"),
        ("tenant", "standing", "due_ns", "statement_id"),
    ):
        op.create_index(op.f(f"ix_view_standing_{'_'.join(names)}"), "view_standing", list(names), unique=False)
    _fill()
    if op.get_bind().dialect.name == "postgresql":
        _rights("view_standing")


def downgrade() -> None:
    raise RuntimeError("the log only goes forward; restore a backup to go back")


def _fill() -> None:
    connection = op.get_bind()
    found = connection.execute(sa.text("SELECT tenant, statement_id, sla_id, start_ns, body, seq FROM view_statement"))
    rows = []
    for tenant, statement_id, sla_id, start_ns, body, seq in found.all():
        said = json.loads(bytes(body))
        rows.append(
            {
                "tenant": tenant,
                "statement_id": statement_id,
                "sla_id": sla_id,
                "start_ns": start_ns,
                "standing": "draft",
                "credited": int(said["credit"] is not None),
                "due_ns": int(said["end_ns"]) + ACCEPTED_NS,
                "body": b"{}",
                "seq": seq,
            }
        )
    if rows:
        names = list(rows[0])
        into = sa.table("view_standing", *(sa.column(each) for each in names))
        connection.execute(sa.insert(into), rows)


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
