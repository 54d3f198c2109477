"""Clocks that jump, instants to the nanosecond, events in old schema versions, and rebuilds in batches of any size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ledger.domain.events import upcast
from ledger.domain.events.event_types import EVENT_TYPES, EventType
from ledger.domain.record.events import NewEvent
from ledger.domain.schema import Integer, Object, Text
from ledger.domain.time.instant import format_instant_ns, parse_instant_ns
from ledger.merkle.hasher import leaf_hash
from ledger.merkle.verify import verify_inclusion
from tests.conformance.conftest import AnyDatabase, OpenSqlite
from tests.conformance.samples import (
    PERIOD,
    SLA_ID,
    START_NS,
    StepClock,
    agreement,
    statement,
    termination,
    window,
    windows,
)

JUMPS = (0, -(10**18), 5, -1, 10**15, -(10**9))


def test_a_clock_that_jumps_back_neither_reorders_nor_rejects(database: AnyDatabase, clock: StepClock) -> None:
    ids = []
    for index, jump in enumerate(JUMPS):
        clock.now += jump
        with database.begin() as tx:
            (receipt,) = tx.events.append("windows/a", [window(index)], expected_version=index)
        ids.append(receipt.event_id)
    with database.read() as tx:
        found = list(tx.events.since(0))
        assert [event.id for event in tx.events.stream("windows/a")] == ids
    assert [(event.id, event.seq, event.version) for event in found] == [(ids[at], at, at) for at in range(len(ids))]
    recorded = [event.recorded_at_ns for event in found]
    assert recorded != sorted(recorded)


def test_sequenced_at_is_monotone_whatever_the_clock_does(open_sqlite: OpenSqlite, clock: StepClock) -> None:
    database = open_sqlite()
    for index, jump in enumerate(JUMPS):
        clock.now += jump
        with database.begin() as tx:
            tx.events.append("windows/a", [window(index)], expected_version=index)
    with database.inspect() as inspection:
        times = [entry.sequenced_at_ns for entry in inspection.entries(0, 100)]
        recorded = [entry.recorded_at_ns for entry in inspection.entries(0, 100)]
    assert times == sorted(times)
    assert all(time in recorded for time in times)


@pytest.mark.parametrize("text", ["2023-12-19T00:00:02.106523644Z", "2023-12-19T05:30:02.106523644+05:30"])
def test_an_instant_goes_in_and_out_to_the_nanosecond(database: AnyDatabase, text: str) -> None:
    with database.begin() as tx:
        tx.events.append("s", [replace(window(0), occurred_at_ns=parse_instant_ns(text))], expected_version=0)
    with database.read() as tx:
        event = tx.events.at(0)
    assert format_instant_ns(event.occurred_at_ns) == "2023-12-19T00:00:02.106523644Z"
    assert event.header["occurred_at_ns"] == "1702944002106523644"


WEIGHED = {
    1: EventType("weighed", 1, Object({"grams": Integer()})),
    2: EventType("weighed", 2, Object({"mg": Integer(), "scale": Text()})),
}


def to_mg(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"mg": payload["grams"] * 1000, "scale": "unknown"}


def test_an_event_of_an_old_version_is_read_in_the_new_shape_and_its_proof_still_holds(
    database: AnyDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EVENT_TYPES, "weighed", WEIGHED[1])  # type: ignore[arg-type]
    with database.begin() as tx:
        tx.events.append("s", [NewEvent("weighed", {"grams": 3}, START_NS)], expected_version=0)
    with database.read() as tx:
        before = tx.events.at(0)
    monkeypatch.setitem(EVENT_TYPES, "weighed", WEIGHED[2])  # type: ignore[arg-type]
    monkeypatch.setitem(upcast.UPCASTERS, ("weighed", 1), to_mg)  # type: ignore[arg-type]
    new = NewEvent("weighed", {"mg": 5, "scale": "b"}, START_NS, schema=2)
    with database.begin() as tx:
        tx.events.append("s", [new], expected_version=1)
    with database.read() as tx:
        found = [tx.events.at(0), tx.events.by_id(before.id), next(tx.events.stream("s")), tx.events.since(0)[0]]
        assert [dict(event.payload) for event in found] == [{"mg": 3000, "scale": "unknown"}] * 4
        assert [(event.schema, event.entry) for event in found] == [(1, before.entry)] * 4
        assert tx.events.at(1).payload == new.payload
        verify_inclusion(0, 2, leaf_hash(found[0].entry), tx.log.inclusion_proof(0, 2), tx.log.root(2))


def fill(database: AnyDatabase) -> None:
    events = [*windows(7), agreement(), window(3, bad=2), statement(), window(3, bad=5), agreement(2), statement(2)]
    events.append(termination(2))
    with database.begin() as tx:
        tx.events.append("s", events, expected_version=0)


def views(database: AnyDatabase) -> list[Any]:
    with database.read() as tx:
        return [
            tx.views.agreements(),
            tx.views.statements(),
            tx.views.credits(limit=9),
            tx.views.windows(SLA_ID, PERIOD),
        ]


@pytest.mark.parametrize("batch", [1, 2, 3, 5, 13, 1000])
def test_a_rebuild_in_batches_of_any_size_gives_the_same_views(open_sqlite: OpenSqlite, batch: int) -> None:
    database = open_sqlite()
    fill(database)
    before, progress = views(database), list[int]()
    assert database.rebuild_views(batch=batch, progress=progress.append) == 14
    assert views(database) == before
    assert progress == sorted(progress)
    assert len(progress) >= 13 // batch


def test_a_rebuild_that_fails_leaves_the_views_as_they_were(
    open_sqlite: OpenSqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_sqlite()
    fill(database)
    before = views(database)

    def stop(_count: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        database.rebuild_views(batch=2, progress=stop)
    assert views(database) == before
