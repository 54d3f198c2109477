"""Recording facts: one raw batch, one verdict for each row, one ``observations_recorded`` event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ledger.app.agreements import RegisteredAgreement
from ledger.app.ports import Receipt, Transaction
from ledger.domain.calendar import Period
from ledger.domain.events import NewEvent
from ledger.domain.interval import Interval
from ledger.domain.naming import observations_stream
from ledger.domain.observation import IdentityBook, Reason, RequestRow, RowRejection, Verdict, VerdictCounts
from ledger.domain.observation import request_id_digest as id_digest
from ledger.domain.window import period_at

ReadRows = Callable[[bytes], Iterable[RequestRow | RowRejection]]
"""Reads the rows of a raw batch; raises ``BadInput`` where the batch cannot be used at all."""


@dataclass(frozen=True, slots=True)
class RecordedBatch:
    """What became of a batch. ``receipt`` is the first one where the same batch had been recorded before."""

    digest: str
    counts: VerdictCounts
    receipt: Receipt


def record_observations(
    tx: Transaction,
    registered: RegisteredAgreement,
    data: bytes,
    *,
    read_rows: ReadRows,
    declared_complete: Interval | None,
    now_ns: int,
) -> RecordedBatch:
    """Keep a raw batch by its digest and append what its rows came to.

    ``declared_complete`` is the span for which the collector declares its log complete; it is what makes a window
    without rows idle instead of missing. A row of the batch outside that span is rejected, because the collector does
    not stand by it. The same batch with the same declaration is recorded once for an agreement.
    Raises ``VersionConflict`` where another batch of the source was recorded meanwhile.
    """
    agreement = registered.agreement
    tx.identities.reserve(registered.sla_id, agreement.source)
    digest = tx.batches.put(data)
    stream = observations_stream(registered.sla_id, agreement.source)
    declared = _span(declared_complete)
    following = 0
    for event in tx.events.stream(stream):
        following = event.version + 1
        if event.payload["digest"] == digest and event.payload["declared_complete"] == declared:
            receipt = Receipt(event.id, event.stream, event.version, event.seq)
            return RecordedBatch(digest, _counts_of(event.payload), receipt)
    counts, span = _classify(tx, registered, read_rows(data), declared_complete)
    payload = {
        "sla_id": registered.sla_id,
        "source": agreement.source,
        "digest": digest,
        "bytes": len(data),
        "rows": {
            "accepted": counts.accepted,
            "duplicate": counts.duplicates,
            "conflict": counts.conflicts,
            "rejected": counts.rejected_total,
        },
        "rejected_reasons": {str(reason): count for reason, count in sorted(counts.rejected.items())},
        "span": _span(span),
        "declared_complete": declared,
    }
    (receipt,) = tx.events.append(
        stream,
        [NewEvent("observations_recorded", payload, occurred_at_ns=now_ns)],
        expected_version=following,
    )
    return RecordedBatch(digest, counts, receipt)


def _classify(
    tx: Transaction,
    registered: RegisteredAgreement,
    rows: Iterable[RequestRow | RowRejection],
    declared_complete: Interval | None,
) -> tuple[VerdictCounts, Interval | None]:
    """Verdicts of the rows against everything this source reported before, and the span of the accepted ones.

    The rule is the ``Evaluator``'s, for every period of the agreement at once.
    """
    agreement, counts = registered.agreement, VerdictCounts()
    scope = (registered.sla_id, agreement.source)
    usable: defaultdict[str, list[RequestRow]] = defaultdict(list)
    period: Period | None = None
    name = ""
    for row in rows:
        if isinstance(row, RowRejection):
            counts.reject(row.reason)
            continue
        if row.service != agreement.service:
            counts.reject(Reason.OTHER_SERVICE)
            continue
        # A log is mostly in order: the last row's period is nearly always the next one's.
        if period is None or row.started_at_ns not in period.interval:
            period = period_at(agreement, row.started_at_ns)
            name = str(period)
        if period is None:
            counts.reject(Reason.OUTSIDE_PERIOD)
        elif declared_complete is not None and row.started_at_ns not in declared_complete:
            counts.reject(Reason.OUTSIDE_SPAN)
        else:
            usable[name].append(row)
    starts_ns: list[int] = []
    for name, of_period in usable.items():
        known = tx.identities.known(*scope, [id_digest(*scope, name, row.request_id) for row in of_period])
        book = IdentityBook(*scope, name, known)
        for row in of_period:
            verdict, _ = book.classify(row)
            counts.accepted += verdict is Verdict.ACCEPTED
            counts.duplicates += verdict is Verdict.DUPLICATE
            counts.conflicts += verdict is Verdict.CONFLICT
            if verdict is Verdict.ACCEPTED:
                starts_ns.append(row.started_at_ns)
        tx.identities.add(*scope, list(book.new_pairs()))
    return counts, Interval(min(starts_ns), max(starts_ns) + 1) if starts_ns else None


def _span(interval: Interval | None) -> dict[str, str] | None:
    return None if interval is None else {"from_ns": str(interval.start_ns), "to_ns": str(interval.end_ns)}


def _counts_of(payload: Mapping[str, Any]) -> VerdictCounts:
    rows = payload["rows"]
    rejected = {Reason(name): count for name, count in payload["rejected_reasons"].items()}
    return VerdictCounts(rows["accepted"], rows["duplicate"], rows["conflict"], rejected)
