"""How far followers of the log have come."""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from ledger.errors import VersionConflict
from ledger.store import tables
from ledger.store.dialects import insert_for

_row = tables.follower.c


class SqlFollowers:
    """``ledger.app.ports.store.Followers``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def position(self, name: str) -> int:
        return int(self._connection.scalar(select(_row.next_seq).where(_row.name == name)) or 0)

    def advance(self, name: str, *, before: int, now: int) -> None:
        if before == 0:
            start = insert_for(self._connection, tables.follower).values(name=name, next_seq=0)
            self._connection.execute(start.on_conflict_do_nothing())
        moved = self._connection.execute(
            update(tables.follower).where(_row.name == name, _row.next_seq == before).values(next_seq=now)
        )
        if moved.rowcount != 1:
            raise moved_on(name, before)


def moved_on(name: str, before: int) -> VersionConflict:
    """The error for a follower that another process moved on."""
    return VersionConflict(
        f"another process moved {name} on from {before}; go on from where it is now", follower=name, position=before
    )
