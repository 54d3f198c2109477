"""A payload of the erasable class can be forgotten: the log says so, and nothing that was signed changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ledger.app.log.erasure import erase_payload
from ledger.app.ports.store import Receipt, Transaction
from ledger.domain.events.event_types import PAYLOAD_ERASED
from ledger.domain.record.events import ErasedPayload, NewEvent, StoredEvent
from ledger.errors import EventInvalid, IdempotencyConflict, LogInconsistent, NotErasable, NotFound, PayloadErased
from ledger.merkle.hasher import leaf_hash
from ledger.merkle.verify import verify_consistency, verify_inclusion
from tests.conformance.conftest import AnyDatabase, OpenSqlite
from tests.conformance.samples import (
    PERIOD,
    SLA_ID,
    agreement,
    erasable,
    signed_checkpoint,
    statement,
    window,
    windows,
)


def append(database: AnyDatabase, *events: NewEvent, key: str | None = None) -> Sequence[Receipt]:
    with database.begin() as tx:
        receipts = tx.events.append("any", list(events), expected_version=None, idempotency_key=key)
    return placed(database, *receipts)


def erase(database: AnyDatabase, event_id: str, reason: str = "the customer asked") -> Receipt:
    with database.begin() as tx:
        receipt = erase_payload(tx, event_id, reason=reason, requested_by="customer", now_ns=5)
    return placed(database, receipt)[0]


def placed(database: AnyDatabase, *receipts: Receipt) -> list[Receipt]:
    """The receipts with ``seq``, which PostgreSQL knows only after the commit."""
    seqs = database.wait_sequenced([each.event_id for each in receipts])
    return [replace(each, seq=seq) for each, seq in zip(receipts, seqs, strict=True)]


def views(tx: Transaction) -> list[Any]:
    return [
        tx.views.agreements(),
        tx.views.statements(),
        tx.views.credits(limit=9),
        tx.views.windows(SLA_ID, PERIOD),
    ]


def seen(database: AnyDatabase) -> list[Any]:
    with database.read() as tx:
        return views(tx)


def event(database: AnyDatabase, seq: int) -> StoredEvent:
    with database.read() as tx:
        return tx.events.at(seq)


def test_an_erasable_payload_reads_like_any_other(database: AnyDatabase) -> None:
    append(database, erasable(agreement()), agreement(2))
    with database.read() as tx:
        first, second = tx.events.since(0)
        assert (first.payload, first.payload_class, first.erased) == (agreement().payload, "erasable", False)
        assert first.header["class"] == "erasable"
        assert (second.payload_class, second.erased) == ("standard", False)
        for each in (first, second):
            verify_inclusion(each.seq, 2, leaf_hash(each.entry), tx.log.inclusion_proof(each.seq, 2), tx.log.root(2))


def test_erasing_leaves_tree_entries_proofs_and_checkpoints_as_they_are(database: AnyDatabase) -> None:
    append(database, *windows(3), erasable(window(3)), *windows(2, 4))
    with database.begin() as tx:
        root, before = tx.log.root(6), [each.entry for each in tx.events.since(0)]
        tx.log.save_checkpoint(6, root, signed_checkpoint(6, root))
        gone = tx.events.at(3)
    erase(database, gone.id)
    with database.read() as tx:
        assert (tx.log.size(), tx.log.root(6)) == (7, root)
        assert [each.entry for each in tx.events.since(0, limit=6)] == before
        assert tx.log.checkpoint(6) == signed_checkpoint(6, root)
        verify_inclusion(3, 6, leaf_hash(tx.events.at(3).entry), tx.log.inclusion_proof(3, 6), root)
        verify_consistency(6, 7, root, tx.log.root(7), tx.log.consistency_proof(6, 7))


def test_the_log_says_what_was_erased_and_why(database: AnyDatabase) -> None:
    (receipt,) = append(database, erasable(agreement()))
    recorded = erase(database, receipt.event_id)
    record = event(database, recorded.seq)
    assert (record.type, record.stream, record.version) == (PAYLOAD_ERASED, f"erasure/{receipt.event_id}", 0)
    assert record.payload == {
        "event_id": receipt.event_id,
        "seq": 0,
        "reason": "the customer asked",
        "requested_by": "customer",
    }


def test_an_erased_payload_is_an_error_to_look_into_by_every_way(database: AnyDatabase) -> None:
    (receipt,) = append(database, erasable(agreement()))
    erase(database, receipt.event_id)
    with database.read() as tx:
        found = [
            tx.events.at(0),
            tx.events.by_id(receipt.event_id),
            tx.events.since(0)[0],
            next(tx.events.stream("any")),
        ]
    for each in found:
        assert each.erased
        assert isinstance(each.payload, ErasedPayload)
        assert each.salt == b""
        for look in (lambda payload: payload["sla_id"], dict, len, list, lambda payload: payload.get("sla_id")):
            with pytest.raises(PayloadErased, match=receipt.event_id):
                look(each.payload)


def test_a_row_goes_back_to_what_the_event_before_set(database: AnyDatabase) -> None:
    append(database, agreement(1))
    before = seen(database)
    (middle,) = append(database, erasable(agreement(2)))
    (last,) = append(database, erasable(agreement(3)))
    erase(database, last.event_id)
    assert event(database, 1).payload == agreement(2).payload
    with database.read() as tx:
        assert tx.views.agreement(SLA_ID)["terms_version"] == 2
    erase(database, middle.event_id)
    assert seen(database) == before


def test_a_row_that_was_set_again_since_stays(database: AnyDatabase) -> None:
    (first,) = append(database, erasable(window(0, good=1)))
    append(database, window(0, good=2))
    before = seen(database)
    erase(database, first.event_id)
    assert seen(database) == before


def test_a_row_that_only_the_erased_event_set_is_gone(database: AnyDatabase) -> None:
    append(database, statement(day=1))
    before = seen(database)
    (receipt,) = append(database, erasable(statement()))
    assert seen(database) != before
    erase(database, receipt.event_id)
    assert seen(database) == before


def test_a_rebuild_after_an_erasure_gives_the_live_views(database: AnyDatabase) -> None:
    receipts = append(database, *[erasable(window(index % 3, good=index)) for index in range(12)], agreement())
    for receipt in (*receipts[8:12], receipts[2]):
        erase(database, receipt.event_id)
    before = seen(database)
    database.rebuild_views()
    assert seen(database) == before
    assert [row["seq"] for row in before[3]] == [6, 7, 5]


def test_erasing_again_gives_the_first_record_and_adds_nothing(database: AnyDatabase) -> None:
    (receipt,) = append(database, erasable(agreement()))
    first = erase(database, receipt.event_id)
    assert erase(database, receipt.event_id, reason="once more") == first
    with database.read() as tx:
        assert tx.log.size() == 2


def test_a_payload_that_is_kept_for_good_is_refused(database: AnyDatabase) -> None:
    (receipt,) = append(database, agreement())
    with pytest.raises(NotErasable, match="standard"):
        erase(database, receipt.event_id)
    with pytest.raises(NotErasable), database.begin() as tx:
        tx.events.forget_payload(receipt.event_id)
    (erased,) = append(database, erasable(agreement(2)))
    record = erase(database, erased.event_id)
    with pytest.raises(NotErasable):
        erase(database, record.event_id)
    with pytest.raises(NotFound):
        erase(database, "no event")
    with database.read() as tx:
        assert tx.log.size() == 3


def test_a_record_of_an_erasure_cannot_be_erasable_itself_nor_may_there_be_other_classes(database: AnyDatabase) -> None:
    record = NewEvent(
        PAYLOAD_ERASED,
        {"event_id": "0" * 8 + "-0000" * 3 + "-" + "0" * 12, "seq": 0, "reason": "r", "requested_by": None},
        0,
    )
    for wrong in (
        erasable(record),
        NewEvent("agreement_registered", agreement().payload, 0, payload_class="temporary"),
    ):
        with pytest.raises(EventInvalid, match="payload class"):
            append(database, wrong)


def test_an_erasure_that_is_rolled_back_did_not_happen(database: AnyDatabase) -> None:
    class SecondThoughts(Exception):
        pass

    (receipt,) = append(database, erasable(agreement()))
    before = seen(database)

    def erase_and_fail() -> None:
        with database.begin() as tx:
            erase_payload(tx, receipt.event_id, reason="r", requested_by=None, now_ns=5)
            raise SecondThoughts

    with pytest.raises(SecondThoughts):
        erase_and_fail()
    assert event(database, 0).payload == agreement().payload
    assert seen(database) == before


def test_a_key_stays_bound_to_an_erasable_payload_and_after_its_erasure_to_nothing_one_could_guess(
    database: AnyDatabase,
) -> None:
    events = [erasable(agreement()), window(0)]
    first = append(database, *events, key="key")
    assert append(database, *events, key="key") == first
    for other in ([erasable(agreement(2)), window(0)], [erasable(agreement())], [agreement(), window(0)]):
        with pytest.raises(IdempotencyConflict):
            append(database, *other, key="key")
    erase(database, first[0].event_id)
    # Were the right guess still accepted, anyone could try payloads until one is.
    with pytest.raises(IdempotencyConflict, match="erased since"):
        append(database, *events, key="key")


def test_forgetting_without_a_record_is_refused_by_the_database(open_sqlite: OpenSqlite) -> None:
    database = open_sqlite()
    (receipt,) = append(database, erasable(agreement()))
    with pytest.raises(LogInconsistent, match="records this erasure"), database.begin() as tx:
        tx.events.forget_payload(receipt.event_id)
    assert event(database, 0).payload == agreement().payload


@pytest.mark.parametrize("recursive_triggers", ["ON", "OFF"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event_payload SET payload = x'7b7d'",
        "UPDATE event_payload SET event_id = 'other'",
        "DELETE FROM event_payload",
        "INSERT OR REPLACE INTO event_payload SELECT event_id, salt, x'7b7d' FROM event_payload",
        "REPLACE INTO event_payload (rowid, event_id, salt, payload) SELECT 1, id, salt, x'' FROM event",
        "INSERT INTO event_payload SELECT id, salt, payload FROM event WHERE payload_class = 'standard'",
    ],
)
def test_the_database_guards_erasable_payloads_too(
    open_sqlite: OpenSqlite, statement: str, recursive_triggers: str
) -> None:
    database = open_sqlite()
    append(database, erasable(agreement()), erasable(agreement(2)), agreement(3))
    raw = sqlite3.connect(database._path, isolation_level=None)
    raw.execute(f"PRAGMA recursive_triggers = {recursive_triggers}")
    before = raw.execute("SELECT rowid, * FROM event_payload ORDER BY rowid").fetchall()
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute(statement)
    assert raw.execute("SELECT rowid, * FROM event_payload ORDER BY rowid").fetchall() == before
    assert len(before) == 2
    raw.close()


def test_nothing_of_an_erased_payload_is_left_in_the_file(open_sqlite: OpenSqlite) -> None:
    database = open_sqlite()
    secret = "Sam Sensitive-" + "x" * 60
    append(database, *windows(40))
    (receipt,) = append(database, erasable(agreement(service=secret)), key="key")
    append(database, *windows(40))
    erase(database, receipt.event_id)
    database.empty_write_ahead_log()
    folder = database._path.parent
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "ledger.db" in files
    assert [name for name, content in files.items() if secret.encode() in content] == []
