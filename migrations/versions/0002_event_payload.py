"""Payloads that can be erased, apart from the immutable rows of their events.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

RECORDED = """EXISTS (
    SELECT 1 FROM event AS erased JOIN event AS record
    ON record.tenant = erased.tenant AND record.stream = 'erasure/' || erased.id AND record.version = 0
    WHERE erased.id = OLD.event_id AND record.type = 'payload_erased')"""
"""The condition under which a payload may go: an event of the log says so."""


def upgrade() -> None:
    op.create_table(
        "event_payload",
        sa.Column("event_id", sa.String(length=36), nullable=False),
        sa.Column("salt", sa.LargeBinary(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("length(salt) = 32", name=op.f("ck_event_payload_salt")),
        sa.ForeignKeyConstraint(["event_id"], ["event.id"], name=op.f("fk_event_payload_event_id")),
        sa.PrimaryKeyConstraint("event_id", name=op.f("pk_event_payload")),
    )
    if op.get_bind().dialect.name == "sqlite":
        _sqlite_guards()


def downgrade() -> None:
    raise RuntimeError("the log only goes forward; restore a backup to go back")


def _sqlite_guards() -> None:
    _trigger("no_update", "BEFORE UPDATE ON event_payload", "event_payload rows never change")
    _trigger(
        "no_delete", f"BEFORE DELETE ON event_payload WHEN NOT {RECORDED}", "no event of the log records this erasure"
    )
    replaces = "event_id = NEW.event_id OR rowid = NEW.rowid"
    _trigger(
        "no_replace",
        f"BEFORE INSERT ON event_payload WHEN EXISTS (SELECT 1 FROM event_payload WHERE {replaces})",  # noqa: S608
        "event_payload has this row already",
    )
    erasable = "EXISTS (SELECT 1 FROM event WHERE id = NEW.event_id AND payload_class = 'erasable')"
    _trigger(
        "only_erasable",
        f"BEFORE INSERT ON event_payload WHEN NOT {erasable}",
        "an event of this payload class keeps its payload",
    )


def _trigger(name: str, when: str, message: str) -> None:
    op.execute(f"CREATE TRIGGER event_payload_{name} {when} BEGIN SELECT RAISE(ABORT, '{message}'); END")
