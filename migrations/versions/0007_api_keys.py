"""API keys, and on PostgreSQL a second wall between tenants.

Keys are rows that are added, revoked once, and never otherwise changed. The wall: a transaction that names its tenant
in the setting ``sla_ledger.tenant`` meets no row of another's, whatever its statements forget to say. Later migrations
call ``wall_tenants('table')`` for tables of their own.

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

BIGINT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REASON = "a key is revoked once and never otherwise changed"
WALLED = (
    "view_agreement",
    "view_window",
    "view_statement",
    "view_credit",
    "view_attestation",
    "view_anchor",
    "raw_batch",
    "identity_scope",
    "secret",
)
"""Tables whose rows are one tenant's alone. Those of the log are not among them: its headers are everybody's."""

WALL = """
CREATE FUNCTION wall_tenants(p_table regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', p_table);
    EXECUTE format($policy$
        CREATE POLICY own_tenant ON %s
        USING (coalesce(current_setting('sla_ledger.tenant', true), '') IN ('', tenant))$policy$, p_table);
END $$
"""
"""Without the setting there is no wall: sequencer, checks and workers are about all tenants."""

FIXED = ("key_id", "tenant", "role", "label", "sla_ids", "secret_digest", "created_at_ns", "expires_at_ns")


def upgrade() -> None:
    op.create_table(
        "api_key",
        sa.Column("key_id", sa.String(length=16), nullable=False),
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("role", sa.String(length=40), nullable=False),
        sa.Column("label", sa.String(length=120), nullable=False),
        sa.Column("sla_ids", sa.String(), nullable=False),
        sa.Column("secret_digest", sa.LargeBinary(), nullable=False),
        sa.Column("created_at_ns", BIGINT, nullable=False),
        sa.Column("expires_at_ns", BIGINT, nullable=True),
        sa.Column("revoked_at_ns", BIGINT, nullable=True),
        sa.CheckConstraint("length(secret_digest) = 32", name=op.f("ck_api_key_secret_digest")),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_api_key")),
    )
    if op.get_bind().dialect.name == "postgresql":
        _postgresql_guards()
        _rights()
        _walls()
    else:
        _sqlite_guards()


def downgrade() -> None:
    raise RuntimeError("the log only goes forward; restore a backup to go back")


def _sqlite_guards() -> None:
    new, old = (", ".join(f"{row}.{name}" for name in FIXED) for row in ("NEW", "OLD"))
    changes = f"OLD.revoked_at_ns IS NOT NULL OR ({new}) IS NOT ({old})"
    _trigger("once", f"BEFORE UPDATE ON api_key WHEN {changes}", REASON)
    _trigger("no_delete", "BEFORE DELETE ON api_key", REASON)
    taken = "EXISTS (SELECT 1 FROM api_key WHERE key_id = NEW.key_id OR rowid = NEW.rowid)"
    _trigger("no_replace", f"BEFORE INSERT ON api_key WHEN {taken}", "api_key has this row already")


def _trigger(name: str, when: str, message: str) -> None:
    op.execute(f"CREATE TRIGGER api_key_{name} {when} BEGIN SELECT RAISE(ABORT, '{message}'); END")


def _postgresql_guards() -> None:
    new, old = (", ".join(f"{row}.{name}" for name in FIXED) for row in ("NEW", "OLD"))
    changes = f"OLD.revoked_at_ns IS NOT NULL OR ({new}) IS DISTINCT FROM ({old})"
    for name, when in (
        ("no_update", f"BEFORE UPDATE ON api_key FOR EACH ROW WHEN ({changes})"),
        ("no_delete", "BEFORE DELETE ON api_key FOR EACH ROW"),
        ("no_truncate", "BEFORE TRUNCATE ON api_key"),
    ):
        op.execute(f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION guard_refuse('{REASON}')")
        op.execute(f"ALTER TABLE api_key ENABLE ALWAYS TRIGGER {name}")


def _walls() -> None:
    op.execute(sa.text(WALL.replace(":", r"\:")))
    for table in WALLED:
        op.execute(f"SELECT wall_tenants('{table}')")


def _rights() -> None:
    """The sequencer has no business here. The owner is set last: it is not the migrating user."""
    bind = op.get_bind()
    prefix = context.config.attributes.get("role_prefix") or bind.scalar(sa.text("SELECT current_database()"))
    owner, app = (bind.dialect.identifier_preparer.quote_identifier(f"{prefix}_{name}") for name in ("owner", "app"))
    op.execute("REVOKE ALL ON api_key FROM PUBLIC")
    op.execute(f"GRANT SELECT, INSERT ON api_key TO {app}")
    op.execute(f"GRANT UPDATE (revoked_at_ns) ON api_key TO {app}")
    op.execute(f"ALTER TABLE api_key OWNER TO {owner}")
