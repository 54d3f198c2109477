"""Reading a request log for a command: rows into an evaluator, problems into messages, one period out."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from ledger.cli.output import note, with_progress
from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.facts.heartbeats import HeartbeatBook
from ledger.domain.facts.samples import SampleBook
from ledger.domain.record.events import MAX_INSTANT_NS
from ledger.domain.rows.observation import Reason, RequestRow, RowRejection, SampleRow, Verdict
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.instant import parse_instant_ns
from ledger.domain.time.interval import Interval
from ledger.errors import BadInput, InstantInvalid, IntervalInvalid, RequestLogUnusable
from ledger.ingest.heartbeat_log import HeartbeatLog
from ledger.ingest.request_log import RequestLog, open_request_log
from ledger.ingest.sample_log import SampleLog

SHOWN_PROBLEMS = 20
SHOWN_PERIODS = 40
MAX_LOG_BYTES = 256 * 1024 * 1024


class Problems:
    """Rows that could not be used: the first few are shown, all are counted."""

    def __init__(self, file: str) -> None:
        self.count = 0
        self._file = file
        self._shown: list[str] = []

    def add(self, row: object, result: Verdict | RowRejection) -> None:
        if result is Verdict.DUPLICATE:
            return
        self.count += 1
        if self.count > SHOWN_PROBLEMS:
            return
        if isinstance(result, RowRejection):
            self._shown.append(rejection_text(self._file, result))
        elif isinstance(row, RequestRow):
            self._shown.append(
                f"{self._file}:{row.line}: request_id: {row.request_id[:80]!r} came before with another body "
                "(conflict: the id counts once, as failed)"
            )
        elif isinstance(row, SampleRow):
            self._shown.append(
                f"{self._file}:{row.line}: sample_id: {row.sample_id[:80]!r} came before with another body "
                "(conflict: the id counts once, as bad)"
            )

    def conflict(self, line: int, identity: str) -> None:
        """A fact that came before and said something else."""
        self.count += 1
        if self.count <= SHOWN_PROBLEMS:
            self._shown.append(f"{self._file}:{line}: {identity[:80]!r} came before with another body (conflict)")

    def report(self) -> None:
        for line in self._shown:
            note(line)
        if self.count > SHOWN_PROBLEMS:
            note(f"... and {self.count - SHOWN_PROBLEMS} more rows that could not be used")


def rejection_text(file: str, row: RowRejection) -> str:
    """Which row of a file cannot be used, and why."""
    field = f"{row.field}: " if row.field else ""
    return f"{file}:{row.line}: {field}{row.message} (rejected: {row.reason})"


def read_log(stream: BinaryIO, name: str, size: int, evaluator: Evaluator, problems: Problems) -> None:
    """Every row of a log into an evaluator; raises ``RequestLogUnusable`` where the log cannot be used.

    ``name`` stands in messages; ``size`` is in bytes, for progress, and 0 where it is not known (a pipe).
    """
    log = RequestLog(stream, name)
    add, accepted = evaluator.add, Verdict.ACCEPTED
    # Rows hold no cycles; without the collector looking for some a million of them take a tenth less time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        for row in with_progress(log, lambda: 100 * log.bytes_read / size if size else 0, f"reading {Path(name).name}"):
            result = add(row)
            if result is not accepted:
                problems.add(row, result)
    finally:
        if collecting:
            gc.enable()


def read_samples(path: Path, book: SampleBook, spans: Sequence[Interval]) -> int:
    """Every row of a sample log into a book; how many of them could not be used. Problems are told.

    Raises ``RequestLogUnusable`` where the log cannot be used.
    """
    problems = Problems(str(path))
    with open_request_log(path) as stream:
        for row in SampleLog(stream, str(path)):
            result = book.add(row, within=spans)
            if result is not Verdict.ACCEPTED:
                problems.add(row, result)
    problems.report()
    return problems.count


def read_heartbeats(path: Path, book: HeartbeatBook) -> int:
    """Every row of a heartbeat log into a book; how many of them could not be used. Problems are told.

    Whoever reads a whole log later knows of none that was written ahead of its time. Raises ``RequestLogUnusable``
    where the log cannot be used.
    """
    problems = Problems(str(path))
    with open_request_log(path) as stream:
        for rejection in book.add_all(HeartbeatLog(stream, str(path)), handed_in_ns=MAX_INSTANT_NS):
            problems.add(rejection, rejection)
    problems.report()
    return problems.count


def read_whole_log(path: Path) -> bytes:
    """All bytes of a log that is to be one batch, read once (a pipe cannot be read again, and a file may grow).

    Raises ``RequestLogUnusable`` where it cannot be read, or has more than ``MAX_LOG_BYTES``.
    """
    try:
        with open_request_log(path) as stream:
            data = stream.read(MAX_LOG_BYTES + 1)
    except OSError as error:
        raise RequestLogUnusable(f"{path}: cannot be read: {error.strerror}", file=str(path)) from error
    if len(data) > MAX_LOG_BYTES:
        raise RequestLogUnusable(
            f"{path}: has more than {MAX_LOG_BYTES} bytes, the most of one batch; `settle` reads logs of any size",
            file=str(path),
        )
    return data


def parse_span(text: str) -> Interval:
    """An interval ``FROM/TO`` of two instants; raises ``BadInput``."""
    start, separator, end = text.partition("/")
    if not separator:
        raise BadInput(f"--span {text[:80]!r}: write FROM/TO, such as 2023-12-19T00:00:00Z/2023-12-20T00:00:00Z")
    try:
        return Interval(parse_instant_ns(start), parse_instant_ns(end))
    except IntervalInvalid as error:
        raise BadInput(f"--span {text[:80]!r}: TO must be later than FROM", span=text[:80]) from error
    except InstantInvalid as error:
        raise BadInput(f"--span {text[:80]!r}: {error.message}", span=text[:80]) from error


def period_unclear(evaluator: Evaluator, agreement: Agreement, path: Path) -> BadInput:
    """The error for a log whose rows do not lie in one period: it lists the periods there are."""
    counts = evaluator.counts
    if evaluator.period is None and not evaluator.other_periods:
        services = ", ".join(list(evaluator.other_services)[:5])
        hint = f"; its rows name {services} (see --service)" if services else ""
        return BadInput(
            f"{path}: no usable row of the service {agreement.service!r}, so the period is unknown{hint}; "
            "name it with --period",
            file=str(path),
            services=list(evaluator.other_services),
        )
    found = {str(period): count for period, count in evaluator.other_periods.items() if period is not None}
    if evaluator.period is not None:
        inside = counts.accepted + counts.duplicates + counts.conflicts + counts.rejected.get(Reason.OUTSIDE_SPAN, 0)
        found[str(evaluator.period)] = inside
    lines = [f"  {name}  {count} rows" for name, count in sorted(found.items())]
    if len(lines) > SHOWN_PERIODS:
        lines = [*lines[:SHOWN_PERIODS], f"  ... and {len(lines) - SHOWN_PERIODS} more periods"]
    if outside := evaluator.other_periods.get(None):
        effective = f"{agreement.effective_from} to {agreement.effective_until}"
        lines.append(f"  outside every period of the agreement ({effective}, {agreement.timezone})  {outside} rows")
    return BadInput(
        f"{path}: no one period holds all rows; name one with --period:\n" + "\n".join(lines),
        file=str(path),
        periods=dict(sorted(found.items())),
        outside=evaluator.other_periods.get(None, 0),
    )
