"""Doing a transaction again where another one was in its way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ledger.app.ports import Database, Transaction
from ledger.errors import VersionConflict

T = TypeVar("T")

TRIES = 3


def write(database: Database, work: Callable[[Transaction], T]) -> T:
    """``work`` in one transaction; again, up to three times, where somebody appended to its streams meanwhile.

    For work that decides anew from what it reads. Raises what the last try raises.
    """
    for _ in range(TRIES - 1):
        try:
            return _once(database, work)
        except VersionConflict:
            continue
    return _once(database, work)


def _once(database: Database, work: Callable[[Transaction], T]) -> T:
    with database.begin() as tx:
        return work(tx)
