"""What several workers find out on a chain is said once, whenever another one says it first.

PostgreSQL takes no snapshot for who writes: between any two looks of a transaction another one may commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

import pytest

from ledger.app.chain.batches import BatchWatch
from ledger.app.chain.blocks import Blocks, Look
from ledger.app.chain.roots import publish_batch
from ledger.app.ports.chain import Heights
from ledger.app.ports.store import Database
from ledger.domain.record.naming import batches_stream
from tests.chain.conftest import chain_of
from tests.chain.test_roots import form, sign
from tests.conformance.samples import SeededRandomness, StepClock
from tests.support.anvil import Anvil
from tests.support.interleaved import HURRY, Interleaved
from tests.support.postgres import ROLE_PREFIX, SequencedAfterCommit
from tests.support.settled import Settled
from tests.unit.app.test_chain_batches import ELSEWHERE, publish, said
from tests.unit.app.test_chain_watch import Node, World

pytestmark = pytest.mark.slow

Work: TypeAlias = Callable[[Database], object]
Met: TypeAlias = Callable[[Work, int], bool]
LOOKS = range(1, 20)


@pytest.fixture
def database(postgres_url: str) -> Iterator[SequencedAfterCommit]:
    database = SequencedAfterCommit(postgres_url, StepClock(), SeededRandomness(1), role_prefix=ROLE_PREFIX)
    yield database
    database.close()


@pytest.fixture
def hurried(postgres_url: str, database: SequencedAfterCommit) -> Iterator[SequencedAfterCommit]:
    """The same, over connections that wait for no lock: the other worker's."""
    url = f"{postgres_url}?{HURRY}"
    hurried = SequencedAfterCommit(url, StepClock(), SeededRandomness(2), role_prefix=ROLE_PREFIX, migrated=True)
    yield hurried
    hurried.close()


@pytest.fixture
def met(database: SequencedAfterCommit, hurried: SequencedAfterCommit) -> Met:
    """Two workers do the same, one of them right before a look of the other; False where there is no such look."""

    def met(work: Work, before: int) -> bool:
        interleaved = Interleaved(database, lambda: work(hurried), before)
        work(interleaved)  # type: ignore[arg-type]
        return interleaved.turn.came

    return met


def test_two_workers_say_once_that_a_statement_is_recorded_and_confirmed(
    node: Anvil, database: SequencedAfterCommit, met: Met
) -> None:
    settled = Settled(database)
    anchor = chain_of(node, database).anchor
    for kind in ("anchor_recorded", "anchor_confirmed"):
        for number, before in enumerate(LOOKS):
            proof = settled.prove(100 * len(kind) + number, anchor)
            if kind == "anchor_confirmed":
                settled.anchor(proof, anchor)

            def work(each: Database, proof: str = proof, kind: str = kind) -> None:
                worker = replace(settled, database=each)
                if kind == "anchor_recorded":
                    worker.anchor(proof, anchor)
                else:
                    worker.confirm(proof, anchor, 1)

            came = met(work, before)
            assert len(settled.events(proof, kind)) == 1
            if not came:
                break
        assert number >= 4, "reading, two looks and the appending"


def test_two_workers_say_once_that_a_batch_is_published(node: Anvil, database: SequencedAfterCommit, met: Met) -> None:
    settled = Settled(database)
    chain = chain_of(node, database)
    for number, before in enumerate(LOOKS):
        settled.prove(number, chain.anchor)
        sign(database)
        form(settled, database, "home")
        with database.read() as tx:
            formed = list(tx.events.stream(batches_stream("home")))[-1]

        def work(each: Database, event_id: str = formed.id) -> None:
            publish_batch(each, event_id, publisher=chain.roots, confirmations=1, clock=StepClock())

        came = met(work, before)
        with database.read() as tx:
            kinds = [event.type for event in tx.events.stream(batches_stream("home"))]
        assert kinds == ["batch_formed", "batch_published"] * (number + 1)
        if not came:
            break
    assert number >= 4, "reading, two looks and the appending"


def looked(database: Database, node: Node, final: int, times: int) -> None:
    """One watcher's looks at the batches."""
    watch = BatchWatch(database, node, StepClock(), lambda text: None)
    for _ in range(times):
        watch.check(Look(node, node.heights_now, final, Blocks(node)))


@pytest.mark.parametrize("kind", ["batch_finalized", "batch_undone"])
def test_two_watchers_say_once_what_became_of_a_batch(database: SequencedAfterCommit, met: Met, kind: str) -> None:
    node = Node(Heights(60, 50, 40))
    world = World(database, node)  # type: ignore[arg-type]
    final, times = (40, 1) if kind == "batch_finalized" else (0, 2)

    def work(each: Database) -> None:
        looked(each, node, final, times)

    for number, before in enumerate(LOOKS):
        publish(world, number)
        if kind == "batch_undone":
            node.hashes[11 + number] = ELSEWHERE
        came = met(work, before)
        assert said(world).count((kind, number)) == 1
        if not came:
            break
    assert number >= 4, "reading, two looks and the appending"
