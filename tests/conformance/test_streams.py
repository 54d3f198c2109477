"""Appending to streams: versions, idempotency, order, and nothing left behind by what is refused."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from ledger.app.ports.store import Receipt, Transaction
from ledger.domain.record.canonical import canonical_bytes
from ledger.errors import EventInvalid, IdempotencyConflict, NotFound, ReadOnlyTransaction, VersionConflict
from tests.conformance.conftest import AnyDatabase
from tests.conformance.samples import START_NS, StepClock, window, windows


def places(database: AnyDatabase, *receipts: Receipt) -> list[int]:
    """``seq`` of each, known at once or after the sequencer's next batch."""
    return list(database.wait_sequenced([each.event_id for each in receipts]))


def log_size(database: AnyDatabase) -> int:
    with database.read() as tx:
        return tx.log.size()


def test_receipts_say_where_each_event_stands(database: AnyDatabase) -> None:
    with database.begin() as tx:
        first = tx.events.append("windows/a", windows(2), expected_version=0)
        second = tx.events.append("windows/b", windows(1), expected_version=0)
        third = tx.events.append("windows/a", windows(1), expected_version=2)
    receipts = (*first, *second, *third)
    stands = [(each.stream, each.version) for each in receipts]
    assert stands == [("windows/a", 0), ("windows/a", 1), ("windows/b", 0), ("windows/a", 2)]
    assert places(database, *receipts) == [0, 1, 2, 3]
    assert [each.seq for each in receipts] in ([0, 1, 2, 3], [None] * 4)
    with database.read() as tx:
        assert [tx.events.by_id(each.event_id).seq for each in receipts] == [0, 1, 2, 3]


def test_an_event_comes_back_as_it_was_appended(database: AnyDatabase) -> None:
    new = window(3, good=7)
    with database.begin() as tx:
        (receipt,) = tx.events.append("windows/a", [new], expected_version=None)
    (seq,) = places(database, receipt)
    with database.read() as tx:
        event = tx.events.at(seq)
        assert list(tx.events.stream("windows/a")) == [event]
    assert (event.id, event.tenant, event.stream, event.version) == (receipt.event_id, "default", "windows/a", 0)
    assert (event.type, event.schema, event.payload_class) == ("window_evaluated", 2, "standard")
    assert (event.payload, event.occurred_at_ns) == (new.payload, new.occurred_at_ns)
    assert event.recorded_at_ns > START_NS
    assert len(event.salt) == 32


@pytest.mark.parametrize("expected", [None, 3])
def test_a_version_that_fits_is_accepted(database: AnyDatabase, expected: int | None) -> None:
    with database.begin() as tx:
        tx.events.append("windows/a", windows(3), expected_version=0)
        (receipt,) = tx.events.append("windows/a", windows(1), expected_version=expected)
    assert receipt.version == 3


@pytest.mark.parametrize("expected", [0, 1, 4, 99])
def test_a_wrong_version_is_refused_and_leaves_nothing_behind(database: AnyDatabase, expected: int) -> None:
    with database.begin() as tx:
        tx.events.append("windows/a", windows(3), expected_version=0)
    with pytest.raises(VersionConflict) as caught, database.begin() as tx:
        tx.events.append("windows/a", windows(2), expected_version=expected, idempotency_key="key")
    assert caught.value.data == {"stream": "windows/a", "expected_version": expected, "next_version": 3}
    assert log_size(database) == 3
    with database.begin() as tx:
        # The refused append did not use up its key.
        tx.events.append("windows/b", windows(1), expected_version=0, idempotency_key="key")


def test_a_stream_that_must_be_new_may_not_exist(database: AnyDatabase) -> None:
    with pytest.raises(VersionConflict), database.begin() as tx:
        tx.events.append("windows/a", windows(1), expected_version=1)


def test_a_refusal_that_is_caught_inside_the_transaction_does_not_spoil_it(database: AnyDatabase) -> None:
    with database.begin() as tx:
        with pytest.raises(VersionConflict):
            tx.events.append("windows/a", windows(1), expected_version=5)
        tx.events.append("windows/a", windows(1), expected_version=0)
    assert log_size(database) == 1


def test_the_same_request_again_gives_the_first_receipts(database: AnyDatabase) -> None:
    with database.begin() as tx:
        first = tx.events.append("windows/a", windows(3), expected_version=0, idempotency_key="key")
        tx.events.append("windows/a", windows(1), expected_version=None)
    with database.begin() as tx:
        later = [replace(event, occurred_at_ns=START_NS + 99) for event in windows(3)]
        again = tx.events.append("windows/a", later, expected_version=0, idempotency_key="key")
    assert [(each.event_id, each.version) for each in again] == [(each.event_id, each.version) for each in first]
    assert [each.seq for each in again] == places(database, *first)
    assert log_size(database) == 4


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        ("windows/a", [window(0, bad=1)]),
        ("windows/a", windows(2)),
        ("windows/b", windows(1)),
    ],
    ids=["another payload", "more events", "another stream"],
)
def test_a_key_that_comes_back_for_something_else_is_refused(
    database: AnyDatabase, stream: str, events: list[object]
) -> None:
    with database.begin() as tx:
        tx.events.append("windows/a", windows(1), expected_version=0, idempotency_key="key")
    with pytest.raises(IdempotencyConflict), database.begin() as tx:
        tx.events.append(stream, events, expected_version=None, idempotency_key="key")  # type: ignore[arg-type]
    assert log_size(database) == 1


class SecondThoughts(Exception):
    """Something the caller raises in the middle of its transaction."""


