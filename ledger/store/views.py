"""View rows in SQL: written with the events they come from, read by ``queries``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Insert, Table, delete, select
from sqlalchemy.dialects import sqlite

from ledger.store.projections import RowChange
from ledger.store.queries import ViewRow
from ledger.store.tables import VIEW_TABLES


class SqlViewWriter:
    """``ledger.store.projections.ViewWriter`` over one write transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def clear(self) -> None:
        for view in VIEW_TABLES.values():
            self._connection.execute(delete(view))

    def write(self, changes: Iterable[RowChange]) -> None:
        # Rows of different views do not depend on each other: one statement for each view.
        for view, group in groupby(sorted(changes, key=lambda change: change.view), key=lambda change: change.view):
            self._connection.execute(_UPSERTS[view], [_row(change) for change in group])


class SqlViewReader:
    """``ledger.store.queries.ViewReader`` of one tenant."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant

    def rows(self, view: str, **equal: Any) -> Sequence[ViewRow]:
        columns = VIEW_TABLES[view].c
        conditions = [columns[name] == value for name, value in equal.items()]
        found = self._connection.execute(select(VIEW_TABLES[view]).where(columns.tenant == self._tenant, *conditions))
        return [ViewRow(row._asdict(), json.loads(row.body), row.seq) for row in found]


def _upsert(view: Table) -> Insert:
    statement = sqlite.insert(view)
    key = list(view.primary_key.columns)
    return statement.on_conflict_do_update(
        index_elements=key,
        set_={column.name: statement.excluded[column.name] for column in view.columns if column not in set(key)},
    )


_UPSERTS = {name: _upsert(view) for name, view in VIEW_TABLES.items()}


def _row(change: RowChange) -> dict[str, Any]:
    body = _encode(change.body).encode()
    return {"tenant": change.tenant, **change.key, **change.columns, "body": body, "seq": change.seq}


# Nothing is hashed from a view, so its body need not be canonical; the payload it comes from was checked.
_encode = json.JSONEncoder(separators=(",", ":")).encode
