"""Doing something again: a transaction where another one was in its way, work where what it awaits is still to come."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ledger.app.ports.store import Database, Transaction
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import VersionConflict

T = TypeVar("T")

TRIES = 3

LONGEST_PAUSE_S = 300.0
"""How late work may notice that what it waited for is there."""


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


def pause_s(since_ns: int, now_ns: int, *, least_s: float) -> float:
    """How long to wait before the next look at what has been waited for since ``since_ns``.

    A tenth of the time it took so far: many that wait for days cost next to nothing, and nobody notices a thing much
    later than it would have come anyway. Not under ``least_s``, not over ``LONGEST_PAUSE_S`` unless that is.
    """
    tenth_s = (now_ns - since_ns) / (10 * SECOND_NS)
    return max(least_s, min(tenth_s, LONGEST_PAUSE_S))


def _once(database: Database, work: Callable[[Transaction], T]) -> T:
    with database.begin() as tx:
        return work(tx)
