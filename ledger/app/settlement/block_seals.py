"""Sealing blocks as they are over: once the grace of a block's last window has passed, its counts are in the log.

From then on a bad hour cannot be made a good one unseen: whoever counts something else later replaces the block by an
event that says why. A closed period is left to its statement, which seals what is left. One that ended before its
agreement was registered is not watched: its facts are still to be handed in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ledger.app.agreements.registering import RegisteredTimeline, load_timeline
from ledger.app.judgement.judging import Judge
from ledger.app.judgement.windows import evaluate_windows
from ledger.app.periods.closing import closing_of
from ledger.app.ports.store import Database, Randomness, Transaction
from ledger.app.settlement.sealing import seal_blocks
from ledger.domain.credits.settlement import attestability
from ledger.domain.record.naming import seal_stream
from ledger.domain.terms.lifecycle import Terms
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import DAY_NS, SECOND_NS
from ledger.domain.time.interval import Interval
from ledger.domain.windows.blocks import block_ends_ns, sealed_from_ns
from ledger.errors import SealingFailed, SlaLedgerError, VersionConflict

LOOK_AGAIN_NS = 60 * SECOND_NS
"""Where no block of an agreement is to come, one may be by then: its next period has begun."""

LOOK_BACK_NS = DAY_NS
"""A period that waits longer than this after its grace is left to its closing, which seals what is left."""


@dataclass(slots=True)
class BlockSeals:
    """Seals due blocks of all tenants; ``database`` sees every tenant.

    Two at a time do no harm, since a stream takes a block once. Each remembers when an agreement's next block is due.
    """

    database: Database
    judge: Judge
    randomness: Randomness
    _next_ns: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)

    def seal_due(self) -> int:
        """Seal what is due now; how many blocks were sealed.

        An agreement that fails holds up no other. Raises ``SealingFailed`` when all were looked at, naming the first;
        the next look tries it again.
        """
        count, failed = 0, list[tuple[str, str, SlaLedgerError]]()
        with self.database.read() as tx:
            tenants = tx.views.tenants()
        for tenant in tenants:
            database = self.database.of_tenant(tenant)
            with database.read() as tx:
                known = {str(row["sla_id"]): int(row["seq"]) for row in tx.views.agreements()}
            for sla_id, seq in known.items():
                try:
                    count += self._seal_of(tenant, database, sla_id, seq)
                except VersionConflict:
                    # Somebody else sealed since the look: the next one goes on from there.
                    continue
                except SlaLedgerError as error:
                    failed.append((tenant, sla_id, error))
        if failed:
            tenant, sla_id, first = failed[0]
            raise SealingFailed(
                f"due blocks of agreement {sla_id} of tenant {tenant} were not sealed, nor those of "
                f"{len(failed) - 1} more; mend the cause, the next look seals them ({first.code}: {first.message})",
                failed=[{"tenant": each[0], "sla_id": each[1], "code": each[2].code} for each in failed],
            ) from first
        return count

    def _seal_of(self, tenant: str, database: Database, sla_id: str, seq: int) -> int:
        now_ns = self.judge.clock.now_ns()
        known_seq, next_ns = self._next_ns.get((tenant, sla_id), (seq, now_ns))
        if known_seq == seq and now_ns < next_ns:
            return 0
        count = 0
        with database.read() as tx:
            found = load_timeline(tx, sla_id, self.judge.attestor)
            waiting = list(self._waiting(tx, found, now_ns))
        coming_ns: list[int] = []
        for terms, period, due_ns in waiting:
            due = sum(each <= now_ns for each in due_ns)
            if due:
                with database.begin() as tx:
                    count += self._seal(tx, found, terms, period, due)
            coming_ns += due_ns[due:]
        self._next_ns[tenant, sla_id] = seq, min(coming_ns, default=now_ns + LOOK_AGAIN_NS)
        return count

    def _waiting(
        self, tx: Transaction, found: RegisteredTimeline, now_ns: int
    ) -> Iterator[tuple[Terms, Period, tuple[int, ...]]]:
        """The periods that run or wait in their grace, with the instants at which their blocks are due."""
        registered_ns = found.registered_at_ns
        for terms in found.timeline.terms:
            agreement = terms.agreement
            if attestability(agreement):
                continue
            since_ns = max(registered_ns, now_ns - agreement.grace_seconds * SECOND_NS - LOOK_BACK_NS)
            for period in agreement.periods.touching(Interval(since_ns, max(now_ns, since_ns) + 1)):
                if closing_of(tx, found.sla_id, period) is not None:
                    continue
                blocks = self.judge.attestor.block_count(len(agreement.windows(period)))
                ends_ns = block_ends_ns(agreement, period, blocks)
                yield terms, period, tuple(sealed_from_ns(agreement, each, registered_ns) for each in ends_ns)

    def _seal(self, tx: Transaction, found: RegisteredTimeline, terms: Terms, period: Period, due: int) -> int:
        attestor, registered = self.judge.attestor, found.of(terms)
        stream = seal_stream(attestor.seal_key(registered.agreement, period))
        if closing_of(tx, found.sla_id, period) is not None or sum(1 for _ in tx.events.stream(stream)) >= due:
            return 0
        judged = evaluate_windows(
            tx, registered, period, read_rows=self.judge.read_rows, running=True, kept=self.judge.kept
        )
        return seal_blocks(tx, registered, period, judged, attestor=attestor, randomness=self.randomness, upto=due)
