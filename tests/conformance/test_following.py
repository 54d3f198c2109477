"""Reading a log that grows: own writes, positions to wait for, and subscriptions that resume."""

from __future__ import annotations

import threading
from itertools import count

import pytest

from ledger.domain.record.events import StoredEvent
from ledger.errors import NotFound, NotSequencedYet
from tests.conformance.conftest import AnyDatabase
from tests.conformance.samples import SLA_ID, agreement, windows


def follow(database: AnyDatabase, from_seq: int, rounds: int = 3) -> list[StoredEvent]:
    """What a subscription gives before it has looked this often."""
    looks = count()
    pages = database.subscribe(from_seq, stopping=lambda: next(looks) >= rounds, page=2)
    return [event for page in pages for event in page]


def test_an_append_of_its_own_is_like_one_in_a_transaction(database: AnyDatabase) -> None:
    first = database.append("windows/a", windows(2), expected_version=0, idempotency_key="key")
    again = database.append("windows/a", windows(2), expected_version=0, idempotency_key="key")
    (third,) = database.append("windows/a", windows(1), expected_version=None)
    assert [each.event_id for each in again] == [each.event_id for each in first]
    assert (third.version, database.wait_sequenced([third.event_id])) == (2, (2,))


def test_a_stream_shows_what_its_own_transaction_appended(database: AnyDatabase) -> None:
    with database.begin() as tx:
        (receipt,) = tx.events.append("windows/a", windows(1), expected_version=0)
        (event,) = tx.events.stream("windows/a")
        assert event.id == receipt.event_id
        assert tx.events.by_id(receipt.event_id) == event


def test_who_asks_for_a_position_sees_the_views_at_it(database: AnyDatabase) -> None:
    (receipt,) = database.append("any", [agreement()], expected_version=0)
    (seq,) = database.wait_sequenced([receipt.event_id])
    with database.read(min_seq=seq) as tx:
        assert tx.views.agreement(SLA_ID)["seq"] == seq


def test_a_position_that_does_not_come_is_an_error_that_names_it(database: AnyDatabase) -> None:
    database.append("windows/a", windows(1), expected_version=0)
    with pytest.raises(NotSequencedYet, match="seq 1") as caught, database.read(min_seq=1, timeout_s=0.05):
        pass
    assert caught.value.data == {"min_seq": 1, "log_size": 1}
    with pytest.raises(NotSequencedYet, match="1 of 1"):
        database.wait_sequenced(["nobody"], timeout_s=0.05)


def test_a_subscription_gives_every_event_once_and_goes_on_after_a_restart(database: AnyDatabase) -> None:
    database.append("windows/a", windows(5), expected_version=0)
    assert [event.seq for event in follow(database, 0)] == [0, 1, 2, 3, 4]
    assert [event.seq for event in follow(database, 3)] == [3, 4]


def test_a_subscription_past_the_end_waits_there_and_skips_nothing(database: AnyDatabase) -> None:
    """A reader that had read to the end and was restarted: nothing old comes again, nothing new is left out."""
    database.append("windows/a", windows(2), expected_version=0)
    seen: list[int] = []
    done = threading.Event()

    def read() -> None:
        for page in database.subscribe(4, stopping=done.is_set):
            seen.extend(event.place for event in page)

    reader = threading.Thread(target=read)
    reader.start()
    for version in range(2, 8):
        database.append("windows/a", windows(1), expected_version=version)
    for _ in range(1200):
        if len(seen) == 4:
            break
        done.wait(0.05)
    done.set()
    reader.join()
    assert seen == [4, 5, 6, 7]


def test_an_event_that_failed_is_nowhere(database: AnyDatabase) -> None:
    with pytest.raises(NotFound), database.read() as tx:
        tx.events.by_id("nothing")
    with database.read() as tx:
        assert tx.events.places(["nothing"]) == {}
