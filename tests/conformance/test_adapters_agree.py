"""Any sequence of operations has the same outcome in memory, SQLite and PostgreSQL, down to ids, leaves and roots."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ledger.app.log.erasure import erase_payload
from ledger.app.ports.outbox import Lease
from ledger.app.ports.store import Receipt, Transaction
from ledger.errors import SlaLedgerError
from ledger.store.database import SqliteDatabase
from ledger.store.memory import MemoryDatabase
from tests.conformance.conftest import AnyDatabase
from tests.conformance.samples import (
    HOUR_NS,
    PERIOD,
    SLA_ID,
    START_NS,
    SeededRandomness,
    StepClock,
    agreement,
    anchor,
    anchor_confirmation,
    anchor_finalized,
    anchor_undone,
    attestation,
    batch,
    batch_finalized,
    batch_undone,
    breaker,
    erasable,
    exclusion,
    line_applied,
    line_issued,
    line_reversed,
    point,
    published,
    registry_event,
    signed_checkpoint,
    statement,
    statement_id,
    telemetry,
    violation,
    window,
)
from tests.support.postgres import ROLE_PREFIX, SequencedAfterCommit, Server
from tests.support.sqlite import with_schema

Step = Callable[[Transaction], Any]

streams = st.sampled_from(["a", "b"])
keys = st.sampled_from([None, "key 1", "key 2"])
versions = st.none() | st.integers(0, 6)
events = st.lists(
    st.sampled_from(
        [
            window(0),
            window(1, bad=2),
            agreement(1),
            agreement(2),
            statement(),
            statement(2),
            statement(credit=None),
            attestation(statement_id()),
            attestation(statement_id(2), incidents=True),
            anchor(statement_id()),
            anchor(statement_id(2)),
            violation("opened"),
            violation("closed"),
            violation("opened", 4),
            erasable(violation("updated", good=5)),
            erasable(violation("withdrawn")),
            exclusion(),
            exclusion("release-8", hour=4),
            erasable(exclusion(kind="withdrawn")),
            line_issued(),
            line_issued(2, of=statement_id(2)),
            erasable(line_applied()),
            erasable(line_reversed()),
            anchor_confirmation(statement_id()),
            batch(),
            published(),
            batch_undone(),
            published(),
            batch_finalized(),
            erasable(published(1, target="10", chain_id="10", until_seq=9)),
            anchor_undone(statement_id()),
            anchor_confirmation(statement_id()),
            anchor_finalized(statement_id()),
            registry_event(),
            telemetry(point(severity=80), point("XID", from_s=2, to_s=3)),
            telemetry(point(severity=40)),
            breaker(),
            breaker("closed", at_s=5),
            erasable(telemetry(point())),
            erasable(window(0, bad=1)),
            erasable(agreement(3)),
            erasable(statement(2, credit="7")),
            erasable(attestation(statement_id())),
        ]
    ),
    min_size=1,
    max_size=40,
)


class SecondThoughts(Exception):
    """The caller gives up its transaction."""


class Postgres(SequencedAfterCommit):
    """Sequences by a clock of its own, so that the events' instants follow from the appends alone."""

    def __init__(self, url: str, seed: int) -> None:
        self.ticks, self.source = StepClock(), SeededRandomness(seed)
        super().__init__(url, self.ticks, self.source, role_prefix=ROLE_PREFIX)
        self._clock = StepClock()

    def outcome(self, step: Step, *, commit: bool) -> Any:
        """Takes time and randomness back where nothing was appended: events are made before that is known."""
        now, drawn = self.ticks.now, self.source.state()
        result = outcome(self, step, commit=commit)
        if isinstance(result, type) or any(each.seq is not None for each in _receipts(result)):
            self.ticks.now = now
            self.source.restore(drawn)
        return result


def _receipts(result: Any) -> list[Receipt]:
    return [each for each in (result if isinstance(result, tuple) else [result]) if isinstance(each, Receipt)]


def without_places(result: Any) -> Any:
    """Receipts as far as they are alike: PostgreSQL knows ``seq`` later, and ``seen`` compares it."""
    return [replace(each, seq=None) for each in _receipts(result)] or result


def outcome(database: AnyDatabase, step: Step, *, commit: bool = True) -> Any:
    """What a step returns, or the kind of error that ended its transaction."""
    result: Any = None
    try:
        with database.begin() as tx:
            result = step(tx)
            if not commit:
                raise SecondThoughts
    except SlaLedgerError as error:
        return type(error)
    except SecondThoughts:
        pass
    return result


STATES = ("pending", "parked", "done")


def end(tx: Transaction, lease: Lease, ending: str, now_ns: int) -> bool:
    """How a worker says that its work ended."""
    if ending == "done":
        return tx.outbox.done(lease)
    if ending == "wait":
        return tx.outbox.postpone(lease, reason="not yet", retry_at_ns=now_ns + 3)
    if ending == "renew":
        return tx.outbox.renew(lease, now_ns + 20)
    if ending == "crash":
        return False
    return tx.outbox.fail(lease, error="failed", retry_at_ns=now_ns + 5 if ending == "retry" else None)


