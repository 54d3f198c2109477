"""Whether the stored views are those a rebuild would make, without rebuilding them anywhere.

A view row is the work of the last event that set its key. So each event is held against the row under its key:
the row must be from this event and then be the same to the byte, or from a later one, whose turn comes. Rows that
no event accounted for in the end are looked up by the event they name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec
from sqlalchemy import Connection, func, select

from ledger.app.log.inspection import RawEntry, ViewDifference
from ledger.domain.events import upcast
from ledger.domain.record.events import StoredEvent
from ledger.errors import SlaLedgerError
from ledger.store.projections import apply, sets_rows
from ledger.store.raw_entries import entries_at
from ledger.store.tables import VIEW_TABLES
from ledger.store.views import row_values

_PAGE = 1000
_KEYS_A_QUERY = 500
_MAX_REPORTED = 100_000
_KEY_COLUMNS = {name: [column.name for column in table.primary_key.columns] for name, table in VIEW_TABLES.items()}

_Key = tuple[Any, ...]


class SqlViewCheck:
    """``ledger.app.log.inspection.ViewCheck`` over one read transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._judged: Counter[str] = Counter()
        # Keys whose row was reported already, so that it is not reported again as one nobody accounts for.
        self._reported: set[tuple[str, _Key]] = set()

    def add(self, entries: Sequence[RawEntry]) -> Iterator[ViewDifference]:
        expected: defaultdict[str, dict[_Key, tuple[Any, ...]]] = defaultdict(dict)
        for entry in entries:
            if entry.has_event and sets_rows(entry.type):
                for view, row in _rows(entry):
                    expected[view][_key(view, row)] = row
        for view, rows in expected.items():
            yield from self._compare(view, rows)

    def rest(self) -> Iterator[ViewDifference]:
        for name, view in VIEW_TABLES.items():
            if self._connection.scalar(select(func.count()).select_from(view)) == self._judged[name]:
                continue
            rows = iter(self._connection.execution_options(yield_per=_PAGE).execute(select(view)))
            while page := [tuple(row) for row in islice(rows, _PAGE)]:
                yield from self._unaccounted(name, page)

    def _compare(self, view: str, expected: dict[_Key, tuple[Any, ...]]) -> Iterator[ViewDifference]:
        keys = list(expected)
        stored: dict[_Key, tuple[Any, ...]] = {}
        for at in range(0, len(keys), _KEYS_A_QUERY):
            part = keys[at : at + _KEYS_A_QUERY]
            sql = _rows_of_keys(view, len(part), self._connection.dialect.paramstyle)
            found = self._connection.exec_driver_sql(sql, tuple(value for key in part for value in key))
            stored |= {_key(view, row): row for row in map(tuple, found)}
        for key, row in expected.items():
            known, seq = stored.get(key), row[-1]
            if known == row:
                self._judged[view] += 1
            elif known is None or _seq(known) <= seq:
                self._report(view, key)
                yield ViewDifference(view, seq, None if known is None else _seq(known))

    def _unaccounted(self, view: str, page: Sequence[tuple[Any, ...]]) -> Iterator[ViewDifference]:
        """The rows of a page that are not from the event they name."""
        entries = entries_at(self._connection, [_seq(row) for row in page])
        for row in page:
            key, entry = _key(view, row), entries.get(_seq(row))
            made = [] if entry is None or not entry.has_event else _rows(entry)
            if (view, key) not in self._reported and (view, key) not in {
                (name, _key(name, each)) for name, each in made
            }:
                self._report(view, key)
                yield ViewDifference(view, None, _seq(row))

    def _report(self, view: str, key: _Key) -> None:
        if len(self._reported) < _MAX_REPORTED:
            self._reported.add((view, key))


def _rows(entry: RawEntry) -> list[tuple[str, tuple[Any, ...]]]:
    """The rows an entry sets; none where its payload is gone or so damaged that it sets none."""
    data = entry.standing_payload
    if data is None:
        return []
    try:
        event = upcast.current(_event(entry, msgspec.json.decode(data)))
        return [(change.view, row_values(change)) for change in apply(event)]
    except (SlaLedgerError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []


def _event(entry: RawEntry, payload: Any) -> StoredEvent:
    return StoredEvent(
        entry.seq,
        entry.id,
        entry.tenant,
        entry.stream,
        entry.version,
        entry.type,
        entry.schema,
        entry.payload_class,
        entry.occurred_at_ns,
        entry.recorded_at_ns,
        payload,
        entry.salt,
    )


def _key(view: str, row: Sequence[Any]) -> _Key:
    return tuple(row[: len(_KEY_COLUMNS[view])])


def _seq(row: Sequence[Any]) -> int:
    """The event a stored row names; -1 where somebody put something else there."""
    return row[-1] if isinstance(row[-1], int) else -1


@lru_cache(maxsize=64)
def _rows_of_keys(view: str, count: int, paramstyle: str) -> str:
    """A query for the rows of ``count`` keys. Written out, because both databases find them by index only from a
    list that is joined, and composing such a list anew for each page takes longer than the query."""
    names = _KEY_COLUMNS[view]
    marks = ", ".join(["?" if paramstyle == "qmark" else "%s"] * len(names))
    columns = ", ".join(f"stored.{column.name}" for column in VIEW_TABLES[view].columns)
    same = " AND ".join(f"stored.{name} = wanted.{name}" for name in names)
    return (
        f"WITH wanted ({', '.join(names)}) AS (VALUES {', '.join([f'({marks})'] * count)}) "  # noqa: S608 - own names
        f"SELECT {columns} FROM wanted CROSS JOIN {view} AS stored WHERE {same}"
    )
