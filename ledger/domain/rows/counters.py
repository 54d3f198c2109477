"""Counters that only rise, until their process starts again: what happened in a span, exactly.

First the increase of every series, then the sum: a sum taken first would fall at every restart and look like a restart
of all. Nothing is extrapolated to the edges of a span, so good never exceeds all for that reason.

* A series' increase in a span is the sum of its steps, from its last reading at or before the start (else from its
  first in the span: what it counted before that is not known to belong here) to its last at or before the end. So a
  step belongs, whole, to the span in which it was seen.
* A counter that names a newer start, or falls without naming any, started again from 0: the new value is the step.
  One that falls within the same start is refused: several processes answer behind one name.
* The same value for an instant twice is one reading; another value for it is a conflict, and then no reading.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from ledger.domain.rows.observation import Verdict
from ledger.domain.time.instant import format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.errors import ImplausibleCounts


class _Reading(NamedTuple):
    at_ns: int
    value: Fraction
    start_ns: int | None


class Step(NamedTuple):
    """By how much a series rose, the instant at which that was seen, and the one since which it did."""

    series: Hashable
    at_ns: int
    size: Fraction
    since_ns: int


class Counters:
    """Readings of the series that count one thing, in any order. A series is told by whatever its labels are."""

    def __init__(self) -> None:
        self._series: dict[Hashable, dict[int, _Reading | None]] = {}

    def add(self, series: Hashable, at_ns: int, value: Fraction | int, start_ns: int | None = None) -> Verdict:
        """Take a reading. Raises ``ImplausibleCounts`` where it is negative."""
        if value < 0:
            raise ImplausibleCounts(
                f"{series}: a counter of {value} is below 0; correct the source", series=str(series)
            )
        readings = self._series.setdefault(series, {})
        reading = _Reading(at_ns, Fraction(value), start_ns)
        if at_ns not in readings:
            readings[at_ns] = reading
            return Verdict.ACCEPTED
        if readings[at_ns] == reading:
            return Verdict.DUPLICATE
        # Nobody can say which value is true; the readings before and after it bound what happened.
        readings[at_ns] = None
        return Verdict.CONFLICT

    def steps(self, within: Interval) -> Iterator[Step]:
        """The steps of every series that has a reading up to the end of the span.

        Raises ``ImplausibleCounts`` where a series falls within one start.
        """
        for series, readings in self._readings(within):
            yield from self._steps_of(series, readings, within)

    def read_at(self) -> set[int]:
        """The instants at which a series was read; a reading in conflict shows that somebody looked, too."""
        return {at_ns for found in self._series.values() for at_ns in found}

    def _readings(self, within: Interval) -> Iterator[tuple[Hashable, list[_Reading]]]:
        for series, by_instant in self._series.items():
            found = [each for _, each in sorted(by_instant.items()) if each is not None and each.at_ns <= within.end_ns]
            if found:
                yield series, found

    @staticmethod
    def _steps_of(series: Hashable, readings: list[_Reading], within: Interval) -> Iterator[Step]:
        before = sum(each.at_ns <= within.start_ns for each in readings)
        counted = readings[max(before - 1, 0) :]
        first = counted[0]
        began_here = first.start_ns is not None and within.start_ns <= first.start_ns and first.at_ns > within.start_ns
        if began_here and first.start_ns is not None:
            yield Step(series, first.at_ns, first.value, first.start_ns)
        for earlier, later in pairwise(counted):
            from_value = Fraction(0) if _restarted(series, earlier, later) else earlier.value
            yield Step(series, later.at_ns, later.value - from_value, earlier.at_ns)


def _restarted(series: Hashable, earlier: _Reading, later: _Reading) -> bool:
    if earlier.start_ns is not None and later.start_ns is not None:
        if later.start_ns > earlier.start_ns:
            return True
    elif later.value < earlier.value:
        return True
    if later.value < earlier.value:
        raise ImplausibleCounts(
            f"{str(series)[:200]}: the counter went from {earlier.value} back to {later.value} until "
            f"{format_instant_ns(later.at_ns)} without a newer start; "
            "do several processes answer behind one name? Tell them apart by a label",
            series=str(series)[:200],
            at_ns=str(later.at_ns),
        )
    return False
