"""Request ids a source has reported before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar

from sqlalchemy import Connection, bindparam, select

from ledger.store import tables
from ledger.store.bulk import raw_cursor
from ledger.store.dialects import insert_for, is_postgresql

T = TypeVar("T")

_CHUNK = 1000
"""Ids asked for in one statement: well below every database's limit of parameters."""

_PAIRS = 250

_identity = tables.identity.c
_KNOWN = select(_identity.id_digest, _identity.body_digest).where(
    _identity.scope_id == bindparam("scope_id"), _identity.id_digest.in_(bindparam("ids", expanding=True))
)


class SqlIdentities:
    """``ledger.app.ports.store.Identities`` of one tenant."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant

    def known(self, sla_id: str, source: str, ids: Sequence[bytes]) -> Mapping[bytes, frozenset[bytes]]:
        scope_id = self._scope(sla_id, source)
        if scope_id is None:
            return {}
        found: defaultdict[bytes, set[bytes]] = defaultdict(set)
        # In the order of the index: an id's neighbours are asked for while their page is at hand.
        for chunk in _chunks(sorted(ids), _CHUNK):
            for id_digest, body_digest in self._bodies(scope_id, chunk):
                found[id_digest].add(body_digest)
        return {id_digest: frozenset(bodies) for id_digest, bodies in found.items()}

    def _bodies(self, scope_id: int, ids: Sequence[bytes]) -> Sequence[Any]:
        if is_postgresql(self._connection):
            return self._connection.execute(_KNOWN, {"scope_id": scope_id, "ids": ids}).all()
        with raw_cursor(self._connection) as cursor:
            found: Sequence[Any] = cursor.execute(_known_sql(len(ids)), (scope_id, *ids)).fetchall()
        return found

    def reserve(self, sla_id: str, source: str) -> None:
        row = {"tenant": self._tenant, "sla_id": sla_id, "source": source}
        self._connection.execute(
            insert_for(self._connection, tables.identity_scope).values(row).on_conflict_do_nothing()
        )
        self._scope(sla_id, source, lock=is_postgresql(self._connection))

    def add(self, sla_id: str, source: str, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        if not pairs:
            return
        scope_id = self._scope(sla_id, source)
        if scope_id is None:
            self.reserve(sla_id, source)
            scope_id = self._scope(sla_id, source)
        if is_postgresql(self._connection):
            statement = insert_for(self._connection, tables.identity).on_conflict_do_nothing()
            rows = [{"scope_id": scope_id, "id_digest": each, "body_digest": body} for each, body in pairs]
            self._connection.execute(statement, rows)
        else:
            with raw_cursor(self._connection) as cursor:
                for chunk in _chunks(sorted(pairs), _PAIRS):
                    cursor.execute(_add_sql(len(chunk)), (scope_id, *chain.from_iterable(chunk)))

    def _scope(self, sla_id: str, source: str, *, lock: bool = False) -> int | None:
        columns = tables.identity_scope.c
        asked = select(columns.id).where(
            columns.tenant == self._tenant, columns.sla_id == sla_id, columns.source == source
        )
        found: int | None = self._connection.scalar(asked.with_for_update() if lock else asked)
        return found


@lru_cache(maxsize=4)
def _known_sql(count: int) -> str:
    """Written out, because SQLAlchemy takes longer to compose such a list than SQLite to answer."""
    marks = ", ".join("?" * count)
    return f"SELECT id_digest, body_digest FROM identity WHERE scope_id = ? AND id_digest IN ({marks})"  # noqa: S608


@lru_cache(maxsize=4)
def _add_sql(count: int) -> str:
    """Many rows in a statement: the driver takes longer to go through a statement than SQLite for its row."""
    rows = ", ".join(["(?1, ?, ?)"] * count)
    return f"INSERT INTO identity (scope_id, id_digest, body_digest) VALUES {rows} ON CONFLICT DO NOTHING"  # noqa: S608


def _chunks(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
