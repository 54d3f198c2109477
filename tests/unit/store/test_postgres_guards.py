"""Rows of the log on PostgreSQL: no role changes, removes or rewrites them, by whatever door."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from psycopg import errors, sql

from ledger.errors import SettingInvalid, StorageUnavailable
from ledger.store.migrate import SCHEMA_REVISION
from ledger.store.postgres import PostgresDatabase, migrate
from ledger.store.postgres_session import open_engine
from ledger.store.postgres_session import postgres_url as parse_url
from ledger.store.tables import metadata, queue_metadata
from tests.conformance.samples import SeededRandomness, StepClock, agreement, erasable, signed_checkpoint, windows
from tests.support.postgres import ROLE_PREFIX, Server
from tests.support.postgres_processes import open_postgres

LOG = ("event", "event_payload", "append_request", "leaf", "checkpoint", "tile", "stream_head", "log_state", "inbox")
ROLES = ("owner", "app", "sequencer", "superuser")
REFUSALS = (errors.InsufficientPrivilege, errors.RestrictViolation)

CHANGES = [
    "UPDATE event SET payload = '{}'",
    "UPDATE event SET stream = 'elsewhere'",
    "UPDATE append_request SET digest = ''",
    "UPDATE leaf SET leaf_hash = decode(repeat('00', 32), 'hex')",
    "UPDATE checkpoint SET root = ''",
    "UPDATE tile SET data = decode(repeat('00', 32 * width), 'hex')",
    "UPDATE tile SET data = substr(data, 1, 32), width = 1 WHERE width > 1",
    "UPDATE tile SET tile_index = tile_index + 9",
    "UPDATE stream_head SET version = 5",
    "UPDATE log_state SET size = 299",
    "UPDATE log_state SET size = size + 1, sequenced_at_ns = 0",
    "UPDATE inbox SET event_id = 'x'",
    "DELETE FROM inbox",
    "UPDATE secret SET value = ''",
    "UPDATE event_payload SET payload = '{}'",
    "UPDATE event_payload SET event_id = 'x'",
    "DELETE FROM event_payload WHERE event_id = (SELECT id FROM event WHERE stream = 'agreement/b')",
    "INSERT INTO event_payload SELECT id, salt, payload FROM event WHERE payload_class = 'standard'",
    *(f"DELETE FROM {table}" for table in LOG[:-1]),
    *(f"TRUNCATE {table}" for table in LOG[1:]),
    "TRUNCATE event, outbox",
    "TRUNCATE event CASCADE",
    f"TRUNCATE {', '.join(LOG)}, outbox",
]
REWRITES = [
    "ALTER TABLE event ALTER payload TYPE bytea USING '\\x7b7d'::bytea",
    "ALTER TABLE event ALTER version TYPE numeric USING version + 1",
    "ALTER TABLE leaf ALTER leaf_hash TYPE text USING 'x'",
    "ALTER TABLE checkpoint ALTER note TYPE text USING 'x'",
    "ALTER TABLE event ADD COLUMN extra float DEFAULT random()",
]
DISARMAMENTS = [
    "ALTER TABLE event DISABLE TRIGGER ALL",
    "ALTER TABLE event DISABLE TRIGGER no_update",
    "ALTER TABLE event_payload DISABLE TRIGGER no_unrecorded_delete",
    "DROP TRIGGER only_erasable ON event_payload",
    "ALTER TABLE inbox DISABLE TRIGGER no_loss",
    "ALTER TRIGGER no_update ON event RENAME TO harmless",
    "DROP TRIGGER no_truncate ON leaf",
    "DROP TABLE checkpoint",
    "DROP TABLE event CASCADE",
    "ALTER TABLE event DROP COLUMN salt",
    "ALTER TABLE event RENAME TO old_event",
    "ALTER TABLE event OWNER TO CURRENT_USER",
    "ALTER TABLE leaf DROP CONSTRAINT pk_leaf",
    "CREATE RULE swallow AS ON INSERT TO event DO INSTEAD NOTHING",
    "CREATE TRIGGER swallow BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE OR REPLACE FUNCTION guard_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
    "DROP EVENT TRIGGER guard_rewrite",
    "ALTER EVENT TRIGGER guard_ddl DISABLE",
    "SET session_replication_role = replica",
    "SET event_triggers = off",
]


@pytest.fixture(scope="module")
def url(postgres_server: Server) -> Iterator[str]:
    """300 sequenced events, two that wait (the one erasable), a checkpoint, a secret, a used key.

    What is refused changes nothing.
    """
    url = postgres_server.new_database()
    database = open_postgres(url)
    database.append("windows/a", windows(299), expected_version=0)
    database.append("windows/a", windows(1), expected_version=299, idempotency_key="key")
    database.sequence_once()
    with database.begin() as tx:
        tx.log.save_checkpoint(300, tx.log.root(300), signed_checkpoint(300, tx.log.root(300)))
        tx.secrets.put("salt", b"\x01")
        tx.events.append("windows/a", windows(1), expected_version=300)
        tx.events.append("agreement/b", [erasable(agreement())], expected_version=0)
    database.close()
    yield url
    postgres_server.drop(url)


def as_role(url: str, role: str) -> psycopg.Connection[Any]:
    connection = psycopg.connect(url, autocommit=True)
    if role != "superuser":
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(f"{ROLE_PREFIX}_{role}")))
    return connection


def contents(url: str) -> list[list[tuple[Any, ...]]]:
    with psycopg.connect(url) as connection:
        return [connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in (*LOG, "secret")]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("statement", [*CHANGES, *REWRITES])
def test_no_role_changes_the_log(url: str, role: str, statement: str) -> None:
    before = contents(url)
    with as_role(url, role) as connection, pytest.raises(REFUSALS):
        connection.execute(statement)
    assert contents(url) == before


@pytest.mark.parametrize("statement", CHANGES)
def test_a_replica_session_changes_nothing_either(url: str, statement: str) -> None:
    """Ordinary triggers do not fire there; only a superuser can open one."""
    before = contents(url)
    with as_role(url, "superuser") as connection:
        connection.execute("SET session_replication_role = replica")
        with pytest.raises(REFUSALS):
            connection.execute(statement)
    assert contents(url) == before


@pytest.mark.parametrize("role", ["owner", "app", "sequencer"])
@pytest.mark.parametrize("statement", DISARMAMENTS)
def test_nobody_but_a_superuser_takes_the_guards_away(url: str, role: str, statement: str) -> None:
    before = contents(url)
    with as_role(url, role) as connection, pytest.raises(REFUSALS):
        connection.execute(statement)
    assert contents(url) == before


def test_what_a_superuser_can_do_is_known(url: str) -> None:
    """docs/postgresql.md says it, and that fsck against a checkpoint from outside finds what came of it."""
    with as_role(url, "superuser") as connection, connection.transaction(force_rollback=True):
        connection.execute("DROP TRIGGER no_update ON event")
        changed = connection.execute("UPDATE event SET payload = '{}' WHERE version = 1")
        assert changed.rowcount == 1


def test_a_partition_cannot_be_emptied_by_itself(url: str) -> None:
    """The log's tables have no partitions today; the guard for one that gets them is the same function."""
    with as_role(url, "superuser") as connection:
        connection.execute("CREATE TABLE parted (seq int, x text) PARTITION BY RANGE (seq)")
        connection.execute("CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10)")
        connection.execute("SELECT guard_table('parted', 'the log is append-only')")
        connection.execute("INSERT INTO parted VALUES (1, 'x')")
        for mode in ("origin", "replica"):
            connection.execute(f"SET session_replication_role = {mode}")
            for statement in (
                "TRUNCATE parted_1",
                "TRUNCATE parted",
                "DELETE FROM parted_1",
                "UPDATE parted_1 SET x = ''",
            ):
                with pytest.raises(errors.RestrictViolation):
                    connection.execute(statement)
        connection.execute("SET session_replication_role = origin")
        connection.execute("DROP TABLE parted")


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        ("app", "INSERT INTO leaf SELECT 999, event_id, leaf_hash, 0 FROM inbox"),
        ("app", "INSERT INTO tile VALUES (5, 0, 1, decode(repeat('00', 32), 'hex'))"),
        ("app", "UPDATE log_state SET size = 1000"),
        ("app", "INSERT INTO view_agreement VALUES ('default', 'x', '{}', 0)"),
        ("sequencer", "INSERT INTO event SELECT * FROM event"),
        ("sequencer", "INSERT INTO checkpoint SELECT 7, root, note FROM checkpoint"),
        ("sequencer", "INSERT INTO secret VALUES ('default', 'x', '')"),
        ("app", "CREATE TABLE mine (x int)"),
        ("sequencer", "CREATE TABLE mine (x int)"),
    ],
)
def test_each_role_has_its_own_work_alone(url: str, role: str, statement: str) -> None:
    with as_role(url, role) as connection, pytest.raises(errors.InsufficientPrivilege):
        connection.execute(statement)


