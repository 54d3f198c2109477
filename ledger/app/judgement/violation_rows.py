"""The worst requests of violations, with their trace ids: read again from the batches that are kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ledger.app.facts.observations import ReadRows
from ledger.app.ports.store import Transaction
from ledger.domain.events.credit_events import MAX_SHOWN_CHARS
from ledger.domain.schema import HIDDEN_CHARACTER
from ledger.domain.terms.agreement import Agreement
from ledger.domain.violations.bad_requests import WorstRequests
from ledger.domain.violations.violation import Violation
from ledger.domain.windows.exclusions import Excluded

ReadTraces = Callable[[bytes, Collection[int]], Mapping[int, str]]
"""The trace ids of some lines of a batch, by line; those that have none are left out."""


class FindRequests(Protocol):
    """Looks for the worst requests of violations in the batches of these digests, without those in excluded time; for
    each violation, the worst first, as the events about violations say them."""

    def __call__(
        self,
        tx: Transaction,
        agreement: Agreement,
        found: Sequence[Violation],
        excluded: Excluded,
        batches: Collection[str],
    ) -> Sequence[Sequence[dict[str, Any]]]: ...


@dataclass(frozen=True, slots=True)
class RequestFinder:
    """``FindRequests`` over batches of request and sample logs. Each batch is read once for all violations, and for its
    trace ids once more where it holds one of the worst requests."""

    read_rows: ReadRows
    read_traces: ReadTraces

    def __call__(
        self,
        tx: Transaction,
        agreement: Agreement,
        found: Sequence[Violation],
        excluded: Excluded,
        batches: Collection[str],
    ) -> Sequence[Sequence[dict[str, Any]]]:
        looking = WorstRequests(agreement, found, excluded)
        for digest in sorted(batches):
            looking.take(digest, self.read_rows(tx.batches.get(digest)))
        worst = looking.worst()
        lines: defaultdict[str, set[int]] = defaultdict(set)
        for each in (bad for of_one in worst for bad in of_one):
            lines[each.batch].add(each.line)
        traces = {digest: self.read_traces(tx.batches.get(digest), wanted) for digest, wanted in lines.items()}
        return [
            [
                {
                    "request_id": _shown(bad.request_id),
                    "trace_id": traces[bad.batch].get(bad.line),
                    "at_ns": str(bad.at_ns),
                    "batch": bad.batch,
                    "line": bad.line,
                    "error_code": None if bad.error_code is None else str(bad.error_code),
                    "latency_ns": None if bad.latency_ns is None else str(bad.latency_ns),
                    "conflict": bad.conflict,
                }
                for bad in of_one
            ]
            for of_one in worst
        ]


def _shown(request_id: str) -> str:
    """An id without what nobody sees, cut to size. It is only to be found again: batch and line say which row it is."""
    return HIDDEN_CHARACTER.sub("\ufffd", request_id[:MAX_SHOWN_CHARS])
