"""Half-open intervals [start_ns, end_ns) and their unions: overlaps count once (semantics 4 and 5)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
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
            merged[-1] = Interval(merged[-1].start_ns, max(interval.end_ns, merged[-1].end_ns))
        else:
            merged.append(interval)
    return tuple(merged)


def covered(window: Interval, disjoint: Sequence[Interval]) -> bool:
    """True where one interval of a ``union`` holds the whole window."""
    at = bisect_right(disjoint, window.start_ns, key=_start) - 1
    return at >= 0 and disjoint[at].covers(window)


def clip(interval: Interval, within: Interval) -> Interval | None:
    """The part that both have; None where they share no instant."""
    start_ns, end_ns = max(interval.start_ns, within.start_ns), min(interval.end_ns, within.end_ns)
    return Interval(start_ns, end_ns) if start_ns < end_ns else None


def clipped(disjoint: Iterable[Interval], within: Interval) -> tuple[Interval, ...]:
    """The instants of a ``union`` that lie in ``within``."""
    found = (clip(interval, within) for interval in disjoint)
    return tuple(part for part in found if part is not None)


def minus(disjoint: Iterable[Interval], without: Sequence[Interval]) -> tuple[Interval, ...]:
    """The instants of one ``union`` that are not in the other."""
    left: list[Interval] = []
    for interval in disjoint:
        start_ns = interval.start_ns
        cut_by = slice(bisect_right(without, start_ns, key=_end), bisect_left(without, interval.end_ns, key=_start))
        for hole in without[cut_by]:
            if start_ns < hole.start_ns:
                left.append(Interval(start_ns, hole.start_ns))
            start_ns = hole.end_ns
        if start_ns < interval.end_ns:
            left.append(Interval(start_ns, interval.end_ns))
    return tuple(left)


def _start(interval: Interval) -> int:
    return interval.start_ns


def _end(interval: Interval) -> int:
    return interval.end_ns
