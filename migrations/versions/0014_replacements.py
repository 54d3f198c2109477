"""Transactions that take the place of a stuck one: several attempts at one nonce, and the block each was signed at.

What was stored before is the first attempt of its nonce. The block it was signed at is not known.

Revision ID: 0014
Revises: 0013
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

BIGINT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
UNIQUE = "uq_chain_transaction_chain_id_sender_nonce"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.add_column("chain_transaction", sa.Column("attempt", sa.Integer(), nullable=False, server_default="0"))
        op.alter_column("chain_transaction", "attempt", server_default=None)
        op.add_column("chain_transaction", sa.Column("signed_at_block", BIGINT, nullable=True))
        op.drop_constraint(UNIQUE, "chain_transaction", type_="unique")
        op.create_unique_constraint(
            op.f(f"{UNIQUE}_attempt"), "chain_transaction", ["chain_id", "sender", "nonce", "attempt"]
        )
    else:
        _copy_transactions()


def downgrade() -> None:
    raise RuntimeError("the log only goes forward; restore a backup to go back")


def _copy_transactions() -> None:
    """SQLite cannot change what is unique in a table."""
    op.rename_table("chain_transaction", "chain_transaction_before")
    op.create_table(
        "chain_transaction",
        sa.Column("ordinal", BIGINT, nullable=False),
        sa.Column("chain_id", sa.String(length=78), nullable=False),
        sa.Column("sender", sa.String(length=42), nullable=False),
        sa.Column("nonce", BIGINT, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("purpose", sa.String(length=200), nullable=False),
        sa.Column("effect", sa.String(length=200), nullable=False),
        sa.Column("tx_hash", sa.String(length=66), nullable=False),
        sa.Column("raw", sa.LargeBinary(), nullable=False),
        sa.Column("signed_at_block", BIGINT, nullable=True),
        sa.Column("block_timestamp_s", BIGINT, nullable=True),
        sa.Column("block_number", BIGINT, nullable=True),
        sa.Column("block_hash", sa.String(length=66), nullable=True),
        sa.Column("failed", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("chain_id", "ordinal", name=op.f("pk_chain_transaction")),
        sa.UniqueConstraint("chain_id", "sender", "nonce", "attempt", name=op.f(f"{UNIQUE}_attempt")),
        sa.UniqueConstraint("tx_hash", name=op.f("uq_chain_transaction_tx_hash")),
    )
    op.execute(
        "INSERT INTO chain_transaction (ordinal, chain_id, sender, nonce, attempt, purpose, effect, tx_hash, raw, "
        "block_timestamp_s, block_number, block_hash, failed) SELECT ordinal, chain_id, sender, nonce, 0, purpose, "
        "effect, tx_hash, raw, block_timestamp_s, block_number, block_hash, failed FROM chain_transaction_before"
    )
    op.drop_table("chain_transaction_before")
    for name in ("effect", "block_number"):
        op.create_index(op.f(f"ix_chain_transaction_chain_id_{name}"), "chain_transaction", ["chain_id", name])
