"""Readings of latency histograms as facts: how many requests of each window were within a threshold, as far as known.

Every bucket of a series is a counter that only rises until its process starts again, so the step from one reading to
the next is a histogram of its own (``ledger.domain.facts.histogram``), on the bounds that both have. A step counts,
whole, in the window in which it was seen, as steps of counters do (``ledger.domain.facts.counter_log``); a window
that nobody read has no data. What the bounds leave open about the threshold stays undecided. Restarts are told by the
count of all values and by the start, and are those of all buckets at once. Another reading of a series for one
instant is a conflict, and then that is no reading.

A sketch of relative accuracy (DDSketch) is no reading but counts by itself: what came since the sketch before it, each
value within alpha of how it is shown. It counts where it ends, and sketches in conflict count once, as bad, as much as
the largest of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from ledger.domain.facts.counter_log import MAX_VALUE
from ledger.domain.facts.feeds import FactBook, Shown
from ledger.domain.facts.histogram import INFINITE, Histogram, sketched_within
from ledger.domain.facts.samples import Refused
from ledger.domain.facts.series_readings import kind_of_readings, reading_places
from ledger.domain.money import format_plain
from ledger.domain.rows.observation import Reason
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.log_kinds import HISTOGRAMS
from ledger.domain.terms.objective import Objective
from ledger.domain.time.instant import SECOND_NS, format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.domain.windows.step_places import StepPlaces
from ledger.domain.windows.window import MAX_COUNT, Cell, Window, counting
from ledger.errors import ImplausibleCounts


class Sketch(NamedTuple):
    """Counts of values in seconds as a sketch shows them, each within the share ``alpha`` of what it was."""

    alpha: Fraction
    shown: tuple[tuple[Fraction, int], ...]

    @property
    def total(self) -> int:
        return sum(count for _, count in self.shown)


class HistogramRow(NamedTuple):
    """One usable row of a histogram log: the cumulative buckets (``le`` in seconds, count) of one series at an instant,
    or a ``sketch`` of what came until then.

    ``series`` is the canonical text of its labels without ``le``; ``body_digest`` is over buckets and start alone, with
    bounds as numbers. ``start_ns`` is when the process began to count, None where nobody knows.
    """

    line: int
    histogram: str
    series: str
    body_digest: bytes
    service: str
    at_ns: int
    buckets: tuple[tuple[str, int], ...]
    start_ns: int | None
    sketch: Sketch | None = None

    @property
    def is_step(self) -> bool:
        return self.sketch is None


class _Reading(NamedTuple):
    series: str
    at_ns: int
    found: Histogram
    start_ns: int | None


def _refused(agreement: Agreement, row: HistogramRow) -> Refused | None:
    if row.histogram not in {each.source.histogram for each in agreement.objectives}:
        return Refused(Reason.NOT_PROMISED, "histogram", f"no objective is counted from {row.histogram[:80]!r}")
    if row.sketch is not None:
        return _refused_sketch(row.sketch)
    try:
        found = Histogram.of(row.buckets)
    except ImplausibleCounts as error:
        return Refused(Reason.IMPLAUSIBLE, "buckets", error.message)
    if min((*found.counts, found.total)) < 0:
        return Refused(Reason.IMPLAUSIBLE, "buckets", "a count is below 0")
    if found.total >= MAX_VALUE:
        return Refused(Reason.IMPLAUSIBLE, "buckets", f"no process counts 2^63 values or more; {INFINITE} does")
    if row.start_ns is not None and row.start_ns > row.at_ns:
        return Refused(Reason.IMPLAUSIBLE, "start", "a process cannot have begun after its histogram was read")
    return None


def _refused_sketch(sketch: Sketch) -> Refused | None:
    if not 0 < sketch.alpha < 1:
        return Refused(Reason.IMPLAUSIBLE, "sketch.alpha", f"{sketch.alpha} is not between 0 and 1")
    if any(value < 0 or count < 0 for value, count in sketch.shown):
        return Refused(Reason.IMPLAUSIBLE, "sketch.values", "no latency and no count is below 0")
    if sketch.total > MAX_COUNT:
        return Refused(Reason.IMPLAUSIBLE, "sketch.values", f"counts more values than {MAX_COUNT} in one window")
    return None


def _series(row: HistogramRow) -> tuple[str, str]:
    return row.histogram, row.series


def _identity(row: HistogramRow) -> str:
    return f"{row.histogram}{row.series}@{row.at_ns}"


def _told(row: HistogramRow) -> Shown:
    if row.sketch is not None:
        values = (f"{format_plain(value)} s: {count}" for value, count in row.sketch.shown)
        return Shown(row.at_ns, f"within {format_plain(row.sketch.alpha)} of {', '.join(values)}")
    since = "" if row.start_ns is None else f", counted since {format_instant_ns(row.start_ns)}"
    return Shown(row.at_ns, ", ".join(f"le {bound}: {count}" for bound, count in row.buckets) + since)


HISTOGRAM_FACTS = kind_of_readings(
    HISTOGRAMS, HistogramRow, identity=_identity, series_of=_series, refused=_refused, shown=_told
)


class HistogramBook(FactBook[HistogramRow]):
    """The readings that reach into one period."""

    kind = HISTOGRAM_FACTS
    looks_around = True

    def _cells(self, objective: Objective, windows: Sequence[Window]) -> Sequence[Cell | None]:
        threshold = Fraction(objective.threshold_ns or 0, SECOND_NS)
        sums: dict[int, list[int]] = {}
        places = StepPlaces([window.interval for window in windows], self._excluded, self._declared(windows))
        for row in self._rows:
            # A reading in conflict shows that somebody looked, too.
            if row.histogram == objective.source.histogram and row.sketch is None:
                for at in self._windows_of(Interval(row.at_ns - 1, row.at_ns)):
                    sums.setdefault(at, [0, 0, 0])
        for readings in self._readings(objective.source.histogram):
            for since_ns, at_ns, step in _steps(readings, self._period.interval):
                placed = places.place((objective.source.histogram, readings[0].series), since_ns, at_ns)
                if placed is not None:
                    with counting(objective.id, windows[placed].interval):
                        _add(sums.setdefault(placed, [0, 0, 0]), step.within(threshold))
        self._moved += places.moved
        for at_ns, sketches in self._sketched(objective.source.histogram):
            for at in self._windows_of(Interval(at_ns - 1, at_ns)):
                counts = sums.setdefault(at, [0, 0, 0])
                if self._excluded.position(at_ns - 1) is None:
                    with counting(objective.id, windows[at].interval):
                        _add(counts, _shown(sketches, threshold))
        return [_summed(objective, windows[at], sums.get(at)) for at in range(len(windows))]

    def _places(self) -> Mapping[str, Iterable[Interval]]:
        places, moved = reading_places(self._rows, _series), self._moved_ends()
        return {self.kind.identity(row): found + moved.get((_series(row), row.at_ns), []) for row, found in places}

    def _readings(self, name: str | None) -> Iterator[list[_Reading]]:
        """Of each series its readings up to the end of the period, in order, without those in conflict."""
        of_series: dict[str, dict[int, list[HistogramRow]]] = {}
        for row in self._rows:
            if row.histogram == name and row.at_ns <= self._period.interval.end_ns:
                of_series.setdefault(row.series, {}).setdefault(row.at_ns, []).append(row)
        for series, by_instant in of_series.items():
            yield [
                _Reading(series, at_ns, Histogram.of(rows[0].buckets), rows[0].start_ns)
                for at_ns, rows in sorted(by_instant.items())
                if len(rows) == 1 and rows[0].sketch is None
            ]

    def _sketched(self, name: str | None) -> Iterator[tuple[int, list[Sketch]]]:
        """Where sketches end; several for one series and instant are in conflict."""
        of_place: dict[tuple[str, int], list[Sketch]] = {}
        for row in self._rows:
            if row.histogram == name and row.sketch is not None:
                of_place.setdefault((row.series, row.at_ns), []).append(row.sketch)
        for (_, at_ns), found in of_place.items():
            yield at_ns, found


def _shown(sketches: Sequence[Sketch], threshold: Fraction) -> Cell:
    """What a sketch says of the threshold."""
    if len(sketches) > 1:
        return Cell(0, max(each.total for each in sketches))
    return sketched_within(dict(sketches[0].shown), threshold, sketches[0].alpha)


def _summed(objective: Objective, window: Window, counts: list[int] | None) -> Cell | None:
    if counts is None:
        return None
    with counting(objective.id, window.interval):
        return Cell(*counts)


def _add(counts: list[int], cell: Cell) -> None:
    for place, count in enumerate((cell.good, cell.bad, cell.undecided)):
        counts[place] += count


def _steps(readings: Sequence[_Reading], within: Interval) -> Iterator[tuple[int, int, Histogram]]:
    """What was seen at each reading of a span, and since when: from the last one before it, or else from the first."""
    before = sum(each.at_ns <= within.start_ns for each in readings)
    counted = readings[max(before - 1, 0) :]
    first = counted[0] if counted else None
    if (
        first is not None
        and first.start_ns is not None
        and within.start_ns <= first.start_ns
        and within.start_ns < first.at_ns
    ):
        yield first.start_ns, first.at_ns, first.found
    for earlier, later in pairwise(counted):
        found = later.found if _restarted(earlier, later) else _difference(earlier, later)
        yield earlier.at_ns, later.at_ns, found


def _restarted(earlier: _Reading, later: _Reading) -> bool:
    if earlier.start_ns is not None and later.start_ns is not None:
        return later.start_ns > earlier.start_ns
    return later.found.total < earlier.found.total


def _difference(earlier: _Reading, later: _Reading) -> Histogram:
    """The values between two readings, on the bounds that both have."""
    known = dict(zip(earlier.found.bounds, earlier.found.counts, strict=True))
    shared = [
        (bound, count - known[bound])
        for bound, count in zip(later.found.bounds, later.found.counts, strict=True)
        if bound in known
    ]
    counts, total = [count for _, count in shared], later.found.total - earlier.found.total
    if [0, *counts, total] != sorted([0, *counts, total]):
        raise ImplausibleCounts(
            f"{later.series[:200]}: the histogram changed by {[*counts, total]} until "
            f"{format_instant_ns(later.at_ns)}, and cumulative counts rise with their bounds and never fall without a "
            "newer start; do several processes answer behind one name? Tell them apart by a label",
            series=later.series[:200],
            at_ns=str(later.at_ns),
        )
    return Histogram(tuple(bound for bound, _ in shared), tuple(counts), total)
