"""Whatever workers, relays and operators do, and in whatever order: work is nobody's, one worker's, or over."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from ledger.app.ports.outbox import Lease, OutboxEntry
from ledger.errors import Refused
from ledger.store.memory import MemoryDatabase
from tests.conformance.samples import SeededRandomness, StepClock, windows

LEASE_NS = 10
STATES = ("pending", "parked", "done")
HOLDERS = ("one", "two", "three")


class Outbox(RuleBasedStateMachine):
    """A clock that only goes on, three workers, a relay, and messages that come late, twice or never.

    ``SqlOutbox`` does the same, step by step (``tests/conformance/test_adapters_agree.py``).
    """

    leases = Bundle("leases")
    messages = Bundle("messages")

    @initialize(count=st.integers(1, 3))
    def queue(self, count: int) -> None:
        self.database = MemoryDatabase(StepClock(), SeededRandomness(1))
        self.now_ns = 1
        self.over: dict[str, str] = {}
        with self.database.begin() as tx:
            for receipt in tx.events.append("s", windows(count), expected_version=0):
                tx.outbox.add(receipt.event_id, "prove")

    @rule(ns=st.integers(0, 2 * LEASE_NS))
    def pass_time(self, ns: int) -> None:
        self.now_ns += ns

    @rule(target=leases, holder=st.sampled_from(HOLDERS))
    def lease(self, holder: str) -> object:
        before = self.entries()
        with self.database.begin() as tx:
            lease = tx.outbox.lease(self.now_ns, LEASE_NS, holder=holder)
        if lease is None:
            assert not [each for each in before.values() if self.is_due(each)]
            return multiple()
        self.require_free(before[lease.event_id])
        return lease

    @rule(target=messages)
    def ring(self) -> object:
        before = self.entries()
        with self.database.begin() as tx:
            rung = tx.outbox.ring(self.now_ns, LEASE_NS)
        for lease in rung:
            self.require_free(before[lease.event_id])
        return multiple(*rung)

    @rule(target=leases, message=messages, holder=st.sampled_from(HOLDERS))
    def claim(self, message: Lease, holder: str) -> object:
        before = self.entries()[message.event_id]
        with self.database.begin() as tx:
            lease = tx.outbox.claim(
                message.event_id, message.stage, message.token, self.now_ns, LEASE_NS, holder=holder
            )
        if lease is None:
            return multiple()
        # What was told of is nobody's until it is claimed.
        assert (before.state, before.holder) == ("pending", None)
        return lease

    @rule(lease=leases, ending=st.sampled_from(["done", "park", "retry", "wait", "renew"]))
    def end(self, lease: Lease, ending: str) -> None:
        before = self.entries()[lease.event_id]
        with self.database.begin() as tx:
            counts = {
                "done": lambda: tx.outbox.done(lease),
                "park": lambda: tx.outbox.fail(lease, error="x", retry_at_ns=None),
                "retry": lambda: tx.outbox.fail(lease, error="x", retry_at_ns=self.now_ns + 3),
                "wait": lambda: tx.outbox.postpone(lease, reason="x", retry_at_ns=self.now_ns + 3),
                "renew": lambda: tx.outbox.renew(lease, self.now_ns + LEASE_NS),
            }[ending]()
        after = self.entries()[lease.event_id]
        if not counts:
            assert after == before
        elif ending == "done":
            assert after.state == "done"
        elif ending == "wait":
            assert after.attempts == lease.attempt - 1

    @rule(holder=st.sampled_from(HOLDERS))
    def start_again(self, holder: str) -> None:
        others = {name: each for name, each in self.entries().items() if each.holder != holder}
        with self.database.begin() as tx:
            tx.outbox.release(holder)
        after = self.entries()
        assert {name: after[name] for name in others} == others

    @rule(lease=leases)
    def retry(self, lease: Lease) -> None:
        before = self.entries()[lease.event_id]
        try:
            with self.database.begin() as tx:
                tx.outbox.retry(lease.event_id, lease.stage)
        except Refused:
            assert before.state != "parked"
        else:
            assert before.state == "parked"

    @invariant()
    def what_is_done_stays_done(self) -> None:
        for event_id, entry in self.entries().items():
            assert self.over.get(event_id) != "done" or entry.state == "done"
            self.over[event_id] = entry.state

    def entries(self) -> dict[str, OutboxEntry]:
        with self.database.read() as tx:
            return {each.event_id: each for each in tx.outbox.entries(states=STATES, limit=99)}

    def is_due(self, entry: OutboxEntry) -> bool:
        return entry.state == "pending" and entry.due_at_ns <= self.now_ns

    def require_free(self, entry: OutboxEntry) -> None:
        """Nothing is handed out that somebody works, waits for or has ended."""
        assert self.is_due(entry), entry


TestOutbox = Outbox.TestCase
TestOutbox.settings = settings(max_examples=60, stateful_step_count=30, deadline=None, print_blob=True)
