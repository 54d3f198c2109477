"""Rounds of scraping as facts: what all targets of an agreement say at one instant, recorded together.

The logs of a round are declared complete from the round before it, which the ledger itself remembers: that of the same
targets, whole as this one is, and no longer ago than the agreement lets a source be silent (a heartbeat's length, or a
window). Else they declare nothing, and the time before them has no data: nobody knows what was lost in a restart
meanwhile. All logs of a round are recorded in one transaction, so a process that dies has recorded it or has not, and
the next one goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ledger.app.agreements.registering import load_agreement, load_timeline
from ledger.app.facts.earlier_batches import EarlierBatches, format_by
from ledger.app.facts.handing_in import record_log
from ledger.app.facts.observations import ReadRows, RecordedBatch
from ledger.app.ports.evidence import Attestor
from ledger.app.ports.store import Database, Transaction
from ledger.app.work.retrying import write
from ledger.domain.rows.observation import RowRejection
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.log_kinds import COUNTERS, HISTOGRAMS
from ledger.domain.time.instant import SECOND_NS, Clock
from ledger.domain.time.interval import Interval
from ledger.errors import BadInput

SCRAPED = frozenset({COUNTERS, HISTOGRAMS})
"""The kinds of logs that rounds have."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Which round it is: when it began, of which targets, and whether each said all that is counted."""

    at_ns: int
    targets: tuple[str, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class Round:
    """What a round read: a log of each kind, and ``problems`` for people, each of which leaves something unread."""

    mark: Mark
    logs: Mapping[str, bytes]
    problems: tuple[str, ...]


ReadMark = Callable[[bytes], Mark | None]
"""Of which round a log is, by the log itself; None where it is of none."""


@dataclass(frozen=True, slots=True)
class RecordedRound:
    """What became of the logs of a round, by their kind, and the time that they are declared complete for."""

    batches: Mapping[str, RecordedBatch]
    complete: Interval | None


def terms_at(tx: Transaction, sla_id: str, attestor: Attestor, at_ns: int) -> Agreement:
    """The terms that are in force at an instant, or the newest ones where none are. Raises ``NotFound``."""
    timeline = load_timeline(tx, sla_id, attestor).timeline
    period = timeline.at(at_ns)
    return timeline.newest if period is None else timeline.starting(period.first)[0].agreement


def longest_silence_s(agreement: Agreement) -> int:
    """How long the rounds of an agreement may be apart. Raises ``BadInput`` where nothing is counted from any."""
    if not SCRAPED & {each.source.kind for each in agreement.objectives}:
        raise BadInput(
            "no objective of this agreement is counted from counters or histograms, so no scrape says anything of it; "
            "`sla-ledger collect` records scrapes as evidence"
        )
    return agreement.heartbeat_longest_s or agreement.window_seconds


def record_round(
    database: Database,
    sla_id: str,
    found: Round,
    *,
    attestor: Attestor,
    clock: Clock,
    read_rows: ReadRows,
    read_mark: ReadMark,
) -> RecordedRound:
    """Record the logs of a round, all or none.

    Raises ``NotFound``, ``BadInput`` where the agreement is counted otherwise or nothing was read, and what handing in
    a log raises.
    """
    if not found.logs:
        raise BadInput(f"nothing was read: {'; '.join(found.problems) or 'no target has a series of the agreement'}")
    rows = {kind: list(read_rows(data)) for kind, data in found.logs.items()}
    unread = any(isinstance(row, RowRejection) for each in rows.values() for row in each)

    def record(tx: Transaction) -> RecordedRound:
        registered = load_agreement(tx, sla_id, attestor)
        tx.identities.reserve(sla_id, registered.agreement.source)
        silent_s = longest_silence_s(terms_at(tx, sla_id, attestor, found.mark.at_ns))
        earlier = EarlierBatches(tx, sla_id, registered.agreement.source)
        since_ns = None if unread else _since_ns(tx, earlier, found.mark, silent_s, read_mark)
        complete = None if since_ns is None else Interval(since_ns, found.mark.at_ns)
        batches = {
            kind: record_log(
                tx, registered, data, rows[kind], read_rows=read_rows, complete=complete, now_ns=clock.now_ns()
            )
            for kind, data in found.logs.items()
        }
        return RecordedRound(batches, complete)

    return write(database, record)


def _since_ns(tx: Transaction, earlier: EarlierBatches, mark: Mark, silent_s: int, read_mark: ReadMark) -> int | None:
    """When the round began that this one continues."""
    from_ns = mark.at_ns - silent_s * SECOND_NS
    for events in earlier.back_from(tx.events.length(earlier.stream)) if mark.whole else ():
        for event in reversed(events):
            if event.occurred_at_ns < from_ns:
                return None
            before = read_mark(tx.batches.get(event.payload["digest"])) if format_by(event) in SCRAPED else None
            if before is None or not before.whole or before.targets != mark.targets or before.at_ns >= mark.at_ns:
                continue
            return before.at_ns if from_ns <= before.at_ns else None
    return None
