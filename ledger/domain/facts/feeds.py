"""Feeds: facts that are no requests and no samples, each kind with a rule and a book of its own.

A fact is told apart by what its kind says that it is (``FactKind.identity``) over all periods of a source, because an
outage may reach over several and a reading of a counter counts to what follows it. Verdicts are those of requests
(``observation``): accepted, duplicate, conflict, rejected. What comes of a conflict each kind says.

What no honest source says is never cut to size: such a row is rejected, and the periods that it is about are not
settled until a usable row stands in its place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from ledger.domain.facts.samples import Refused
from ledger.domain.rows.observation import (
    AnyRows,
    BodyBook,
    Reason,
    RowRejection,
    Verdict,
    VerdictCounts,
    request_id_digest,
)
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.objective import Objective
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.time.interval import Interval, clip, covered, union
from ledger.domain.windows.exclusions import NOTHING_EXCLUDED, Excluded
from ledger.domain.windows.step_places import Moved
from ledger.domain.windows.window import Cell, Window, WindowState
from ledger.errors import ImplausibleCounts


class FactRow(Protocol):
    """What every row of a feed has; ``line`` counts from 1, ``body_digest`` is that of ``RequestRow``."""

    @property
    def line(self) -> int: ...
    @property
    def body_digest(self) -> bytes: ...
    @property
    def service(self) -> str: ...


class Shown(NamedTuple):
    """How a row is shown to people."""

    at_ns: int
    says: str


FactRows = Iterable[FactRow | RowRejection]
Facts = AnyRows | FactRows
"""The rows of any log, in order, as they were read."""

R = TypeVar("R", bound=FactRow)


@dataclass(frozen=True, slots=True)
class FactKind(Generic[R]):
    """What one kind of feed is, for whoever records or judges its rows.

    ``dated_by`` is the member of a row that says when. ``about`` is the time that a row says something of, whether it
    is usable or not, and ``counts_in`` the time in which it may count; None: it names none, or may count anywhere.
    ``stands_by``: whether a collector that declares a span complete stands by the row.
    ``shown``: the instant and the words by which people find a row again. ``place``: of what a row speaks, and which
    edition it is; a usable row of the same or a later edition stands in the place of one that was refused as
    implausible.
    ``touched``: where what windows count may be another, once rows that are new stand beside those known before, and
    nowhere before the time that the new ones are about; None: where they and those before them that speak of the same
    (``place``) are about.
    """

    name: str
    dated_by: str
    row: type[R]
    identity: Callable[[R], str]
    refused: Callable[[Agreement, R], Refused | None]
    about: Callable[[R], Interval | None]
    counts_in: Callable[[R], Interval | None]
    stands_by: Callable[[R, Interval], bool]
    shown: Callable[[R], Shown]
    place: Callable[[R], tuple[str, int]]
    touched: Callable[[Sequence[R], Iterable[R]], list[Interval]] | None = None

    @property
    def scope(self) -> str:
        """What stands for the period in ``identity_scope``: one name is one fact in all periods."""
        return f"*/{self.name}"

    def judged(self, agreement: Agreement, row: R, declared: Sequence[Interval]) -> Refused | None:
        """Why a row counts to nothing; ``declared`` are the spans declared for its batch, none: nothing lies outside.

        ``IMPLAUSIBLE`` comes last: the collector stands by such a row.
        """
        if row.service != agreement.service:
            return Refused(Reason.OTHER_SERVICE, "service", f"{row.service[:80]!r} is not {agreement.service!r}")
        refused = self.refused(agreement, row)
        if refused is not None and refused.reason is not Reason.IMPLAUSIBLE:
            return refused
        if declared and not any(self.stands_by(row, span) for span in declared):
            return Refused(Reason.OUTSIDE_SPAN, self.dated_by, "lies outside the spans declared complete")
        return refused


class FactBook(ABC, Generic[R]):
    """Takes the facts of one feed, in any order, and gives the cells of the objectives that are counted from them.

    ``spans`` are where logs of this kind are declared complete; None: in the whole period. Facts of other periods are
    taken too: they count where they reach into this one.
    """

    kind: ClassVar[FactKind[Any]]
    looks_around: ClassVar[bool] = False
    """Whether what a window counts may depend on which others are observed (``StepPlaces``)."""

    def __init__(
        self,
        agreement: Agreement,
        period: Period,
        *,
        tenant: str = "",
        spans: Sequence[Interval] | None = None,
        excluded: Excluded = NOTHING_EXCLUDED,
    ) -> None:
        self.counts = VerdictCounts()
        self._agreement = agreement
        self._period = period
        self._scope = (tenant, agreement.source, self.kind.scope)
        self._spans = None if spans is None else union(spans)
        self._excluded = excluded
        self._book = BodyBook({})
        self._rows: list[R] = []
        # Of each batch its usable rows; the first takes rows that are added one by one.
        self._batches: list[list[R]] = [[]]
        self._implausible: list[tuple[R, Refused]] = []
        self._moved: list[Moved] = []

    def declare(self, spans: Sequence[Interval]) -> None:
        """Windows are observed in these spans, instead of those given before."""
        self._spans = union(spans)

    def add_all(self, rows: Iterable[R | RowRejection], *, within: Sequence[Interval] = ()) -> None:
        """Take the rows of one batch; ``within`` are the spans declared for it, none: nothing lies outside."""
        self._batches.append([])
        for row in rows:
            self.add(row, within=within)

    def add(self, row: R | RowRejection, *, within: Sequence[Interval] = ()) -> Verdict | RowRejection:
        """Take one row. A rejection comes back as ``RowRejection``."""
        if isinstance(row, RowRejection):
            self.counts.reject(row.reason)
            return row
        refused = self.kind.judged(self._agreement, row, within)
        if refused is not None:
            if refused.reason is Reason.IMPLAUSIBLE:
                self._implausible.append((row, refused))
            self.counts.reject(refused.reason)
            return RowRejection(row.line, *refused)
        verdict = self._book.classify(request_id_digest(*self._scope, self.kind.identity(row)), row.body_digest)
        self._batches[-1].append(row)
        if verdict is Verdict.DUPLICATE:
            self.counts.duplicates += 1
            return verdict
        self._rows.append(row)
        if verdict is Verdict.ACCEPTED:
            self.counts.accepted += 1
        else:
            self.counts.conflicts += 1
        return verdict

    def windows(self, judged: Sequence[Window]) -> tuple[Window, ...]:
        """The period's windows with the cells of this feed; one that no log of it covers has no data.

        Raises ``ImplausibleCounts`` where what came cannot be, or a rejected count stands unanswered.
        """
        self._require_answers()
        self._moved.clear()
        cells = {
            index: self._cells(objective, judged)
            for index, objective in enumerate(self._agreement.objectives)
            if objective.source.kind == self.kind.name
        }
        return tuple(
            self._window(window, {index: found[at] for index, found in cells.items()})
            for at, window in enumerate(judged)
        )

    def reaches(self) -> list[set[int]]:
        """Of each batch (``add_all``), in the order in which they came, the windows whose counts stand on its rows."""
        places = self._places()
        found: list[set[int]] = []
        for rows in self._batches[1:]:
            names = {self._stands_with(row) for row in rows}
            time = union(place for name in names for place in places.get(name, ()))
            found.append({at for span in time for at in self._windows_of(span)})
        return found

    @abstractmethod
    def _places(self) -> Mapping[str, Iterable[Interval]]:
        """The time in whose counts rows take part, by what they stand with."""

    def _stands_with(self, row: R) -> str:
        """What a row is one of, where what becomes of several rows is decided together; else what it is."""
        return self.kind.identity(row)

    def _declared(self, windows: Sequence[Window]) -> list[bool]:
        """Of each window, whether logs of this kind are declared complete in it."""
        return [self._spans is None or covered(window.interval, self._spans) for window in windows]

    def _moved_ends(self) -> Mapping[tuple[Hashable, int], list[Interval]]:
        """By series and instant the windows of the moved steps that begin or end with this reading."""
        found: dict[tuple[Hashable, int], list[Interval]] = {}
        for each in self._moved:
            for at_ns in (each.since_ns, each.at_ns):
                found.setdefault((each.series, at_ns), []).append(each.within)
        return found

    def _windows_of(self, span: Interval) -> range:
        """The windows that a time touches."""
        period, step_ns = self._period.interval, self._agreement.window_seconds * SECOND_NS
        part = clip(span, period)
        if part is None:
            return range(0)
        return range((part.start_ns - period.start_ns) // step_ns, (part.end_ns - 1 - period.start_ns) // step_ns + 1)

    @abstractmethod
    def _cells(self, objective: Objective, windows: Sequence[Window]) -> Sequence[Cell | None]:
        """What ``_rows``, each of which said something new, come to in each window; None where they say nothing of it.
        What lies in excluded time leaves both sides."""

    def _require_answers(self) -> None:
        stands = newest_editions(self.kind, self._rows if self._implausible else ())
        for row, refused in self._implausible:
            about = self.kind.about(row)
            if about is not None and not self._touches(about):
                continue
            place, edition = self.kind.place(row)
            if stands.get(place, -1) < edition:
                raise ImplausibleCounts(
                    f"{self.kind.identity(row)[:80]!r} (line {row.line}): {refused.field}: {refused.message}; hand in "
                    "a row in its place that says what is true",
                    field=refused.field,
                )

    def _touches(self, about: Interval) -> bool:
        period = self._period.interval
        return about.start_ns < period.end_ns and period.start_ns < about.end_ns

    def _window(self, window: Window, cells: Mapping[int, Cell | None]) -> Window:
        if window.state is not WindowState.OBSERVED:
            return window
        (declared,) = self._declared([window])
        found = [cells.get(index, cell) for index, cell in enumerate(window.cells)]
        if not declared or None in found:
            return Window(window.interval, WindowState.NO_DATA, tuple(Cell(0, 0) for _ in window.cells))
        return Window(window.interval, window.state, tuple(each for each in found if each is not None))


def newest_editions(kind: FactKind[R], usable: Iterable[R]) -> dict[str, int]:
    """Of what usable rows speak, and the newest edition of each (``FactKind.place``)."""
    found: dict[str, int] = {}
    for row in usable:
        place, edition = kind.place(row)
        found[place] = max(edition, found.get(place, edition))
    return found
