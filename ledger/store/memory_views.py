"""Rows of the views in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.store.memory_state import MemoryHandle
from ledger.store.projections import RowChange
from ledger.store.queries import telling_order
from ledger.store.view_rows import ViewRow


@dataclass(frozen=True, slots=True)
class MemoryViewRows:
    """View rows under (view, tenant, key): written by projections, read by queries."""

    handle: MemoryHandle
    tenant: str

    def clear(self) -> None:
        self.handle.changing.views.clear()

    def write(self, changes: Iterable[RowChange]) -> None:
        rows = self.handle.changing.views
        for change in changes:
            rows[self._place(change)] = change

    def remove(self, change: RowChange) -> bool:
        rows, place = self.handle.changing.views, self._place(change)
        if place not in rows or rows[place].seq != change.seq:
            return False
        del rows[place]
        return True

    def _place(self, change: RowChange) -> tuple[str, ...]:
        return change.view, change.tenant, *(str(part) for part in change.key.values())

    def rows(self, view: str, **equal: Any) -> Sequence[ViewRow]:
        found = (change for key, change in self.handle.state.views.items() if key[:2] == (view, self.tenant))
        rows = (ViewRow({**change.key, **change.columns}, change.body, change.seq) for change in found)
        return [row for row in rows if all(row.columns[name] == value for name, value in equal.items())]

    def rows_among(self, view: str, name: str, values: Collection[str]) -> Sequence[ViewRow]:
        return [row for row in self.rows(view) if row.columns[name] in values]

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
        def place(row: ViewRow) -> tuple[Any, ...]:
            return tuple(row.columns[name] for name in order)

        def fits(row: ViewRow) -> bool:
            asked = ((row.columns[name], value) for name, value in equal.items())
            return all(found in value if isinstance(value, frozenset) else found == value for found, value in asked)

        rows = (row for row in self.rows(view) if fits(row) and (after is None or place(row) > after))
        return sorted((row for row in rows if before is None or place(row)[0] < before), key=place)[:limit]

    def tenants(self, view: str) -> Sequence[str]:
        return sorted({tenant for name, tenant, *_ in self.handle.state.views if name == view})

    def logged(self, view: str, start: int, end: int, limit: int) -> Sequence[tuple[str, ViewRow]]:
        found = (row for row in self._of_all(view) if start <= row[1].seq < end)
        return sorted(found, key=lambda row: row[1].seq)[:limit]

    def covering(self, first: int, last: int) -> Sequence[ViewRow]:
        rows = (row for _, row in self._of_all("view_root"))
        return [row for row in rows if row.columns["from_seq"] <= last and row.columns["until_seq"] > first]

    def _of_all(self, view: str) -> Sequence[tuple[str, ViewRow]]:
        return [
            (key[1], ViewRow({**change.key, **change.columns}, change.body, change.seq))
            for key, change in self.handle.state.views.items()
            if key[0] == view
        ]

    def telling(self, view: str, service: str, start_ns: int, end_ns: int, limit: int) -> Sequence[ViewRow]:
        best: dict[str, ViewRow] = {}
        for row in sorted(self.rows(view, service=service), key=telling_order):
            if row.columns["from_ns"] < end_ns and row.columns["to_ns"] > start_ns:
                best.setdefault(row.columns["series"], row)
        return list(best.values())[:limit]