def append_and_fail(tx: Transaction) -> None:
    tx.events.append("windows/a", windows(300), expected_version=2)
    tx.secrets.put("salt", b"1")
    raise SecondThoughts


def test_an_exception_leaves_no_gap(database: AnyDatabase) -> None:
    with database.begin() as tx:
        tx.events.append("windows/a", windows(2), expected_version=0)
    with pytest.raises(SecondThoughts), database.begin() as tx:
        append_and_fail(tx)
    with database.begin() as tx:
        (receipt,) = tx.events.append("windows/a", windows(1), expected_version=2)
        with pytest.raises(NotFound):
            tx.secrets.get("salt")
    assert places(database, receipt) == [2]


def test_the_log_is_read_in_order_and_in_pages(database: AnyDatabase) -> None:
    with database.begin() as tx:
        for stream in "abc":
            tx.events.append(stream, windows(5), expected_version=0)
    with database.read() as tx:
        assert [event.seq for event in tx.events.since(0)] == list(range(15))
        assert [event.seq for event in tx.events.since(13, limit=5)] == [13, 14]
        assert [event.seq for event in tx.events.since(4, limit=3)] == [4, 5, 6]
        assert tx.events.since(15) == []
        assert list(tx.events.stream("nobody")) == []
        assert tx.events.length("nobody") == 0
        for missing in (15, -1):
            with pytest.raises(NotFound):
                tx.events.at(missing)
        with pytest.raises(NotFound):
            tx.events.by_id("nothing")


def test_a_long_stream_is_read_whole(database: AnyDatabase) -> None:
    with database.begin() as tx:
        tx.events.append("windows/a", windows(2050), expected_version=0)
    with database.read() as tx:
        assert [event.version for event in tx.events.stream("windows/a")] == list(range(2050))
        assert tx.events.length("windows/a") == 2050


def test_the_length_of_a_stream_has_what_this_transaction_appended(database: AnyDatabase) -> None:
    with database.begin() as tx:
        assert tx.events.length("windows/a") == 0
        tx.events.append("windows/a", windows(2), expected_version=0)
        tx.events.append("windows/b", windows(1), expected_version=0)
        assert tx.events.length("windows/a") == 2
    with database.of_tenant("other").read() as tx:
        assert tx.events.length("windows/a") == 0


def test_a_stream_is_read_from_a_version_on(database: AnyDatabase) -> None:
    with database.begin() as tx:
        tx.events.append("windows/a", windows(5), expected_version=0)
    with database.read() as tx:
        assert [event.version for event in tx.events.stream("windows/a", start=3)] == [3, 4]
        assert list(tx.events.stream("windows/a", start=5)) == []
        assert list(tx.events.stream("windows/b", start=1)) == []


def test_a_clock_that_jumps_back_reorders_nothing(database: AnyDatabase, clock: StepClock) -> None:
    with database.begin() as tx:
        tx.events.append("windows/a", windows(1), expected_version=0)
    clock.now -= 3600 * 1_000_000_000
    with database.begin() as tx:
        (receipt,) = tx.events.append("windows/a", windows(1), expected_version=1)
    assert places(database, receipt) == [1]


def test_every_leaf_is_the_hash_of_its_header(database: AnyDatabase) -> None:
    """Worked out here from docs/attestation-format.md, section 11, not by the code under test."""
    with database.begin() as tx:
        tx.events.append('stream "ä\\', windows(1), expected_version=0)
    with database.read() as tx:
        (event,) = tx.events.since(0)
        root = tx.log.root(1)
    payload = canonical_bytes(event.payload)
    header = {
        "class": "standard",
        "id": event.id,
        "occurred_at_ns": str(event.occurred_at_ns),
        "payload_commitment": hashlib.sha256(b"sla-ledger/payload/v1\n" + event.salt + payload).hexdigest(),
        "recorded_at_ns": str(event.recorded_at_ns),
        "schema": 2,
        "stream": 'stream "ä\\',
        "tenant": "default",
        "type": "window_evaluated",
        "version": 0,
    }
    assert root == hashlib.sha256(b"\x00" + canonical_bytes(header)).digest()


@pytest.mark.parametrize("stream", ["", "line\nbreak", "\x00", "x" * 301, "lone \ud800 surrogate"])
def test_a_stream_needs_a_usable_name(database: AnyDatabase, stream: str) -> None:
    with pytest.raises(EventInvalid), database.begin() as tx:
        tx.events.append(stream, windows(1), expected_version=None)


def test_an_append_of_nothing_is_refused(database: AnyDatabase) -> None:
    with pytest.raises(EventInvalid), database.begin() as tx:
        tx.events.append("windows/a", [], expected_version=None)


def test_one_bad_event_refuses_the_whole_append(database: AnyDatabase) -> None:
    bad = replace(window(1), payload={**window(1).payload, "state": "maybe"})
    with pytest.raises(EventInvalid, match="state"), database.begin() as tx:
        tx.events.append("windows/a", [window(0), bad], expected_version=None)
    assert log_size(database) == 0


def test_a_read_transaction_cannot_write(database: AnyDatabase) -> None:
    with pytest.raises(ReadOnlyTransaction), database.read() as tx:
        tx.events.append("windows/a", windows(1), expected_version=None)
    with pytest.raises(ReadOnlyTransaction), database.read() as tx:
        tx.secrets.put("salt", b"1")
    assert log_size(database) == 0


def test_a_reader_sees_one_state_throughout(database: AnyDatabase) -> None:
    with database.read() as reader:
        before = reader.log.size()
        with database.begin() as tx:
            tx.events.append("windows/a", windows(1), expected_version=0)
        assert reader.log.size() == before == 0
    assert log_size(database) == 1
