"""Published batches under a watcher: what a deep reorganisation undid is said once, and in the order of publication."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ledger.app.ports.chain import Heights
from ledger.app.work.outbox import Stage
from ledger.domain.events.batch_events import HOME
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.domain.record.naming import batches_stream
from tests.conformance.samples import batch, batch_undone, published
from tests.support.stored import memory_database
from tests.unit.app.test_chain_watch import CHAIN_ID, REGISTRY, Node, World

ELSEWHERE = "0x" + "66" * 32


def placed(number: int, *, chain_id: int = CHAIN_ID, registry: str = REGISTRY, target: str = HOME) -> NewEvent:
    """Batch ``number``, in block 11 + ``number`` of the sample node."""
    event, block = published(number, target=target, chain_id=str(chain_id)), 11 + number
    return replace(event, payload={**event.payload, "registry": registry, "block_hash": f"0x{block:064x}"})


def publish(world: World, *numbers: int, target: str = HOME, **where: Any) -> None:
    events = [
        event for number in numbers for event in (batch(number, target=target), placed(number, target=target, **where))
    ]
    world.database.append(batches_stream(target), events, expected_version=None)


def said(world: World, target: str = HOME) -> list[tuple[str, int]]:
    """What was said of batches after they were published first."""
    with world.database.read() as tx:
        events = list(tx.events.stream(batches_stream(target)))
    first: set[tuple[str, int]] = set()
    later = []
    for event in events:
        kind = event.type, event.payload["number"]
        if kind[0] not in {"batch_formed", "batch_published"} or kind in first:
            later.append(kind)
        first.add(kind)
    return later


def queued(world: World) -> list[tuple[str, str, int]]:
    with world.database.read() as tx:
        rows = tx.outbox.entries(states=["pending"], limit=100)
        events: list[StoredEvent] = [tx.events.by_id(row.event_id) for row in rows]
    return [(row.stage, each.type, each.payload["number"]) for row, each in zip(rows, events, strict=True)]


@pytest.fixture
def world() -> World:
    return World(memory_database(), Node(Heights(20, 12, 5)))


def test_a_batch_that_two_looks_miss_is_undone_and_queued_once(world: World) -> None:
    publish(world, 0)
    watch = world.watch()
    world.after(watch, times=2)
    assert said(world) == []
    world.node.hashes[11] = ELSEWHERE
    world.after(watch)
    assert said(world) == queued(world) == [], "one look alone says nothing for good"
    # The next look comes soon, whatever the pace is.
    world.after(watch, 2)
    assert said(world) == [("batch_undone", 0)]
    assert queued(world) == [(Stage.PUBLISH, "batch_undone", 0)]
    world.after(watch, times=3)
    assert said(world) == [("batch_undone", 0)]
    assert [text for text in world.said if "batch 0 for home" in text] == world.said


def test_one_wrong_answer_of_a_node_undoes_nothing(world: World) -> None:
    publish(world, 0)
    watch = world.watch()
    for answer in (ELSEWHERE, f"0x{11:064x}", ELSEWHERE, f"0x{11:064x}"):
        world.node.hashes[11] = answer
        world.after(watch)
    assert said(world) == queued(world) == []


def test_what_one_reorganisation_took_is_said_together_and_in_order(world: World) -> None:
    publish(world, 0, 1, 2)
    watch = world.watch()
    world.after(watch)
    world.node.hashes |= {12: ELSEWHERE, 13: None}  # type: ignore[dict-item]
    world.after(watch)
    # The first one is missed by the second look alone, and has to be back before the others.
    world.node.hashes[11] = ELSEWHERE
    world.after(watch)
    assert said(world) == [("batch_undone", number) for number in (0, 1, 2)]
    assert [number for _, _, number in queued(world)] == [0, 1, 2]


def test_a_batch_is_looked_at_until_its_block_is_final(world: World) -> None:
    publish(world, 0, 1)
    watch = world.watch()
    world.after(watch, times=2)
    world.node.heights_now = Heights(30, 20, 11)
    world.after(watch)
    assert said(world) == [], "one look's word is not enough for good"
    world.after(watch)
    assert said(world) == [("batch_finalized", 0)]
    world.node.heights_now = Heights(60, 50, 40)
    world.after(watch, times=2)
    assert said(world) == [("batch_finalized", 0), ("batch_finalized", 1)]
    world.node.asked.clear()
    world.node.hashes |= {11: ELSEWHERE, 12: ELSEWHERE}
    world.after(watch, times=3)
    assert not {"block 11", "block 12"} & set(world.node.asked)
    assert len(said(world)) == 2


def test_a_batch_that_is_published_again_is_looked_at_again(world: World) -> None:
    publish(world, 0, 1)
    watch = world.watch()
    world.node.hashes[12] = ELSEWHERE
    world.after(watch, times=2)
    again = placed(1)
    again = replace(again, payload={**again.payload, "block_hash": ELSEWHERE})
    world.database.append(batches_stream(HOME), [again], expected_version=None)
    world.after(watch, times=2)
    assert said(world) == [("batch_undone", 1), ("batch_published", 1)]
    world.node.hashes[12] = f"0x{12:064x}"
    world.after(watch, times=2)
    assert said(world)[2:] == [("batch_undone", 1)]
    assert len(queued(world)) == 2


def test_batches_of_further_chains_have_their_own_stage_and_others_are_left_alone(world: World) -> None:
    further = str(CHAIN_ID)
    publish(world, 0, chain_id=10)
    publish(world, 0, target=further)
    publish(world, 0, target="10", chain_id=10)
    world.node.hashes[11] = ELSEWHERE
    world.after(world.watch(), times=3)
    assert said(world, further) == [("batch_undone", 0)]
    assert said(world) == said(world, "10") == []
    assert queued(world) == [(Stage.PUBLISH_FURTHER, "batch_undone", 0)]


def test_a_node_that_is_behind_undoes_nothing_but_a_local_one_was_started_anew(world: World) -> None:
    publish(world, 0, chain_id=1)
    world.node.chain_id = 1
    world.node.heights_now = Heights(10, None, None)
    world.after(world.watch(), times=3)
    assert said(world) == []
    local = World(memory_database(), Node(Heights(10, None, None)))
    publish(local, 0)
    local.after(local.watch(), times=2)
    assert said(local) == [("batch_undone", 0)]


def test_what_is_undone_by_another_process_is_not_said_again(world: World) -> None:
    publish(world, 0)
    watch = world.watch()
    world.node.hashes[11] = ELSEWHERE
    world.after(watch)
    undone = batch_undone(0, chain_id=str(CHAIN_ID))
    world.database.append(batches_stream(HOME), [undone], expected_version=None)
    world.after(watch, times=2)
    assert said(world) == [("batch_undone", 0)]
    assert queued(world) == []
