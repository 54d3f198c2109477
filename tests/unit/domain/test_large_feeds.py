"""Feeds that are as bad as they can be: what they cost grows with their rows, and not with rows times rows."""

from __future__ import annotations

import time
import tracemalloc
from fractions import Fraction

import pytest

from ledger.domain.facts.counter_log import COUNTER_FACTS, CounterBook, CounterRow
from ledger.domain.facts.outages import OutageBook
from ledger.domain.rows.observation import RowRejection
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.time.interval import Interval
from ledger.errors import ImplausibleCounts
from tests.unit.domain.samples import DAY_NS, agreement, put
from tests.unit.domain.test_outages import idle, outage, terms

pytestmark = pytest.mark.long


def counted(at_s: int, value: int) -> CounterRow:
    at_ns = DAY_NS + at_s * SECOND_NS
    return CounterRow(
        1, "total", "{}", value.to_bytes(8, "big", signed=True), "example-chat", at_ns, Fraction(value), None
    )


def of_errors() -> Agreement:
    def change(plain: dict[str, object]) -> None:
        objective = {"id": "errors", "method": "total_ratio", "indicator": "error_rate", "target": "99"}
        source = {"source": "counters", "counters": {"total": "total", "bad": "bad"}}
        put(plain, "objectives", [{**objective, **source}])
        put(plain, "compensation.rules.0.tiers", {"errors": [{"below": "99", "credit_percent": "10"}]})

    return agreement(change)


def test_outages_that_each_take_the_whole_period_share_its_windows() -> None:
    found = OutageBook(terms("PT1M"), period_named(terms("PT1M"), "2023-06-14/P1D"))
    found.add_all(outage(str(name), -5000, 5000) for name in range(3000))
    tracemalloc.start()
    (reach,) = found.reaches()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reach == set(range(1440))
    assert most < 5_000_000  # a set of windows for each outage takes 200 MB and more


def test_of_many_revisions_each_batch_has_the_reach_of_their_outage() -> None:
    found = OutageBook(terms(), period_named(terms(), "2023-06-14/P1D"))
    for revision in range(1, 3001):
        found.add_all([outage("a", revision % 1440, revision % 1440 + 1, revision=revision)])
    assert all(reach == set(range(24)) for reach in found.reaches())


def test_a_series_of_conflicts_alone_touches_each_of_its_readings_once() -> None:
    rows = [counted(at_s, value) for at_s in range(20_000) for value in (1, 2)]
    assert len(COUNTER_FACTS.touched(rows, ())) == 20_000


def test_many_implausible_rows_are_answered_one_by_one() -> None:
    of = of_errors()
    book = CounterBook(of, period_named(of, "2023-06-14/P1D"))
    book.add_all(counted(at_s, -1) for at_s in range(1, 20_001))
    assert isinstance(book.add(counted(1, -2)), RowRejection)
    with pytest.raises(ImplausibleCounts, match="whole number from 0, not -1"):
        book.windows(idle(of))
    book.add_all(counted(at_s, at_s) for at_s in range(1, 20_001))
    assert sum(window.cells[0].valid for window in book.windows(idle(of))) == 19_999


def failing(at_s: int, value: int) -> CounterRow:
    return counted(at_s, value)._replace(counter="bad")


def test_failures_that_are_read_where_nothing_else_is_find_their_window_in_one_walk() -> None:
    """Read every second while the counter of all was not, but for one that was silent all day; then both, in turn."""
    of, half = of_errors(), 20_000
    book = CounterBook(of, period_named(of, "2023-06-14/P1D"))
    book.add_all(failing(at_s, at_s) for at_s in range(1, half))
    book.add_all(counted(at_s, 9 * at_s)._replace(series="b") for at_s in range(half, 2 * half))
    book.add_all([counted(1, 0), counted(2 * half, half)])
    started_s = time.process_time()
    windows = book.windows(idle(of))
    reaches = book.reaches()
    assert time.process_time() - started_s < 15  # in steps times steps it takes minutes
    last = 2 * half // 3600
    assert sum(window.cells[0].bad for window in windows) == half - 2
    # What was read before the hour in which that of all was read first is held by its step alone.
    assert windows[last].cells[0].bad == 5 * 3600 - 1
    assert all(last in reach for reach in (reaches[0], reaches[2]))


def test_readings_that_each_end_a_moved_step_are_looked_up_and_not_searched() -> None:
    of = of_errors()
    book = CounterBook(of, period_named(of, "2023-06-14/P1D"))
    pods = range(12_000)
    book.add_all(counted(at_s, 1)._replace(series=f"{pod}") for pod in pods for at_s in (10, 5000))
    # The second hour has no data, so what was seen in it counts in the first.
    book.declare([Interval(DAY_NS, DAY_NS + 3600 * SECOND_NS)])
    started_s = time.process_time()
    book.windows(idle(of))
    assert book.reaches() == [{0, 1}]
    assert time.process_time() - started_s < 8  # in readings times readings it takes a quarter of a minute
