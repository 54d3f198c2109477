"""What exclusions do to the windows: excluded whole, or fewer requests in them, and nothing else."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.credits.settlement import settle
from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.rows.observation import RequestRow
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.interval import Interval
from ledger.domain.violations.violation import violations
from ledger.domain.windows.exclusions import NOTHING_EXCLUDED, Excluded, Exclusion, excluded_in, rule
from ledger.domain.windows.window import WindowState
from tests.unit.domain.samples import DAY_NS, HOUR_NS, agreement, row
from tests.unit.domain.test_columns import columns

CAUSES = [{"id": "storm", "kind": "force_majeure", "reason": "nobody can be asked to prevent it"}]


def change(plain: dict[str, Any]) -> None:
    plain["carve_outs"] = CAUSES
    plain["exclusions"] = [{"id": "rate-limit", "error_codes": [429], "reason": "over the agreed rate"}]


TERMS = agreement(change)
PERIOD = period_named(TERMS, "2023-06-14/P1D")


def excluding(*hours: tuple[float, float]) -> Excluded:
    """A storm for each pair: from and to, in hours of the day; ``x0`` is the first of them."""
    recorded = [
        Exclusion(f"x{at}", "storm", Interval(DAY_NS + int(start * HOUR_NS), DAY_NS + int(end * HOUR_NS)), None, "both")
        for at, (start, end) in enumerate(hours)
    ]
    return excluded_in(TERMS.exclusion_terms, rule(TERMS.exclusion_terms, "UTC", recorded), PERIOD.interval)


def evaluated(rows: list[RequestRow], excluded: Excluded, **options: Any) -> Evaluator:
    evaluator = Evaluator(TERMS, PERIOD, excluded=excluded, **options)
    evaluator.add_all(rows)
    return evaluator


def availability(evaluator: Evaluator) -> dict[int, tuple[int, int]]:
    """(good, bad) of the windows that are not empty."""
    found = enumerate(evaluator.windows())
    return {at: (window.cells[0].good, window.cells[0].bad) for at, window in found if window.cells[0].valid}


def test_a_window_that_lies_in_it_whole_is_excluded_and_one_that_does_not_keeps_the_rest() -> None:
    rows = [row("a", at_s=3600), row("b", at_s=7199, code=500), row("c", at_s=7200, code=500), row("d", at_s=9000)]
    evaluator = evaluated(rows, excluding((1, 2.5)))
    states = [window.state for window in evaluator.windows()]
    assert [at for at, state in enumerate(states) if state is WindowState.EXCLUDED] == [1]
    assert states[2] is WindowState.OBSERVED
    assert availability(evaluator) == {2: (1, 0)}
    left = evaluator.left_out()
    assert (left[1].by_exclusion, left[2].by_exclusion, left[3].by_exclusion) == ({"x0": 2}, {"x0": 1}, {})
    assert evaluator.uncounted_requests() == 0


def test_a_request_belongs_to_it_by_its_start_whatever_became_of_it() -> None:
    rows = [row("in", at_s=3600, code=429), row("end", at_s=5400), row("before", at_s=3599, code=500)]
    evaluator = evaluated(rows, excluding((1, 1.5)))
    assert availability(evaluator) == {0: (0, 1), 1: (1, 0)}
    assert evaluator.left_out()[1].by_exclusion == {"x0": 1}
    assert evaluator.excluded_requests() == {"rate-limit": 0}


def test_a_request_in_the_time_of_two_is_counted_once_with_the_first() -> None:
    evaluator = evaluated([row("a", at_s=4000), row("b", at_s=6000)], excluding((1, 1.5), (1.05, 2)))
    assert evaluator.left_out()[1].by_exclusion == {"x0": 1, "x1": 1}
    assert evaluator.windows()[1].state is WindowState.EXCLUDED


def test_what_is_excluded_needs_no_data_and_the_rest_does() -> None:
    spans = [Interval(DAY_NS + 2 * HOUR_NS, DAY_NS + 24 * HOUR_NS)]
    states = [window.state for window in evaluated([], excluding((0, 1), (1, 1.5)), spans=spans).windows()]
    assert states[:3] == [WindowState.EXCLUDED, WindowState.NO_DATA, WindowState.OBSERVED]


def test_nobody_gets_rid_of_a_failure_by_sending_its_id_again_with_a_start_in_a_maintenance() -> None:
    late = row("a", at_s=20_000, code=500)
    rows = [late, row("a", at_s=4000, code=500)]
    for order in (rows, rows[::-1]):
        assert availability(evaluated(order, excluding((1, 2)))) == {5: (0, 1)}
    both = [row("a", at_s=4000, code=500), row("a", at_s=4001)]
    for order in (both, both[::-1]):
        evaluator = evaluated(order, excluding((1, 2)))
        assert availability(evaluator) == {}
        assert evaluator.left_out()[1].by_exclusion == {"x0": 1}


ROWS = st.lists(
    st.builds(
        row,
        st.integers(0, 40).map(lambda number: f"r{number}"),
        at_s=st.integers(0, 86_399),
        code=st.sampled_from([None, None, 429, 500]),
        first_token_ms=st.sampled_from([700, 900]),
    ),
    max_size=40,
)
HOURS = st.lists(
    st.tuples(st.integers(0, 95), st.integers(1, 20)).map(lambda pair: (pair[0] / 4, (pair[0] + pair[1]) / 4)),
    max_size=5,
)


@given(ROWS, HOURS, st.randoms())
def test_neither_the_order_of_rows_nor_that_of_exclusions_changes_a_window(
    rows: list[RequestRow], hours: list[tuple[float, float]], random: Any
) -> None:
    expected = evaluated(rows, excluding(*hours))
    random.shuffle(rows)
    random.shuffle(hours)
    found = evaluated(rows, excluding(*hours))
    assert found.windows() == expected.windows()
    assert [left.by_clause for left in found.left_out()] == [left.by_clause for left in expected.left_out()]


@given(ROWS, HOURS)
def test_columns_are_judged_as_their_rows(rows: list[RequestRow], hours: list[tuple[float, float]]) -> None:
    once = list({each.request_id: each for each in rows}.values())
    alone, together = evaluated(once, excluding(*hours)), Evaluator(TERMS, PERIOD, excluded=excluding(*hours))
    if once:
        together.add_all([columns(once)])
    quick = Evaluator(TERMS, PERIOD, excluded=excluding(*hours), distinct=True)
    if once:
        quick.add_all([columns(once)])
    assert alone.windows() == together.windows() == quick.windows()
    assert alone.left_out() == together.left_out() == quick.left_out()


@given(ROWS, HOURS, st.integers(0, 23), st.integers(1, 12))
def test_one_more_excluded_window_leaves_every_other_as_it_was(
    rows: list[RequestRow], hours: list[tuple[float, float]], first: int, length: int
) -> None:
    """Where requests differ in what they say under one id, where a conflict counts may depend on what is excluded."""
    once = list({each.request_id: each for each in rows}.values())
    before = evaluated(once, excluding(*hours)).windows()
    after = evaluated(once, excluding(*hours, (first, min(first + length, 24)))).windows()
    for at, (was, now) in enumerate(zip(before, after, strict=True)):
        if first <= at < first + length:
            assert now.state is WindowState.EXCLUDED
        else:
            assert now == was


@given(ROWS, st.integers(0, 23))
def test_excluding_a_window_no_better_than_the_rest_lowers_no_attainment_and_raises_no_credit(
    rows: list[RequestRow], hour: int
) -> None:
    """A ratio without its better part is lower: so much a customer gains where a provider excludes hours that went
    well. What this tests is that nothing else ever makes an exclusion cost the provider more."""
    once = list({each.request_id: each for each in rows}.values())
    before = settle(TERMS, PERIOD, evaluated(once, NOTHING_EXCLUDED).windows())
    after = settle(TERMS, PERIOD, evaluated(once, excluding((hour, hour + 1))).windows())
    windows = evaluated(once, NOTHING_EXCLUDED).windows()
    left_out = windows[hour].cells
    for cell, was, now in zip(left_out, before.objectives, after.objectives, strict=True):
        if cell.good * was.valid > was.good * cell.valid:
            return
        assert now.valid == was.valid - cell.valid
        assert now.good * was.valid >= was.good * now.valid
    if before.credit is not None and after.credit is not None:
        assert after.credit <= before.credit


def test_all_excluded_is_no_data_and_no_credit() -> None:
    settled = settle(TERMS, PERIOD, evaluated([row(code=500)], excluding((0, 24))).windows())
    assert settled.coverage.excluded == 24
    assert {str(result.state) for result in settled.objectives} == {"no_data"}
    assert settled.credit == 0


def test_an_incident_ends_where_an_excluded_window_begins() -> None:
    rows = [row(f"r{hour}", at_s=hour * 3600, code=500) for hour in (3, 4, 5)]
    windows = evaluated(rows, excluding((4, 5))).windows()
    found = [each for each in violations(TERMS, windows) if each.objective.indicator == "availability"]
    assert [(each.first_window, each.windows, str(each.ended_by)) for each in found] == [
        (3, 1, "excluded"),
        (5, 1, "idle"),
    ]