def test_the_products_connections_have_the_rights_of_their_role_alone(postgres_url: str) -> None:
    database = open_postgres(postgres_url)
    for engine, role in ((database._app, "app"), (database._single, "app"), (database._sequencer, "sequencer")):
        with engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT current_user").scalar() == f"{ROLE_PREFIX}_{role}"
    database.close()


def test_a_user_of_the_app_alone_appends_but_cannot_sequence(postgres_server: Server, postgres_url: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
    user = f"{ROLE_PREFIX}_login"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"DROP ROLE IF EXISTS {user}")
        admin.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'x' IN ROLE {ROLE_PREFIX}_app")
    try:
        login = postgres_server.database_url(str(name), user, "x")
        database = PostgresDatabase(login, StepClock(), SeededRandomness(1), role_prefix=ROLE_PREFIX)
        database.append("windows/a", windows(1), expected_version=0)
        assert database.revision() == SCHEMA_REVISION
        with pytest.raises(StorageUnavailable, match="roles"):
            database.sequence_once()
        database.close()
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            admin.execute(f"DROP ROLE {user}")


def test_the_migrated_schema_is_that_of_the_tables(postgres_url: str) -> None:
    with open_engine(parse_url(postgres_url), None).connect() as connection:
        context = MigrationContext.configure(connection, opts={"target_metadata": [metadata, queue_metadata]})
        differences = compare_metadata(context, [metadata, queue_metadata])  # type: ignore[arg-type]
    # Their checks would lock rows of event, which is to write to them.
    assert {(kind, each.name) for kind, each in differences} == {
        ("add_fk", "fk_leaf_event_id"),
        ("add_fk", "fk_event_payload_event_id"),
    }


def test_opening_twice_migrates_once_and_a_newer_schema_is_left_alone(postgres_url: str) -> None:
    migrate(postgres_url, role_prefix=ROLE_PREFIX)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StorageUnavailable, match="9999"):
        migrate(postgres_url, role_prefix=ROLE_PREFIX)


@pytest.mark.parametrize("text", ["mysql://u:secret@h/d", "postgresql://u:secret@h", "secret", "postgresql://h:port/x"])
def test_a_url_that_names_no_database_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(SettingInvalid) as caught:
        parse_url(text)
    assert "secret" not in str(caught.value)
