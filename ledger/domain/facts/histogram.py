"""Latencies that came as counts: how many were within a threshold, as far as the counts can say.

A cumulative histogram knows exactly how many values are at or under each of its bounds, and nothing between them. So a
threshold that is a bound is decided; any other one leaves those between its two neighbours undecided. A sketch of
relative accuracy alpha knows each value within alpha of itself, and leaves undecided what it shows within alpha of the
threshold. Interpolated quantiles are for display and never decide anything.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ledger.domain.windows.window import Cell
from ledger.errors import ImplausibleCounts

INFINITE = "+Inf"

_BOUND = re.compile(r"[+-]?\d{1,30}(\.\d{1,30})?([eE][+-]?\d{1,3})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Histogram:
    """``counts[n]`` values are at or under ``bounds[n]``; ``total`` counts all, those above the last bound too."""

    bounds: tuple[Fraction, ...]
    counts: tuple[int, ...]
    total: int

    @classmethod
    def of(cls, buckets: Iterable[tuple[str, int]]) -> Histogram:
        """A histogram from its cumulative buckets (``le``, count) in any order.

        Bounds are numbers, so ``1`` and ``1.0`` are one. Raises ``ImplausibleCounts`` where a bucket has two counts,
        counts fall as bounds rise, a bound is no number, or the bucket ``+Inf`` of all values is missing.
        """
        found: dict[Fraction | None, int] = {}
        for text, count in buckets:
            bound = None if text == INFINITE else _bound(text)
            if found.setdefault(bound, count) != count:
                raise ImplausibleCounts(f"the bucket {text} has the counts {found[bound]} and {count}", bucket=text)
        total = found.get(None)
        if total is None:
            raise ImplausibleCounts(f"the bucket {INFINITE} is missing: nobody knows how many values there are")
        ordered = sorted((bound, count) for bound, count in found.items() if bound is not None)
        counts = [count for _, count in ordered]
        if [0, *counts, total] != sorted([0, *counts, total]):
            raise ImplausibleCounts(f"cumulative counts must rise with their bounds, not {[*counts, total]}")
        return cls(tuple(bound for bound, _ in ordered), tuple(counts), total)

    def within(self, threshold: Fraction) -> Cell:
        """Values at or under the threshold are good, those above bad, those that may be either undecided."""
        at = bisect_right(self.bounds, threshold)
        sure = self.counts[at - 1] if at else 0
        if at and self.bounds[at - 1] == threshold:
            return Cell(sure, self.total - sure)
        most = self.counts[at] if at < len(self.counts) else self.total
        return Cell(sure, self.total - most, most - sure)

    def shown_quantile(self, q: Fraction) -> Fraction | None:
        """The quantile that dashboards show, interpolated as Prometheus does it; None where there are no values.

        For display only: it supposes values spread evenly over a bucket, and that none lies above the last bound.
        """
        if self.total == 0 or not self.bounds:
            return None
        rank = q * self.total
        at = bisect_left(self.counts, rank)
        if at == len(self.bounds):
            return self.bounds[-1]
        end = self.bounds[at]
        if at == 0 and end <= 0:
            return end
        start, before = (self.bounds[at - 1], self.counts[at - 1]) if at else (Fraction(0), 0)
        inside = self.counts[at] - before
        return end if inside == 0 else start + (end - start) * (rank - before) / inside  # exact: Fractions


def shown_interval(value: Fraction, alpha: Fraction) -> tuple[Fraction, Fraction]:
    """Between which values a sketch of relative accuracy ``alpha`` may show a value."""
    return value * (1 - alpha), value * (1 + alpha)


def sketched_within(shown: Mapping[Fraction, int], threshold: Fraction, alpha: Fraction) -> Cell:
    """What a sketch says of a threshold: ``shown`` has the count of each value as the sketch shows it.

    A value at or under the threshold is never shown above ``threshold * (1 + alpha)``, and one above it never at or
    under ``threshold * (1 - alpha)``.
    """
    low, high = shown_interval(threshold, alpha)
    good = sum(count for value, count in shown.items() if value <= low)
    bad = sum(count for value, count in shown.items() if value > high)
    return Cell(good, bad, sum(shown.values()) - good - bad)


def _bound(text: str) -> Fraction:
    if not _BOUND.fullmatch(text):
        raise ImplausibleCounts(f"the bucket bound {text[:40]!r} is no number", bucket=text[:40])
    return Fraction(text)
