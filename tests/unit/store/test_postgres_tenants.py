"""Row-level security: a transaction of one tenant meets no row of another's, whatever its statements forget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors, sql
from sqlalchemy import text

from ledger.store.postgres import PostgresDatabase
from tests.conformance.samples import (
    SLA_ID,
    SeededRandomness,
    StepClock,
    agreement,
    anchor,
    anchor_confirmation,
    attestation,
    breaker,
    exclusion,
    line_issued,
    point,
    statement,
    statement_id,
    telemetry,
    violation,
    windows,
)
from tests.conformance.test_webhook_rows import ATTEMPT, ENDPOINT, configured
from tests.support.postgres import ROLE_PREFIX, SequencedAfterCommit

# Their rows are the log's, which is one for all, were published for all, or say who asks before it is known for whom.
OF_ALL = {"event", "append_request", "stream_head", "api_key", "view_root"}


@pytest.fixture
def database(postgres_url: str) -> Iterator[PostgresDatabase]:
    """Two tenants with a row in every table that is walled."""
    database = SequencedAfterCommit(postgres_url, StepClock(), SeededRandomness(1), role_prefix=ROLE_PREFIX)
    for tenant in ("alice", "bob"):
        with database.of_tenant(tenant).begin() as tx:
            tx.events.append("agreement/a", [agreement()], expected_version=0)
            tx.events.append("windows/a", windows(1), expected_version=0)
            tx.events.append("statement/a", [statement()], expected_version=0)
            of = statement_id()
            tx.events.append(
                "attestation/a", [attestation(of), anchor(of), anchor_confirmation(of)], expected_version=0
            )
            tx.events.append("violations/a", [violation(), line_issued(), exclusion()], expected_version=0)
            tx.events.append("webhook/a", [configured(ENDPOINT)], expected_version=0)
            tx.events.append("telemetry/a", [telemetry(point()), breaker()], expected_version=0)
            tx.deliveries.record(ATTEMPT)
            tx.batches.put(tenant.encode())
            tx.secrets.put("salt", tenant.encode())
            tx.identities.add(SLA_ID, "gateway", [(b"1" * 16, b"body")])
    yield database
    database.close()


def tables_with_a_tenant(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT table_name FROM information_schema.columns WHERE column_name = 'tenant' AND table_schema = 'public'"
        )
        return {name for (name,) in rows}


def test_every_table_of_tenants_is_walled(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        walled = {name for (name,) in connection.execute("SELECT relname FROM pg_class WHERE relrowsecurity")}
    assert tables_with_a_tenant(postgres_url) - OF_ALL == walled


def test_a_statement_that_forgets_the_tenant_meets_its_own_rows_alone(
    database: PostgresDatabase, postgres_url: str
) -> None:
    walled = sorted(tables_with_a_tenant(postgres_url) - OF_ALL)
    for tenant in ("alice", "bob", "alice"):
        for opened in (database.of_tenant(tenant).read, database.of_tenant(tenant).begin):
            with opened() as tx:
                connection: Any = tx.secrets._connection  # type: ignore[attr-defined]
                for table in walled:
                    seen = set(connection.scalars(text(f"SELECT tenant FROM {table}")))
                    assert seen == {tenant}, table
    # The pool's connections keep no tenant.
    with database.begin() as tx:
        connection = tx.secrets._connection
        assert set(connection.scalars(text("SELECT tenant FROM secret"))) == {"alice", "bob"}


def test_no_row_is_written_for_another_tenant(database: PostgresDatabase, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(f"{ROLE_PREFIX}_app")))
        connection.execute("SELECT set_config('sla_ledger.tenant', 'alice', true)")
        with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
            connection.execute("INSERT INTO secret (tenant, name, value) VALUES ('bob', 'x', '')")
