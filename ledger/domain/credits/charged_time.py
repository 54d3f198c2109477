"""What of a base falls on a time, in time that grows with the charges and the incidents and not with their product.

A charge falls evenly on the time that its resource was there and not excluded, and not at all on what is excluded. So
what falls on all time up to an instant is a line over the time that is not excluded, which bends where a resource comes
or goes: it is worked out once at each bend, and each question is two look-ups. Sums are whole numbers over one common
denominator, because adding fractions one by one reduces each anew.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate
from math import lcm

from ledger.domain.time.interval import Interval


class ChargedTime:
    """``parts`` are amounts and the life that each is for; ``excluded`` (disjoint, sorted) is no time of any.

    ``full``: a life is divided by as it is, and still nothing falls on what is excluded.
    """

    def __init__(
        self, parts: Iterable[tuple[Fraction, Interval]], excluded: Sequence[Interval] = (), *, full: bool = False
    ) -> None:
        by_life: defaultdict[Interval, list[Fraction]] = defaultdict(list)
        for amount, life in parts:
            by_life[life].append(amount)
        self._taken = _Taken(excluded)
        lived_by = _Taken(()) if full else self._taken
        rates = {
            life: total(amounts) * Fraction(1, lived)
            for life, amounts in by_life.items()
            if (lived := lived_by.left_of(life.start_ns, life.end_ns)) > 0
        }
        self._whole = lcm(*(rate.denominator for rate in rates.values()))
        bends: defaultdict[int, int] = defaultdict(int)
        for life, rate in rates.items():
            slope = rate.numerator * (self._whole // rate.denominator)
            bends[life.start_ns] += slope
            bends[life.end_ns] -= slope
        self._at_ns = sorted(bends)
        self._slopes = list(accumulate(bends[at_ns] for at_ns in self._at_ns))
        steps = zip(self._at_ns, self._at_ns[1:], self._slopes, strict=False)
        fallen = (slope * self._taken.left_of(start_ns, end_ns) for start_ns, end_ns, slope in steps)
        self._sums = list(accumulate(fallen, initial=0))
        self._per_ns = total(rates.values())

    def charge(self, time: Interval) -> Fraction:
        """What falls on a part of the period, in minor units."""
        return Fraction(self._until(time.end_ns) - self._until(time.start_ns), self._whole)

    def charge_for(self, length_ns: int) -> Fraction:
        """What falls on a time of this length of every resource, wherever it lies."""
        return self._per_ns * length_ns

    def _until(self, instant_ns: int) -> int:
        at = bisect_right(self._at_ns, instant_ns) - 1
        return 0 if at < 0 else self._sums[at] + self._slopes[at] * self._taken.left_of(self._at_ns[at], instant_ns)


class _Taken:
    """How much of a time disjoint, sorted intervals leave."""

    def __init__(self, intervals: Sequence[Interval]) -> None:
        self._intervals = intervals
        self._starts_ns = [each.start_ns for each in intervals]
        self._sums = list(accumulate((each.duration_ns for each in intervals), initial=0))

    def left_of(self, start_ns: int, end_ns: int) -> int:
        return end_ns - start_ns - (self._until(end_ns) - self._until(start_ns))

    def _until(self, instant_ns: int) -> int:
        at = bisect_right(self._starts_ns, instant_ns)
        over = max(0, self._intervals[at - 1].end_ns - instant_ns) if at else 0
        return self._sums[at] - over


def total(amounts: Iterable[Fraction]) -> Fraction:
    """The exact sum, reduced once."""
    found = list(amounts)
    whole = lcm(*{each.denominator for each in found})
    return Fraction(sum(each.numerator * (whole // each.denominator) for each in found), whole)
