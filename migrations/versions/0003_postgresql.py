"""PostgreSQL: the queue before the log, roles with least rights, and guards that refuse what would change the log.

On SQLite there is nothing to do: it sequences inside the append and has its guards since the first schema.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import context, op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

IMMUTABLE = ("event", "append_request", "leaf", "checkpoint")
"""Tables whose rows are never changed or removed."""

GROWING = {
    "tile": """(NEW.level, NEW.tile_index) IS DISTINCT FROM (OLD.level, OLD.tile_index)
        OR NEW.width <= OLD.width OR substr(NEW.data, 1, length(OLD.data)) IS DISTINCT FROM OLD.data""",
    "stream_head": """(NEW.tenant, NEW.stream) IS DISTINCT FROM (OLD.tenant, OLD.stream)
        OR NEW.version <= OLD.version""",
    "log_state": """NEW.id IS DISTINCT FROM OLD.id OR NEW.size <= OLD.size
        OR NEW.sequenced_at_ns < OLD.sequenced_at_ns""",
}
"""Tables whose rows only grow, each with the condition of a change which is no growth."""

VIEWS = ("view_agreement", "view_window", "view_statement", "view_credit", "view_attestation", "view_anchor")
WORKING = ("raw_batch", "identity_scope", "identity", "outbox", "chain_transaction", "secret")
LOG = (*IMMUTABLE, *GROWING, "event_payload", "inbox")
TABLES = (*LOG, *WORKING, *VIEWS, "alembic_version")

APP_INSERTS = ("event", "event_payload", "append_request", "inbox", "stream_head", "checkpoint", *WORKING)
# Of identity_scope no column is ever changed: the right is what locking a row needs.
APP_UPDATES = ("stream_head", "outbox", "chain_transaction", "identity_scope")

APPEND = """
CREATE FUNCTION append_events(
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
    INSERT INTO inbox (event_id, leaf_hash)
    SELECT id, leaf_hash FROM unnest(p_ids, p_leaf_hashes) WITH ORDINALITY AS new(id, leaf_hash, place)
    ORDER BY place;
    IF p_kept_salts IS NOT NULL THEN
        INSERT INTO event_payload (event_id, salt, payload)
        SELECT id, salt, payload FROM unnest(p_ids, p_kept_salts, p_kept_payloads) AS kept(id, salt, payload)
        WHERE salt IS NOT NULL;
    END IF;
    RETURN 'appended';
END $$
"""

APPEND_KEYED = """
CREATE FUNCTION append_events_once(
    p_tenant text, p_stream text, p_first bigint, p_key text, p_digest bytea, p_recorded_at_ns bigint,
    p_ids text[], p_types text[], p_schemas int[], p_classes text[], p_occurred_at_ns bigint[],
    p_salts bytea[], p_payloads bytea[], p_leaf_hashes bytea[],
    p_kept_salts bytea[] DEFAULT NULL, p_kept_payloads bytea[] DEFAULT NULL
) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN append_events(p_tenant, p_stream, p_first, p_key, p_digest, p_recorded_at_ns, p_ids, p_types, p_schemas,
                         p_classes, p_occurred_at_ns, p_salts, p_payloads, p_leaf_hashes, p_kept_salts,
                         p_kept_payloads);
EXCEPTION WHEN SQLSTATE 'SL001' THEN
    RETURN 'conflict';
END $$
"""

GUARD = """
CREATE FUNCTION guard_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: %', TG_OP, TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'restrict_violation';
END $$
"""

GUARD_ERASURE = """
CREATE FUNCTION guard_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM event AS erased JOIN event AS record
        ON record.tenant = erased.tenant AND record.stream = 'erasure/' || erased.id AND record.version = 0
        WHERE erased.id = OLD.event_id AND record.type = 'payload_erased'
    ) THEN
        RAISE EXCEPTION 'no event of the log records this erasure' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN OLD;
END $$
"""

GUARD_ERASABLE = """
CREATE FUNCTION guard_erasable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM event WHERE id = NEW.event_id AND payload_class = 'erasable') THEN
        RAISE EXCEPTION 'an event of this payload class keeps its payload' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$
"""

GUARD_INBOX = """
CREATE FUNCTION guard_inbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM gone WHERE NOT EXISTS (SELECT FROM leaf WHERE leaf.event_id = gone.event_id)) THEN
        RAISE EXCEPTION 'an event leaves the inbox only for the log' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END $$
"""

# A TRUNCATE trigger of a partitioned table does not fire when a partition is truncated by itself.
GUARD_TABLE = """
CREATE FUNCTION guard_table(p_table regclass, p_reason text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_part regclass;
BEGIN
    EXECUTE format('CREATE TRIGGER no_update BEFORE UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION guard_refuse(%L)',
                   p_table, p_reason);
    EXECUTE format('CREATE TRIGGER no_delete BEFORE DELETE ON %s FOR EACH ROW EXECUTE FUNCTION guard_refuse(%L)',
                   p_table, p_reason);
    FOR v_part IN SELECT relid FROM pg_partition_tree(p_table) UNION SELECT p_table LOOP
        EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON %s EXECUTE FUNCTION guard_refuse(%L)',
                       v_part, p_reason);
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER no_update', v_part);
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER no_delete', v_part);
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER no_truncate', v_part);
    END LOOP;
