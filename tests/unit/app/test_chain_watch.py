"""Looks at a chain: how often, by whom, and what a node may say without anything coming of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import pytest

from ledger.app.chain.anchors import finalize, undo
from ledger.app.chain.events import REFUSALS, SPAN
from ledger.app.chain.status import events_of_others
from ledger.app.chain.watch import RARE, Anchor, ChainWatch
from ledger.app.ports.chain import Among, ChainLook, Heights, Seen, StoredTransaction
from ledger.app.ports.evidence import Anchored, Standing
from ledger.domain.record.naming import attestation_stream, registry_stream, statement_stream
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import ChainUnavailable
from ledger.store.memory import MemoryDatabase
from ledger.store.memory_events import MemoryEvents
from tests.conformance.samples import (
    SLA_ID,
    agreement,
    anchor,
    anchor_confirmation,
    attestation,
    statement,
    statement_id,
)
from tests.support.stored import memory_database

EVERY_S = 15
REGISTRY = "0x" + "Ab" * 20
CHAIN_ID = 131277322940537
"""Of the sample's anchors."""
CONFIRMED = ("0x" + "a1" * 32, 9, "0x" + "b4" * 32)
"""Transaction and block of the sample's confirmed anchor."""


@dataclass
class Clock:
    ns: int = 10**18

    def now_ns(self) -> int:
        return self.ns


@dataclass
class Node:
    """A chain in memory: block hashes by number, and what it emitted. ``refuses`` are blocks whose logs it lacks."""

    heights_now: Heights = field(default_factory=lambda: Heights(20, 12, 5))
    hashes: dict[int, str] = field(default_factory=lambda: {CONFIRMED[1]: CONFIRMED[2]})
    emitted: list[Seen] = field(default_factory=list)
    refuses: range = range(0)
    asked: list[str] = field(default_factory=list)
    read: list[tuple[int, int]] = field(default_factory=list)
    resent: int = 0
    away: bool = False
    chain_id: int = CHAIN_ID
    contract: str = REGISTRY
    confirmations: int = 1

    def heights(self) -> Heights:
        self.asked.append("heights")
        if self.away:
            raise ChainUnavailable("the node does not answer", retry_after_s=1)
        return self.heights_now

    def block_hash(self, number: int) -> str | None:
        self.asked.append(f"block {number}")
        return self.hashes.get(number, f"0x{number:064x}" if number <= self.heights_now.latest else None)

    def held(self, tx_hash: str) -> bool:
        return False

    def standing(self, tx_hash: str) -> Standing | None:
        tx, number, block_hash = CONFIRMED
        stands = tx_hash == tx and self.hashes.get(number) == block_hash
        return Standing(Anchored(tx, number, block_hash), 9) if stands else None

    def resend(self, *, signed_before_s: int) -> None:
        self.resent += 1

    def events(self, first: int, last: int, *, own: Among, known: Among) -> Sequence[Seen]:
        self.read.append((first, last))
        if set(self.refuses) & set(range(first, last + 1)):
            raise ChainUnavailable("pruned", answered=True, retry_after_s=1)
        found = [event for event in self.emitted if first <= event.block_number <= last]
        mine = own({event.tx_hash for event in found})
        kept = known({event.arguments["slaId"] for event in found if event.concerns != "registry"})
        assert kept <= {SLA_ID}
        ours = [replace(event, own=True, concerns=None) for event in found if event.tx_hash in mine]
        return ours + [event for event in found if event.tx_hash not in mine]


@dataclass
class World:
    """A ledger with one confirmed anchor, and a watcher of it."""

    database: MemoryDatabase
    node: Node = field(default_factory=Node)
    clock: Clock = field(default_factory=Clock)
    said: list[str] = field(default_factory=list)

    def watch(self, holder: str = "a") -> ChainWatch:
        return ChainWatch(self.database, lambda: self.node, self.clock, holder, EVERY_S, self.said.append)

    def after(self, watch: ChainWatch, seconds: int = 1000, times: int = 1) -> None:
        for _ in range(times):
            self.clock.ns += seconds * SECOND_NS
            watch.look()

    @property
    def looks(self) -> int:
        return self.node.asked.count("heights")

    @property
    def last(self) -> ChainLook:
        with self.database.read() as tx:
            (look,) = tx.chain_looks.all()
        return look

    def trail(self) -> list[str]:
        with self.database.read() as tx:
            return [event.type for event in tx.events.stream(attestation_stream(statement_id()))]

    def of_others(self) -> list[dict[str, Any]]:
        with self.database.read() as tx:
            return [dict(event.payload) for event in tx.events.stream(registry_stream(CHAIN_ID, REGISTRY))]


