"""A database in whose work another writer gets its word in, right before any look at it.

PostgreSQL takes no snapshot for who writes: between any two looks of a transaction another one may commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ledger.app.ports.store import Database, Receipt, Transaction
from ledger.errors import StorageUnavailable

HURRY = "options=-c%20lock_timeout%3D30"
"""Added to a URL: connections that wait for a lock no longer than 30 ms."""


@dataclass
class Turn:
    """When the other writer comes: right before the look ``before``, from 1 on; ``looks`` counts them.

    What keeps it waiting until a transaction is over, a lock say, it is told by ``StorageUnavailable``. Then it comes
    after that, and ``waited`` says so.
    """

    meanwhile: Callable[[], object]
    before: int
    looks: int = 0
    begun: list[int] = field(default_factory=list)
    """The looks that began a transaction."""
    waited: bool = False
    _waits: bool = False

    @property
    def came(self) -> bool:
        """Whether there was such a look."""
        return self.looks >= self.before

    @property
    def following(self) -> int | None:
        """The next look worth a try: of whom a lock keeps waiting, that is the begin of the next transaction."""
        return next((each for each in self.begun if each > self.before), None) if self.waited else self.before + 1

    def begin(self) -> None:
        self.begun.append(self.looks + 1)
        self.look()

    def look(self) -> None:
        self.looks += 1
        if self.looks == self.before:
            try:
                self.meanwhile()
            except StorageUnavailable:
                self.waited = self._waits = True

    def ended(self) -> None:
        if self._waits:
            self._waits = False
            self.meanwhile()


class Interleaved:
    """``meanwhile`` happens once: before a transaction begins, or before anything is read or written in one that
    writes, but for the first, before which nothing is seen or held. Everything else is the database's."""

    def __init__(self, database: Database, meanwhile: Callable[[], object], before: int) -> None:
        self.undisturbed = database
        self.turn = Turn(meanwhile, before)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.undisturbed, name)

    def of_tenant(self, tenant: str) -> Interleaved:
        other = Interleaved(self.undisturbed.of_tenant(tenant), self.turn.meanwhile, self.turn.before)
        other.turn = self.turn
        return other

    @contextmanager
    def begin(self) -> Iterator[Any]:
        self.turn.begin()
        try:
            with self.undisturbed.begin() as tx:
                yield _Looked(tx, _ButTheFirst(self.turn.look))
        finally:
            self.turn.ended()

    @contextmanager
    def read(self, **options: Any) -> Iterator[Transaction]:
        self.turn.begin()
        with self.undisturbed.read(**options) as tx:
            yield tx

    def append(self, *args: Any, **options: Any) -> tuple[Receipt, ...]:
        with self.begin() as tx:
            receipts: tuple[Receipt, ...] = tx.events.append(*args, **options)
        return receipts


@dataclass
class _ButTheFirst:
    look: Callable[[], None]
    first: bool = True

    def __call__(self) -> None:
        if not self.first:
            self.look()
        self.first = False


class _Looked:
    """A transaction, or one of its members: a call of whatever a member has is a look."""

    def __init__(self, of: Any, look: Callable[[], None], *, member: bool = False) -> None:
        self._of = of
        self._look = look
        self._member = member

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        if not self._member:
            return _Looked(found, self._look, member=True)

        def looked(*args: Any, **options: Any) -> Any:
            self._look()
            return found(*args, **options)

        return looked
