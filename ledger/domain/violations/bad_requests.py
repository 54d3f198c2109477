"""The worst requests of a violation: what somebody who asks why opens first.

Of the rows that are bad for its objective in its interval: the failed ones first, then the slowest. A request id that
is reported with two bodies there counts as failed (``observation``), by the body that is met second. Which ones are
kept follows from the batches and the order they are taken in.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from ledger.domain.facts.feeds import Facts
from ledger.domain.facts.outcome import OutcomeRule, only
from ledger.domain.facts.samples import Refused, SampleRule
from ledger.domain.rows.observation import RequestColumns, RequestRow, RowRejection, SampleRow
from ledger.domain.terms.agreement import Agreement
from ledger.domain.violations.violation import Violation
from ledger.domain.windows.exclusions import NOTHING_EXCLUDED, Excluded

MAX_KEPT = 20
"""Of one violation."""

_SLACK = 50


@dataclass(frozen=True, slots=True)
class BadRequest:
    """One row that is bad for an objective: ``line`` (from 1) of the batch of digest ``batch``; a request, or a sample
    by its id.

    ``error_code`` is None where it was too slow, by its ``latency_ns``, or where its id has two bodies (``conflict``);
    a sample has neither.
    """

    request_id: str
    at_ns: int
    batch: str
    line: int
    error_code: int | None
    latency_ns: int | None
    conflict: bool


class WorstRequests:
    """Looks for the worst requests of some violations of one agreement while batches go by.

    Those that start in time that is ``excluded`` are not bad for anybody.
    """

    def __init__(self, agreement: Agreement, found: Sequence[Violation], excluded: Excluded = NOTHING_EXCLUDED) -> None:
        self._service = agreement.service
        self._excluded = excluded
        self._rule = OutcomeRule(agreement)
        self._samples = SampleRule(agreement)
        index = {objective.id: at for at, objective in enumerate(agreement.objectives)}
        self._looked_for = [(index[each.objective.id], each) for each in found]
        self._start_ns = min((each.interval.start_ns for each in found), default=0)
        self._end_ns = max((each.interval.end_ns for each in found), default=0)
        self._kept: list[dict[str, BadRequest]] = [{} for _ in found]
        self._bodies: dict[str, bytes] = {}
        self._failed_as: dict[str, int] = {}

    def take(self, batch: str, rows: Facts) -> None:
        """Look through the rows of a batch; only requests and samples are bad for anybody."""
        for each in rows:
            if isinstance(each, RequestRow):
                self._look(batch, each)
            elif isinstance(each, SampleRow):
                self._look_at_sample(batch, each)
            elif isinstance(each, RequestColumns) and self._touches(each.starts_ns):
                for row in each.rows():
                    self._look(batch, row)

    def worst(self) -> tuple[tuple[BadRequest, ...], ...]:
        """Of each violation its worst requests, the worst first."""
        return tuple(tuple(heapq.nsmallest(MAX_KEPT, kept.values(), key=_order)) for kept in self._kept)

    def _touches(self, starts_ns: Sequence[int]) -> bool:
        return bool(starts_ns) and min(starts_ns) < self._end_ns and max(starts_ns) >= self._start_ns

    def _look(self, batch: str, row: RequestRow) -> None:
        if row.service != self._service or not self._start_ns <= row.started_at_ns < self._end_ns:
            return
        if self._excluded.parts and self._excluded.position(row.started_at_ns) is not None:
            return
        selected = self._rule.selected(row)
        if isinstance(selected, RowRejection):
            return
        conflict = self._bodies.setdefault(row.request_id, row.body_digest) != row.body_digest
        failed = self._rule.failed & selected
        if self._rule.selects:
            failed = self._failed_as[row.request_id] = self._failed_as.get(row.request_id, 0) | failed
        outcome = failed if conflict else only(self._rule.outcome(row), selected)
        for (index, violation), kept in zip(self._looked_for, self._kept, strict=True):
            if row.started_at_ns not in violation.interval:
                continue
            counted = self._rule.counted(outcome, index)
            if counted is not None and counted[1] > 0:
                self._keep(kept, _bad(batch, row, violation, conflict))

    def _look_at_sample(self, batch: str, row: SampleRow) -> None:
        if self._excluded.parts and self._excluded.position(row.at_ns) is not None:
            return
        found = self._samples.counted(row)
        bad = set() if isinstance(found, Refused) else {each.objective for each in found if each.bad}
        for (index, violation), kept in zip(self._looked_for, self._kept, strict=True):
            if index in bad and row.at_ns in violation.interval:
                self._keep(kept, BadRequest(row.sample_id, row.at_ns, batch, row.line, None, None, conflict=False))

    def _keep(self, kept: dict[str, BadRequest], found: BadRequest) -> None:
        earlier = kept.get(found.request_id)
        if earlier is None or _order(found) < _order(earlier):
            kept[found.request_id] = found
        if len(kept) > MAX_KEPT + _SLACK:
            for each in heapq.nlargest(_SLACK, kept.values(), key=_order):
                del kept[each.request_id]


def _bad(batch: str, row: RequestRow, violation: Violation, conflict: bool) -> BadRequest:
    failed = conflict or row.error_code is not None
    first_token = violation.objective.indicator == "first_token_latency"
    latency_ns = None if failed else row.first_token_ns if first_token else row.response_ns
    error_code = None if conflict else row.error_code
    return BadRequest(row.request_id, row.started_at_ns, batch, row.line, error_code, latency_ns, conflict)


def _order(found: BadRequest) -> tuple[bool, int, int, str, bool, str, int]:
    """The worst first; what never ties comes last."""
    slow_ns = found.latency_ns or 0
    return (slow_ns > 0, -slow_ns, found.at_ns, found.request_id, not found.conflict, found.batch, found.line)
