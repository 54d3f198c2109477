"""How far each transaction has come on its chain, and who looks at the chains.

What was stored before is in a block, waits for one, or failed; the next look says how final its block is. The embedded
chain undoes nothing.

Revision ID: 0015
Revises: 0014
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

BIGINT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
STATES = "state IN ('submitted', 'included', 'safe', 'finalized', 'failed')"
CHECK = "ck_chain_transaction_state"


def upgrade() -> None:
    postgresql = op.get_bind().dialect.name == "postgresql"
    if postgresql:
        _alter_transactions()
    else:
        _copy_transactions()
    op.create_index(op.f("ix_chain_transaction_chain_id_state"), "chain_transaction", ["chain_id", "state"])
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
        sa.Column("holder", sa.String(length=80), nullable=True),
        sa.Column("lease_until_ns", BIGINT, nullable=False),
        sa.PrimaryKeyConstraint("chain_id", "contract", name=op.f("pk_chain_look")),
    )
    if postgresql:
        _rights()


def downgrade() -> None:
    raise RuntimeError("the log only goes forward; restore a backup to go back")


def _alter_transactions() -> None:
    op.add_column("chain_transaction", sa.Column("signed_at_s", BIGINT, nullable=True))
    op.add_column("chain_transaction", sa.Column("state", sa.String(length=10), nullable=True))
    op.execute(
        "UPDATE chain_transaction SET state = CASE WHEN failed THEN 'failed' WHEN block_number IS NULL THEN "
        "'submitted' WHEN chain_id = '131277322940537' THEN 'finalized' ELSE 'included' END"
    )
    op.alter_column("chain_transaction", "state", nullable=False)
    op.drop_column("chain_transaction", "failed")
    op.create_check_constraint(op.f(CHECK), "chain_transaction", STATES)


def _copy_transactions() -> None:
    """SQLite drops no column and adds no check."""
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
        sa.Column("signed_at_s", BIGINT, nullable=True),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.PrimaryKeyConstraint("chain_id", "ordinal", name=op.f("pk_chain_transaction")),
        sa.UniqueConstraint(
            "chain_id",
            "sender",
            "nonce",
            "attempt",
            name=op.f("uq_chain_transaction_chain_id_sender_nonce_attempt"),
        ),
        sa.UniqueConstraint("tx_hash", name=op.f("uq_chain_transaction_tx_hash")),
        sa.CheckConstraint(STATES, name=op.f(CHECK)),
    )
    op.execute(
        "INSERT INTO chain_transaction (ordinal, chain_id, sender, nonce, attempt, purpose, effect, tx_hash, raw, "
        "signed_at_block, block_timestamp_s, block_number, block_hash, state) SELECT ordinal, chain_id, sender, nonce, "
        "attempt, purpose, effect, tx_hash, raw, signed_at_block, block_timestamp_s, block_number, block_hash, CASE "
        "WHEN failed THEN 'failed' WHEN block_number IS NULL THEN 'submitted' WHEN chain_id = '131277322940537' THEN "
        "'finalized' ELSE 'included' END FROM chain_transaction_before"
    )
    op.drop_table("chain_transaction_before")
    for name in ("effect", "block_number"):
        op.create_index(op.f(f"ix_chain_transaction_chain_id_{name}"), "chain_transaction", ["chain_id", name])


def _rights() -> None:
    """As followers of the log: the application's."""
    prefix = context.config.attributes.get("role_prefix") or op.get_bind().scalar(sa.text("SELECT current_database()"))
    quote = op.get_bind().dialect.identifier_preparer.quote_identifier
    owner, app, sequencer = (quote(f"{prefix}_{name}") for name in ("owner", "app", "sequencer"))
    op.execute("REVOKE ALL ON chain_look FROM PUBLIC")
    op.execute(f"GRANT SELECT ON chain_look TO {app}, {sequencer}")
    op.execute(f"GRANT INSERT, UPDATE ON chain_look TO {app}")
    op.execute(f"ALTER TABLE chain_look OWNER TO {owner}")
