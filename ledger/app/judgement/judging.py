"""Judging periods before they are over: violations open and grow while facts come in.

A follower of the log looks which agreements got facts since its last look, and judges the periods they are about, as
closing will do. Judging follows from the facts alone, so a period that was judged on the way is closed with the same
windows, statement and credit as one that was not. A closed period is left to its restatements. What a look has read of
a period is kept for the next one (``ledger.app.judgement.period_facts``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ledger.app.agreements.registering import RegisteredAgreement, load_timeline, timeline_of
from ledger.app.facts.observations import ReadRows
from ledger.app.facts.telemetry import FindEvidence
from ledger.app.judgement.period_facts import KeptPeriods
from ledger.app.judgement.violation_rows import FindRequests
from ledger.app.judgement.violations import record_violations
from ledger.app.judgement.windows import evaluate_windows
from ledger.app.periods.closing import closing_of
from ledger.app.ports.evidence import Attestor
from ledger.app.ports.store import Database, Receipt, Transaction
from ledger.domain.events.exclusion_events import EXCLUSION_RECORDED, EXCLUSION_WITHDRAWN
from ledger.domain.record.events import StoredEvent
from ledger.domain.terms.lifecycle import Timeline
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import Clock, format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.errors import PeriodClosed, PeriodNotBegun, SlaLedgerError, VersionConflict

FOLLOWER = "watch"
PAGE = 1000
MAX_PERIODS = 3
"""The newest periods of one agreement that one look judges; a log of years is settled by closing, not watched."""


@dataclass(frozen=True, slots=True)
class Judge:
    """What judging needs of this deployment."""

    attestor: Attestor
    read_rows: ReadRows
    find_evidence: FindEvidence
    find_requests: FindRequests
    clock: Clock
    kept: KeptPeriods = field(default_factory=KeptPeriods)

    def judge(self, tx: Transaction, registered: RegisteredAgreement, period: Period) -> tuple[Receipt, ...]:
        """Judge a period that began and was not closed; what was appended about its violations.

        The same facts again append nothing. Raises ``PeriodClosed`` and ``PeriodNotBegun``.
        """
        now_ns = self.clock.now_ns()
        if now_ns < period.interval.start_ns:
            raise PeriodNotBegun(
                f"{period} begins at {format_instant_ns(period.interval.start_ns)}; there is nothing to judge before",
                period=str(period),
            )
        if closing_of(tx, registered.sla_id, period) is not None:
            raise PeriodClosed(f"{period} is closed: its statement says what it came to", period=str(period))
        # Where the terms change, the period is judged by those in force in it.
        found = load_timeline(tx, registered.sla_id, self.attestor)
        registered = found.of(found.timeline.starting(period.first)[0])
        judged = evaluate_windows(tx, registered, period, read_rows=self.read_rows, running=True, kept=self.kept)
        return record_violations(
            tx,
            registered,
            period,
            judged,
            find_evidence=self.find_evidence,
            find_requests=self.find_requests,
            now_ns=now_ns,
        )

    def current(self, tx: Transaction, registered: RegisteredAgreement, name: str | None) -> Period:
        """The period of this name, or the one that runs now; raises ``PeriodNotBegun`` where none does."""
        timeline = timeline_of(tx, registered.sla_id)
        if name is not None:
            return timeline.named(name)[1]
        running = timeline.at(self.clock.now_ns())
        if running is None:
            agreement = timeline.newest
            raise PeriodNotBegun(
                f"no period of {registered.sla_id} runs now: it is in force from {agreement.effective_from} to "
                f"{agreement.effective_until}; name a period",
                sla_id=registered.sla_id,
            )
        return running


@dataclass(slots=True)
class Watch:
    """Follows the log and judges what facts came in for. ``database`` sees every tenant."""

    database: Database
    judge: Judge
    _failed: list[SlaLedgerError] = field(default_factory=list)

    def judge_new(self) -> int:
        """Judge what has new facts since the last look, by whatever process; how many periods were judged.

        Two that look at once do no harm. Where an agreement cannot be judged the others are, and then the first error
        is raised; its next facts are another try, and closing names it.
        """
        count = 0
        self._failed.clear()
        while True:
            with self.database.read() as tx:
                before = tx.followers.position(FOLLOWER)
                events = tx.events.since(before, limit=PAGE) if before < tx.log.size() else ()
            if not events:
                break
            for (tenant, sla_id), spans in _touched(events).items():
                count += self._judge_of(self.database.of_tenant(tenant), sla_id, spans)
            try:
                with self.database.begin() as tx:
                    tx.followers.advance(FOLLOWER, before=before, now=events[-1].place + 1)
            except VersionConflict:
                break
        if self._failed:
            raise self._failed[0]
        return count

    def _judge_of(self, database: Database, sla_id: str, spans: Sequence[Interval]) -> int:
        try:
            with database.read() as tx:
                found = load_timeline(tx, sla_id, self.judge.attestor)
                registered = found.versions[-1]
                open_ones = [
                    period
                    for period in _newest_periods(found.timeline, spans, self.judge.clock.now_ns())
                    if closing_of(tx, sla_id, period) is None
                ]
            for period in open_ones:
                with database.begin() as tx:
                    self.judge.judge(tx, registered, period)
        except PeriodClosed:
            # Closed since the look above.
            return 0
        except SlaLedgerError as error:
            self._failed.append(error)
            return 0
        return len(open_ones)


def _touched(events: Iterable[StoredEvent]) -> dict[tuple[str, str], list[Interval]]:
    """What the facts among these events are about, batches and exclusions: spans by tenant and agreement."""
    found: dict[tuple[str, str], list[Interval]] = {}
    for event in events:
        if event.type not in ("observations_recorded", EXCLUSION_RECORDED, EXCLUSION_WITHDRAWN) or event.erased:
            continue
        payload = event.payload
        facts = event.type == "observations_recorded"
        for span in (payload["declared_complete"], payload["span"]) if facts else (payload,):
            if span is not None:
                interval = Interval(int(span["from_ns"]), int(span["to_ns"]))
                found.setdefault((event.tenant, payload["sla_id"]), []).append(interval)
    return found


def _newest_periods(timeline: Timeline, spans: Sequence[Interval], now_ns: int) -> list[Period]:
    """The newest periods that began and that one of the spans reaches into, oldest first."""
    found: dict[int, Period] = {}
    for span in spans:
        period = timeline.at(min(span.end_ns - 1, now_ns))
        while period is not None and span.start_ns < period.interval.end_ns and len(found) < MAX_PERIODS * len(spans):
            found[period.interval.start_ns] = period
            period = timeline.at(period.interval.start_ns - 1)
    return [found[start_ns] for start_ns in sorted(found)[-MAX_PERIODS:]]
