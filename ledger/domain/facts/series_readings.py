"""What readings of series have in common, whatever they count: where one is about, and what another one changes.

A reading at an instant closes the step from the reading of its series before it. The step is what happened after that
one, up to and with this instant, so a reading belongs to the time that ends with its instant.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from ledger.domain.facts.feeds import FactKind, FactRow, Shown
from ledger.domain.facts.samples import Refused
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.interval import Interval

END_NS = 2**63 - 1


class Reading(FactRow, Protocol):
    """A reading of one series."""

    @property
    def at_ns(self) -> int: ...
    @property
    def is_step(self) -> bool:
        """Whether it is a reading of what counts up, so that steps begin and end with it."""


R = TypeVar("R", bound=Reading)


def about(row: Reading) -> Interval:
    """The instant of a reading, as the last of the time before it."""
    return Interval(row.at_ns - 1, row.at_ns)


def counts_in(row: Reading) -> Interval:
    """A reading is where later steps begin, however much later they are seen."""
    return Interval(row.at_ns - 1, END_NS)


def stands_by(row: Reading, declared: Interval) -> bool:
    """A reading as the span begins is where its steps begin, and one as it ends is its last."""
    return declared.start_ns <= row.at_ns <= declared.end_ns


def reading_places(rows: Iterable[R], series_of: Callable[[R], Hashable]) -> Iterator[tuple[R, list[Interval]]]:
    """For each of all readings what it takes part in: the step that it closes, and the one that begins with it.

    The latter ends at the next reading of the series. What came with several values, or is none of a counter, is no
    reading (``is_step``), and the step ends at the one after it. All rows must count, and no two of them be the same.
    """
    of_series: dict[Hashable, dict[int, list[R]]] = {}
    for row in rows:
        of_series.setdefault(series_of(row), {}).setdefault(row.at_ns, []).append(row)
    for by_instant in of_series.values():
        following: list[Interval] = []
        for at_ns in sorted(by_instant, reverse=True):
            own, found = Interval(at_ns - 1, at_ns), by_instant[at_ns]
            for row in found:
                yield row, [own, *following]
            if len(found) == 1 and found[0].is_step:
                following = [own]


def touched(new: Sequence[R], known: Iterable[R], series_of: Callable[[R], Hashable]) -> list[Interval]:
    """Where what windows count may be another, once new readings stand beside those known before."""
    series = {series_of(row) for row in new}
    instants = {(series_of(row), row.at_ns) for row in new}
    told_apart = {
        (series_of(row), row.at_ns, row.body_digest): row for row in (*known, *new) if series_of(row) in series
    }
    places = (
        place
        for row, found in reading_places(told_apart.values(), series_of)
        if (series_of(row), row.at_ns) in instants
        for place in found
    )
    return list(dict.fromkeys(places))


def kind_of_readings(
    name: str,
    row: type[R],
    *,
    identity: Callable[[R], str],
    series_of: Callable[[R], Hashable],
    refused: Callable[[Agreement, R], Refused | None],
    shown: Callable[[R], Shown],
) -> FactKind[R]:
    """The feed of the readings ``row``: each is dated by its instant, and changes nothing before it."""
    return FactKind(
        name=name,
        dated_by="at",
        row=row,
        identity=identity,
        refused=refused,
        about=about,
        counts_in=counts_in,
        stands_by=stands_by,
        shown=shown,
        place=lambda reading: (identity(reading), 0),
        touched=lambda new, known: touched(new, known, series_of),
    )
