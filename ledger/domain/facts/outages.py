"""Outages as facts: from when to when service was out, and what minutes that takes from a period.

An outage is named by its id; it may be said anew or withdrawn in a later ``revision``, and the highest revision counts,
whichever came last. Outages with other bodies under one id and revision are in conflict, and all of them count: nobody
gets rid of an outage by sending it again. What overlaps counts once, what reaches over a period's border counts in
each with its part, and a minute is down where outages cover it whole and nothing of it is excluded
(``ledger.domain.windows.downtime``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ledger.domain.facts.feeds import FactBook, FactKind, Shown
from ledger.domain.facts.samples import Refused
from ledger.domain.rows.observation import Reason
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.log_kinds import OUTAGES
from ledger.domain.terms.objective import Objective
from ledger.domain.time.instant import MINUTE_NS, format_instant_ns
from ledger.domain.time.interval import Interval, clip, union
from ledger.domain.windows.downtime import minute_windows
from ledger.domain.windows.window import Cell, Window, WindowState

MAX_REVISION = 2**31 - 1


class OutageRow(NamedTuple):
    """One usable row of an outage list. ``from_ns`` and ``to_ns`` are None where the revision withdraws the outage;
    ``resource`` is what was out (None: the service)."""

    line: int
    outage_id: str
    revision: int
    body_digest: bytes
    service: str
    from_ns: int | None
    to_ns: int | None
    resource: str | None


def outage_span(row: OutageRow) -> Interval | None:
    """The half-open time of an outage; None where it was withdrawn, or ends before it begins."""
    said = _said(row)
    return None if said is None or said[1] <= said[0] else Interval(*said)


def _said(row: OutageRow) -> tuple[int, int] | None:
    """From when to when it was; None where it was withdrawn."""
    return None if row.from_ns is None or row.to_ns is None else (row.from_ns, row.to_ns)


def standing(rows: Sequence[OutageRow]) -> list[OutageRow]:
    """What stands of many outages: of each id all bodies of its highest revision."""
    newest = _newest(rows)
    return [row for row in rows if row.revision == newest[row.outage_id]]


def _newest(rows: Iterable[OutageRow]) -> dict[str, int]:
    """Of each id its highest revision."""
    newest: dict[str, int] = {}
    for row in rows:
        newest[row.outage_id] = max(row.revision, newest.get(row.outage_id, row.revision))
    return newest


def _refused(agreement: Agreement, row: OutageRow) -> Refused | None:
    of_outages = [each for each in agreement.objectives if each.source.kind == OUTAGES]
    if not any(each.resource in (None, row.resource) for each in of_outages):
        said = f" of {row.resource[:80]!r}" if of_outages and row.resource is not None else ""
        return Refused(Reason.NOT_PROMISED, "outage_id", f"no objective is counted from outages{said}")
    if _said(row) is not None and outage_span(row) is None:
        return Refused(Reason.IMPLAUSIBLE, "to", "an outage must end after it begins")
    return None


def _about(row: OutageRow) -> Interval | None:
    said = _said(row)
    if said is None:
        return None
    first, last = sorted(said)
    return Interval(first, max(last, first + 1))


def _stands_by(row: OutageRow, declared: Interval) -> bool:
    about = _about(row)
    return about is None or clip(about, declared) is not None


def _shown(row: OutageRow) -> Shown:
    said = _said(row)
    if said is None:
        return Shown(0, "withdrawn")
    return Shown(said[0], f"from {format_instant_ns(said[0])} to {format_instant_ns(said[1])}")


OUTAGE_FACTS = FactKind(
    name=OUTAGES,
    dated_by="from",
    row=OutageRow,
    identity=lambda row: f"{row.revision}/{row.outage_id}",
    refused=_refused,
    about=_about,
    # A revision may move an outage to where nothing counts it.
    counts_in=lambda row: _about(row) if row.revision == 1 else None,
    stands_by=_stands_by,
    shown=_shown,
    place=lambda row: (row.outage_id, row.revision),
)


class OutageBook(FactBook[OutageRow]):
    """The outages of one period: each window counts its whole minutes, up or down."""

    kind = OUTAGE_FACTS

    def _cells(self, objective: Objective, windows: Sequence[Window]) -> Sequence[Cell | None]:
        counted = [
            span
            for row in standing(self._rows)
            if objective.resource in (None, row.resource) and (span := outage_span(row)) is not None
        ]
        minutes = minute_windows(self._period.interval, counted, self._excluded.union)
        start_ns = self._period.interval.start_ns
        return [_summed(minutes, window.interval, start_ns) for window in windows]

    def _places(self) -> Mapping[str, Iterable[Interval]]:
        of_id: dict[str, list[Interval]] = {}
        for row in self._rows:
            span = outage_span(row)
            if span is not None:
                of_id.setdefault(row.outage_id, []).append(span)
        return {outage_id: union(spans) for outage_id, spans in of_id.items()}

    def _stands_with(self, row: OutageRow) -> str:
        # What becomes of an id stands on all that was said under it.
        return row.outage_id


def _summed(minutes: Sequence[Window], within: Interval, start_ns: int) -> Cell:
    first, last = (within.start_ns - start_ns) // MINUTE_NS, (within.end_ns - start_ns) // MINUTE_NS
    counted = [each.cells[0] for each in minutes[first:last] if each.state is WindowState.OBSERVED]
    down = sum(cell.bad for cell in counted)
    return Cell(len(counted) - down, down)
