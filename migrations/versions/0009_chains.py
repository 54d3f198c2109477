"""Transactions counted chain by chain and named by their effect; anchors that are confirmed.

Revision ID: 0009
Revises: 0008
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import context, op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

BIGINT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        _alter_transactions()
    else:
        _copy_transactions()
    op.create_index(op.f("ix_chain_transaction_chain_id_effect"), "chain_transaction", ["chain_id", "effect"])
    op.create_index(
        op.f("ix_chain_transaction_chain_id_block_number"), "chain_transaction", ["chain_id", "block_number"]
    )
    op.create_table(
        "view_anchor_confirmation",
        sa.Column("tenant", sa.String(length=120), nullable=False),
        sa.Column("statement_id", sa.String(length=120), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("seq", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "statement_id", name=op.f("pk_view_anchor_confirmation")),
    )
    if op.get_bind().dialect.name == "postgresql":
        _rights()


def downgrade() -> None:
    raise RuntimeError("the log only goes forward; restore a backup to go back")


def _alter_transactions() -> None:
    op.add_column("chain_transaction", sa.Column("effect", sa.String(length=200), nullable=True))
    op.add_column("chain_transaction", sa.Column("failed", sa.Boolean(), nullable=False, server_default=sa.false()))
    # What was stored before is the only one of its effect.
    op.execute("UPDATE chain_transaction SET effect = tx_hash")
    op.alter_column("chain_transaction", "effect", nullable=False)
    op.alter_column("chain_transaction", "failed", server_default=None)
    op.alter_column("chain_transaction", "block_timestamp_s", nullable=True)
    op.drop_constraint("pk_chain_transaction", "chain_transaction", type_="primary")
    op.create_primary_key(op.f("pk_chain_transaction"), "chain_transaction", ["chain_id", "ordinal"])


def _copy_transactions() -> None:
    """SQLite cannot change the key of a table."""
    op.rename_table("chain_transaction", "chain_transaction_before")
    op.create_table(
        "chain_transaction",
        sa.Column("ordinal", BIGINT, nullable=False),
        sa.Column("chain_id", sa.String(length=78), nullable=False),
        sa.Column("sender", sa.String(length=42), nullable=False),
        sa.Column("nonce", BIGINT, nullable=False),
        sa.Column("purpose", sa.String(length=200), nullable=False),
        sa.Column("effect", sa.String(length=200), nullable=False),
        sa.Column("tx_hash", sa.String(length=66), nullable=False),
        sa.Column("raw", sa.LargeBinary(), nullable=False),
        sa.Column("block_timestamp_s", BIGINT, nullable=True),
        sa.Column("block_number", BIGINT, nullable=True),
        sa.Column("block_hash", sa.String(length=66), nullable=True),
        sa.Column("failed", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("chain_id", "ordinal", name=op.f("pk_chain_transaction")),
        sa.UniqueConstraint("chain_id", "sender", "nonce", name=op.f("uq_chain_transaction_chain_id_sender_nonce")),
        sa.UniqueConstraint("tx_hash", name=op.f("uq_chain_transaction_tx_hash")),
    )
    op.execute(
        "INSERT INTO chain_transaction (ordinal, chain_id, sender, nonce, purpose, effect, tx_hash, raw, "
        "block_timestamp_s, block_number, block_hash, failed) SELECT ordinal, chain_id, sender, nonce, purpose, "
        "tx_hash, tx_hash, raw, block_timestamp_s, block_number, block_hash, 0 FROM chain_transaction_before"
    )
    op.drop_table("chain_transaction_before")


def _rights() -> None:
    """As the other views: the application reads, the sequencer writes."""
    table, quote = "view_anchor_confirmation", op.get_bind().dialect.identifier_preparer.quote_identifier
    configured: Any = context.config.attributes.get("role_prefix")
    prefix = str(configured or op.get_bind().scalar(sa.text("SELECT current_database()")))
    owner, app, sequencer = (quote(f"{prefix}_{name}") for name in ("owner", "app", "sequencer"))
    op.execute(f"REVOKE ALL ON {table} FROM PUBLIC")
    op.execute(f"GRANT SELECT ON {table} TO {app}, {sequencer}")
    op.execute(f"GRANT INSERT, UPDATE, DELETE ON {table} TO {sequencer}")
    op.execute(f"SELECT wall_tenants('{table}')")
    op.execute(f"ALTER TABLE {table} OWNER TO {owner}")
