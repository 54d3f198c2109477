"""Logs that are neither of requests nor of samples, for ``settle``: each is one file, judged by its book."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from ledger.cli.log_reading import Problems
from ledger.domain.facts.fact_kinds import BOOKS
from ledger.domain.facts.feeds import FactBook, FactRows
from ledger.domain.rows.observation import Verdict, VerdictCounts
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.log_kinds import REQUESTS
from ledger.domain.time.calendar import Period
from ledger.domain.time.interval import Interval
from ledger.errors import BadInput
from ledger.ingest.facts import READERS
from ledger.ingest.request_log import open_request_log


class FeedsRead(NamedTuple):
    """A book of each feed, verdicts by kind, and how many rows could not be used."""

    books: Sequence[FactBook[Any]]
    counts: Mapping[str, VerdictCounts]
    unusable: int


def require_logs(agreement: Agreement, given: Mapping[str, Path | None]) -> Mapping[str, Path | None]:
    """What is given. Raises ``BadInput`` where an objective is counted from a log that is not: that nothing is known
    does not say that nothing was wrong."""
    for objective in agreement.objectives:
        kind = objective.source.kind
        if given.get(kind, Path()) is None and (kind == REQUESTS or kind in BOOKS):
            raise BadInput(
                f"{objective.id} is counted from a log of {kind}; hand it in with --{kind}",
                objective=objective.id,
                kind=kind,
            )
    return given


def read_feeds(
    agreement: Agreement,
    period: Period,
    given: Mapping[str, Path | None],
    spans: Sequence[Interval],
    held: Sequence[Interval] | None,
) -> FeedsRead:
    """Every row of every feed that is given; ``spans`` are those declared for it, ``held`` where it is complete by them
    or by heartbeats (None: in the whole period). Problems are told. Raises ``RequestLogUnusable``."""
    books: list[FactBook[Any]] = []
    counts: dict[str, VerdictCounts] = {}
    unusable = 0
    for kind, path in given.items():
        if path is None or kind not in BOOKS:
            continue
        book: FactBook[Any] = BOOKS[kind](agreement, period, spans=held)
        problems = Problems(str(path))
        with open_request_log(path) as stream:
            for row in cast(FactRows, READERS[kind](stream, str(path))):
                result = book.add(row, within=spans)
                if result is Verdict.CONFLICT:
                    problems.conflict(row.line, book.kind.identity(row))
                elif result is not Verdict.ACCEPTED:
                    problems.add(row, result)
        problems.report()
        unusable += problems.count
        counts[kind] = book.counts
        books.append(book)
    return FeedsRead(books, counts, unusable)
