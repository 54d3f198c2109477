"""PostgreSQL: the queue says of what type its events are, so that the sequencer reads only those that views show.

``append_events`` is that of 0003 but for the type in the queue row. Rows from before have none; the sequencer looks at
their events as it did.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

APPEND = """
CREATE OR REPLACE FUNCTION append_events(
    p_tenant text, p_stream text, p_first bigint, p_key text, p_digest bytea, p_recorded_at_ns bigint,
    p_ids text[], p_types text[], p_schemas int[], p_classes text[], p_occurred_at_ns bigint[],
    p_salts bytea[], p_payloads bytea[], p_leaf_hashes bytea[],
    p_kept_salts bytea[] DEFAULT NULL, p_kept_payloads bytea[] DEFAULT NULL
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_count int := cardinality(p_ids);
BEGIN
    IF p_key IS NOT NULL THEN
        -- Waits for a transaction that holds the same key, and sees its row once it has committed.
        INSERT INTO append_request (tenant, idempotency_key, digest, stream, first_version, events)
        VALUES (p_tenant, p_key, p_digest, p_stream, p_first, v_count) ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            RETURN 'known';
        END IF;
    END IF;
    IF p_first = 0 THEN
        INSERT INTO stream_head (tenant, stream, version) VALUES (p_tenant, p_stream, v_count - 1)
        ON CONFLICT DO NOTHING;
    ELSE
        UPDATE stream_head SET version = p_first + v_count - 1
        WHERE tenant = p_tenant AND stream = p_stream AND version = p_first - 1;
    END IF;
    IF NOT FOUND THEN
        IF p_key IS NOT NULL THEN
            -- The key must stay free: leave by an error, which takes its row back.
            RAISE EXCEPTION 'another version' USING ERRCODE = 'SL001';
        END IF;
        RETURN 'conflict';
    END IF;
    WITH added AS (
        INSERT INTO event (id, tenant, stream, version, type, schema_version, payload_class, occurred_at_ns,
                           recorded_at_ns, salt, payload)
        SELECT id, p_tenant, p_stream, p_first + place - 1, type, schema, class, occurred_at_ns,
               p_recorded_at_ns, salt, payload
        FROM unnest(p_ids, p_types, p_schemas, p_classes, p_occurred_at_ns, p_salts, p_payloads) WITH ORDINALITY
             AS new(id, type, schema, class, occurred_at_ns, salt, payload, place)
    )
    INSERT INTO inbox (event_id, leaf_hash, type)
    SELECT id, leaf_hash, type FROM unnest(p_ids, p_leaf_hashes, p_types) WITH ORDINALITY
        AS new(id, leaf_hash, type, place)
    ORDER BY place;
    IF p_kept_salts IS NOT NULL THEN
        INSERT INTO event_payload (event_id, salt, payload)
        SELECT id, salt, payload FROM unnest(p_ids, p_kept_salts, p_kept_payloads) AS kept(id, salt, payload)
        WHERE salt IS NOT NULL;
    END IF;
    RETURN 'appended';
END $$
"""


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    op.add_column("inbox", sa.Column("type", sa.String(length=80), nullable=True))
    op.execute(sa.text(APPEND.replace(":", r"\:")))


def downgrade() -> None:
    raise RuntimeError("the log only goes forward; restore a backup to go back")
