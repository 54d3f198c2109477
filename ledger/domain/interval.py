"""Half-open intervals [start_ns, end_ns) and their unions: overlaps count once (semantics 4 and 5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ledger.errors import IntervalInvalid


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """Instants t with start_ns <= t < end_ns, in nanoseconds since the epoch; never empty."""

    start_ns: int
    end_ns: int

    def __post_init__(self) -> None:
        if self.end_ns <= self.start_ns:
            raise IntervalInvalid("an interval must end after it starts", start_ns=self.start_ns, end_ns=self.end_ns)

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns

    def __contains__(self, instant_ns: int) -> bool:
        return self.start_ns <= instant_ns < self.end_ns

    def covers(self, other: Interval) -> bool:
        """True where every instant of ``other`` lies inside this interval."""
        return self.start_ns <= other.start_ns and other.end_ns <= self.end_ns


def union(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """The same instants as sorted, disjoint, non-touching intervals."""
    merged: list[Interval] = []
    for interval in sorted(intervals):
        if merged and interval.start_ns <= merged[-1].end_ns:
            if interval.end_ns > merged[-1].end_ns:
                merged[-1] = Interval(merged[-1].start_ns, interval.end_ns)
        else:
            merged.append(interval)
    return tuple(merged)


def covered(window: Interval, disjoint: Sequence[Interval]) -> bool:
    """True where one interval of a ``union`` holds the whole window."""
    return any(interval.covers(window) for interval in disjoint)
