"""Readings of request counters as facts: which window counts what, exactly.

A counter's series rise until their process starts again (``ledger.domain.rows.counters``), so one reading alone
counts nothing: each step from a reading of a series to its next counts, whole, in the window in which it was seen,
or, where that is excluded or has no data, as ``ledger.domain.windows.step_places`` says. A window has the readings
after its first instant up to and with its last: one that was taken as the window ended is the last of that window,
and where the steps of the next begin. Readings from before the period are where its first steps begin.

A window in which no series of the counter of all was read has no data, whatever was declared: nobody looked. Another
value for a series and instant is a conflict, and then that is no reading: what happened until it is seen in the next.
So no failure is lost by a reading that is missing or contradicted, nor a window that somebody looked at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from heapq import heappop, heappush
from typing import NamedTuple

from ledger.domain.facts.feeds import FactBook, Shown
from ledger.domain.facts.samples import Refused
from ledger.domain.facts.series_readings import kind_of_readings, reading_places
from ledger.domain.money import format_plain
from ledger.domain.rows.counters import Counters, Step
from ledger.domain.rows.observation import Reason
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.log_kinds import COUNTERS
from ledger.domain.terms.objective import Objective
from ledger.domain.time.instant import format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.domain.windows.step_places import StepPlaces
from ledger.domain.windows.window import Cell, Window, counting
from ledger.errors import ImplausibleCounts

MAX_VALUE = 2**63


class CounterRow(NamedTuple):
    """One usable row of a counter log: the value of one series of a counter at an instant.

    ``series`` is the canonical text of its labels; ``body_digest`` is over value and start alone, so that the same
    reading from two places is one. ``start_ns`` is when the process began to count, None where nobody knows.
    """

    line: int
    counter: str
    series: str
    body_digest: bytes
    service: str
    at_ns: int
    value: Fraction
    start_ns: int | None

    @property
    def is_step(self) -> bool:
        return True


def _refused(agreement: Agreement, row: CounterRow) -> Refused | None:
    named = {
        name
        for each in agreement.objectives
        if each.source.kind == COUNTERS
        for name in (each.source.total, each.source.good, each.source.bad)
    }
    if row.counter not in named:
        return Refused(Reason.NOT_PROMISED, "counter", f"no objective is counted from {row.counter[:80]!r}")
    if not 0 <= row.value < MAX_VALUE or row.value.denominator != 1:
        return Refused(Reason.IMPLAUSIBLE, "value", f"a counter of requests is a whole number from 0, not {row.value}")
    if row.start_ns is not None and row.start_ns > row.at_ns:
        return Refused(Reason.IMPLAUSIBLE, "start", "a process cannot have begun after its counter was read")
    return None


def _series(row: CounterRow) -> tuple[str, str]:
    return row.counter, row.series


def _identity(row: CounterRow) -> str:
    return f"{row.counter}{row.series}@{row.at_ns}"


def _shown(row: CounterRow) -> Shown:
    since = "" if row.start_ns is None else f", counted since {format_instant_ns(row.start_ns)}"
    return Shown(row.at_ns, f"{format_plain(row.value)}{since}")


COUNTER_FACTS = kind_of_readings(
    COUNTERS, CounterRow, identity=_identity, series_of=_series, refused=_refused, shown=_shown
)


class CounterBook(FactBook[CounterRow]):
    """The readings that reach into one period."""

    kind = COUNTER_FACTS
    looks_around = True

    def _cells(self, objective: Objective, windows: Sequence[Window]) -> Sequence[Cell | None]:
        source = objective.source
        places = StepPlaces([window.interval for window in windows], self._excluded, self._declared(windows))
        all_of = self._counters(source.total)
        steps = self._placed(source.total, all_of, places)
        total = _sums(steps)
        part = _sums(self._placed_with(steps, total, source.good or source.bad, places))
        self._moved += places.moved
        looked = {at for at_ns in all_of.read_at() for at in self._windows_of(Interval(at_ns - 1, at_ns))}
        looked |= total.keys()
        found: list[Cell | None] = []
        for at in range(len(windows)):
            with counting(objective.id, windows[at].interval):
                cell = _cell(part.get(at, 0), total.get(at, 0), counts_good=source.good is not None)
                found.append(cell if at in looked else None)
        return found

    def _places(self) -> Mapping[str, Iterable[Interval]]:
        places, moved = reading_places(self._rows, _series), self._moved_ends()
        return {self.kind.identity(row): found + moved.get((_series(row), row.at_ns), []) for row, found in places}

    def _counters(self, name: str | None) -> Counters:
        found = Counters()
        for row in self._rows:
            if row.counter == name:
                found.add(row.series, row.at_ns, row.value, row.start_ns)
        return found

    def _placed(self, name: str | None, counters: Counters, places: StepPlaces) -> list[_Placed]:
        """The steps of a counter that count, each with its window."""
        found = []
        for step in counters.steps(self._period.interval):
            window = places.place((name, step.series), step.since_ns, step.at_ns)
            if window is not None:
                found.append(_Placed(step, window))
        return found

    def _placed_with(
        self, all_of: Sequence[_Placed], total: Mapping[int, int], name: str | None, places: StepPlaces
    ) -> list[_Placed]:
        """The steps of what is good, or bad, by the windows in which all of their time counts.

        Where the counter of all was not read with the other one, or its reading is in conflict, its step ends at a
        later reading, and there both count. Where it ends in no reading of this period, what was seen here counts in
        the last window before.
        """
        holding, counted, found = _Holding(all_of), sorted(total), []
        for step in sorted(self._counters(name).steps(self._period.interval), key=lambda each: each.at_ns):
            series = name, step.series
            if places.excludes(step.since_ns, step.at_ns):
                continue
            window = places.place(series, step.since_ns, step.at_ns)
            if window not in total:
                held = holding.window(step.at_ns)
                if held is not None:
                    window = held
                elif window is not None and (before := bisect_left(counted, window)):
                    window = counted[before - 1]
                if window is not None:
                    places.move(series, step.since_ns, step.at_ns, window)
            if window is not None:
                found.append(_Placed(step, window))
        return found


class _Placed(NamedTuple):
    """A step and the window in which it counts."""

    step: Step
    window: int


class _Holding:
    """The windows of steps by the instants that these hold: of several the first to end. Instants are asked for in
    order, so that all of them together cost what the steps do."""

    def __init__(self, steps: Sequence[_Placed]) -> None:
        by_end = enumerate(sorted(steps, key=lambda each: each.step.at_ns))
        self._coming = sorted(by_end, key=lambda each: each[1].step.since_ns, reverse=True)
        self._begun: list[tuple[int, int, int]] = []

    def window(self, at_ns: int) -> int | None:
        while self._coming and self._coming[-1][1].step.since_ns < at_ns:
            rank, each = self._coming.pop()
            heappush(self._begun, (each.step.at_ns, rank, each.window))
        while self._begun and self._begun[0][0] < at_ns:
            heappop(self._begun)
        return self._begun[0][2] if self._begun else None


def _sums(steps: Iterable[_Placed]) -> dict[int, int]:
    """By window. All steps are whole: so are the readings."""
    found: dict[int, int] = {}
    for step, window in steps:
        found[window] = found.get(window, 0) + int(step.size)
    return found


def _cell(part: int, valid: int, *, counts_good: bool) -> Cell:
    if part > valid:
        said = "good" if counts_good else "bad"
        raise ImplausibleCounts(
            f"{part} {said} of {valid} valid requests; read the counters of an objective at one instant, and correct "
            "the source",
            **{said: part},
            valid=valid,
        )
    return Cell(part, valid - part) if counts_good else Cell(valid - part, part)
