"""What ``chain roots`` says of each batch."""

from __future__ import annotations

from ledger.app.chain.batch_trail import since_formed
from ledger.cli.chain_roots import SHOWN, _documents
from ledger.domain.record.naming import batches_stream
from tests.conformance.samples import batch, batch_finalized, batch_undone, published
from tests.support.stored import memory_database


def test_each_of_the_last_batches_is_shown_with_its_newest_state() -> None:
    database, stream = memory_database(), batches_stream("home")
    events = [event for n in range(30) for event in (batch(n), published(n))]
    events += [batch(30), *(batch_finalized(n) for n in range(28)), batch_undone(28), batch_undone(29), published(28)]
    database.append(stream, events, expected_version=0)
    with database.read() as tx:
        shown = _documents(since_formed(tx, stream, batches=SHOWN))
    assert [each["number"] for each in shown] == list(range(11, 31))
    states = [each["state"] for each in shown]
    assert states == ["finalized"] * 17 + ["published", "undone", "formed"]
    assert [each["published"] is None for each in shown] == [False] * 18 + [True, True]
    assert shown[0]["published"]["tx_hash"] == published(11).payload["tx_hash"]


def test_fewer_batches_than_are_shown_are_shown_all() -> None:
    database, stream = memory_database(), batches_stream("home")
    database.append(stream, [batch(0), published(0), batch(1)], expected_version=0)
    with database.read() as tx:
        assert [each["state"] for each in _documents(since_formed(tx, stream, batches=SHOWN))] == [
            "published",
            "formed",
        ]
        assert _documents(since_formed(tx, "batches/10", batches=SHOWN)) == []
