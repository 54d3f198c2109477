"""Handing in a request log: what is refused, what is told, and who waits meanwhile."""

from __future__ import annotations

import threading

import pytest

from ledger.app.facts.handing_in import MAX_SHOWN, HandedIn, hand_in
from ledger.app.facts.observations import ReadRows
from ledger.domain.rows.observation import Rows
from ledger.errors import RequestLogUnusable
from tests.unit.app.conftest import Desk, log, read_rows, row
from tests.unit.app.test_observations import selecting_desk


def hand(desk: Desk, data: bytes, *, read: ReadRows = read_rows) -> HandedIn:
    return hand_in(
        desk.database,
        desk.register().sla_id,
        data,
        attestor=desk.attestor,
        clock=desk.clock,
        read_rows=read,
        declared_complete=desk.period.interval,
    )


def test_nobody_is_kept_from_writing_while_the_rows_are_read(desk: Desk) -> None:
    written = threading.Event()

    def write() -> None:
        with desk.database.begin() as tx:
            tx.batches.put(b"somebody else's")
        written.set()

    def read(data: bytes) -> Rows:
        threading.Thread(target=write, daemon=True).start()
        assert written.wait(10), "a transaction is open while the rows are read"
        return read_rows(data)

    assert hand(desk, log(row("a")), read=read).batch.counts.accepted == 1


def test_the_first_rows_that_cannot_be_read_are_told_and_the_rest_counted(desk: Desk) -> None:
    broken = b"".join(b'{"request_id": %d}\n' % number for number in range(MAX_SHOWN + 5))
    found = hand(desk, log(row("a")) + broken)
    assert len(found.rejections) == MAX_SHOWN
    assert found.batch.counts.rejected_total == MAX_SHOWN + 5


def test_rows_that_a_selector_cannot_use_are_told_with_field_and_reason() -> None:
    desk = selecting_desk()
    found = hand(desk, log(row("a"), row("b", input_tokens="ten")) + b"{}\n")
    assert [(each.line, each.field) for each in found.rejections] == [(2, "input_tokens"), (3, "request_id")]
    assert found.rejections[0].message == 'must be a whole number from 0, not "ten"'
    assert (found.batch.counts.accepted, found.batch.counts.rejected_total) == (1, 2)
    with pytest.raises(RequestLogUnusable, match="line 1: input_tokens: must be a whole number") as refused:
        hand(desk, log(row("c", input_tokens=-1)))
    assert refused.value.data["field"] == "input_tokens"


def test_without_a_usable_row_nothing_is_written(desk: Desk) -> None:
    desk.register()
    with desk.database.read() as tx:
        before = tx.log.size()
    with pytest.raises(RequestLogUnusable) as refused:
        hand(desk, log(row("a", service="another")))
    assert refused.value.data["field"] == "service"
    with desk.database.read() as tx:
        assert tx.log.size() == before


def test_a_line_that_is_no_json_is_named_without_a_field(desk: Desk) -> None:
    with pytest.raises(RequestLogUnusable, match=r"can be used\. line 1: Input data was truncated") as refused:
        hand(desk, b'{"request_id": "\\ud800"}\n{}\n')
    assert refused.value.data["field"] == "body"
