"""Outages as facts: what they take from a period, whatever their order, revisions and conflicts."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.credits.settlement import result_unit, settle
from ledger.domain.facts.outages import MAX_REVISION, OUTAGE_FACTS, OutageBook, OutageRow
from ledger.domain.rows.observation import Reason, RowRejection, Verdict
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import MINUTE_NS
from ledger.domain.time.interval import Interval
from ledger.domain.windows.exclusions import Excluded, Exclusion, Ruled, Ruling
from ledger.domain.windows.window import Cell, Window, WindowState
from ledger.errors import DocumentInvalid, ImplausibleCounts
from tests.unit.domain.samples import DAY_NS, HOUR_NS, agreement, put

UPTIME: dict[str, Any] = {
    "id": "uptime",
    "method": "total_ratio",
    "indicator": "availability",
    "target": "99",
    "source": "outages",
}
TIERS = {"uptime": [{"below": "99", "credit_percent": "10"}]}


def terms(window: str = "PT1H", **objective: Any) -> Agreement:
    def change(plain: dict[str, Any]) -> None:
        put(plain, "objectives", [{**UPTIME, **objective}])
        put(plain, "window", window)
        put(plain, "compensation.rules.0.tiers", TIERS)

    return agreement(change)


def minute(at: float) -> int:
    """A minute of 2023-06-14."""
    return DAY_NS + round(at * MINUTE_NS)


def outage(
    name: str, start: float | None, end: float | None, *, revision: int = 1, resource: str | None = None
) -> OutageRow:
    said = f"{name} {start} {end} {revision} {resource}"
    digest = hashlib.blake2b(said.encode(), digest_size=16).digest()
    span = (None, None) if start is None or end is None else (minute(start), minute(end))
    return OutageRow(1, name, revision, digest, "example-chat", *span, resource)


def idle(of: Agreement) -> list[Window]:
    period = period_named(of, "2023-06-14/P1D")
    return [Window(each, WindowState.OBSERVED, (Cell(0, 0),) * len(of.objectives)) for each in of.windows(period)]


def book(of: Agreement, *rows: OutageRow, **given: Any) -> OutageBook:
    found = OutageBook(of, period_named(of, "2023-06-14/P1D"), **given)
    found.add_all(rows)
    return found


def cells(of: Agreement, *rows: OutageRow, **given: Any) -> list[Cell]:
    return [window.cells[0] for window in book(of, *rows, **given).windows(idle(of))]


def down(of: Agreement, *rows: OutageRow, **given: Any) -> int:
    return sum(cell.bad for cell in cells(of, *rows, **given))


def excluded(start: float, end: float) -> Excluded:
    interval = Interval(minute(start), minute(end))
    ticket = Exclusion("t-1", "maintenance", interval, None, "ops")
    return Excluded((Ruled(ticket, Ruling.HONOURED, interval, ""),), ((interval, 0),))


def test_a_window_counts_its_whole_minutes() -> None:
    found = cells(terms(), outage("a", 65, 75.5))
    assert found[1] == Cell(50, 10)
    assert found[0] == found[2] == Cell(60, 0)


def test_a_period_is_settled_in_minutes() -> None:
    of = terms()
    result = settle(of, period_named(of, "2023-06-14/P1D"), book(of, outage("a", 0, 20)).windows(idle(of)))
    (found,) = result.objectives
    assert (found.good, found.valid, result_unit(found), str(found.state)) == (1420, 1440, "minutes", "breached")
    assert result.credit == 80_000


def test_minutes_by_the_downtime_method() -> None:
    of = terms("PT1M", method="downtime_minutes-v1", error_rate="0", boundary="above", minimum_run=5)
    rows = (outage("short", 10, 14), outage("long", 100, 105))
    (found,) = settle(of, period_named(of, "2023-06-14/P1D"), book(of, *rows).windows(idle(of))).objectives
    assert (found.good, found.valid) == (1435, 1440)


def test_overlaps_and_a_list_given_twice_count_once() -> None:
    rows = (outage("a", 10, 30), outage("b", 20, 40), outage("c", 20, 40))
    found = book(terms(), *rows, *rows)
    assert (found.counts.accepted, found.counts.duplicates) == (3, 3)
    assert down(terms(), *rows, *rows) == 30


def test_an_outage_is_clipped_to_the_period_on_both_sides() -> None:
    assert down(terms(), outage("before", -600, 2), outage("after", 1438, 9000)) == 4
    assert down(terms(), outage("elsewhere", -600, 0), outage("later", 1440, 1500)) == 0


def test_an_excluded_minute_is_on_neither_side_and_one_in_part_is_up() -> None:
    of = terms()
    found = cells(of, outage("a", 10, 50), excluded=excluded(20, 29.5))
    assert found[0] == Cell(51 - 30, 30)


def test_a_window_that_is_excluded_whole_stays_so() -> None:
    of = terms()
    windows = idle(of)
    windows[2] = Window(windows[2].interval, WindowState.EXCLUDED, (Cell(0, 0),))
    found = book(of, outage("a", 100, 200), excluded=excluded(120, 180)).windows(windows)
    assert (found[2].state, found[2].cells, found[3].cells) == (WindowState.EXCLUDED, (Cell(0, 0),), (Cell(40, 20),))


def test_the_highest_revision_counts_and_may_withdraw() -> None:
    first, moved = outage("a", 10, 40), outage("a", 10, 12, revision=2)
    assert down(terms(), moved, first) == down(terms(), first, moved) == 2
    taken_back = outage("a", None, None, revision=3)
    assert down(terms(), taken_back, first, moved) == 0
    assert book(terms(), first, moved, taken_back).counts.accepted == 3


def test_of_a_conflict_all_that_was_said_counts() -> None:
    rows = (outage("a", 10, 20), outage("a", 15, 30), outage("a", 10, 20))
    found = book(terms(), *rows)
    assert (found.counts.accepted, found.counts.conflicts, found.counts.duplicates) == (1, 1, 1)
    assert down(terms(), *rows) == 20
    # Nor by taking it back in the same revision.
    second = (outage("a", 10, 20, revision=2), outage("a", None, None, revision=2))
    assert down(terms(), *second) == down(terms(), *reversed(second)) == 10
    assert down(terms(), *rows, outage("a", 10, 11, revision=2)) == 1


def test_an_objective_about_a_resource_counts_its_outages_and_one_without_all() -> None:
    rows = (outage("a", 10, 20, resource="eu"), outage("b", 30, 35))
    assert down(terms(), *rows) == 15
    of = terms(resource="eu")
    found = OutageBook(of, period_named(of, "2023-06-14/P1D"))
    assert found.add(rows[0]) is Verdict.ACCEPTED
    refused = found.add(rows[1])
    assert isinstance(refused, RowRejection)
    assert refused.reason is Reason.NOT_PROMISED
    assert sum(window.cells[0].bad for window in found.windows(idle(of))) == 10


def test_rows_that_are_for_nobody_here() -> None:
    def reason(row: OutageRow, **given: Any) -> Reason:
        found = book(terms()).add(row, **given)
        assert isinstance(found, RowRejection)
        return found.reason

    assert reason(outage("a", 1, 2)._replace(service="another")) is Reason.OTHER_SERVICE
    span = Interval(minute(100), minute(200))
    assert reason(outage("a", 90, 100), within=[span]) is Reason.OUTSIDE_SPAN
    assert book(terms()).add(outage("a", 90, 101), within=[span]) is Verdict.ACCEPTED
    assert book(terms()).add(outage("a", None, None, revision=2), within=[span]) is Verdict.ACCEPTED


@pytest.mark.parametrize(
    ("row", "reason", "field", "message"),
    [
        (outage("a", 1, 2, resource="u" * 99), Reason.NOT_PROMISED, "outage_id", f"outages of '{'u' * 80}'"),
        (outage("a", 1, 2), Reason.NOT_PROMISED, "outage_id", "no objective is counted from outages"),
        (outage("a", 300, 301, resource="eu"), Reason.OUTSIDE_SPAN, "from", "outside the spans declared complete"),
        (outage("a", 101, 100, resource="eu"), Reason.IMPLAUSIBLE, "to", "an outage must end after it begins"),
        (outage("a", 100, 100, resource="eu"), Reason.IMPLAUSIBLE, "to", "an outage must end after it begins"),
    ],
)
def test_what_is_wrong_with_a_row_is_named(row: OutageRow, reason: Reason, field: str, message: str) -> None:
    span = Interval(minute(100), minute(200))
    found = book(terms(resource="eu")).add(row, within=[span])
    assert isinstance(found, RowRejection)
    assert (found.reason, found.field) == (reason, field)
    assert found.message.endswith(message)


def test_an_outage_of_no_time_is_of_the_nanosecond_at_which_it_is_said_to_be() -> None:
    before = outage("a", 100, 100)._replace(from_ns=minute(100) - 1, to_ns=minute(100) - 1)
    found = book(terms()).add(before, within=[Interval(minute(100), minute(200))])
    assert isinstance(found, RowRejection)
    assert found.reason is Reason.OUTSIDE_SPAN


def test_outages_are_those_of_any_resource_that_an_objective_is_counted_for_by_them() -> None:
    def change(plain: dict[str, Any]) -> None:
        requests = {**UPTIME, "id": "requests"}
        del requests["source"]
        regions = [{**UPTIME, "id": name, "resource": name} for name in ("eu", "us")]
        put(plain, "objectives", [*regions, requests])
        put(plain, "compensation.rules", [])

    of = agreement(change)
    assert book(of, outage("a", 0, 9, resource="us")).windows(idle(of))[0].cells[1] == Cell(51, 9)
    # The objective that is counted from requests is for every resource, and no outage counts to it.
    refused = book(of).add(outage("a", 0, 9, resource="asia"))
    assert isinstance(refused, RowRejection)
    assert refused.message == "no objective is counted from outages of 'asia'"


def test_only_the_first_revision_counts_where_it_says_for_later_ones_move_it() -> None:
    first, later = outage("a", 10, 20), outage("a", 10, 20, revision=2)
    assert OUTAGE_FACTS.counts_in(first) == Interval(minute(10), minute(20))
    assert OUTAGE_FACTS.counts_in(later) is None


def test_people_see_when_it_was_or_that_it_was_withdrawn() -> None:
    assert OUTAGE_FACTS.shown(outage("a", 10, 20)) == (
        minute(10),
        "from 2023-06-14T00:10:00Z to 2023-06-14T00:20:00Z",
    )
    assert OUTAGE_FACTS.shown(outage("a", None, None, revision=2)) == (0, "withdrawn")


def test_a_revision_is_a_whole_number_that_any_reader_of_32_bits_has() -> None:
    assert MAX_REVISION.bit_length() == (MAX_REVISION + 1).bit_length() - 1 == 31


def test_where_no_list_is_complete_there_is_no_data() -> None:
    of = terms()
    spans = [Interval(DAY_NS + HOUR_NS, DAY_NS + 3 * HOUR_NS + 1)]
    found = book(of, outage("a", 0, 90), spans=spans).windows(idle(of))
    observed = [at for at, window in enumerate(found) if window.state is WindowState.OBSERVED]
    assert observed == [1, 2]
    assert found[1].cells == (Cell(30, 30),)
    assert found[0].cells == (Cell(0, 0),)


def test_an_outage_that_ends_before_it_begins_blocks_its_period_until_it_is_put_right() -> None:
    wrong = outage("a", 40, 10)
    found = book(terms(), wrong)
    assert found.counts.rejected == {Reason.IMPLAUSIBLE: 1}
    with pytest.raises(ImplausibleCounts, match="must end after it begins"):
        found.windows(idle(terms()))
    found.add(outage("a", 10, 40))
    assert sum(window.cells[0].bad for window in found.windows(idle(terms()))) == 30
    assert down(terms(), wrong, outage("a", None, None, revision=2)) == 0
    with pytest.raises(ImplausibleCounts):
        down(terms(), wrong._replace(revision=3), outage("a", 10, 40, revision=2))
    # What another period has to answer for does not hold up this one.
    assert down(terms(), outage("b", 1500, 1450)) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indicator": "error_rate"}, "says nothing of error_rate"),
        ({"where": {"model": "m"}}, "selects requests one by one"),
        ({"repeat_window": "PT5M"}, "failed requests one by one"),
        ({"counters": {"total": "a", "bad": "b"}}, "only source: counters has it"),
        ({"histogram": "a"}, "only source: histograms has it"),
    ],
)
def test_terms_that_outages_cannot_keep_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DocumentInvalid, match=message):
        terms(**changes)


def test_windows_without_a_whole_minute_are_refused() -> None:
    with pytest.raises(DocumentInvalid, match="counted in whole minutes"):
        terms("PT30S")


spans = st.tuples(st.integers(-90, 1500), st.integers(1, 200)).map(lambda pair: (pair[0], pair[0] + pair[1]))
outages = st.builds(
    lambda name, span, revision, gone: outage(
        name, *((None, None) if gone and revision > 1 else span), revision=revision
    ),
    st.sampled_from("abcd"),
    spans,
    st.integers(1, 3),
    st.booleans(),
)


@given(st.lists(outages, max_size=12).flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_the_order_of_outages_changes_nothing(orders: tuple[list[OutageRow], list[OutageRow]]) -> None:
    given_first, given_then = (book(terms(), *rows) for rows in orders)
    assert given_first.windows(idle(terms())) == given_then.windows(idle(terms()))
    assert given_first.counts == given_then.counts


@given(st.lists(outages, max_size=8), outages)
def test_another_outage_never_makes_more_minutes_up(rows: list[OutageRow], another: OutageRow) -> None:
    fresh = another._replace(outage_id="another")
    assert down(terms(), *rows, fresh) >= down(terms(), *rows)
    assert all(cell.valid == 60 for cell in cells(terms(), *rows, fresh))


def test_what_becomes_of_an_id_stands_on_every_batch_that_says_something_of_it() -> None:
    found = OutageBook(terms(), period_named(terms(), "2023-06-14/P1D"))
    found.add_all([outage("a", 50, 130), outage("b", 600, 601)])
    found.add_all([outage("a", None, None, revision=2)])
    found.add_all([outage("b", 600, 601), outage("elsewhere", 2000, 2100)])
    assert found.reaches() == [{0, 1, 2, 10}, {0, 1, 2}, {10}]