class Adapters(RuleBasedStateMachine):
    """Runs each step on all; the same seed and clock make the same ids and salts."""

    server: ClassVar[Server]

    @initialize(seed=st.integers(0, 2**32 - 1))
    def open(self, seed: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.memory = MemoryDatabase(StepClock(), SeededRandomness(seed))
        self.sqlite = SqliteDatabase(
            with_schema(Path(self.folder.name) / "ledger.db"), StepClock(), SeededRandomness(seed)
        )
        self.url = self.server.new_database()
        self.postgres = Postgres(self.url, seed)
        self.leases: list[Lease] = []

    def teardown(self) -> None:
        self.postgres.close()
        self.server.drop(self.url)
        self.sqlite.close()
        self.folder.cleanup()

    def all(self, step: Step, *, commit: bool = True) -> Any:
        first, second = outcome(self.memory, step, commit=commit), outcome(self.sqlite, step, commit=commit)
        third = self.postgres.outcome(step, commit=commit)
        assert first == second
        assert without_places(first) == without_places(third)
        return first

    @rule(stream=streams, new=events, expected=versions, key=keys, commit=st.booleans())
    def append(self, stream: str, new: list[Any], expected: int | None, key: str | None, commit: bool) -> None:
        self.all(
            lambda tx: tx.events.append(stream, new, expected_version=expected, idempotency_key=key), commit=commit
        )

    @rule(seq=st.integers(0, 60), commit=st.booleans())
    def erase(self, seq: int, commit: bool) -> None:
        self.all(
            lambda tx: erase_payload(tx, tx.events.at(seq).id, reason="r", requested_by=None, now_ns=1), commit=commit
        )

    @rule(size=st.integers(0, 60))
    def sign(self, size: int) -> None:
        def save(tx: Transaction) -> None:
            root = tx.log.root(size)
            tx.log.save_checkpoint(size, root, signed_checkpoint(size, root))

        self.all(save)

    @rule(seq=st.integers(0, 60), stage=st.sampled_from(["attest", "anchor"]))
    def queue(self, seq: int, stage: str) -> None:
        self.all(lambda tx: tx.outbox.add(tx.events.at(seq).id, stage))

    @rule(
        now_ns=st.integers(0, 100),
        holder=st.sampled_from(["one", "two"]),
        told=st.booleans(),
        ending=st.sampled_from(["done", "retry", "park", "wait", "renew", "crash"]),
    )
    def work(self, now_ns: int, holder: str, told: bool, ending: str) -> None:
        def run(tx: Transaction) -> Any:
            leased = tx.outbox.lease(now_ns, 10, holder=holder)
            if told:
                for rung in tx.outbox.ring(now_ns, 10, limit=1):
                    leased = tx.outbox.claim(rung.event_id, rung.stage, rung.token, now_ns, 10, holder=holder)
            return [leased, leased and end(tx, leased, ending, now_ns)]

        leased, _ = self.all(run)
        if leased is not None:
            self.leases.append(leased)

    @rule(data=st.data(), ending=st.sampled_from(["done", "retry", "park", "wait", "renew"]))
    def come_late(self, data: st.DataObject, ending: str) -> None:
        if self.leases:
            lease = data.draw(st.sampled_from(self.leases))
            self.all(lambda tx: end(tx, lease, ending, 50))

    @rule(holder=st.sampled_from(["one", "two"]))
    def start_again(self, holder: str) -> None:
        self.all(lambda tx: tx.outbox.release(holder))

    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        if self.leases:
            lease = data.draw(st.sampled_from(self.leases))
            self.all(lambda tx: tx.outbox.retry(lease.event_id, lease.stage))

    @rule(name=streams, value=st.binary(max_size=2))
    def keep(self, name: str, value: bytes) -> None:
        self.all(lambda tx: tx.secrets.put(name, value))
        self.all(lambda tx: tx.batches.get(tx.batches.put(value)))

    @rule()
    def rebuild(self) -> None:
        before = self.seen()
        assert self.memory.rebuild_views() == self.sqlite.rebuild_views() == self.postgres.rebuild_views()
        assert self.seen() == before

    @invariant()
    def look_the_same(self) -> None:
        self.seen()

    def seen(self) -> Any:
        def look(tx: Transaction) -> Any:
            size = tx.log.size()
            return (
                [tx.events.since(0), [list(tx.events.stream(name)) for name in "ab"]],
                [size, tx.log.root(size), tx.log.checkpoint()],
                [tx.log.inclusion_proof(seq, size) for seq in range(0, size, 7)],
                [tx.outbox.pending(), tx.outbox.parked(), tx.outbox.entries(states=STATES, limit=99)],
                [
                    tx.views.agreements(),
                    tx.views.statements(),
                    tx.views.credits(limit=9),
                    tx.views.windows(SLA_ID, PERIOD),
                ],
                [tx.views.violations(limit=100), tx.views.violations(state="closed", limit=1)],
                [tx.views.credit_lines(limit=100), tx.views.credit_lines(status="draft", limit=1)],
                tx.views.evidence("chat-7b", START_NS, START_NS + HOUR_NS, 20),
                tx.views.telemetry_source("chat-7b", "gpu-1"),
            )

        return self.all(look)


@pytest.fixture(scope="module", autouse=True)
def server(postgres_server: Server) -> None:
    Adapters.server = postgres_server


TestAdapters = Adapters.TestCase
TestAdapters.settings = settings(
    max_examples=15,
    stateful_step_count=20,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
