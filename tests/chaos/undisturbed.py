"""The same contracts in a ledger that nobody disturbs: in memory, one thing after the other. What a deployment says in
the end is held against it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any

from ledger.app.agreements.registering import load_timeline, register_agreement
from ledger.app.billing.claims import ClaimDesk
from ledger.app.facts.observations import record_observations
from ledger.app.periods.closing import Cause, close_period
from ledger.app.periods.exclusions import AskedExclusion, ExclusionDesk
from ledger.app.ports.store import Database
from ledger.attest.crypto.signing import verify
from ledger.domain.credits.restatement import carries_proof
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.events import StoredEvent
from ledger.domain.record.naming import statement_id
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.time.interval import Interval
from ledger.store.postgres import PostgresDatabase
from ledger.wiring.clock import SystemClock, SystemRandomness
from tests.chaos.courses import Contract, begin, go_on
from tests.support.said import said
from tests.unit.app.conftest import make_desk, read_rows
from tests.unit.app.test_stages import runner


class Undisturbed:
    """A ledger to which contracts happen; everything is worked before the next thing happens."""

    def __init__(self, contracts: Sequence[Contract]) -> None:
        self._desk = make_desk()
        self._of = self._desk.attestor.sla_id
        for contract in contracts:
            self._at(contract.end)
            if contract.amendment is not None:
                self._at(contract.start)
            begin(contract, self)
            go_on(contract, self)

    @property
    def database(self) -> Database:
        return self._desk.database

    def events(self) -> Iterator[StoredEvent]:
        """All of the log."""
        seq = 0
        with self.database.read() as tx:
            while page := tx.events.since(seq):
                yield from page
                seq += len(page)

    def proved(self) -> Counter[str]:
        """Of each agreement how many statements have a proof due."""
        issued = [event.payload for event in self.events() if event.type == "statement_issued"]
        return Counter(str(each["sla_id"]) for each in issued if carries_proof(each))

    def sla_id(self, contract: Contract) -> str:
        return self._of(Agreement.from_document(contract.document))

    # --- what happens ---

    def register(self, contract: Contract) -> None:
        self._signed(contract.document, 1)

    def amend(self, contract: Contract) -> None:
        assert contract.amendment is not None
        self._signed(contract.amendment, 2)

    def observe(self, contract: Contract, rows: bytes) -> None:
        with self.database.begin() as tx:
            at = load_timeline(tx, self.sla_id(contract), self._desk.attestor)
            record_observations(
                tx,
                at.versions[-1],
                rows,
                read_rows=read_rows,
                declared_complete=Interval(_ns(contract.start), _ns(contract.end)),
                now_ns=self._desk.clock.now_ns(),
            )
        self._work()

    def close(self, contract: Contract) -> None:
        with self.database.begin() as tx:
            at = load_timeline(tx, self.sla_id(contract), self._desk.attestor)
            terms, period = at.timeline.starting(contract.first)
            close_period(tx, at.of(terms), period, cause=Cause.REQUEST, now_ns=self._desk.clock.now_ns())
        self._work()

    def wait_for_end(self, contract: Contract) -> None:
        self._at(contract.end)

    def wait_for_statement(self, contract: Contract, version: int) -> None:
        assert self._statement(contract, version) in self._issued()

    def exclude(self, contract: Contract) -> None:
        start, end = map(_ns, contract.excluded)
        asked = AskedExclusion("e1", "dispute", start, end, "both agree", approved_by="board")
        ExclusionDesk(self.database, self._desk.attestor, self._desk.clock).record(self.sla_id(contract), asked)
        self._work()

    def claim(self, contract: Contract, version: int, violation: str | None) -> None:
        desk = ClaimDesk(self.database, self._desk.attestor, self._desk.clock)
        sla_id = self.sla_id(contract)
        named = None if violation is None else f"{sla_id[2:14]}.{contract.first}.{violation}"
        desk.file(self._statement(contract, version), violation=named, request=f"{sla_id} {version}")

    # --- how ---

    def _at(self, moment: datetime) -> None:
        self._desk.clock.now = _ns(moment)

    def _signed(self, document: Mapping[str, Any], version: int) -> None:
        with self.database.begin() as tx:
            register_agreement(
                tx,
                Agreement.from_document(document),
                attestor=self._desk.attestor,
                verify=verify,
                terms_version=version,
                registration=None,
                customer_signature=None,
                now_ns=self._desk.clock.now_ns(),
            )

    def _work(self) -> None:
        while runner(self._desk).run_once():
            pass

    def _statement(self, contract: Contract, version: int) -> str:
        return statement_id(self.sla_id(contract), contract.first, version)

    def _issued(self) -> set[str]:
        with self.database.read() as tx:
            return {str(row["id"]) for row in tx.views.statements()}


def told(database: Database, contracts: Mapping[str, Contract]) -> dict[str, bytes]:
    """What a ledger says of each contract's period in the end, in canonical bytes."""
    found = {}
    attestor = make_desk().attestor
    with database.read() as tx:
        for sla_id, contract in contracts.items():
            at = load_timeline(tx, sla_id, attestor)
            _, period = at.timeline.starting(contract.first)
            found[sla_id] = canonical_bytes(said(tx, at, str(period)))
    return found


@contextmanager
def read_from(database_url: str) -> Iterator[Database]:
    """A deployment's database, to be looked at."""
    with closing(PostgresDatabase(database_url, SystemClock(), SystemRandomness(), migrated=True)) as database:
        yield database


def _ns(moment: datetime) -> int:
    return int(moment.timestamp()) * SECOND_NS
