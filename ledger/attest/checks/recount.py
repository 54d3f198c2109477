"""Counting again: whether the sealed counts are those of the logged batches, from the batches' own bytes.

An opening shows the counts that were sealed, and each seal names the batches that its windows were counted from, by the
SHA-256 of their bytes. Whoever has those bytes (a customer keeps what its gateway logged) counts them by the rules of
the agreement, and no ledger is asked. Where data is complete is taken from the opening: a batch does not say it. So a
row that lies outside of what its batch was declared complete for, and counts nowhere, is counted here and shows as a
difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from ledger.app.facts.observations import ReadRows
from ledger.app.periods.exclusions import exclusion_of
from ledger.attest.checks.case import Case, require
from ledger.attest.checks.opening import windows_opened
from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.facts.fact_kinds import BOOKS
from ledger.domain.facts.samples import SampleBook
from ledger.domain.rows.observation import Rows, SampleRows
from ledger.domain.terms.log_kinds import FORMATS, REQUESTS, SAMPLES, format_of
from ledger.domain.time.instant import format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.domain.violations.own_recovery import with_own_recoveries
from ledger.domain.windows.exclusions import Excluded, excluded_in, rule
from ledger.domain.windows.window import Window, WindowState

SHOWN = 3
"""Differences that a line names; the others are counted."""


@dataclass(frozen=True, slots=True)
class LoggedFacts:
    """Batches that somebody kept: ``read`` gives the bytes with a SHA-256, None where they are not at hand.

    ``digests`` are those of all that was given, for saying how much of it no seal names.
    """

    read: Callable[[str], bytes | None]
    read_rows: ReadRows
    digests: frozenset[str] = frozenset()


def batches_named(case: Case) -> tuple[str, ...]:
    """The digests of the batches that the seals say they were counted from."""
    return tuple(sorted({digest for seal in case.bundle["seals"] for digest in seal["payload"]["inputs"]}))


def recount(case: Case, opening: Mapping[str, Any], facts: LoggedFacts) -> str:
    """The batches give the opened counts, window by window.

    Raises ``BundleCheckFailed`` that names window and objective of the first differences, or ``BadInput`` for a batch
    that cannot be read.
    """
    opened = windows_opened(case, opening)
    batches = [data for data in map(facts.read, batches_named(case)) if data is not None]
    counted = _counted(case, opened, batches, facts.read_rows)
    found = [text for index in range(len(opened)) for text in _differences(case, index, opened[index], counted[index])]
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    require(not found, "; ".join(found[:SHOWN]) + more)
    unnamed = len(facts.digests.difference(batches_named(case)))
    left = f"; of what was given, {unnamed} other file(s) are named by no seal" if unnamed else ""
    return f"{len(batches)} logged batch(es), counted again, give every count of {len(opened)} windows{left}"


def _counted(case: Case, opened: Sequence[Window], batches: Sequence[bytes], read_rows: ReadRows) -> Sequence[Window]:
    agreement, period, tenant, excluded = case.agreement, case.period, case.issued["sla_id"], _excluded(case)
    spans = [window.interval for window in opened if window.state is WindowState.OBSERVED]
    if not spans:
        return opened
    of_kind: dict[str, list[bytes]] = {}
    for data in batches:
        of_kind.setdefault(format_of(data), []).append(data)
    evaluator = Evaluator(agreement, period, tenant=tenant, excluded=excluded)
    for data in of_kind.get(REQUESTS, ()):
        evaluator.add_all(cast(Rows, read_rows(data)), within=())
    evaluator.declare(spans)
    windows = evaluator.windows()
    counted = {objective.source.kind for objective in agreement.objectives} - {REQUESTS}
    for kind in (each for each in FORMATS if each in counted):
        made: Any = SampleBook if kind == SAMPLES else BOOKS[kind]
        book = made(agreement, period, tenant=tenant, excluded=excluded)
        for data in of_kind.get(kind, ()):
            book.add_all(cast(SampleRows, read_rows(data)), within=())
        book.declare(spans)
        windows = book.windows(windows)
    return with_own_recoveries(agreement, windows)


def _differences(case: Case, index: int, sealed: Window, counted: Window) -> list[str]:
    if sealed.state is not WindowState.OBSERVED:
        return []
    at = format_instant_ns(sealed.interval.start_ns)
    return [
        f"window {index} ({at}), {objective.id}: {mine.good} good and {mine.bad} bad are logged, {theirs.good} and "
        f"{theirs.bad} are sealed"
        for objective, theirs, mine in zip(case.agreement.objectives, sealed.cells, counted.cells, strict=True)
        if (theirs.good, theirs.bad) != (mine.good, mine.bad)
    ]


def _excluded(case: Case) -> Excluded:
    """What the statement says was taken out; that the terms allow it is a check of its own."""
    terms, listed = case.agreement.exclusion_terms, case.issued.get("exclusions", ())
    claimed = {each["exclusion_id"]: _interval(each["honoured"]) for each in listed}
    ruled = rule(terms, case.agreement.timezone, map(exclusion_of, listed))
    return excluded_in(
        terms, [replace(each, honoured=claimed[each.exclusion.id]) for each in ruled], case.period.interval
    )


def _interval(span: Mapping[str, Any] | None) -> Interval | None:
    return None if span is None else Interval(int(span["from_ns"]), int(span["to_ns"]))
