"""The periods of an agreement: where they begin and end, which one holds an instant, and what is a part of one.

A grid of dates starts at an anchor and goes on in steps of a calendar length, in both directions. Months keep the
anchor's day and are cut to the month's last one: 31 January, 28 February, 31 March. The term [first, until) is laid
over the grid; a period that it cuts is dropped or kept as a part, named by its first date and its length in days
(``2026-03-01/P14D``). Where the step is shorter than the length, periods roll and overlap.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property, lru_cache

from ledger.domain.schema import fail
from ledger.domain.time.calendar import Period, PeriodLength, add_months, local_moment, make_period, parse_period_length
from ledger.domain.time.instant import DAY_NS, SECOND_NS
from ledger.domain.time.interval import Interval
from ledger.errors import CalendarInvalid

MAX_WINDOWS = 100_000
MAX_PART_DAYS = 999
"""Days of the longest part that a period's name can say."""
_EPOCH_DAY = date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class PeriodGrid:
    """The periods of one term. Dates are local to ``zone`` and begin ``day_start_s`` seconds after midnight by the
    wall clock.

    ``keeps_first`` and ``keeps_last``: whether a period that the term's first or last date cuts is kept as a part.
    """

    first: date
    until: date
    length: PeriodLength
    zone: str
    anchor: date
    step: PeriodLength
    day_start_s: int = 0
    keeps_first: bool = False
    keeps_last: bool = False

    @property
    def rolling(self) -> bool:
        """Whether periods overlap."""
        return self.step != self.length

    def boundary(self, index: int) -> date:
        """The date on which period ``index`` of the grid starts; the anchor has index 0."""
        if self.step.unit == "M":
            return add_months(self.anchor, index * self.step.count)
        return self.anchor + timedelta(days=index * self.step.days)

    def all(self) -> Iterator[Period]:
        """Every period in order; raises ``CalendarInvalid`` for one that the zone has no instants for."""
        return (self.period(index) for index in self._indexes)

    @property
    def empty(self) -> bool:
        """Whether the term holds no period."""
        return not self._indexes

    @property
    def ends(self) -> tuple[Period, ...]:
        """The first and the last period; nothing where there is none."""
        return () if self.empty else (self.period(self._indexes[0]), self.period(self._indexes[-1]))

    def local_date(self, instant_ns: int) -> date:
        """The local day of an instant; days begin when the term's do."""
        moment = local_moment(instant_ns, self.zone)
        return (moment.replace(tzinfo=None) - timedelta(seconds=self.day_start_s)).date()

    def starting(self, first: date) -> Period:
        """The period whose first local date is ``first``; raises ``DocumentInvalid`` if none is."""
        found = self.at_index(self._index_of(first))
        if found is None or found.first != first:
            raise fail(
                "period",
                f"no period of this agreement starts on {first}: periods of {self.length} run from {self.first} "
                f"to {self.until}, counted from {self.anchor}",
            )
        return found

    def at(self, instant_ns: int) -> Period | None:
        """The period that holds an instant, of overlapping ones the latest; None before, after and between them."""
        day = _EPOCH_DAY + instant_ns // DAY_NS
        # No clock shows the instants at the two ends of the calendar.
        if self.empty or not self.first.toordinal() - 2 <= day <= self.until.toordinal() + 2:
            return None
        shown = local_moment(instant_ns, self.zone).date()
        # A clock that goes back over midnight shows the day before; a day may start later than at midnight.
        for days in (1, 0, -1):
            index = min(self._index_of(shown + timedelta(days=days)), self._indexes[-1])
            found = self.at_index(index)
            if found is not None and instant_ns in found.interval:
                return found
        return None

    def ending_after(self, instant_ns: int) -> Period | None:
        """The earliest period that ends after an instant; None where all are over."""
        at = bisect_right(self._indexes, instant_ns, key=self._end_ns)
        return self.period(self._indexes[at]) if at < len(self._indexes) else None

    def after(self, period: Period) -> Period | None:
        """The period after one of this grid; None after the last."""
        return self.at_index(self._index_of(period.first) + 1)

    def before(self, period: Period) -> Period | None:
        """The period before one of this grid; None before the first."""
        return self.at_index(self._index_of(period.first) - 1)

    def uncut(self, first: date, back: int = 0) -> Period:
        """The whole that holds a local date, or the one ``back`` steps before it: as if the term had no bounds.

        Raises ``CalendarInvalid``.
        """
        return self._uncut(self._index_of(first) - back)

    def uncut_starting(self, first: date) -> tuple[Period, int] | None:
        """The whole that starts on a local date, and its index; None where the grid has no boundary there."""
        index = self._index_of(first)
        return (self._uncut(index), index) if self.boundary(index) == first else None

    def at_index(self, index: int) -> Period | None:
        """Period ``index`` of the grid, cut to the term; None where the term does not have it."""
        return self.period(index) if index in self._indexes else None

    def cycles_after(self, period: Period, count: int) -> date:
        """The date on which the ``count``-th cycle after the one of a period ends; a part is in that of its whole."""
        return self.boundary(self._index_of(period.first) + 1 + count)

    def touching(self, interval: Interval) -> Iterator[Period]:
        """Every period that shares an instant with an interval, in order; rolling ones overlap."""
        period = self.ending_after(interval.start_ns)
        while period is not None and period.interval.start_ns < interval.end_ns:
            yield period
            period = self.after(period)

    def sharing(self, within: Interval) -> Iterator[Period]:
        """The periods that share an instant with an interval; of overlapping ones as many as fit side by side."""
        end_ns = 0
        for period in self.touching(within):
            if period.interval.start_ns >= end_ns:
                yield period
                end_ns = period.interval.end_ns

    def period(self, index: int) -> Period:
        """Period ``index`` of the grid, cut to the term. Raises ``CalendarInvalid``."""
        start, end = self._dates(index)
        whole = self._uncut(index)
        first, last = max(start, self.first), min(end, self.until)
        if (first, last) == (start, end):
            return whole
        days = PeriodLength((last - first).days, "D")
        part = make_period(first, days, self.zone, day_start_s=self.day_start_s)
        return Period(part.first, part.length, part.zone, part.interval, whole.interval)

    def _uncut(self, index: int) -> Period:
        start, end = self._dates(index)
        return make_period(start, self.length, self.zone, end=end, day_start_s=self.day_start_s)

    @cached_property
    def _indexes(self) -> range:
        first, last = self._index_of(self.first), self._index_of(self.until)
        if self.boundary(first) < self.first and not self.keeps_first:
            first += 1
        while last >= first and not self._kept_last(last):
            last -= 1
        return range(first, last + 1)

    def _end_ns(self, index: int) -> int:
        return self.period(index).interval.end_ns

    def _kept_last(self, index: int) -> bool:
        start, end = self._dates(index)
        return start < self.until and (end <= self.until or self.keeps_last)

    def _dates(self, index: int) -> tuple[date, date]:
        start = self.boundary(index)
        if self.step.unit == "M":
            # Not from the start, which may be the last day of a month that is too short for the anchor's.
            return start, add_months(self.anchor, index * self.step.count + self.length.count)
        return start, self.length.after(start)

    def _index_of(self, day: date) -> int:
        """The last period of the grid that starts on a local date or before it."""
        if self.step.unit != "M":
            return (day - self.anchor).days // self.step.days
        months = (day.year - self.anchor.year) * 12 + day.month - self.anchor.month
        index = months // self.step.count
        return index if self.boundary(index) <= day else index - 1