@pytest.fixture
def world() -> World:
    database, name = memory_database(), statement_id()
    first = statement()
    streams = {
        f"agreement/{SLA_ID}": [agreement()],
        statement_stream(SLA_ID, _first(first.payload)): [first],
        attestation_stream(name): [attestation(name), anchor(name), anchor_confirmation(name)],
    }
    for stream, events in streams.items():
        database.append(stream, events, expected_version=0)
    return World(database)


def _first(payload: Any) -> date:
    return date.fromisoformat(payload["period"].split("/")[0])


def stored(n: int = 0, **changes: Any) -> StoredTransaction:
    given = StoredTransaction(
        ordinal=n,
        chain_id=CHAIN_ID,
        sender=REGISTRY,
        nonce=n,
        purpose="record",
        effect=f"record/{n}",
        tx_hash=f"0x{n + 1:064x}",
        raw=b"\x02",
        signed_at_s=1,
    )
    return replace(given, **changes)


def seen(n: int = 1, **changes: Any) -> Seen:
    arguments, tx_hash = {"slaId": SLA_ID, "n": "7"}, "0x" + "0c" * 32
    given = Seen("StatementRecorded", arguments, tx_hash, 10 + n, f"0x{10 + n:064x}", n, False, "statement")
    return replace(given, **changes)


# --- how often, and by whom -----------------------------------------------------------------------


def test_it_looks_at_its_pace_while_an_anchor_is_open_and_rarely_once_all_is_final(world: World) -> None:
    watch = world.watch()
    watch.look()
    assert world.looks == 1
    world.after(watch, EVERY_S - 1)
    assert world.looks == 1
    world.after(watch, 1)
    assert world.looks == 2
    world.node.heights_now = Heights(40, 30, 20)
    world.after(watch, EVERY_S, times=3)
    assert world.trail()[-1] == "anchor_finalized"
    before = world.looks
    world.after(watch, EVERY_S, times=RARE - 1)
    assert world.looks == before
    world.after(watch, EVERY_S)
    assert world.looks == before + 1
    # What is signed meanwhile is on its way.
    with world.database.begin() as tx:
        tx.chain.add(stored())
    world.after(watch, EVERY_S)
    assert world.looks == before + 2


def test_of_two_one_looks_and_the_other_takes_over_once_it_is_gone(world: World) -> None:
    first, second = world.watch("a"), world.watch("b")
    for _ in range(6):
        world.after(first, EVERY_S)
        second.look()
    assert world.looks == 6
    world.after(second, EVERY_S, times=3)
    assert world.looks == 6
    world.after(second, RARE * EVERY_S + 30)
    assert world.looks == 7
    world.after(first, EVERY_S)
    assert world.looks == 7


def test_a_node_that_is_away_is_told_of_once_and_asked_at_the_same_pace(world: World) -> None:
    watch = world.watch()
    world.node.away = True
    world.after(watch, EVERY_S, times=5)
    assert world.looks == 5
    assert world.said == ["watching the chain: the node does not answer"]
    assert world.last.error == "the node does not answer"
    world.node.away = False
    world.after(watch, EVERY_S)
    assert world.said[1:] == ["the chain is watched again"]
    assert (world.last.error, world.last.latest) == (None, 20)


# --- anchors --------------------------------------------------------------------------------------


def test_one_wrong_answer_undoes_nothing_and_two_looks_that_agree_do(world: World) -> None:
    watch = world.watch()
    world.after(watch, times=2)
    del world.node.hashes[CONFIRMED[1]]
    world.after(watch)
    world.node.hashes[CONFIRMED[1]] = CONFIRMED[2]
    world.after(watch)
    del world.node.hashes[CONFIRMED[1]]
    world.after(watch)
    assert world.trail()[-1] == "anchor_confirmed"
    # The next look comes soon.
    world.after(watch, 2)
    assert world.trail()[-1] == "anchor_undone"
    with world.database.read() as tx:
        (row,) = tx.outbox.entries(states=["pending"], limit=9)
        placed = tx.views.statement(statement_id())["anchor"]
    assert (row.stage, placed["confirmed"], placed["standing"]) == ("confirm", False, "undone")
    world.after(watch, times=3)
    assert world.trail().count("anchor_undone") == 1


