"""Series that begin anew again and again: a process in trouble, or several that answer behind one address.

One restart is nothing special, and a fall of a counter is taken for one (``ledger.domain.rows.counters``). Where
several processes take turns behind one address every turn to a lower value looks like a restart, too, and counts a
whole value once more. By their values alone the two cannot be told apart; by their starts they can: no process begins
before one that was seen earlier."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from typing import Final, NamedTuple

OFTEN: Final = 3
"""So many restarts within the readings that are looked at are no longer taken as said."""


class SeriesReading(NamedTuple):
    """What one series said at an instant; ``start_ns`` is when it began to count, None where nobody knows."""

    at_ns: int
    value: Fraction | int
    start_ns: int | None


class Restarts(NamedTuple):
    """How often a series began anew. ``several``: no single process can have said all of it."""

    times: int
    several: bool

    @property
    def worth_saying(self) -> bool:
        return self.several or self.times >= OFTEN


def restarts_of(readings: Iterable[SeriesReading]) -> Restarts:
    """Of readings of one series, in any order."""
    times, several = 0, False
    for earlier, later in pairwise(sorted(readings, key=lambda each: each.at_ns)):
        falls = later.value < earlier.value
        if earlier.start_ns is None or later.start_ns is None:
            times += falls
        else:
            times += later.start_ns > earlier.start_ns
            several |= later.start_ns < earlier.start_ns or (falls and later.start_ns == earlier.start_ns)
    return Restarts(times, several)
