"""What commits together with events and is no part of the log."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from ledger.app.ports.chain import ChainLook, StateTally, StoredTransaction
from ledger.app.ports.keys import ApiKey
from ledger.app.ports.outbox import Lease, OutboxEntry, StageWait
from ledger.app.ports.store import Transaction
from ledger.errors import NotFound, Refused, VersionConflict
from tests.conformance.conftest import AnyDatabase
from tests.conformance.samples import OTHER_SLA_ID, SLA_ID, agreement, windows

TRANSACTION = StoredTransaction(
    ordinal=0,
    chain_id=2**200,
    sender="0x" + "Ab" * 20,
    nonce=0,
    purpose="deploy",
    effect="registry",
    tx_hash="0x" + "01" * 32,
    raw=b"\x02\xf8",
    block_timestamp_s=1_702_944_000,
    block_number=None,
    block_hash=None,
)


CHAIN = TRANSACTION.chain_id


def later(n: int, **changes: Any) -> StoredTransaction:
    """The ``n``-th transaction after the first."""
    name = f"0x{n + 1:064x}"
    return replace(TRANSACTION, **{"ordinal": n, "nonce": n, "tx_hash": name, "effect": name, **changes})


def _included(transaction: StoredTransaction, block: str) -> StoredTransaction:
    return replace(transaction, block_number=4, block_hash="0x" + block * 32, state="included")


def append(database: AnyDatabase, count: int = 1) -> list[str]:
    with database.begin() as tx:
        return [each.event_id for each in tx.events.append("windows/a", windows(count), expected_version=None)]


class TestRawBatches:
    @pytest.mark.parametrize("data", [b"", b"{}\n", b"row\n" * 100_000], ids=["empty", "small", "large"])
    def test_come_back_by_digest(self, database: AnyDatabase, data: bytes) -> None:
        with database.begin() as tx:
            digest = tx.batches.put(data)
            assert tx.batches.put(data) == digest == hashlib.sha256(data).hexdigest()
        with database.read() as tx:
            assert tx.batches.get(digest) == data

    @pytest.mark.parametrize("data", [b"{}\n", b"row\n" * 100_000], ids=["small", "large"])
    def test_are_there_in_their_own_transaction_and_gone_with_it(self, database: AnyDatabase, data: bytes) -> None:
        class GivenUp(Exception):
            pass

        with suppress(GivenUp), database.begin() as tx:
            digest = tx.batches.put(data)
            assert tx.batches.get(digest) == data
            raise GivenUp
        with database.read() as tx, pytest.raises(NotFound):
            tx.batches.get(digest)

    @pytest.mark.parametrize("digest", ["00" * 32, "", "no digest", "AB" * 32])
    def test_an_unknown_digest_is_not_found(self, database: AnyDatabase, digest: str) -> None:
        with database.read() as tx, pytest.raises(NotFound):
            tx.batches.get(digest)


class TestIdentities:
    def test_know_every_body_of_an_id(self, database: AnyDatabase) -> None:
        ids = [bytes([index]) * 16 for index in range(4)]
        with database.begin() as tx:
            assert tx.identities.known(SLA_ID, "gateway", ids) == {}
            tx.identities.add(SLA_ID, "gateway", [(ids[0], b"first"), (ids[1], b"only")])
            tx.identities.add(SLA_ID, "gateway", [(ids[0], b"second"), (ids[0], b"first")])
            tx.identities.add(SLA_ID, "gateway", [])
        with database.read() as tx:
            assert tx.identities.known(SLA_ID, "gateway", ids) == {
                ids[0]: frozenset({b"first", b"second"}),
                ids[1]: frozenset({b"only"}),
            }
            assert tx.identities.known(SLA_ID, "gateway", []) == {}

    def test_belong_to_agreement_and_source(self, database: AnyDatabase) -> None:
        with database.begin() as tx:
            tx.identities.add(SLA_ID, "gateway", [(b"1" * 16, b"body")])
            assert tx.identities.known(OTHER_SLA_ID, "gateway", [b"1" * 16]) == {}
            assert tx.identities.known(SLA_ID, "probe", [b"1" * 16]) == {}

    def test_are_found_among_many(self, database: AnyDatabase) -> None:
        pairs = [(index.to_bytes(16, "big"), index.to_bytes(32, "big")) for index in range(2500)]
        with database.begin() as tx:
            tx.identities.add(SLA_ID, "gateway", pairs)
        with database.read() as tx:
            known = tx.identities.known(SLA_ID, "gateway", [each for each, _ in pairs])
        assert known == {each: frozenset({body}) for each, body in pairs}


HOLDER = "worker 1"


def queued(database: AnyDatabase, count: int = 1, stage: str = "prove") -> list[str]:
    """Events with one stage queued each; their ids."""
    ids = append(database, count)
    with database.begin() as tx:
        for event_id in ids:
            tx.outbox.add(event_id, stage)
    return ids


def lease(tx: Transaction, now_ns: int = 100, *, holder: str = HOLDER) -> Lease | None:
    return tx.outbox.lease(now_ns, 10, holder=holder)


def taken(tx: Transaction, now_ns: int = 100, *, holder: str = HOLDER) -> Lease:
    found = lease(tx, now_ns, holder=holder)
    assert found is not None
    return found


class TestOutbox:
    def test_tells_whether_stages_of_events_are_unfinished(self, database: AnyDatabase) -> None:
        first, second = append(database, 2)
        with database.begin() as tx:
            tx.outbox.add(first, "evaluate")
            assert tx.outbox.unfinished([second, first], stages=["evaluate", "compensate"])
            assert not tx.outbox.unfinished([first], stages=["compensate"])
            assert not tx.outbox.unfinished([second], stages=["evaluate"])
            assert not tx.outbox.unfinished([], stages=["evaluate"])
        database.wait_sequenced([first, second])
        with database.begin() as tx:
            tx.outbox.done(taken(tx))
            assert not tx.outbox.unfinished([first], stages=["evaluate"])
            tx.outbox.add(second, "evaluate")
        with database.begin() as tx:
            tx.outbox.fail(taken(tx), error="x", retry_at_ns=None)
            assert tx.outbox.unfinished([second], stages=["evaluate"])

    def test_hands_out_work_in_the_order_it_was_queued(self, database: AnyDatabase) -> None:
        first, second = append(database, 2)
        with database.begin() as tx:
            tx.outbox.add(second, "prove")
            tx.outbox.add(first, "prove")
            tx.outbox.add(second, "anchor")
            assert tx.outbox.pending() == 3
            assert lease(tx) == Lease(second, "default", "prove", 1, 1)
            assert lease(tx) == Lease(first, "default", "prove", 1, 1)
            assert lease(tx) == Lease(second, "default", "anchor", 1, 1)
            assert lease(tx) is None

    def test_names_the_tenant_whose_event_it_is(self, database: AnyDatabase) -> None:
        queued(database.of_tenant("acme"))
        with database.begin() as tx:
            assert taken(tx).tenant == "acme"

    def test_hands_out_the_stages_asked_for_alone(self, database: AnyDatabase) -> None:
        (event,) = queued(database, stage="anchor")
        with database.begin() as tx:
            tx.outbox.add(event, "confirm")
            assert tx.outbox.lease(100, 10, holder=HOLDER, stages=["prove"]) is None
            assert tx.outbox.lease(100, 10, holder=HOLDER, stages=["prove", "confirm"]) == Lease(
                event, "default", "confirm", 1, 1
            )

    def test_a_lease_runs_out(self, database: AnyDatabase) -> None:
        (event,) = queued(database)
        with database.begin() as tx:
            assert lease(tx, 100) == Lease(event, "default", "prove", 1, 1)
            assert lease(tx, 109) is None
            assert lease(tx, 110) == Lease(event, "default", "prove", 2, 2)

    def test_a_lease_that_is_renewed_lasts(self, database: AnyDatabase) -> None:
        queued(database)
        with database.begin() as tx:
            mine = taken(tx)
            assert tx.outbox.renew(mine, 150)
            assert lease(tx, 149) is None
            assert lease(tx, 150) is not None

    def test_work_that_is_done_is_not_queued_again(self, database: AnyDatabase) -> None:
        (event,) = queued(database)
        with database.begin() as tx:
            tx.outbox.add(event, "prove")
            assert tx.outbox.done(taken(tx))
            tx.outbox.add(event, "prove")
            assert lease(tx, 1000) is None
            assert tx.outbox.pending() == 0

    def test_a_failure_comes_back_when_it_is_due(self, database: AnyDatabase) -> None:
        queued(database)
        with database.begin() as tx:
            assert tx.outbox.fail(taken(tx), error="no prover", retry_at_ns=500)
            assert lease(tx, 499) is None
            assert taken(tx, 500).attempt == 2

    def test_what_waits_comes_back_and_no_attempt_is_counted(self, database: AnyDatabase) -> None:
        queued(database)
        with database.begin() as tx:
            for round_ in range(20):
                assert tx.outbox.postpone(taken(tx, round_), reason="not yet", retry_at_ns=round_ + 1)
            assert taken(tx, 20).attempt == 1

    def test_without_a_time_to_retry_it_is_parked_until_an_operator_says_so(self, database: AnyDatabase) -> None:
        first, second = queued(database, 2)
        with database.begin() as tx:
            tx.outbox.fail(taken(tx), error="the witness does not satisfy the circuit", retry_at_ns=None)
            assert tx.outbox.parked() == [(first, "prove", 1, "the witness does not satisfy the circuit")]
            assert tx.outbox.pending() == 1
            assert taken(tx, 10**18).event_id == second
            assert lease(tx, 10**18) is None
            tx.outbox.retry(first, "prove")
            assert tx.outbox.parked() == []
            assert taken(tx)[:4] == (first, "default", "prove", 1)

    def test_only_parked_work_can_be_retried(self, database: AnyDatabase) -> None:
        (event,) = queued(database)
        with database.begin() as tx:
            with pytest.raises(Refused, match="is pending"):
                tx.outbox.retry(event, "prove")
            with pytest.raises(NotFound):
                tx.outbox.retry(event, "anchor")

    @pytest.mark.parametrize("late", ["done", "fail", "park", "postpone", "renew"])
    @pytest.mark.parametrize("meanwhile", ["leased", "claimed", "done", "parked"])
    def test_who_lost_the_lease_changes_nothing(self, database: AnyDatabase, late: str, meanwhile: str) -> None:
        (event,) = queued(database)
        with database.begin() as tx:
            mine = taken(tx, 100)
            if meanwhile == "claimed":
                (rung,) = tx.outbox.ring(110, 10)
                theirs = tx.outbox.claim(event, "prove", rung.token, 111, 10, holder="worker 2")
            else:
                theirs = lease(tx, 110, holder="worker 2")
            assert theirs is not None
            if meanwhile == "done":
                assert tx.outbox.done(theirs)
            elif meanwhile == "parked":
                assert tx.outbox.fail(theirs, error="theirs", retry_at_ns=None)
            before = tx.outbox.entries(states=["pending", "done", "parked"], limit=9)
            assert not {
                "done": lambda: tx.outbox.done(mine),
                "fail": lambda: tx.outbox.fail(mine, error="mine", retry_at_ns=1),
                "park": lambda: tx.outbox.fail(mine, error="mine", retry_at_ns=None),
                "postpone": lambda: tx.outbox.postpone(mine, reason="mine", retry_at_ns=1),
                "renew": lambda: tx.outbox.renew(mine, 10**18),
            }[late]()
            assert tx.outbox.entries(states=["pending", "done", "parked"], limit=9) == before

    def test_ringing_counts_no_attempt_and_is_repeated(self, database: AnyDatabase) -> None:
        (event,) = queued(database)
        with database.begin() as tx:
            for now_ns in range(100, 200, 10):
                (rung,) = tx.outbox.ring(now_ns, 10)
                assert rung[:4] == (event, "default", "prove", 1)
                assert tx.outbox.ring(now_ns + 9, 10) == []

    def test_what_was_rung_is_claimed_once(self, database: AnyDatabase) -> None:
        (event,) = queued(database)
        with database.begin() as tx:
            (rung,) = tx.outbox.ring(100, 10)
            claimed = tx.outbox.claim(event, "prove", rung.token, 101, 10, holder=HOLDER)
            assert claimed is not None
            assert (claimed.attempt, claimed.tenant) == (1, "default")
            # The same message again, and one that was sent before.
            assert tx.outbox.claim(event, "prove", rung.token, 101, 10, holder=HOLDER) is None
            assert tx.outbox.claim(event, "prove", 0, 101, 10, holder=HOLDER) is None
            assert tx.outbox.ring(110, 10) == []
            assert tx.outbox.done(claimed)

    @pytest.mark.parametrize("since", ["rung again", "done", "parked", "unknown"])
    def test_an_old_message_claims_nothing(self, database: AnyDatabase, since: str) -> None:
        (event,) = queued(database)
        with database.begin() as tx:
            (rung,) = tx.outbox.ring(100, 10)
            if since == "rung again":
                assert len(tx.outbox.ring(110, 10)) == 1
            elif since == "done":
                assert tx.outbox.done(rung)
            elif since == "parked":
                assert tx.outbox.fail(rung, error="x", retry_at_ns=None)
            stage = "anchor" if since == "unknown" else "prove"
            assert tx.outbox.claim(event, stage, rung.token, 111, 10, holder=HOLDER) is None

    def test_rings_no_more_than_asked_for(self, database: AnyDatabase) -> None:
        ids = queued(database, 3)
        with database.begin() as tx:
            assert [each.event_id for each in tx.outbox.ring(100, 10, limit=2)] == ids[:2]
            assert [each.event_id for each in tx.outbox.ring(100, 10, stages=["prove"])] == ids[2:]
            assert tx.outbox.ring(200, 10, stages=["anchor"]) == []

    def test_a_start_makes_due_what_the_same_worker_held_and_nothing_else(self, database: AnyDatabase) -> None:
        first, second = queued(database, 2)
        with database.begin() as tx:
            mine, theirs = taken(tx), taken(tx, holder="worker 2")
            assert (mine.event_id, theirs.event_id) == (first, second)
            tx.outbox.release(HOLDER)
            assert taken(tx).event_id == first
            assert lease(tx) is None
            assert tx.outbox.done(theirs)

    def test_shows_an_operator_what_there_is(self, database: AnyDatabase) -> None:
        first, second = queued(database, 2)
        with database.begin() as tx:
            tx.outbox.fail(taken(tx), error="broken", retry_at_ns=None)
            taken(tx)
            parked, pending = tx.outbox.entries(states=["parked", "pending"], limit=9)
            assert parked == OutboxEntry(first, "default", "prove", "parked", 1, 110, None, "broken")
            assert pending == OutboxEntry(second, "default", "prove", "pending", 1, 110, HOLDER, None)
            assert tx.outbox.entries(states=["parked", "pending"], limit=1) == [parked]
            assert tx.outbox.entries(states=["done"], limit=9) == []

    def test_says_how_each_stage_waits(self, database: AnyDatabase) -> None:
        first, second = queued(database, 2)
        with database.begin() as tx:
            tx.outbox.add(first, "anchor")
            recorded_ns = [tx.events.by_id(event_id).recorded_at_ns for event_id in (first, second)]
            now_ns = max(recorded_ns) + 100
            assert tx.outbox.waiting(now_ns) == [
                StageWait("anchor", recorded_ns[0], recorded_ns[0], 0),
                StageWait("prove", min(recorded_ns), min(recorded_ns), 0),
            ]
            # Told, but taken by nobody; and told again when nobody took it.
            tx.outbox.ring(now_ns, 10)
            assert tx.outbox.waiting(now_ns) == [
                StageWait("anchor", None, recorded_ns[0], 0),
                StageWait("prove", None, min(recorded_ns), 0),
            ]
            assert tx.outbox.waiting(now_ns + 15)[1] == StageWait("prove", now_ns + 10, min(recorded_ns), 0)

    def test_what_is_worked_or_not_possible_yet_does_not_stand_still(self, database: AnyDatabase) -> None:
        first, _ = queued(database, 2)
        with database.begin() as tx:
            recorded_ns = tx.events.by_id(first).recorded_at_ns
            now_ns = recorded_ns + 100
            held, waits = taken(tx, now_ns), taken(tx, now_ns)
            (wait,) = tx.outbox.waiting(now_ns)
            assert (wait.untold_since_ns, wait.untried_since_ns, wait.worked) == (None, None, 2)
            tx.outbox.postpone(waits, reason="not_yet: it is not its turn", retry_at_ns=now_ns + 50)
            (wait,) = tx.outbox.waiting(now_ns)
            assert (wait.untold_since_ns, wait.untried_since_ns, wait.worked) == (None, None, 1)
            # The broker took no message: that is standing still, whatever the row says of a reason.
            (rung,) = tx.outbox.ring(now_ns + 60, 10, limit=1)
            tx.outbox.postpone(rung, reason="broker_unavailable: it does not answer", retry_at_ns=now_ns + 60)
            (wait,) = tx.outbox.waiting(now_ns + 70)
            assert wait.untold_since_ns is not None
            tx.outbox.fail(held, error="poison", retry_at_ns=None)
            for lease_ in tx.outbox.ring(now_ns + 70, 10):
                tx.outbox.done(lease_)
            assert tx.outbox.waiting(now_ns + 70) == []

    def test_needs_an_event_and_a_queued_stage(self, database: AnyDatabase) -> None:
        (event,) = append(database)
        never = Lease(event, "default", "prove", 1, 1)
        with database.begin() as tx:
            with pytest.raises(NotFound):
                tx.outbox.add("no event", "prove")
            with pytest.raises(NotFound):
                tx.outbox.done(never)
            with pytest.raises(NotFound):
                tx.outbox.fail(never, error="x", retry_at_ns=None)


class TestTenants:
    def test_are_those_with_an_agreement(self, database: AnyDatabase) -> None:
        with database.read() as tx:
            assert tx.views.tenants() == []
        for tenant in ("b", "a"):
            database.of_tenant(tenant).append("agreement/x", [agreement()], expected_version=0)
        append(database)
        with database.read() as tx:
            assert tx.views.tenants() == ["a", "b"]


class TestChainTransactions:
    def test_are_kept_in_sending_order(self, database: AnyDatabase) -> None:
        second = later(1)
        with database.begin() as tx:
            tx.chain.add(second)
            tx.chain.add(TRANSACTION)
        with database.read() as tx:
            assert tx.chain.of_chain(CHAIN) == [TRANSACTION, second]
            assert tx.chain.of_chain(CHAIN, newest=1) == [second]
            assert tx.chain.count(CHAIN) == 2
            assert tx.chain.by_hash(second.tx_hash) == second
            with pytest.raises(NotFound):
                tx.chain.by_hash("0x" + "ff" * 32)

    def test_remember_their_block_and_follow_a_reorganisation(self, database: AnyDatabase) -> None:
        with database.begin() as tx:
            tx.chain.add(TRANSACTION)
            for block_hash in ("0x" + "0a" * 32, "0x" + "0b" * 32):
                tx.chain.included(TRANSACTION.tx_hash, block_number=4, block_hash=block_hash)
            tx.chain.add(TRANSACTION)
            assert tx.chain.of_chain(CHAIN) == [_included(TRANSACTION, "0b")]
            with pytest.raises(NotFound):
                tx.chain.included("0x" + "ff" * 32, block_number=1, block_hash="0x" + "0a" * 32)

    @pytest.mark.parametrize(
        "other",
        [
            replace(TRANSACTION, ordinal=1, tx_hash="0x" + "02" * 32),
            replace(TRANSACTION, nonce=1, tx_hash="0x" + "02" * 32),
            replace(TRANSACTION, raw=b"\x02\xf9"),
        ],
        ids=["the nonce is taken", "the ordinal is taken", "other bytes under one hash"],
    )
    def test_never_share_a_place(self, database: AnyDatabase, other: StoredTransaction) -> None:
        with database.begin() as tx:
            tx.chain.add(TRANSACTION)
            with pytest.raises(VersionConflict):
                tx.chain.add(other)
            assert tx.chain.of_chain(CHAIN) == [TRANSACTION]

    def test_share_a_nonce_as_attempts_of_which_one_is_included(self, database: AnyDatabase) -> None:
        first, dearer = TRANSACTION, later(1, nonce=0, effect="registry", attempt=1, signed_at_block=7)
        with database.begin() as tx:
            tx.chain.add(first)
            tx.chain.add(dearer)
            with pytest.raises(VersionConflict):
                tx.chain.add(later(2, nonce=0, attempt=1))
            assert tx.chain.of_effect(CHAIN, "registry") == dearer
            assert tx.chain.next_place(CHAIN, first.sender) == (2, 1)
            assert tx.chain.at_nonce(CHAIN, first.sender, 0) == [first, dearer]
            assert tx.chain.from_nonce(CHAIN, first.sender, 0) == [first, dearer]
            assert tx.chain.at_nonce(CHAIN, first.sender, 1) == []
            for held, other in ((first, dearer), (dearer, first)):
                tx.chain.included(held.tx_hash, block_number=4, block_hash="0x" + "0a" * 32)
                assert tx.chain.of_effect(CHAIN, "registry") == _included(held, "0a")
                assert tx.chain.by_hash(other.tx_hash) == replace(other, state="failed")
                assert tx.chain.not_included(CHAIN) == []
            tx.chain.superseded(first.tx_hash)
            assert [each.failed for each in tx.chain.of_chain(CHAIN)] == [True, True]
            assert tx.chain.of_effect(CHAIN, "registry") is None

    def test_are_counted_chain_by_chain(self, database: AnyDatabase) -> None:
        elsewhere = replace(TRANSACTION, chain_id=5, tx_hash="0x" + "05" * 32)
        with database.begin() as tx:
            tx.chain.add(TRANSACTION)
            tx.chain.add(elsewhere)
            assert tx.chain.of_chain(5) == [elsewhere]
            assert tx.chain.of_effect(5, "registry") == elsewhere
            assert tx.chain.next_place(5, TRANSACTION.sender) == (1, 1)
            assert tx.chain.next_place(6, TRANSACTION.sender) == (0, 0)

    def test_of_an_effect_is_the_newest_that_did_not_fail(self, database: AnyDatabase) -> None:
        with database.begin() as tx:
            for each in (TRANSACTION, later(1, effect="registry"), later(2, effect="record/7")):
                tx.chain.add(each)
            assert tx.chain.of_effect(CHAIN, "registry") == later(1, effect="registry")
            tx.chain.superseded(later(1).tx_hash)
            assert tx.chain.of_effect(CHAIN, "registry") == TRANSACTION
            tx.chain.included(TRANSACTION.tx_hash, block_number=1, block_hash="0x" + "0a" * 32, state="failed")
            assert tx.chain.of_effect(CHAIN, "registry") is None
            # A reorganisation may let it succeed after all.
            tx.chain.included(TRANSACTION.tx_hash, block_number=2, block_hash="0x" + "0b" * 32)
            assert tx.chain.by_hash(TRANSACTION.tx_hash).failed is False

    def test_that_wait_for_a_block_are_told_from_the_others(self, database: AnyDatabase) -> None:
        with database.begin() as tx:
            for each in (TRANSACTION, later(1), later(2), later(3)):
                tx.chain.add(each)
            tx.chain.included(TRANSACTION.tx_hash, block_number=1, block_hash="0x" + "0a" * 32)
            tx.chain.superseded(later(2).tx_hash)
            assert tx.chain.not_included(CHAIN) == [later(1), later(3)]
            assert [each.nonce for each in tx.chain.from_nonce(CHAIN, TRANSACTION.sender, 2)] == [2, 3]
            assert tx.chain.from_nonce(CHAIN, "0x" + "cD" * 20, 0) == []
            with pytest.raises(NotFound):
                tx.chain.superseded("0x" + "ff" * 32)

    def test_come_further_and_fall_back(self, database: AnyDatabase) -> None:
        """Of two attempts the one in the block goes on; once a reorganisation drops it both wait for a block."""
        first, dearer = TRANSACTION, later(1, nonce=0, effect="registry", attempt=1)
        here, elsewhere = "0x" + "0a" * 32, "0x" + "0b" * 32
        with database.begin() as tx:
            for each in (first, dearer, later(2)):
                tx.chain.add(each)
            tx.chain.included(dearer.tx_hash, block_number=4, block_hash=here)
            tx.chain.reached(dearer.tx_hash, "safe", block_hash=elsewhere)
            assert tx.chain.by_hash(dearer.tx_hash).state == "included"
            tx.chain.reached(dearer.tx_hash, "safe", block_hash=here)
            assert [each.state for each in tx.chain.of_chain(CHAIN)] == ["failed", "safe", "submitted"]
            tx.chain.dropped(dearer.tx_hash, block_hash=elsewhere)
            assert tx.chain.by_hash(dearer.tx_hash).state == "safe"
            tx.chain.dropped(dearer.tx_hash, block_hash=here)
            assert tx.chain.of_chain(CHAIN) == tx.chain.not_included(CHAIN) == [first, dearer, later(2)]
            for change in (tx.chain.reached, tx.chain.dropped):
                with pytest.raises(NotFound):
                    change("0x" + "ff" * 32, *(["safe"] if change == tx.chain.reached else []), block_hash=here)

    def test_that_may_still_change_are_told_from_those_that_will_not(self, database: AnyDatabase) -> None:
        block = "0x" + "0a" * 32
        with database.begin() as tx:
            for n in range(6):
                tx.chain.add(later(n))
            tx.chain.included(later(1).tx_hash, block_number=4, block_hash=block)
            for n, state in ((2, "safe"), (3, "finalized"), (4, "failed")):
                tx.chain.included(later(n).tx_hash, block_number=4, block_hash=block, state=state)
            tx.chain.superseded(later(5).tx_hash)
            assert [each.ordinal for each in tx.chain.unsettled(CHAIN, above=3)] == [0, 1, 2, 4]
            assert [each.ordinal for each in tx.chain.unsettled(CHAIN, above=4)] == [0, 1, 2]
            assert [each.ordinal for each in tx.chain.unsettled(CHAIN, above=3, limit=2)] == [0, 1]
            assert tx.chain.unsettled(CHAIN + 1, above=0) == []
            names = [later(n).tx_hash for n in (0, 3, 9)]
            assert tx.chain.states(names) == {names[0]: "submitted", names[1]: "finalized"}

    def test_say_since_which_block_there_are_any(self, database: AnyDatabase) -> None:
        with database.begin() as tx:
            tx.chain.add(TRANSACTION)
            assert tx.chain.since_block(CHAIN) is None
            tx.chain.included(TRANSACTION.tx_hash, block_number=9, block_hash="0x" + "0a" * 32)
            assert tx.chain.since_block(CHAIN) == 9
            tx.chain.add(later(1, signed_at_block=7))
            tx.chain.add(later(2, signed_at_block=8))
            assert tx.chain.since_block(CHAIN) == 7
            assert tx.chain.since_block(5) is None

    def test_are_counted_by_state(self, database: AnyDatabase) -> None:
        with database.begin() as tx:
            for each in (
                later(0, signed_at_s=70),
                later(1, signed_at_s=50),
                later(2),
                later(0, chain_id=5, tx_hash="0x" + "05" * 32),
            ):
                tx.chain.add(each)
            tx.chain.superseded(later(2).tx_hash)
            assert list(tx.chain.tallies()) == [
                StateTally(CHAIN, "failed", 1, None),
                StateTally(CHAIN, "submitted", 2, 50),
                StateTally(5, "submitted", 1, None),
            ]

    def test_get_places_one_process_at_a_time(self, database: AnyDatabase) -> None:
        """Many writers, each with what it reads under the reservation: no two take the same place."""

        def sign(serial: int) -> None:
            with database.begin() as tx:
                tx.chain.reserve(CHAIN)
                ordinal, nonce = tx.chain.next_place(CHAIN, TRANSACTION.sender)
                tx_hash = f"0x{serial:064x}"
                tx.chain.add(replace(TRANSACTION, ordinal=ordinal, nonce=nonce, tx_hash=tx_hash, effect=tx_hash))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(sign, range(24)))
        with database.read() as tx:
            places = [(each.ordinal, each.nonce) for each in tx.chain.of_chain(CHAIN)]
        assert places == [(n, n) for n in range(24)]


class TestSecrets:
    def test_are_written_once(self, database: AnyDatabase) -> None:
        with database.begin() as tx:
            tx.secrets.put("seal/1/salt/0", b"\x00\x01")
            tx.secrets.put("seal/1/salt/0", b"\x00\x01")
            with pytest.raises(VersionConflict) as caught:
                tx.secrets.put("seal/1/salt/0", b"\x00\x02")
            assert "\\x00" not in str(caught.value) + str(caught.value.data)
        with database.read() as tx:
            assert tx.secrets.get("seal/1/salt/0") == b"\x00\x01"
            with pytest.raises(NotFound):
                tx.secrets.get("seal/1/salt/1")


KEY = ApiKey(
    key_id="0123456789abcdef",
    tenant="default",
    role="customer_admin",
    label="",
    sla_ids=(OTHER_SLA_ID, SLA_ID),
    secret_digest=b"\x07" * 32,
    created_at_ns=5,
    expires_at_ns=2**62,
    revoked_at_ns=None,
)


class TestApiKeys:
    def test_come_back_as_they_were_kept(self, database: AnyDatabase) -> None:
        other = replace(KEY, key_id="f" * 16, created_at_ns=4, sla_ids=(), expires_at_ns=None, label="für Ops")
        with database.begin() as tx:
            tx.keys.add(KEY)
            tx.keys.add(other)
        with database.read() as tx:
            assert tx.keys.all() == [other, KEY]
            assert tx.keys.find(KEY.key_id) == KEY
            assert tx.keys.find("0" * 16) is None

    def test_an_id_is_given_once(self, database: AnyDatabase) -> None:
        with database.begin() as tx:
            tx.keys.add(KEY)
            for forged in (KEY, replace(KEY, role="operator", secret_digest=b"\x08" * 32)):
                with pytest.raises(VersionConflict):
                    tx.keys.add(forged)
            assert tx.keys.find(KEY.key_id) == KEY

    def test_are_found_whoever_asks_and_belong_to_the_tenant_that_made_them(self, database: AnyDatabase) -> None:
        with database.of_tenant("alice").begin() as tx:
            tx.keys.add(replace(KEY, tenant="bob"))
        with database.of_tenant("bob").begin() as tx:
            found = tx.keys.find(KEY.key_id)
            assert found is not None
            assert found.tenant == "alice"
            assert tx.keys.all() == []
            with pytest.raises(NotFound):
                tx.keys.revoke(KEY.key_id, 9)
            found = tx.keys.find(KEY.key_id)
            assert found is not None
            assert found.revoked_at_ns is None

    def test_are_revoked_for_good(self, database: AnyDatabase) -> None:
        with database.begin() as tx:
            tx.keys.add(KEY)
            assert tx.keys.revoke(KEY.key_id, 9) == replace(KEY, revoked_at_ns=9)
        with database.begin() as tx:
            assert tx.keys.revoke(KEY.key_id, 10).revoked_at_ns == 9
            with pytest.raises(NotFound):
                tx.keys.revoke("0" * 16, 10)
        with database.read() as tx:
            assert tx.keys.all() == [replace(KEY, revoked_at_ns=9)]


class TestChainLooks:
    """One process looks at a chain at a time, as often as is due."""

    CONTRACT = "0x" + "Ab" * 20

    def take(
        self, tx: Transaction, holder: str, now_ns: int, *, due_ns: int | None = None, chain_id: int = CHAIN
    ) -> ChainLook | None:
        due_ns = now_ns if due_ns is None else due_ns
        return tx.chain_looks.take(
            chain_id, self.CONTRACT, holder=holder, now_ns=now_ns, until_ns=now_ns + 30, due_ns=due_ns
        )

    def test_are_one_holders_until_its_time_is_over(self, database: AnyDatabase) -> None:
        first = ChainLook(CHAIN, self.CONTRACT)
        with database.begin() as tx:
            assert self.take(tx, "a", 100) == first
            assert self.take(tx, "b", 129) is None
            assert self.take(tx, "a", 110) == first
            assert self.take(tx, "b", 139) is None
            assert self.take(tx, "b", 140) == first
            assert self.take(tx, "a", 141) is None
            assert self.take(tx, "a", 141, chain_id=5) == ChainLook(5, self.CONTRACT)

    def test_are_kept_by_the_holder_alone(self, database: AnyDatabase) -> None:
        look = ChainLook(CHAIN, self.CONTRACT, 7, 100, 90, 80, 105, None, (0, 6), 3)
        with database.begin() as tx:
            assert not tx.chain_looks.note(look, holder="a")
            self.take(tx, "a", 100)
            assert tx.chain_looks.note(look, holder="a")
            assert self.take(tx, "b", 130) == look
            assert not tx.chain_looks.note(replace(look, next_block=9), holder="a")
        with database.read() as tx:
            assert tx.chain_looks.all() == [look]

    def test_are_made_when_they_are_due(self, database: AnyDatabase) -> None:
        with database.begin() as tx:
            self.take(tx, "a", 100)
            tx.chain_looks.note(ChainLook(CHAIN, self.CONTRACT, looked_at_ns=100, error="away"), holder="a")
            assert self.take(tx, "a", 110, due_ns=99) is None
            found = self.take(tx, "a", 115, due_ns=100)
            assert found is not None
            assert found.error == "away"
