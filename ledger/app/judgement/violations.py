"""Recording violations: what the judged windows of a period say, as events of one stream a period.

A violation is known by agreement, period, objective and first window. Judging the same facts again appends nothing.
Where other facts change the windows, an open violation is stated anew (``violation_updated``) or closed; one that was
closed with other figures, or that no longer holds, is withdrawn, and what holds instead is opened. Evidence is
what was at hand when an event was recorded: telemetry that comes later changes no violation. It names the batches, what
was recorded about the service at the time, and the worst requests with their trace ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from ledger.app.agreements.registering import RegisteredAgreement
from ledger.app.facts.telemetry import Evidence, FindEvidence
from ledger.app.judgement.violation_rows import FindRequests
from ledger.app.judgement.windows import JudgedPeriod
from ledger.app.ports.store import Receipt, Transaction
from ledger.domain.record.events import NewEvent
from ledger.domain.record.naming import observations_stream, violation_id, violations_stream
from ledger.domain.time.calendar import Period
from ledger.domain.time.interval import Interval
from ledger.domain.violations.violation import Violation, clause_of, unit_of_counts, violations
from ledger.domain.windows.exclusions import Excluded

MAX_SIGNALS = 100
"""The most samples and events that one violation event carries."""

_OPEN = ("violation_opened", "violation_updated")
_FACTS = ("period", "target", "from_ns", "to_ns", "windows", "good", "valid", "bad", "worst")


@dataclass(frozen=True, slots=True)
class _Recorder:
    """What the events of one period have in common. ``batches`` gives (digest, from, to) of the facts judged; it is
    asked where an event is to be recorded, and else nothing is read."""

    tx: Transaction
    registered: RegisteredAgreement
    period: Period
    batches: Callable[[], Sequence[tuple[str, int, int]]]
    found: Sequence[Violation]
    excluded: Excluded
    find_evidence: FindEvidence
    find_requests: FindRequests
    now_ns: int
    _requests: dict[tuple[str, int], Sequence[dict[str, Any]]] = field(default_factory=dict)

    def events(self, name: str, found: Violation, last: tuple[str, Mapping[str, Any]] | None) -> Iterator[NewEvent]:
        """What is to be appended for a violation that the windows show, given its last event."""
        still_open = found.open and self.now_ns < self.period.interval.end_ns
        facts = self._facts(name, found)
        if last is None or last[0] == "violation_withdrawn":
            revision = 1 if last is None else last[1]["revision"] + 1
            yield from self._begin(facts, found, revision, still_open)
            return
        kind, payload = last
        same, revision = all(payload[key] == facts[key] for key in _FACTS), payload["revision"]
        if kind in _OPEN:
            if not still_open:
                yield self._closed(facts, found, revision)
            elif not same:
                yield self._stated("violation_updated", facts, found, revision, self.now_ns)
        elif still_open or not same or payload["ended_by"] != found.ended_by:
            yield self.withdrawn(payload, "say something else of it")
            yield from self._begin(facts, found, revision + 1, still_open)

    def withdrawn(self, payload: Mapping[str, Any], what: str) -> NewEvent:
        """``what`` is what the windows do now."""
        reason = f"the windows were judged anew and {what}{self._excluded_by(payload)}"
        body = {key: value for key, value in payload.items() if key != "ended_by"}
        return NewEvent("violation_withdrawn", {**body, "reason": reason[:500]}, occurred_at_ns=self.now_ns)

    def _excluded_by(self, payload: Mapping[str, Any]) -> str:
        """Which exclusions take time out of a violation's windows."""
        found = self.excluded.touching(Interval(int(payload["from_ns"]), int(payload["to_ns"])))
        if not found:
            return ""
        names = ", ".join(f"{each.exclusion.id} ({each.exclusion.clause})" for each in found[:5])
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        return f": time in it is excluded by {names}{more}"

    def _begin(self, facts: Mapping[str, Any], found: Violation, revision: int, still_open: bool) -> Iterator[NewEvent]:
        yield self._stated("violation_opened", facts, found, revision, found.interval.start_ns)
        if not still_open:
            yield self._closed(facts, found, revision)

    def _closed(self, facts: Mapping[str, Any], found: Violation, revision: int) -> NewEvent:
        event = self._stated("violation_closed", facts, found, revision, found.interval.end_ns)
        return NewEvent(event.type, {**event.payload, "ended_by": str(found.ended_by)}, event.occurred_at_ns)

    def _stated(self, kind: str, facts: Mapping[str, Any], found: Violation, revision: int, at_ns: int) -> NewEvent:
        return NewEvent(kind, {**facts, "revision": revision, "evidence": self._evidence(found)}, at_ns)

    def _facts(self, name: str, found: Violation) -> dict[str, Any]:
        return {
            "violation_id": name,
            "sla_id": self.registered.sla_id,
            "doc_sha256": self.registered.agreement.doc_sha256.hex(),
            "service": self.registered.agreement.service,
            "period": str(self.period),
            "objective": found.objective.id,
            "indicator": found.objective.indicator,
            "target": found.objective.target,
            "first_window": found.first_window,
            "windows": found.windows,
            "from_ns": str(found.interval.start_ns),
            "to_ns": str(found.interval.end_ns),
            "good": found.good,
            "valid": found.valid,
            "bad": found.bad,
            "worst": {"window": found.worst.index, "good": found.worst.good, "valid": found.worst.valid},
            "clause": clause_of(self.registered.agreement, found.objective),
            "unit": unit_of_counts(found.objective.method, found.objective.indicator, found.objective.source.kind),
        }

    def _evidence(self, found: Violation) -> dict[str, Any]:
        start_ns, end_ns = found.interval.start_ns, found.interval.end_ns
        signals = self.find_evidence(self.tx, self.registered.agreement.service, found.interval)
        return {
            "inputs": sorted(self._inputs(start_ns, end_ns)),
            "signals": [_signal(each) for each in signals[:MAX_SIGNALS]],
            "requests": list(self._worst_requests()[found.objective.id, found.first_window]),
        }

    def _inputs(self, start_ns: int, end_ns: int) -> set[str]:
        return {digest for digest, from_ns, to_ns in self.batches() if from_ns < end_ns and start_ns < to_ns}

    def _worst_requests(self) -> Mapping[tuple[str, int], Sequence[dict[str, Any]]]:
        """Of every violation of the period, looked for together and only where an event is to be recorded."""
        if not self._requests:
            digests: set[str] = set()
            for each in self.found:
                digests |= self._inputs(each.interval.start_ns, each.interval.end_ns)
            worst = self.find_requests(self.tx, self.registered.agreement, self.found, self.excluded, digests)
            for each, requests in zip(self.found, worst, strict=True):
                self._requests[each.objective.id, each.first_window] = requests
        return self._requests


