"""Secret values beside the log: written once, never exported with it."""

from __future__ import annotations

from sqlalchemy import Connection, select

from ledger.errors import NotFound, VersionConflict
from ledger.store import tables
from ledger.store.dialects import insert_for


class SqlSecrets:
    """``ledger.app.ports.store.Secrets`` of one tenant."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant

    def put(self, name: str, value: bytes) -> None:
        row = {"tenant": self._tenant, "name": name, "value": value}
        known = self._find(name)
        if known is None:
            statement = insert_for(self._connection, tables.secret).values(row).on_conflict_do_nothing()
            self._connection.execute(statement)
            known = self._find(name)
        if known != value:
            raise other_secret(name)

    def get(self, name: str) -> bytes:
        known = self._find(name)
        if known is None:
            raise no_secret(name)
        return known

    def _find(self, name: str) -> bytes | None:
        columns = tables.secret.c
        value: bytes | None = self._connection.scalar(
            select(columns.value).where(columns.tenant == self._tenant, columns.name == name)
        )
        return value


def other_secret(name: str) -> VersionConflict:
    """The error for a secret that exists with another value; neither value is told."""
    return VersionConflict(f"the secret {name!r} exists with another value; secrets are written once", name=name)


def no_secret(name: str) -> NotFound:
    """The error for a secret that does not exist."""
    return NotFound(f"there is no secret {name!r}", name=name)