END $$
"""

IS_GUARDED = """
CREATE FUNCTION guard_covers(p_table oid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = p_table AND tgname = 'no_truncate')
$$
"""

# Rewriting is how ALTER TYPE ... USING changes every row without firing a single row trigger.
GUARD_REWRITE = """
CREATE FUNCTION guard_rewrite() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    IF guard_covers(pg_event_trigger_table_rewrite_oid()) THEN
        RAISE EXCEPTION '% would rewrite %: the log is append-only', TG_TAG,
            pg_event_trigger_table_rewrite_oid()::regclass USING ERRCODE = 'restrict_violation';
    END IF;
END $$
"""

GUARD_DDL = """
CREATE FUNCTION guard_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE
    v record;
BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        RETURN;
    END IF;
    FOR v IN SELECT * FROM pg_event_trigger_ddl_commands() LOOP
        IF (v.classid = 'pg_class'::regclass AND guard_covers(v.objid))
           OR (v.classid = 'pg_trigger'::regclass
               AND guard_covers((SELECT tgrelid FROM pg_trigger WHERE oid = v.objid)))
           OR (v.classid = 'pg_rewrite'::regclass
               AND guard_covers((SELECT ev_class FROM pg_rewrite WHERE oid = v.objid)))
           OR (v.classid = 'pg_policy'::regclass
               AND guard_covers((SELECT polrelid FROM pg_policy WHERE oid = v.objid))) THEN
            RAISE EXCEPTION '% on % is refused: the log is append-only', TG_TAG, v.object_identity
                USING ERRCODE = 'restrict_violation';
        END IF;
    END LOOP;
END $$
"""

GUARD_DROP = """
CREATE FUNCTION guard_drop() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE
    v record;
BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        RETURN;
    END IF;
    -- What is dropped is gone from the catalogue by now, so it is known by its name.
    FOR v IN SELECT * FROM pg_event_trigger_dropped_objects() LOOP
        IF v.schema_name = TG_SCHEMA_OF_LOG
           AND (v.object_type IN ('table', 'table column', 'table constraint', 'trigger'))
           AND split_part(v.address_names[2], '.', 1) = ANY (LOG_TABLES) THEN
            RAISE EXCEPTION '% of % is refused: the log is append-only', TG_TAG, v.object_identity
                USING ERRCODE = 'restrict_violation';
        END IF;
    END LOOP;