def count_windows(period: Period, window_seconds: int) -> int:
    """How many equal windows fill a period; raises ``DocumentInvalid`` where they do not, or are too many."""
    duration_s = period.interval.duration_ns // SECOND_NS
    count, rest = divmod(duration_s, window_seconds)
    if count == 0:
        raise fail(
            "window",
            f"a window of {window_seconds} s is longer than the period {period} of {duration_s} s; agree on a "
            "shorter window",
        )
    if rest:
        raise fail(
            "window",
            f"the period {period} lasts {duration_s} s in {period.zone}, which is not a whole number of "
            f"{window_seconds} s windows; agree on a shorter window",
        )
    if count > MAX_WINDOWS:
        raise fail("window", f"{period} would have {count} windows; agree on longer ones, at most {MAX_WINDOWS}")
    return count


@lru_cache(maxsize=1024)
def most_windows(grid: PeriodGrid, window_seconds: int) -> int:
    """Windows of the longest period of a grid.

    Raises ``DocumentInvalid`` where the term holds no period, a part of one is too long for a name, or windows do not
    fill one.
    """
    counts = []
    try:
        for period in grid.all():
            if period.whole is not None and period.length.count > MAX_PART_DAYS:
                raise fail(
                    "partial_periods",
                    f"prorate: the part from {period.first} has {period.length.count} days, and its name can say "
                    f"{MAX_PART_DAYS}; agree on shorter periods",
                )
            counts.append(count_windows(period, window_seconds))
    except CalendarInvalid as error:
        raise fail("timezone", error.message) from error
    if not counts:
        raise fail("period", f"no whole period of {grid.length} fits between effective.from and effective.until")
    return max(counts)


def rolling_step(length: PeriodLength, text: str) -> PeriodLength:
    """The step of periods of ``length``; raises ``CalendarInvalid`` unless whole steps fill a period, so that some
    periods always lie side by side."""
    step = parse_period_length(text)
    if "M" not in (length.unit, step.unit):
        fits = length.days % step.days == 0
    elif length.unit == step.unit:
        fits = length.count % step.count == 0
    else:
        fits = length.unit == "M" and step.days == 1
    if not fits:
        raise CalendarInvalid(
            f"a period of {length} is no whole number of steps of {step}; take one that fills it, such as P1D",
            text=text[:20],
        )
    # Seven days and a week are the same step.
    return length if "M" not in (length.unit, step.unit) and length.days == step.days else step
