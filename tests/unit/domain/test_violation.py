"""Violations are maximal runs of windows that break a promise; of a ratio, by their own counts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.domain.credits.compensation import incidents
from ledger.domain.record.naming import violation_id
from ledger.domain.violations.violation import EndedBy, Violation, clause_of, unit_of_counts, violations
from ledger.domain.windows.window import Cell, Window, WindowState
from tests.unit.domain.methods.timeline import broken, terms
from tests.unit.domain.samples import DAY_NS, HOUR_NS, agreement, windows

TERMS = agreement()
IDLE = (0, 0)
GOOD, BAD = ((10, 0), IDLE, IDLE), ((7, 3), IDLE, IDLE)


def found(cells: dict[int, tuple[tuple[int, int], ...]], **states: tuple[int, ...]) -> tuple[Violation, ...]:
    return violations(TERMS, windows(TERMS, cells, **states))


def test_a_run_has_its_windows_counts_and_worst_window() -> None:
    (violation,) = found({3: BAD, 4: ((1, 9), IDLE, IDLE), 5: ((10, 90), IDLE, IDLE), 6: GOOD})
    assert violation.objective.id == "availability"
    assert (violation.first_window, violation.windows) == (3, 3)
    assert (violation.interval.start_ns, violation.interval.end_ns) == (DAY_NS + 3 * HOUR_NS, DAY_NS + 6 * HOUR_NS)
    assert (violation.good, violation.valid, violation.bad) == (18, 120, 102)
    # 1 of 10 and 10 of 100 are equally bad: the busier one is the worst.
    assert (violation.worst.index, violation.worst.good, violation.worst.valid) == (5, 10, 100)
    assert (violation.open, violation.ended_by) == (False, EndedBy.MET)


def test_of_equally_bad_and_busy_windows_the_first_is_the_worst() -> None:
    (violation,) = found({3: BAD, 4: BAD, 5: BAD, 6: GOOD})
    assert (violation.worst.index, violation.worst.good, violation.worst.valid) == (3, 7, 10)
    (alone,) = found({7: BAD, 8: GOOD})
    assert (alone.worst.index, alone.worst.good, alone.worst.valid) == (7, 7, 10)


def test_idle_minutes_of_an_interval_that_is_down_are_not_the_worst() -> None:
    down = {"method": "interval_threshold-v1", "interval": "PT5M", "error_rate": "5", "boundary": "above"}
    (violation,) = broken(terms(down), [(1, (0, 0)), (1, (0, 2)), (3, (0, 0))])
    assert (violation.first_window, violation.windows, violation.worst.index) == (0, 5, 1)
    assert (violation.good, violation.bad) == (0, 2)


def test_what_is_undecided_counts_with_what_is_good() -> None:
    (violation,) = broken(terms({"method": "total_ratio"}), [(1, (1, 2, 4)), (1, (9, 0))])
    assert (violation.good, violation.valid, violation.bad) == (5, 7, 2)
    assert (violation.worst.good, violation.worst.valid) == (5, 7)


def test_a_clause_is_named_as_the_contract_does_or_by_its_member() -> None:
    named = terms({"method": "total_ratio", "clause": "SLA 4.2"}, {"method": "total_ratio"})
    assert [clause_of(named, each) for each in named.objectives] == ["SLA 4.2", "objectives[1]"]


def test_the_counts_of_a_window_are_in_the_unit_of_the_indicator_unless_requests_are_weighed() -> None:
    assert unit_of_counts("total_ratio", "availability") == "requests"
    assert unit_of_counts("interval_mean-v1", "availability") == "requests"
    assert unit_of_counts("graded_score-v1", "response_latency") == "thousandths of a request"
    assert unit_of_counts("total_ratio", "checksum_failure") == "loads"
    assert unit_of_counts("total_ratio", "availability", "counters") == "requests"
    assert unit_of_counts("downtime_minutes-v1", "availability", "outages") == "minutes"


def test_what_ended_a_violation_as_events_spell_it() -> None:
    assert [str(each) for each in EndedBy] == ["met", "idle", "excluded", "no_data", "period_end"]


def test_violations_come_by_their_first_window_then_in_the_order_of_the_objectives() -> None:
    fails = (0, 10)
    both = found({5: (fails, fails, IDLE), 7: (IDLE, fails, IDLE), 8: (fails, IDLE, IDLE)})
    assert [(each.first_window, each.objective.id) for each in both] == [
        (5, "availability"),
        (5, "ttft"),
        (7, "ttft"),
        (8, "availability"),
    ]


def test_what_ends_a_run() -> None:
    assert [each.first_window for each in found({3: BAD, 4: (IDLE, (5, 0), IDLE), 5: BAD, 6: GOOD})] == [3, 5]
    for states, ended_by in (
        ({}, EndedBy.IDLE),
        ({"excluded": (4,)}, EndedBy.EXCLUDED),
        ({"no_data": (4,)}, EndedBy.NO_DATA),
    ):
        first, second = found({3: BAD, 5: BAD, 6: GOOD}, **states)
        assert (first.windows, first.ended_by, first.open) == (1, ended_by, False)
        assert second.first_window == 5


def test_nothing_judged_after_it_leaves_it_open() -> None:
    (violation,) = found({3: BAD}, no_data=tuple(range(4, 24)))
    assert (violation.open, violation.ended_by) == (True, EndedBy.NO_DATA)
    (violation,) = found({23: BAD})
    assert (violation.open, violation.ended_by) == (True, EndedBy.PERIOD_END)
    (violation,) = found({3: BAD}, no_data=tuple(range(4, 23)))
    assert not violation.open
    (violation,) = found({3: BAD, 4: GOOD}, no_data=tuple(range(5, 24)))
    assert (violation.open, violation.ended_by) == (False, EndedBy.MET)


def test_the_comparison_is_exact() -> None:
    # 99.95 % of 2000 is 1999: met exactly; of 2001 it is not.
    assert not found({3: ((1999, 1), IDLE, IDLE)})
    assert found({3: ((1998, 2), IDLE, IDLE)})


def test_objectives_are_judged_apart() -> None:
    cells = {2: ((9, 1), (0, 5), IDLE), 3: ((10, 0), (0, 5), IDLE)}
    assert [(each.objective.id, each.first_window, each.windows) for each in found(cells)] == [
        ("availability", 2, 1),
        ("ttft", 2, 2),
    ]


def test_an_id_says_what_a_violation_is_about() -> None:
    (violation,) = found({3: BAD})
    sla_id = "0x" + "5a" * 32
    name = violation_id(sla_id, TERMS.effective_from, violation.objective.id, violation.first_window)
    assert name == f"{'5a' * 6}.2023-01-01.availability.w3"


@st.composite
def judged(draw: st.DrawFn) -> list[Window]:
    counts = st.tuples(st.integers(0, 3), st.integers(0, 2))
    result = []
    for window in windows(TERMS, {}):
        state = draw(st.sampled_from(WindowState))
        pairs = draw(st.tuples(counts, counts, counts)) if state is WindowState.OBSERVED else (IDLE,) * 3
        result.append(Window(window.interval, state, tuple(Cell(*pair) for pair in pairs)))
    return result


@settings(max_examples=25, deadline=None)
@given(judged())
def test_every_breached_window_is_in_exactly_one_maximal_run(given_windows: list[Window]) -> None:
    result = violations(TERMS, given_windows)
    for index, objective in enumerate(TERMS.objectives):
        cells = [window.cells[index] for window in given_windows]
        breached = {
            at
            for at, cell in enumerate(cells)
            if cell.good * 10**9 < cell.valid * objective.target_ppb and given_windows[at].state is WindowState.OBSERVED
        }
        mine = [each for each in result if each.objective == objective]
        runs = [set(range(each.first_window, each.first_window + each.windows)) for each in mine]
        assert sum(map(len, runs)) == len(breached)
        assert set().union(*runs) == breached
        for run, each in zip(runs, mine, strict=True):
            assert min(run) - 1 not in breached
            assert max(run) + 1 not in breached
            assert each.bad == sum(cells[at].bad for at in run)
            assert each.worst.index in run
    assert [each.first_window for each in result] == sorted(each.first_window for each in result)


@settings(max_examples=25, deadline=None)
@given(judged())
def test_the_incidents_of_an_impact_rule_are_violations(given_windows: list[Window]) -> None:
    terms = agreement(name="agreement-impact.yaml")
    assert terms.compensation.impact is not None
    paid = incidents(terms, terms.compensation.impact, [_for(terms, window) for window in given_windows])
    broken = violations(terms, [_for(terms, window) for window in given_windows])
    mine = [each for each in broken if each.objective.id == terms.compensation.impact.objective]
    assert [(each.first_window, each.windows, each.good, each.valid) for each in paid] == [
        (each.first_window, each.windows, each.good, each.valid) for each in mine
    ]


def _for(terms: object, window: Window) -> Window:
    return Window(window.interval, window.state, window.cells[: len(terms.objectives)])  # type: ignore[attr-defined]
