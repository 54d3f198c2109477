"""Lists that are continued by key: a page is read from its place on, so it costs the same wherever it stands.

Lists are ordered by what never changes of a row and nothing is ever removed, so a walk sees each row that was there
when it began exactly once, whatever is added meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.errors import CursorInvalid, NotFound

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a list in its order; ``last_id`` continues after them and is None at the end."""

    rows: Sequence[Row]
    last_id: str | None


@dataclass(frozen=True, slots=True)
class Starts:
    """Periods that start in [from_ns, to_ns); None: no bound on that side."""

    from_ns: int | None = None
    to_ns: int | None = None

    def place(self, after: tuple[int, str] | None) -> tuple[int, str] | None:
        """Where a list of these periods goes on: behind ``after``, and never before the first of them."""
        if self.from_ns is None:
            return after
        # Ids are not empty, so this place lies before everything that starts then.
        first = (self.from_ns, "")
        return first if after is None else max(after, first)


ANY_START = Starts()


def page_of(rows: Sequence[Row], limit: int, id_name: str) -> Page:
    """One row more than ``limit`` was asked for: it tells whether there is another page."""
    found = rows[:limit]
    return Page(found, str(found[-1][id_name]) if len(rows) > limit else None)


def place_of(
    after: str | None, find: Callable[[str], Row], among: frozenset[str] | None = None
) -> tuple[int, str] | None:
    """(start, id) of the row named ``after``. Raises ``CursorInvalid`` as ``row_of`` does."""
    return None if after is None else (row_of(after, find, among)["start_ns"], after)


def row_of(after: str, find: Callable[[str], Row], among: frozenset[str] | None = None) -> Row:
    """The row named ``after``, of the agreements ``among`` alone where they are given.

    Raises ``CursorInvalid`` where there is none: a cursor is text that anybody can write, and one that names what is
    not in the list must not tell whether it exists, or when.
    """
    try:
        row = find(after)
    except NotFound:
        raise no_place(after) from None
    if among is not None and row["sla_id"] not in among:
        raise no_place(after)
    return row


def no_place(after: str) -> CursorInvalid:
    """The error for a cursor that names no row."""
    return CursorInvalid("the cursor names nothing in this ledger; start again without one", after=after[:200])
