"""A database in whose write transactions another writer gets its word in, between any two looks at the events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ledger.app.ports.store import Database, Transaction


class Interleaved:
    """``meanwhile`` happens once, right before the look ``before`` (from 1 on) of the write transactions; ``looks``
    counts them. Everything else is the database's."""

    def __init__(self, database: Database, meanwhile: Callable[[], object], before: int) -> None:
        self._database = database
        self._meanwhile = meanwhile
        self._before = before
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    @property
    def came(self) -> bool:
        """Whether there was such a look."""
        return self.looks >= self._before

    @contextmanager
    def begin(self) -> Iterator[Any]:
        with self._database.begin() as tx:
            yield _Looked(tx, self._look)

    def _look(self) -> None:
        self.looks += 1
        if self.looks == self._before:
            self._meanwhile()


class _Looked:
    def __init__(self, tx: Transaction, look: Callable[[], None]) -> None:
        self._tx = tx
        self.events = _Events(tx.events, look)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


class _Events:
    def __init__(self, events: Any, look: Callable[[], None]) -> None:
        self._events = events
        self._look = look

    def __getattr__(self, name: str) -> Any:
        """Every method of the store, ``append`` as well: the last moment is right before it."""
        method = getattr(self._events, name)

        def looked(*args: Any, **options: Any) -> Any:
            self._look()
            return method(*args, **options)

        return looked