def test_one_look_makes_no_anchor_final(world: World) -> None:
    watch = world.watch()
    world.after(watch, times=2)
    world.node.heights_now = Heights(20, 20, 20)
    world.after(watch)
    world.node.heights_now = Heights(20, 12, 5)
    world.after(watch, times=2)
    assert world.trail()[-1] == "anchor_confirmed"


def test_a_node_that_is_behind_undoes_nothing(world: World) -> None:
    world.node.chain_id = 1
    name = statement_id()
    with world.database.begin() as tx:
        moved = replace(anchor_confirmation(name), payload={**anchor_confirmation(name).payload, "chain_id": "1"})
        tx.events.append(attestation_stream(name), [moved], expected_version=3)
    watch = world.watch()
    world.after(watch, times=2)
    world.node.heights_now, world.node.hashes = Heights(4, None, None), {}
    world.after(watch, times=4)
    assert world.trail()[-1] == "anchor_confirmed"


def test_what_another_has_confirmed_meanwhile_stays(world: World) -> None:
    """Between the look and the event somebody confirmed it in its new block."""
    stale = Anchor("default", statement_id(), CONFIRMED[0], 8, "0x" + "00" * 32)
    assert undo(world.database, {stale}, [stale], world.clock) == ()
    finalize(world.database, stale, 99, world.clock)
    assert world.trail()[-1] == "anchor_confirmed"


# --- transactions ---------------------------------------------------------------------------------