def record_violations(
    tx: Transaction,
    registered: RegisteredAgreement,
    period: Period,
    judged: JudgedPeriod,
    *,
    find_evidence: FindEvidence,
    find_requests: FindRequests,
    now_ns: int,
) -> tuple[Receipt, ...]:
    """Append what is new about the violations of a period; empty where nothing is.

    Call it in the transaction that judged the windows. Once ``now_ns`` has passed the period's end no violation of it
    stays open. Raises ``VersionConflict`` where the period's violations were recorded meanwhile.
    """
    stream = violations_stream(registered.sla_id, period.first)
    last: dict[str, tuple[str, Mapping[str, Any]]] = {}
    following = 0
    for event in tx.events.stream(stream):
        following = event.version + 1
        last[event.payload["violation_id"]] = event.type, event.payload
    found_now, excluded = violations(registered.agreement, judged.windows), judged.excluded
    batches = cache(partial(_batches, tx, registered, judged))
    recorder = _Recorder(tx, registered, period, batches, found_now, excluded, find_evidence, find_requests, now_ns)
    current = {
        violation_id(registered.sla_id, period.first, found.objective.id, found.first_window): found
        for found in found_now
    }
    new = [
        recorder.withdrawn(payload, "show no violation here")
        for name, (kind, payload) in last.items()
        if name not in current and kind != "violation_withdrawn"
    ]
    for name, found in current.items():
        new += recorder.events(name, found, last.get(name))
    return tx.events.append(stream, new, expected_version=following) if new else ()


def _batches(tx: Transaction, registered: RegisteredAgreement, judged: JudgedPeriod) -> Sequence[tuple[str, int, int]]:
    inputs = set(judged.inputs)
    found = []
    for event in tx.events.stream(observations_stream(registered.sla_id, registered.agreement.source)):
        digest, span = event.payload["digest"], event.payload["span"]
        if digest in inputs and span is not None:
            found.append((digest, int(span["from_ns"]), int(span["to_ns"])))
    return found


def _signal(evidence: Evidence) -> dict[str, Any]:
    return {
        "kind": str(evidence.kind),
        "event_id": evidence.event_id,
        "at_ns": str(evidence.at_ns),
        "summary": evidence.summary,
    }
