"""What an agreement takes of a heartbeat, what heartbeats cover together, and which batches say so."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.domain.facts.heartbeats import HeartbeatBook, refused
from ledger.domain.rows.observation import HeartbeatRow, Reason, RowRejection
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import MINUTE_NS, SECOND_NS
from ledger.domain.time.interval import Interval, union
from ledger.domain.windows.window_inputs import Batch
from tests.unit.domain.samples import document, put

HOUR_NS = 3600 * SECOND_NS


def terms(coverage: str = "heartbeat") -> Agreement:
    plain: Any = document()
    put(plain, "source.coverage", coverage)
    return Agreement.from_document(plain)


TERMS = terms()
PERIOD = period_named(TERMS, "2023-06-14/P1D")
START_NS = PERIOD.interval.start_ns
LATE_NS = PERIOD.interval.end_ns + 9 * HOUR_NS


def beat(name: str = "h", hour: int = 5, covers_s: int = 3600, service: str = TERMS.service) -> HeartbeatRow:
    return HeartbeatRow(7, name, b"", service, START_NS + hour * HOUR_NS, covers_s)


def hours(start: int, end: int) -> Interval:
    return Interval(START_NS + start * HOUR_NS, START_NS + end * HOUR_NS)


def took(**batches: list[Any]) -> tuple[HeartbeatBook, list[RowRejection]]:
    book = HeartbeatBook(TERMS, PERIOD)
    rejected = [each for name, rows in batches.items() for each in book.add_all(rows, handed_in_ns=LATE_NS, batch=name)]
    return book, rejected


@pytest.mark.parametrize(
    ("agreement", "row", "handed_in_ns", "reason", "field", "message"),
    [
        (TERMS, beat(service="x" * 99), LATE_NS, Reason.OTHER_SERVICE, "service", f"'{'x' * 80}' is not the service"),
        (
            terms("complete_log"),
            beat(),
            LATE_NS,
            Reason.NO_HEARTBEATS,
            "heartbeat_id",
            "the agreement shows coverage by complete_log: declare the span of the log instead",
        ),
        (
            TERMS,
            beat(covers_s=3601),
            LATE_NS,
            Reason.HEARTBEAT_TOO_LONG,
            "covers_s",
            "covers 3601 s, and the agreement",
        ),
        (
            TERMS,
            beat(),
            START_NS + 5 * HOUR_NS - MINUTE_NS - 1,
            Reason.IN_THE_FUTURE,
            "at",
            "is later than its handing in at 2023-06-14T04:58:59.999999999Z",
        ),
    ],
)
def test_what_an_agreement_does_not_take_is_named(
    agreement: Agreement, row: HeartbeatRow, handed_in_ns: int, reason: Reason, field: str, message: str
) -> None:
    found = refused(agreement, row, handed_in_ns)
    assert found is not None
    assert (found.line, found.reason, found.field) == (7, reason, field)
    assert found.message.startswith(message)
    assert found.message.isascii()
    if reason is Reason.NO_HEARTBEATS:
        assert found.message == message


def test_the_longest_one_of_a_clock_a_minute_ahead_is_taken() -> None:
    assert refused(TERMS, beat(), START_NS + 5 * HOUR_NS - MINUTE_NS) is None


def test_a_book_gives_back_what_cannot_be_used_and_keeps_the_rest() -> None:
    unread = RowRejection(3, Reason.MALFORMED, "", "no JSON")
    book, rejected = took(a=[unread, beat(covers_s=3601), beat()])
    assert [each.reason for each in rejected] == [Reason.MALFORMED, Reason.HEARTBEAT_TOO_LONG]
    assert rejected[0] is unread
    assert book.spans == [hours(4, 5)]


def test_only_what_reaches_into_the_period_is_kept() -> None:
    book, rejected = took(a=[beat("before", 0), beat("into", 1), beat("after", 25)])
    assert (book.spans, rejected) == ([hours(0, 1)], [])


def test_bodies_of_one_id_cover_what_any_of_them_says() -> None:
    book, _ = took(a=[beat("h", 5), beat("i", 9)], b=[beat("h", 5, 1800)])
    assert union(book.spans) == (hours(4, 5), hours(8, 9))


def test_nobody_takes_back_that_a_window_was_observed() -> None:
    """A body that agrees with the first one on nothing, and the first one again."""
    book, _ = took(a=[beat("h", 5), beat("h", 9)], b=[beat("h", 5)])
    assert book.spans == [hours(4, 5), hours(8, 9)]
    assert book.batches() == [Batch("a", (), (hours(4, 5), hours(8, 9))), Batch("b", (), (hours(4, 5),))]


def test_every_batch_that_shows_time_to_be_covered_is_named_with_it() -> None:
    book, _ = took(a=[beat("h", 5), beat("i", 6)], b=[beat("j", 9)], c=[beat("away", 30)])
    assert book.batches() == [Batch("a", (), (hours(4, 6),)), Batch("b", (), (hours(8, 9),)), Batch("c", (), ())]
