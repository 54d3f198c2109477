"""Recording facts: one raw batch, one verdict for each row, one ``observations_recorded`` event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger.app.agreements import RegisteredAgreement
from ledger.app.ports import Receipt, Transaction
from ledger.domain.agreement import Agreement
from ledger.domain.events import NewEvent
from ledger.domain.interval import Interval
from ledger.domain.naming import observations_stream
from ledger.domain.observation import (
    BodyBook,
    Reason,
    RequestColumns,
    RequestRow,
    RowRejection,
    Rows,
    Verdict,
    VerdictCounts,
    identity_scope,
    request_id_digests,
)
from ledger.domain.window import period_at

ReadRows = Callable[[bytes], Rows]
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


@dataclass(slots=True)
class _PeriodRows:
    """What is needed of a period's rows, as plain columns: a million row objects would keep the garbage collector
    busy for as long as all else takes."""

    request_ids: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    starts_ns: list[int] = field(default_factory=list)


def _classify(
    tx: Transaction,
    registered: RegisteredAgreement,
    rows: Rows,
    declared_complete: Interval | None,
) -> tuple[VerdictCounts, Interval | None]:
    """Verdicts of the rows against everything this source reported before, and the span of the accepted ones.

    The rule is the ``Evaluator``'s, for every period of the agreement at once.
    """
    counts, accepted_ns = VerdictCounts(), list[int]()
    scope = (registered.sla_id, registered.agreement.source)
    for name, of_period in _by_period(registered.agreement, rows, declared_complete, counts).items():
        ids = request_id_digests(identity_scope(*scope, name), of_period.request_ids)
        body_of = dict(zip(ids, of_period.bodies, strict=True))
        # In the order of the store's index, which looks them up and adds them.
        ordered = sorted(body_of)
        known = tx.identities.known(*scope, ordered)
        if not known and len(ordered) == len(ids):
            # Nothing was said of any of them before: what nearly every batch comes to.
            tx.identities.add(*scope, [(id_digest, body_of[id_digest]) for id_digest in ordered])
            counts.accepted += len(ids)
            accepted_ns += (min(of_period.starts_ns), max(of_period.starts_ns))
            continue
        book = BodyBook(known)
        verdicts = list(map(book.classify, ids, of_period.bodies))
        tx.identities.add(*scope, book.new)
        counts.accepted += verdicts.count(Verdict.ACCEPTED)
        counts.duplicates += verdicts.count(Verdict.DUPLICATE)
        counts.conflicts += verdicts.count(Verdict.CONFLICT)
        found = [at for at, verdict in zip(of_period.starts_ns, verdicts, strict=True) if verdict is Verdict.ACCEPTED]
        accepted_ns += (min(found), max(found)) if found else ()
    return counts, Interval(min(accepted_ns), max(accepted_ns) + 1) if accepted_ns else None


def _by_period(
    agreement: Agreement, rows: Rows, declared_complete: Interval | None, counts: VerdictCounts
) -> dict[str, _PeriodRows]:
    """The usable rows by the name of their period; the others are counted as rejected."""
    sorting = _Sorting(agreement, declared_complete, counts)
    for each in rows:
        if type(each) is not RequestColumns:
            sorting.take(each)  # type: ignore[arg-type]
        elif not sorting.take_columns(each):
            for row in each.rows():
                sorting.take(row)
    return sorting.usable


class _Sorting:
    """Puts usable rows to their periods."""

    def __init__(self, agreement: Agreement, declared_complete: Interval | None, counts: VerdictCounts) -> None:
        self.usable: defaultdict[str, _PeriodRows] = defaultdict(_PeriodRows)
        self._agreement = agreement
        self._service = agreement.service
        self._declared = declared_complete
        self._counts = counts
        self._period: Interval | None = None

    def take(self, row: RequestRow | RowRejection) -> None:
        if isinstance(row, RowRejection):
            self._counts.reject(row.reason)
            return
        start_ns = row.started_at_ns
        if row.service != self._service:
            self._counts.reject(Reason.OTHER_SERVICE)
        elif not self._find(start_ns):
            self._counts.reject(Reason.OUTSIDE_PERIOD)
        elif self._declared is not None and start_ns not in self._declared:
            self._counts.reject(Reason.OUTSIDE_SPAN)
        else:
            self._usable.request_ids.append(row.request_id)
            self._usable.bodies.append(row.body_digest)
            self._usable.starts_ns.append(start_ns)

    def take_columns(self, columns: RequestColumns) -> bool:
        """Take rows that all lie in one period and are all usable; False where they are not, and nothing is taken."""
        if not self._find(columns.starts_ns[0]) or self._period is None:
            return False
        within, declared = self._period, self._declared or self._period
        start_ns, end_ns = max(within.start_ns, declared.start_ns), min(within.end_ns, declared.end_ns)
        if not columns.all_of(self._service, start_ns, end_ns):
            return False
        self._usable.request_ids += columns.request_ids
        self._usable.bodies += columns.body_digests()
        self._usable.starts_ns += columns.starts_ns
        return True

    def _find(self, start_ns: int) -> bool:
        """Whether a period holds this instant; a log is mostly in order, so it is nearly always that of the last."""
        if self._period is None or start_ns not in self._period:
            found = period_at(self._agreement, start_ns)
            self._period = None if found is None else found.interval
            self._name = str(found)
        return self._period is not None

    @property
    def _usable(self) -> _PeriodRows:
        return self.usable[self._name]


def _span(interval: Interval | None) -> dict[str, str] | None:
    return None if interval is None else {"from_ns": str(interval.start_ns), "to_ns": str(interval.end_ns)}


def _counts_of(payload: Mapping[str, Any]) -> VerdictCounts:
    rows = payload["rows"]
    rejected = {Reason(name): count for name, count in payload["rejected_reasons"].items()}
    return VerdictCounts(rows["accepted"], rows["duplicate"], rows["conflict"], rejected)
