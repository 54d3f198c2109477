"""Bringing a database to the schema this version of the product works with."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, select, table, text

from ledger.errors import StorageUnavailable
from ledger.resources import resource_dir

SCHEMA_REVISION = "0017"
"""The newest migration; a test holds it to the migrations folder."""


def current_revision(connection: Connection) -> str | None:
    """The revision a database is at; None for one that is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.scalar(select(text("version_num")).select_from(table("alembic_version")))
    return revision


def upgrade(connection: Connection, *, role_prefix: str | None = None) -> None:
    """Run the migrations that are missing inside the connection's transaction, which must be one that writes.

    So two processes that open a new database at once do not meet. ``role_prefix`` begins the names of the roles
    made on PostgreSQL (default: the database's name). Raises ``StorageUnavailable`` for a database
    that a newer version of the product wrote.
    """
    revision = current_revision(connection)
    if revision == SCHEMA_REVISION:
        return
    from alembic import command  # takes a fifth of a second, and most starts need no migration
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", _location(resource_dir("migrations")))
    config.attributes["connection"] = connection
    config.attributes["role_prefix"] = role_prefix
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise StorageUnavailable(
            f"the database is at schema {revision}, which this version ({SCHEMA_REVISION}) does not know; "
            "use the version of sla-ledger that wrote it, or a newer one",
            revision=revision,
        ) from error


def _location(folder: Path) -> str:
    return str(folder).replace("%", "%%")
