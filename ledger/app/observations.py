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
from ledger.domain.observation import (
    BodyBook,
    Reason,
    RequestRow,
    RowRejection,
    Verdict,
    VerdictCounts,
    identity_scope,
    request_id_digests,
)
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
    service = agreement.service
    start_ns = end_ns = 0
    for row in rows:
        if isinstance(row, RowRejection):
            counts.reject(row.reason)
            continue
        if row.service != service:
            counts.reject(Reason.OTHER_SERVICE)
            continue
        # A log is mostly in order: the last row's period is nearly always the next one's.
        if not start_ns <= row.started_at_ns < end_ns:
            period = period_at(agreement, row.started_at_ns)
            name = str(period)
            start_ns, end_ns = (0, 0) if period is None else (period.interval.start_ns, period.interval.end_ns)
        if period is None:
            counts.reject(Reason.OUTSIDE_PERIOD)
        elif declared_complete is not None and row.started_at_ns not in declared_complete:
            counts.reject(Reason.OUTSIDE_SPAN)
        else:
            usable[name].append(row)
    first_ns = last_ns = None
    for name, of_period in usable.items():
        ids = request_id_digests(identity_scope(*scope, name), [row.request_id for row in of_period])
        book = BodyBook(tx.identities.known(*scope, ids))
        classify = book.classify
        for row, id_digest in zip(of_period, ids, strict=True):
            verdict = classify(id_digest, row.body_digest)
            if verdict is Verdict.ACCEPTED:
                counts.accepted += 1
                start_ns = row.started_at_ns
                if first_ns is None or start_ns < first_ns:
                    first_ns = start_ns
                if last_ns is None or start_ns > last_ns:
                    last_ns = start_ns
            elif verdict is Verdict.DUPLICATE:
                counts.duplicates += 1
            else:
                counts.conflicts += 1
        tx.identities.add(*scope, book.new)
    return counts, None if first_ns is None or last_ns is None else Interval(first_ns, last_ns + 1)


def _span(interval: Interval | None) -> dict[str, str] | None:
    return None if interval is None else {"from_ns": str(interval.start_ns), "to_ns": str(interval.end_ns)}


def _counts_of(payload: Mapping[str, Any]) -> VerdictCounts:
    rows = payload["rows"]
    rejected = {Reason(name): count for name, count in payload["rejected_reasons"].items()}
    return VerdictCounts(rows["accepted"], rows["duplicate"], rows["conflict"], rejected)
