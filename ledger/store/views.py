"""View rows in SQL: written with the events they come from, read by ``queries``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Select, delete, func, literal, select, tuple_

from ledger.domain.time.instant import HOUR_NS
from ledger.store.bulk import upsert_rows
from ledger.store.projections import Place, RowChange
from ledger.store.tables import VIEW_TABLES
from ledger.store.view_rows import ViewRow


class SqlViewWriter:
    """``ledger.store.projections.ViewWriter`` over one write transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def clear(self) -> None:
        for view in VIEW_TABLES.values():
            self._connection.execute(delete(view))

    def write(self, changes: Iterable[RowChange]) -> None:
        # Rows of different views do not depend on each other: one statement for each view.
        rows: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
        for change in changes:
            rows[change.view].append(row_values(change))
        for view, values in rows.items():
            upsert_rows(self._connection, VIEW_TABLES[view], values)

    def remove(self, change: RowChange) -> bool:
        view = VIEW_TABLES[change.view]
        key = [view.c[name] == value for name, value in change.key.items()]
        gone = self._connection.execute(
            delete(view).where(view.c.tenant == change.tenant, view.c.seq == change.seq, *key)
        )
        return gone.rowcount == 1

    def remove_of(self, seq: int) -> set[Place]:
        """Remove the rows that the event at ``seq`` set and none set again since; which rows they were."""
        lost: set[Place] = set()
        for name, view in VIEW_TABLES.items():
            gone = self._connection.execute(delete(view).where(view.c.seq == seq).returning(*view.primary_key))
            lost |= {(name, *row) for row in gone}
        return lost


class SqlViewReader:
    """``ledger.store.queries.ViewReader`` of one tenant."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant

    def rows(self, view: str, **equal: Any) -> Sequence[ViewRow]:
        columns = VIEW_TABLES[view].c
        conditions = [columns[name] == value for name, value in equal.items()]
        return self._fetch(select(VIEW_TABLES[view]).where(columns.tenant == self._tenant, *conditions))

    def rows_among(self, view: str, name: str, values: Collection[str]) -> Sequence[ViewRow]:
        if not values:
            return []
        columns = VIEW_TABLES[view].c
        query = select(VIEW_TABLES[view]).where(columns.tenant == self._tenant, columns[name].in_(sorted(values)))
        return self._fetch(query)

    def page(
        self,
        view: str,
        order: tuple[str, ...],
        *,
        after: tuple[Any, ...] | None,
        before: Any = None,
        limit: int,
        **equal: Any,
    ) -> Sequence[ViewRow]:
        columns = VIEW_TABLES[view].c
        place = [columns[name] for name in order]
        query = select(VIEW_TABLES[view]).where(
            columns.tenant == self._tenant,
            *(
                columns[name].in_(sorted(value)) if isinstance(value, frozenset) else columns[name] == value
                for name, value in equal.items()
            ),
        )
        if after is not None:
            query = query.where(tuple_(*place) > tuple_(*map(literal, after)))
        if before is not None:
            query = query.where(place[0] < before)
        return self._fetch(query.order_by(*place).limit(limit))

    def _fetch(self, query: Select[Any]) -> list[ViewRow]:
        found = self._connection.execute(query)
        names = tuple(found.keys())
        body, seq = names.index("body"), names.index("seq")
        # Each row's own way to its names costs as much as all the rest of it.
        return [ViewRow(dict(zip(names, row, strict=True)), _decode(row[body]), row[seq]) for row in found.all()]

    def tenants(self, view: str) -> Sequence[str]:
        tenant = VIEW_TABLES[view].c.tenant
        return list(self._connection.scalars(select(tenant).distinct().order_by(tenant)))

    def logged(self, view: str, start: int, end: int, limit: int) -> Sequence[tuple[str, ViewRow]]:
        table = VIEW_TABLES[view]
        query = select(table).where(table.c.seq >= start, table.c.seq < end).order_by(table.c.seq).limit(limit)
        return [(row.columns["tenant"], row) for row in self._fetch(query)]

    def covering(self, first: int, last: int) -> Sequence[ViewRow]:
        columns = VIEW_TABLES["view_root"].c
        return self._fetch(select(VIEW_TABLES["view_root"]).where(columns.from_seq <= last, columns.until_seq > first))

    def telling(self, view: str, service: str, start_ns: int, end_ns: int, limit: int) -> Sequence[ViewRow]:
        table = VIEW_TABLES[view]
        columns = table.c
        order = (columns.severity.desc(), columns.to_ns.desc(), columns.event_id)
        rank = func.row_number().over(partition_by=columns.series, order_by=order)
        ranked = (
            select(table, rank.label("rank"))
            .where(
                columns.tenant == self._tenant,
                columns.service == service,
                # A row covers at most an hour: so the index has both ends.
                columns.from_ns > start_ns - HOUR_NS,
                columns.from_ns < end_ns,
                columns.to_ns > start_ns,
            )
            .subquery()
        )
        best = ranked.c
        asked = (
            select(*(best[column.name] for column in table.columns))
            .where(best["rank"] == 1)
            .order_by(best.severity.desc(), best.to_ns.desc(), best.series, best.event_id)
            .limit(limit)
        )
        return self._fetch(asked)


_NAMES = {
    name: tuple(column.name for column in table.columns if column.name not in {"tenant", "body", "seq"})
    for name, table in VIEW_TABLES.items()
}


def row_values(change: RowChange) -> tuple[Any, ...]:
    """The row in the order of its table's columns."""
    key, columns = change.key, change.columns
    named = [key[name] if name in key else columns[name] for name in _NAMES[change.view]]
    return (change.tenant, *named, _encode(change.body), change.seq)


# Nothing is hashed from a view, and the payload it comes from was checked, so this is quicker than canonical form.
# Sorted, because an event's payload has its caller's order when it is appended and the canonical one when it is read.
_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode
