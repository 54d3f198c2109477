"""Views of telemetry: evidence by service and time, and the last batch of each source.

Revision ID: 0008
Revises: 0007
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import context, op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

BIGINT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
VIEWS = ("view_telemetry", "view_breaker", "view_telemetry_source")
INDEXED = VIEWS[:2]


def upgrade() -> None:
    point = sa.Column("point", sa.Integer(), nullable=False)
    source = sa.Column("source", sa.String(length=120), nullable=False)
    _view("view_telemetry", [_event_id(), point], _evidence())
    _view("view_breaker", [_event_id()], _evidence())
    _view("view_telemetry_source", [source], [])
    for name in INDEXED:
        op.create_index(op.f(f"ix_{name}_tenant_service_from_ns"), name, ["tenant", "service", "from_ns"])
    if op.get_bind().dialect.name == "postgresql":
        _roles()


def downgrade() -> None:
    raise RuntimeError("the log only goes forward; restore a backup to go back")


def _event_id() -> sa.Column[str]:
    return sa.Column("event_id", sa.String(length=36), nullable=False)


def _evidence() -> list[sa.Column[Any]]:
    return [
        sa.Column("from_ns", BIGINT, nullable=False),
        sa.Column("to_ns", BIGINT, nullable=False),
        sa.Column("severity", sa.Integer(), nullable=False),
        sa.Column("series", sa.String(length=420), nullable=False),
    ]


def _view(name: str, key: list[sa.Column[Any]], others: list[sa.Column[Any]]) -> None:
    op.create_table(
        name,
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("service", sa.String(length=120), nullable=False),
        *key,
        *others,
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("seq", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "service", *(column.name for column in key), name=op.f(f"pk_{name}")),
    )


def _roles() -> None:
    """The rights of 0003: everybody reads, the sequencer writes views."""
    owner, app, sequencer = (_role(name) for name in ("owner", "app", "sequencer"))
    for name in VIEWS:
        op.execute(f"REVOKE ALL ON {name} FROM PUBLIC")
        op.execute(f"GRANT SELECT ON {name} TO {app}, {sequencer}")
        op.execute(f"GRANT INSERT, UPDATE, DELETE ON {name} TO {sequencer}")
        op.execute(f"SELECT wall_tenants('{name}')")
        op.execute(f"ALTER TABLE {name} OWNER TO {owner}")


def _role(name: str) -> str:
    bind = op.get_bind()
    prefix = context.config.attributes.get("role_prefix") or bind.scalar(sa.text("SELECT current_database()"))
    return str(bind.dialect.identifier_preparer.quote_identifier(f"{prefix}_{name}"))