def test_states_go_on_and_a_transaction_in_no_block_is_sent_again_after_a_minute(world: World) -> None:
    block = f"0x{8:064x}"
    with world.database.begin() as tx:
        for each in (stored(0), stored(1), stored(2, signed_at_s=world.clock.ns // SECOND_NS + 2000)):
            tx.chain.add(each)
        tx.chain.included(stored(0).tx_hash, block_number=8, block_hash=block)

    def states() -> list[str]:
        with world.database.read() as tx:
            return [each.state for each in tx.chain.of_chain(CHAIN_ID)]

    watch = world.watch()
    world.after(watch)
    assert (states(), world.node.resent) == (["safe", "submitted", "submitted"], 1)
    world.node.hashes[8] = "0x" + "77" * 32
    world.after(watch)
    assert states() == ["submitted"] * 3
    with world.database.begin() as tx:
        tx.chain.included(stored(0).tx_hash, block_number=8, block_hash=world.node.hashes[8])
    world.node.heights_now = Heights(40, 30, 20)
    world.after(watch)
    assert states()[0] == "safe"
    world.after(watch)
    assert states()[0] == "finalized"


# --- the registry's logs --------------------------------------------------------------------------


def test_what_others_did_is_logged_once_however_often_it_is_read(world: World) -> None:
    with world.database.begin() as tx:
        tx.chain.add(stored(signed_at_block=1))
    theirs, retired = seen(), seen(2, name="VerifierRetired", concerns="registry", arguments={"circuitId": "0x01"})
    world.node.emitted = [theirs, replace(seen(3), tx_hash=stored().tx_hash), retired, theirs]
    for holder in ("a", "b"):
        world.after(world.watch(holder), times=3)
    assert [event["name"] for event in world.of_others()] == ["StatementRecorded", "VerifierRetired"]
    assert [event["sla_id"] for event in world.of_others()] == [SLA_ID, None]
    assert world.last.of_others == 2
    # A reorganisation puts it into another block: that is another place, and it is said.
    world.node.emitted = [replace(theirs, block_hash="0x" + "55" * 32)]
    world.after(world.watch("b"))
    assert len(world.of_others()) == 3


def test_a_look_reads_the_store_as_often_for_many_logs_as_for_few(world: World, monkeypatch: Any) -> None:
    """Thousands of this ledger's own transactions are among them after a long absence."""
    reads, read = list[int](), MemoryDatabase.read

    def counted(self: MemoryDatabase) -> Any:
        reads.append(1)
        return read(self)

    monkeypatch.setattr(MemoryDatabase, "read", counted)
    with world.database.begin() as tx:
        for n in range(2500):
            tx.chain.add(stored(n, signed_at_block=1, state="failed"))
    watch, taken = world.watch(), []
    for count in (1, 2500):
        world.node.emitted = [seen(1, tx_hash=stored(n).tx_hash, log_index=n) for n in range(count)]
        world.after(watch, times=2)
        reads.clear()
        world.after(watch)
        taken.append(len(reads))
    assert world.node.read[-1][0] <= 11 <= world.node.read[-1][1]
    assert taken[0] == taken[1]
    assert world.of_others() == []


def test_what_others_did_is_shown_from_the_newest_on_and_read_no_further(world: World, monkeypatch: Any) -> None:
    started, stream = list[int](), MemoryEvents.stream

    def noted(self: MemoryEvents, name: str, *, start: int = 0) -> Any:
        started.append(start)
        return stream(self, name, start=start)

    with world.database.begin() as tx:
        tx.chain.add(stored(signed_at_block=1))
    world.node.emitted = [seen(1, log_index=n) for n in range(40)]
    world.after(world.watch())
    monkeypatch.setattr(MemoryEvents, "stream", noted)
    with world.database.read() as tx:
        shown = events_of_others(tx, 3)
        assert [event.payload["log_index"] for event in shown] == [39, 38, 37]
        assert started == [37]
        assert len(events_of_others(tx, 40)) == len(events_of_others(tx, 1000)) == 40


def test_final_blocks_are_read_once_and_others_again(world: World) -> None:
    with world.database.begin() as tx:
        tx.chain.add(stored(signed_at_block=3))
    watch = world.watch()
    world.after(watch, times=2)
    world.node.heights_now = Heights(21, 15, 10)
    world.after(watch, times=3)
    assert world.node.read == [(3, 20), (3, 20), (6, 21), (6, 21), (11, 21)]


def test_a_long_way_is_read_piece_by_piece_and_without_a_pause(world: World) -> None:
    with world.database.begin() as tx:
        tx.chain.add(stored(signed_at_block=1))
    top = 3 * SPAN
    world.node.heights_now = Heights(top, top - 10, top - 20)
    watch = world.watch()
    world.after(watch)
    world.after(watch, 2, times=4)
    assert len(world.node.read) == 4, "all is read, and the pace is the usual one again"
    world.after(watch)
    assert world.node.read == [(1, SPAN), (1, SPAN), (SPAN + 1, 2 * SPAN), (2 * SPAN + 1, top), (top - 19, top)]


def test_logs_that_no_node_gives_are_left_out_and_said(world: World) -> None:
    with world.database.begin() as tx:
        tx.chain.add(stored(signed_at_block=1))
    world.node.refuses = range(4)
    world.node.heights_now = Heights(20, 12, 9)
    watch = world.watch()
    world.after(watch, times=REFUSALS - 1)
    assert (world.last.unread, world.last.error) == (None, "pruned")
    world.after(watch)
    assert (world.last.unread, world.last.next_block, world.last.error) == ((1, 9), 10, None)
    assert any("--from-block 1" in text for text in world.said)
    world.node.emitted = [seen()]
    world.after(watch)
    assert len(world.of_others()) == 1


def test_a_newest_block_that_is_not_there_moves_nothing(world: World) -> None:
    with world.database.begin() as tx:
        tx.chain.add(stored(signed_at_block=1))
    watch = world.watch()
    world.after(watch, times=2)
    before = world.last.next_block
    honest = world.node.block_hash
    world.node.heights_now = Heights(10**9, 12, 5)
    world.node.block_hash = lambda number: honest(number) if number < 100 else None  # type: ignore[method-assign]
    world.after(watch, times=2)
    assert "has no block" in str(world.last.error)
    assert world.last.next_block == before
    world.node.heights_now = Heights(20, 12, 5)
    world.node.emitted = [seen()]
    world.after(watch)
    assert len(world.of_others()) == 1


def test_a_chain_that_is_shorter_than_it_was_is_read_again(world: World) -> None:
    """A local node that was started anew."""
    watch = world.watch()
    world.node.heights_now = Heights(900, 800, 700)
    world.after(watch, times=3)
    world.node.heights_now = Heights(12, None, 0)
    world.node.emitted = [seen()]
    world.after(watch, times=2)
    assert len(world.of_others()) == 1
