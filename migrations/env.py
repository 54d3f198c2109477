"""Alembic's entry: runs migrations inside a given transaction, or on the database of ``-x url=...``."""

from __future__ import annotations

from pathlib import Path

from alembic import context
from sqlalchemy import Connection
from sqlalchemy.engine import make_url

from ledger.store.session import BUSY_TIMEOUT_MS, open_engine
from ledger.store.tables import metadata


def run(connection: Connection) -> None:
    """Every missing migration in the connection's one transaction: all of them or none."""
    context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
    with context.begin_transaction():
        context.run_migrations()


def run_from_command_line() -> None:
    """The way in for a person: `alembic -x url=sqlite:///FILE upgrade head`."""
    url = context.get_x_argument(as_dictionary=True).get("url")
    database = make_url(url).database if url and url.startswith("sqlite:") else None
    if database is None:
        raise SystemExit("name the database: alembic -x url=sqlite:///FILE upgrade head")
    engine = open_engine(Path(database), writable=True, busy_timeout_ms=BUSY_TIMEOUT_MS)
    with engine.begin() as connection:
        run(connection)


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    run_from_command_line()
