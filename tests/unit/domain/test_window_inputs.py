"""Which batches stand behind a window: few for each, and the same whatever order they came in."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.time.interval import Interval, covered, union
from ledger.domain.windows.window import Window, WindowState
from ledger.domain.windows.window_inputs import Batch, Conflict, window_inputs, with_conflicts

STEP = 10
DIGEST_BYTES = len('"",') + 64


def grid(count: int, declared: list[Interval] | None = None) -> list[Window]:
    spans = None if declared is None else union(declared)
    found = []
    for at in range(count):
        interval = Interval(at * STEP, (at + 1) * STEP)
        observed = spans is None or covered(interval, spans)
        found.append(Window(interval, WindowState.OBSERVED if observed else WindowState.NO_DATA, ()))
    return found


def batch(name: str, windows: set[int], *declared: tuple[int, int]) -> Batch:
    return Batch(name, windows, [Interval(*each) for each in declared])


def test_a_window_names_the_batches_it_has_counts_of_and_no_other() -> None:
    found = window_inputs(grid(3), [batch("a", {0}, (0, 10)), batch("b", {1, 2}, (10, 30))])
    assert found == [{"a"}, {"b"}, {"b"}]


def test_an_idle_window_names_what_shows_it_to_be_complete() -> None:
    assert window_inputs(grid(2), [batch("a", {0}, (0, 20))]) == [{"a"}, {"a"}]


def test_of_several_declarations_the_first_to_end_is_enough() -> None:
    growing = [batch(f"b{at}", set(), (0, at * STEP)) for at in range(1, 5)]
    assert window_inputs(grid(4), growing) == [{"b1"}, {"b2"}, {"b3"}, {"b4"}]


def test_a_batch_with_rows_and_no_declaration_leaves_the_completeness_to_another() -> None:
    assert window_inputs(grid(1), [batch("rows", {0}), batch("says", set(), (0, 10))]) == [{"rows", "says"}]


def test_declarations_that_cover_a_window_together_are_all_named() -> None:
    spans = {"a": (0, 4), "b": (3, 7), "c": (7, 12), "d": (2, 5)}
    parts = [batch(name, set(), span) for name, span in spans.items()]
    assert window_inputs(grid(1), parts) == [{"a", "b", "c"}]


def test_what_is_not_covered_has_no_data_and_names_only_rows() -> None:
    batches = [batch("a", {0}, (0, 9)), batch("b", set(), (11, 20))]
    assert window_inputs(grid(2, [Interval(0, 9), Interval(11, 20)]), batches) == [{"a"}, set()]


def test_rows_show_nothing_complete_that_their_own_declarations_do_not_cover() -> None:
    """Of two that have rows in a window each declared for half of it, the one that covers it whole is named, too."""
    halves = [batch("a", {0}, (0, 5)), batch("b", {0}, (5, 10))]
    assert window_inputs(grid(1), [*halves, batch("whole", set(), (0, 10))]) == [{"a", "b", "whole"}]


def test_one_that_its_rows_show_complete_needs_no_other_whichever_comes_first() -> None:
    """The shorter declaration would be named for a window that nobody's rows show to be complete."""
    rows, half, short = batch("rows", {0}, (0, 30)), batch("half", {0}, (0, 5)), batch("short", set(), (0, 10))
    for batches in ([rows, half, short], [half, rows, short]):
        assert window_inputs(grid(1), batches) == [{"rows", "half"}]


def test_of_two_that_reach_as_far_into_a_window_the_first_to_end_goes_on_with_it() -> None:
    """And of two that end together the first to begin, of two that are alike the last by name."""
    head, wide = batch("head", set(), (0, 4)), batch("wide", set(), (4, 30))
    assert window_inputs(grid(1), [head, wide, batch("narrow", set(), (3, 20))]) == [{"head", "narrow"}]
    assert window_inputs(grid(1), [head, batch("late", set(), (4, 20)), batch("early", set(), (2, 20))]) == [
        {"head", "early"}
    ]
    assert window_inputs(grid(1), [head, batch("x", set(), (4, 20)), batch("y", set(), (4, 20))]) == [{"head", "y"}]


def test_a_declaration_that_begins_where_a_window_ends_shows_nothing_of_it() -> None:
    assert window_inputs(grid(2), [batch("a", set(), (0, 10)), batch("b", set(), (10, 20))]) == [{"a"}, {"b"}]


def test_a_declaration_that_begins_within_a_window_goes_on_in_the_next() -> None:
    parts = [batch("a", set(), (0, 4)), batch("b", set(), (4, 10)), batch("c", set(), (3, 20))]
    assert window_inputs(grid(2), parts) == [{"a", "b"}, {"c"}]


def test_what_becomes_of_an_id_in_conflict_stands_on_every_batch_that_brought_a_body() -> None:
    conflict = Conflict({1, 7}, {0, 2}, set())
    assert with_conflicts([{0}, {3}, {7}], [conflict]) == [{0, 1, 7}, {3}, {1, 7}]


BATCHES = st.lists(
    st.tuples(
        st.sets(st.integers(0, 7), max_size=3),
        st.lists(st.tuples(st.integers(0, 79), st.integers(1, 80)), max_size=3),
    ),
    max_size=8,
)


@given(BATCHES, st.randoms(use_true_random=False))
def test_every_observed_window_is_covered_by_what_it_names_in_whatever_order_batches_came(
    drawn: list[tuple[set[int], list[tuple[int, int]]]], order: random.Random
) -> None:
    batches = [
        Batch(f"b{at}", windows, [Interval(start, start + length) for start, length in declared])
        for at, (windows, declared) in enumerate(drawn)
    ]
    windows = grid(8, [span for each in batches for span in each.declared])
    found = window_inputs(windows, batches)
    by_name = {each.digest: each for each in batches}
    for at, (window, digests) in enumerate(zip(windows, found, strict=True)):
        with_rows = {each.digest for each in batches if at in each.windows}
        assert with_rows <= digests
        if window.state is WindowState.OBSERVED:
            assert covered(window.interval, union(span for name in digests for span in by_name[name].declared))
        else:
            assert digests == with_rows
    order.shuffle(batches)
    assert window_inputs(windows, batches) == found


def test_a_month_of_hourly_batches_names_one_a_window_where_all_of_them_took_400_mb() -> None:
    hours = 30 * 24
    windows = grid(hours * 12)
    hourly = [batch(f"{at:064}", {at * 12}, (at * 12 * STEP, (at + 1) * 12 * STEP)) for at in range(hours)]
    growing = [batch(f"{at:064}", {at * 12}, (0, (at + 1) * 12 * STEP)) for at in range(hours)]
    before = len(windows) * hours * DIGEST_BYTES
    for batches in (hourly, growing):
        after = sum(len(digests) for digests in window_inputs(windows, batches)) * DIGEST_BYTES
        assert after == len(windows) * DIGEST_BYTES
    assert (before // 10**6, after // 10**3) == (416, 578)


def test_thousands_of_declarations_cost_what_they_are_many_of() -> None:
    """Seconds inside hours: each window is covered by its 3,600, and no look at one is a look at all."""
    seconds = [batch(f"s{at}", set(), (at, at + 1)) for at in range(20_000)]
    wide = [Window(Interval(at, at + 2000), WindowState.OBSERVED, ()) for at in range(0, 20_000, 2000)]
    assert [len(digests) for digests in window_inputs(wide, seconds)] == [2000] * 10