END $$
"""


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    _inbox()
    for function in (APPEND, APPEND_KEYED, GUARD, GUARD_ERASURE, GUARD_ERASABLE, GUARD_INBOX, GUARD_TABLE, IS_GUARDED):
        op.execute(sa.text(function.replace(":", r"\:")))
    _guards()
    _storage()
    _roles()
    _event_triggers()


def downgrade() -> None:
    raise RuntimeError("the log only goes forward; restore a backup to go back")


def _inbox() -> None:
    """Events that wait for their place in the log, in the order in which they were written.

    No foreign keys here or from leaf and event_payload to event: their checks would lock event rows, which means
    writing to them. A guard of event_payload looks for the event.
    """
    op.create_table(
        "inbox",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("event_id", sa.String(length=36), nullable=False),
        sa.Column("leaf_hash", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("length(leaf_hash) = 32", name=op.f("ck_inbox_leaf_hash")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_inbox")),
    )
    op.drop_constraint("fk_leaf_event_id", "leaf", type_="foreignkey")
    op.drop_constraint("fk_event_payload_event_id", "event_payload", type_="foreignkey")


def _guards() -> None:
    """ENABLE ALWAYS throughout: ordinary triggers do not fire under session_replication_role = replica."""
    for table in IMMUTABLE:
        op.execute(f"SELECT guard_table('{table}', 'the log is append-only')")
    for table, shrinks in GROWING.items():
        _trigger(table, "no_update", f"BEFORE UPDATE ON {table} FOR EACH ROW WHEN ({shrinks})", "it only grows")
        _trigger(table, "no_delete", f"BEFORE DELETE ON {table} FOR EACH ROW", "it only grows")
        _trigger(table, "no_truncate", f"BEFORE TRUNCATE ON {table}", "it only grows")
    _payload_guards()
    _trigger("inbox", "no_update", "BEFORE UPDATE ON inbox FOR EACH ROW", "events wait here unchanged")
    _trigger("inbox", "no_truncate", "BEFORE TRUNCATE ON inbox", "events wait here for the log")
    op.execute(
        "CREATE TRIGGER no_loss AFTER DELETE ON inbox REFERENCING OLD TABLE AS gone "
        "FOR EACH STATEMENT EXECUTE FUNCTION guard_inbox()"
    )
    op.execute("ALTER TABLE inbox ENABLE ALWAYS TRIGGER no_loss")
    _trigger("secret", "no_update", "BEFORE UPDATE ON secret FOR EACH ROW", "secrets are written once")


def _payload_guards() -> None:
    """A payload goes when an event of the log says so, and never changes."""
    _trigger("event_payload", "no_update", "BEFORE UPDATE ON event_payload FOR EACH ROW", "payloads never change")
    _trigger("event_payload", "no_truncate", "BEFORE TRUNCATE ON event_payload", "payloads go one by one")
    for name, when, function in (
        ("no_unrecorded_delete", "BEFORE DELETE", "guard_erasure"),
        ("only_erasable", "BEFORE INSERT", "guard_erasable"),
    ):
        op.execute(f"CREATE TRIGGER {name} {when} ON event_payload FOR EACH ROW EXECUTE FUNCTION {function}()")
        op.execute(f"ALTER TABLE event_payload ENABLE ALWAYS TRIGGER {name}")


def _trigger(table: str, name: str, when: str, reason: str) -> None:
    op.execute(f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION guard_refuse('{reason}')")
    op.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}")


def _storage() -> None:
    """Hashes do not compress; hot rows get room to be updated in place; the queue is swept early."""
    op.execute("ALTER TABLE tile ALTER COLUMN data SET STORAGE EXTERNAL")
    op.execute("ALTER TABLE stream_head SET (fillfactor = 50)")
    op.execute("ALTER TABLE log_state SET (fillfactor = 10)")
    op.execute(
        "ALTER TABLE inbox SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, "
        "autovacuum_vacuum_insert_threshold = -1)"
    )


def _roles() -> None:
    """Group roles without login; a deployment grants them to its users."""
    owner, app, sequencer = (_role(name) for name in ("owner", "app", "sequencer"))
    op.execute(f"GRANT USAGE ON SCHEMA {_schema()} TO {owner}, {app}, {sequencer}")
    op.execute(f"GRANT CREATE ON SCHEMA {_schema()} TO {owner}")
    for table in TABLES:
        op.execute(f"REVOKE ALL ON {table} FROM PUBLIC")
        op.execute(f"GRANT SELECT ON {table} TO {app}, {sequencer}")
    op.execute(f"GRANT INSERT ON {', '.join(APP_INSERTS)} TO {app}")
    op.execute(f"GRANT UPDATE ON {', '.join(APP_UPDATES)} TO {app}")
    op.execute(f"GRANT DELETE ON event_payload TO {app}")
    op.execute(f"GRANT INSERT ON leaf, tile, {', '.join(VIEWS)} TO {sequencer}")
    op.execute(f"GRANT UPDATE ON tile, log_state, {', '.join(VIEWS)} TO {sequencer}")
    op.execute(f"GRANT DELETE ON inbox, {', '.join(VIEWS)} TO {sequencer}")
    op.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {_schema()} TO {app}")
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} OWNER TO {owner}")


def _role(name: str) -> str:
    """Make a role unless the cluster has it, and let the migrating user act for it; its quoted name."""
    bind = op.get_bind()
    full = f"{role_prefix()}_{name}"
    quoted = bind.dialect.identifier_preparer.quote_identifier(full)
    if bind.scalar(sa.text("SELECT 1 FROM pg_roles WHERE rolname = :name"), {"name": full}) is None:
        op.execute(f"CREATE ROLE {quoted} NOLOGIN")
    if not _is_superuser():
        op.execute(f"GRANT {quoted} TO CURRENT_USER")
    return quoted


def role_prefix() -> str:
    """The database's name unless the configuration says otherwise: roles belong to the whole cluster."""
    configured: Any = context.config.attributes.get("role_prefix")
    return str(configured or op.get_bind().scalar(sa.text("SELECT current_database()")))


def _event_triggers() -> None:
    """Only a superuser may make these. Where a migration runs as another user, owners of tables can alter them."""
    if not _is_superuser():
        return
    names = ", ".join(f"'{table}'" for table in LOG)
    drop = GUARD_DROP.replace("TG_SCHEMA_OF_LOG", f"'{_schema_name()}'").replace("LOG_TABLES", f"ARRAY[{names}]")
    for function in (GUARD_REWRITE, GUARD_DDL, drop):
        op.execute(sa.text(function.replace(":", r"\:")))
    for name, event in (("rewrite", "table_rewrite"), ("ddl", "ddl_command_end"), ("drop", "sql_drop")):
        op.execute(f"CREATE EVENT TRIGGER guard_{name} ON {event} EXECUTE FUNCTION guard_{name}()")
        op.execute(f"ALTER EVENT TRIGGER guard_{name} ENABLE ALWAYS")


def _is_superuser() -> bool:
    found = sa.text("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
    return bool(op.get_bind().scalar(found))


def _schema_name() -> str:
    return str(op.get_bind().scalar(sa.text("SELECT current_schema()")))


def _schema() -> str:
    return str(op.get_bind().dialect.identifier_preparer.quote_identifier(_schema_name()))
