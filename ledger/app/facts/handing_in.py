"""A log of facts that somebody hands in, by whatever way: recorded whole, or refused with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ledger.app.agreements.registering import RegisteredAgreement, load_agreement
from ledger.app.facts.observations import ReadRows, RecordedBatch, record_observations
from ledger.app.ports.evidence import Attestor
from ledger.app.ports.store import Database, Transaction
from ledger.app.work.retrying import write
from ledger.domain.rows.observation import Reason, RowRejection
from ledger.domain.time.instant import Clock
from ledger.domain.time.interval import Interval
from ledger.errors import RequestLogUnusable

MAX_SHOWN = 20
"""Rows that are told apart when they cannot be read; the others are counted."""

_FIELD_OF_REASON = {
    Reason.OTHER_SERVICE: "service",
    Reason.OUTSIDE_PERIOD: "started_at",
    Reason.OUTSIDE_SPAN: "started_at",
}


@dataclass(frozen=True, slots=True)
class HandedIn:
    """What became of a log, and the first of its rows that cannot be read or have a member the agreement cannot use."""

    batch: RecordedBatch
    rejections: tuple[RowRejection, ...]


def hand_in(
    database: Database,
    sla_id: str,
    data: bytes,
    *,
    attestor: Attestor,
    clock: Clock,
    read_rows: ReadRows,
    declared_complete: Interval | None,
) -> HandedIn:
    """Record a log of an agreement in one transaction, again where another batch was in its way.

    ``database`` is that of the agreement's tenant; see ``record_observations``. Raises ``NotFound``, and
    ``RequestLogUnusable`` where not one row can be used: then nothing is written.
    """
    # Read before the transaction, which keeps others from writing, and once, however often that is tried.
    rows = list[Any](read_rows(data))

    def record(tx: Transaction) -> RecordedBatch:
        registered = load_agreement(tx, sla_id, attestor)
        return record_log(
            tx, registered, data, rows, read_rows=read_rows, complete=declared_complete, now_ns=clock.now_ns()
        )

    batch = write(database, record)
    return HandedIn(batch, _first(_unread(rows), batch))


def record_log(
    tx: Transaction,
    registered: RegisteredAgreement,
    data: bytes,
    rows: Sequence[Any],
    *,
    read_rows: ReadRows,
    complete: Interval | None,
    now_ns: int,
) -> RecordedBatch:
    """``record_observations`` of a log whose ``rows`` were read already. Raises ``RequestLogUnusable`` where not one of
    them can be used; who calls it then writes nothing."""
    batch = record_observations(
        tx,
        registered,
        data,
        read_rows=lambda raw: rows if raw is data else read_rows(raw),
        declared_complete=complete,
        now_ns=now_ns,
    )
    # What blocks a period is kept, though it be all that the log says.
    if batch.counts.rejected_total == batch.counts.requests and Reason.IMPLAUSIBLE not in batch.counts.rejected:
        raise _unusable(batch, _first(_unread(rows), batch))
    return batch


def _unread(rows: Sequence[Any]) -> tuple[RowRejection, ...]:
    return tuple(islice((row for row in rows if isinstance(row, RowRejection)), MAX_SHOWN))


def _first(unread: Sequence[RowRejection], batch: RecordedBatch) -> tuple[RowRejection, ...]:
    return tuple(sorted((*unread, *batch.refused), key=lambda row: row.line)[:MAX_SHOWN])


def _unusable(batch: RecordedBatch, rejections: Sequence[RowRejection]) -> RequestLogUnusable:
    reasons = {str(reason): count for reason, count in batch.counts.rejected.items()}
    if rejections:
        first = rejections[0]
        where = f"line {first.line}: {first.field}" if first.field else f"line {first.line}"
        field, message = first.field or "body", f"{where}: {first.message}"
    else:
        reason = max(batch.counts.rejected, key=batch.counts.rejected.__getitem__)
        field = _FIELD_OF_REASON.get(reason, "body")
        message = f"{field}: every row is rejected as {reason}"
    return RequestLogUnusable(f"no row of the log can be used. {message}", field=field, reasons=reasons)
