from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.rows.observation import Reason, RequestRow, RowRejection, Verdict
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.interval import Interval
from ledger.domain.windows.exclusions import Excluded, Exclusion, Ruled, Ruling
from ledger.domain.windows.window import MAX_COUNT, Cell, Window, WindowState
from ledger.errors import ImplausibleCounts
from tests.unit.domain.samples import DAY_NS, HOUR_NS, agreement, put, row

TERMS = agreement()
PERIOD = period_named(TERMS, "2023-06-14/P1D")


def totals(evaluator: Evaluator) -> list[tuple[int, int]]:
    """(good, valid) of each objective over the period."""
    windows = evaluator.windows()
    return [
        (sum(w.cells[i].good for w in windows), sum(w.cells[i].valid for w in windows))
        for i in range(len(windows[0].cells))
    ]


CLAUSES = [
    {"id": "rate-limit", "error_codes": [429], "reason": "over the agreed rate"},
    {"id": "client", "error_codes": [-100], "reason": "the client hung up"},
]


def latency_only(clauses: list[Any]) -> Agreement:
    def change(plain: dict[str, Any]) -> None:
        del plain["objectives"][0]
        plain["compensation"]["rules"][0]["tiers"].pop("availability")
        plain["exclusions"] = clauses

    return agreement(change)


def evaluated(*rows: RequestRow, name: str = "agreement.yaml") -> list[tuple[int, int]]:
    evaluator = Evaluator(agreement(name=name), PERIOD)
    evaluator.add_all(rows)
    return totals(evaluator)


def test_a_latency_at_the_threshold_is_good_and_a_nanosecond_more_is_not() -> None:
    at = row("at", first_token_ms=800, response_ms=3200)
    over = row("over")._replace(first_token_ns=800_000_001, response_ns=3_200_000_001)
    assert evaluated(at) == [(1, 1), (1, 1), (1, 1)]
    assert evaluated(over) == [(1, 1), (0, 1), (0, 1)]


@pytest.mark.parametrize("code", [429, -100, 503, 0])
def test_any_code_is_a_failure_and_stays_out_of_latency(code: int) -> None:
    assert evaluated(row(code=code)) == [(0, 1), (0, 0), (0, 0)]


def test_a_clause_takes_its_codes_out_of_both_sides_and_no_others() -> None:
    rows = [row("a"), row("b", code=429), row("c", code=500)]
    assert evaluated(*rows)[0] == (1, 3)
    assert evaluated(*rows, name="agreement-excluding-429.yaml")[0] == (1, 2)


def test_excluded_requests_are_kept_by_clause_and_window() -> None:
    evaluator = Evaluator(agreement(name="agreement-excluding-429.yaml"), PERIOD)
    evaluator.add_all([row("a", code=429), row("b", code=429, at_s=3600), row("c", code=500)])
    assert evaluator.excluded_requests() == {"rate-limit": 2}
    assert evaluator.excluded_requests(1) == {"rate-limit": 1}
    assert evaluator.excluded_requests(2) == {"rate-limit": 0}


@pytest.mark.parametrize("clauses", [[], CLAUSES])
def test_without_availability_a_failed_request_counts_nowhere_and_is_no_clause_s(clauses: list[Any]) -> None:
    evaluator = Evaluator(latency_only(clauses), PERIOD)
    evaluator.add_all([row("a"), row("b", code=500), row("c", code=503, at_s=3600), row("d"), row("d", at_s=9)])
    assert totals(evaluator) == [(1, 1), (1, 1)]
    for index in (None, 0, 1):
        assert not any(evaluator.excluded_requests(index).values())
    assert not any(sum(each.by_clause.values()) for each in evaluator.left_out())


def test_without_availability_each_clause_still_tells_what_it_took_out() -> None:
    evaluator = Evaluator(latency_only(CLAUSES), PERIOD)
    evaluator.add_all([row("a", code=500), row("b", code=429), row("c", code=429), row("d", code=-100, at_s=3600)])
    assert evaluator.excluded_requests() == {"rate-limit": 2, "client": 1}
    assert evaluator.excluded_requests(1) == {"rate-limit": 0, "client": 1}
    assert [each.by_clause for each in evaluator.left_out()[:2]] == [
        {"rate-limit": 2, "client": 0},
        {"rate-limit": 0, "client": 1},
    ]


def test_an_exclusion_is_told_of_every_window_that_it_touches_by_a_nanosecond() -> None:
    span = Interval(DAY_NS + HOUR_NS - 1, DAY_NS + 2 * HOUR_NS + 1)
    ruled = Ruled(Exclusion("t-1", "maintenance", span, None, "ops"), Ruling.HONOURED, span, "")
    evaluator = Evaluator(TERMS, PERIOD, excluded=Excluded((ruled,), ((span, 0),)))
    evaluator.add_all([row("a", at_s=3600), row("b", at_s=3601), row("c", at_s=7201)])
    told = {at: each.by_exclusion for at, each in enumerate(evaluator.left_out()) if each.by_exclusion}
    assert told == {0: {"t-1": 0}, 1: {"t-1": 2}, 2: {"t-1": 0}}


@pytest.mark.parametrize("indicator", ["availability", "first_token_latency"])
def test_sixteen_objectives_fit_an_outcome(indicator: str) -> None:
    def change(plain: dict[str, Any]) -> None:
        kept = plain["objectives"][0 if indicator == "availability" else 1]
        plain["objectives"] = [{**kept, "id": f"o{number}"} for number in range(16)]
        plain["compensation"]["rules"][0]["tiers"] = {"o15": [{"below": "90", "credit_percent": "10"}]}
        plain["exclusions"] = CLAUSES

    evaluator = Evaluator(agreement(change), PERIOD)
    evaluator.add_all([row("a"), row("b", first_token_ms=900), row("c", code=500), row("d", code=-100)])
    assert totals(evaluator) == [(2, 3) if indicator == "availability" else (1, 2)] * 16
    assert evaluator.excluded_requests() == {"rate-limit": 0, "client": 1}


@pytest.mark.parametrize(("at_s", "hour"), [(0, 0), (3599.999, 0), (3600, 1), (86_399.999, 23)])
def test_a_request_belongs_to_the_window_of_its_start(at_s: float, hour: int) -> None:
    evaluator = Evaluator(TERMS, PERIOD)
    evaluator.add(row(at_s=at_s))
    assert [at for at, window in enumerate(evaluator.windows()) if not window.empty] == [hour]


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (row(at_s=-0.001), Reason.OUTSIDE_PERIOD),
        (row(at_s=86_400), Reason.OUTSIDE_PERIOD),
        (row(service="Example-Chat"), Reason.OTHER_SERVICE),
    ],
)
def test_rows_outside_the_scope_are_rejected(item: RequestRow, reason: Reason) -> None:
    evaluator = Evaluator(TERMS, PERIOD)
    result = evaluator.add(item)
    assert isinstance(result, RowRejection)
    assert (result.reason, evaluator.counts.rejected) == (reason, {reason: 1})
    assert evaluator.other_periods == {}
    assert totals(evaluator) == [(0, 0)] * 3


def test_rows_of_other_services_are_counted_by_name_of_the_first_hundred() -> None:
    evaluator = Evaluator(TERMS, PERIOD)
    evaluator.add_all([row(f"r{at}", service=f"s{at}") for at in range(102)])
    evaluator.add_all([row("again", service="s99"), row("late", service="s101")])
    assert evaluator.other_services == {f"s{at}": 1 + (at == 99) for at in range(100)}
    refused = evaluator.add(row("r", service="s" * 99))
    assert isinstance(refused, RowRejection)
    assert (refused.field, refused.message) == ("service", f"'{'s' * 80}' is not the service 'example-chat'")


def test_a_row_of_another_time_is_told_what_it_lies_outside_of() -> None:
    told = [Evaluator(TERMS, period).add(row(at_s=10**8)) for period in (PERIOD, None)]
    assert [(each.field, each.message) for each in told if isinstance(each, RowRejection)] == [
        ("started_at", "lies outside the period 2023-06-14/P1D"),
        ("started_at", "lies outside every period of the agreement"),
    ]


def test_a_complete_log_without_rows_is_idle_not_missing() -> None:
    windows = Evaluator(TERMS, PERIOD).windows()
    assert all(window.idle for window in windows)


def test_with_spans_only_windows_that_they_hold_whole_are_observed() -> None:
    spans = [Interval(DAY_NS + 1, DAY_NS + 2 * HOUR_NS), Interval(DAY_NS + 2 * HOUR_NS, DAY_NS + 3 * HOUR_NS)]
    evaluator = Evaluator(TERMS, PERIOD, spans=spans)
    evaluator.add_all([row("cut", at_s=1), row("in", at_s=3601), row("out", at_s=3 * 3600)])
    observed = [at for at, window in enumerate(evaluator.windows()) if window.state is WindowState.OBSERVED]
    assert observed == [1, 2]
    assert (evaluator.counts.accepted, evaluator.counts.rejected) == (2, {Reason.OUTSIDE_SPAN: 1})
    assert totals(evaluator)[0] == (1, 1)
    assert evaluator.uncounted_requests() == 1


SECOND_HOUR = Interval(DAY_NS + HOUR_NS, DAY_NS + 2 * HOUR_NS)
LAST_HOUR = Interval(DAY_NS + 23 * HOUR_NS, DAY_NS + 24 * HOUR_NS)
UNREAD = RowRejection(3, Reason.MALFORMED, "", "no JSON")


def test_a_row_that_could_not_be_read_is_counted_and_given_back() -> None:
    evaluator = Evaluator(TERMS, PERIOD)
    assert evaluator.add(UNREAD) is UNREAD
    evaluator.add_all([UNREAD, row()])
    assert (evaluator.counts.accepted, evaluator.counts.rejected) == (1, {Reason.MALFORMED: 2})


def test_a_row_lies_in_one_of_the_spans_declared_for_its_batch_and_later_ones_need_not() -> None:
    evaluator = Evaluator(TERMS, PERIOD)
    evaluator.add_all([row("a", at_s=3600), row("b", at_s=86_399), row("c")], within=[SECOND_HOUR, LAST_HOUR])
    assert (evaluator.counts.accepted, evaluator.counts.rejected) == (2, {Reason.OUTSIDE_SPAN: 1})
    assert evaluator.add(row("c")) is Verdict.ACCEPTED


def test_rows_lie_in_what_is_declared_of_them_whatever_is_observed() -> None:
    spans = [Interval(DAY_NS, DAY_NS + 24 * HOUR_NS)]
    evaluator = Evaluator(TERMS, PERIOD, spans=spans, declared=[SECOND_HOUR])
    refused = evaluator.add(row("a"))
    assert isinstance(refused, RowRejection)
    assert (refused.reason, refused.field) == (Reason.OUTSIDE_SPAN, "started_at")
    assert refused.message == "lies outside the spans declared complete"
    assert evaluator.add(row("b", at_s=3600)) is Verdict.ACCEPTED
    assert all(window.state is WindowState.OBSERVED for window in evaluator.windows())


def test_every_batch_is_told_the_windows_whose_counts_stand_on_its_rows() -> None:
    """Those of its own rows, and of an id in conflict all that any of its bodies is in, whichever batch brought it."""
    evaluator = Evaluator(TERMS, PERIOD)
    evaluator.add(row("alone", at_s=3600))
    evaluator.add_all([row("a"), row("b", at_s=5 * 3600)])
    evaluator.add_all([row("a", at_s=9 * 3600), row("b", at_s=5 * 3600), row("alone", at_s=2 * 3600)])
    evaluator.add_all([row("c", at_s=7 * 3600), row("a", at_s=8 * 3600)])
    evaluator.add_all([row("d", at_s=3 * 3600)])
    assert evaluator.reaches() == [{0, 5, 8, 9}, {0, 1, 2, 5, 8, 9}, {0, 7, 8, 9}, {3}]


def test_an_id_in_conflict_is_uncounted_only_where_no_body_of_it_is_observed() -> None:
    evaluator = Evaluator(TERMS, PERIOD, spans=[SECOND_HOUR], declared=())
    evaluator.add_all([row("a"), row("a", at_s=3601), row("b"), row("b", at_s=7200), row("c", at_s=7200)])
    assert totals(evaluator)[0] == (0, 1)
    assert evaluator.uncounted_requests() == 2


def test_repeats_are_told_where_windows_are_observed() -> None:
    def change(plain: dict[str, Any]) -> None:
        put(plain, "objectives.0.repeat_window", "PT5M")

    evaluator = Evaluator(agreement(change), PERIOD, spans=[SECOND_HOUR], declared=())
    evaluator.add_all([row(f"r{at_s}", at_s=at_s, code=500) for at_s in (3500, 3600, 3660)])
    assert totals(evaluator)[0] == (0, 1)


def test_a_conflict_counts_where_it_began_outside_excluded_time() -> None:
    span = Interval(DAY_NS, DAY_NS + HOUR_NS)
    ruled = Ruled(Exclusion("t-1", "maintenance", span, None, "ops"), Ruling.HONOURED, span, "")
    evaluator = Evaluator(TERMS, PERIOD, excluded=Excluded((ruled,), ((span, 0),)))
    evaluator.add_all([row("a", at_s=7200), row("a", at_s=60)])
    assert [(at, each.cells[0]) for at, each in enumerate(evaluator.windows()) if not each.empty] == [(2, Cell(0, 1))]


def test_the_period_is_that_of_the_rows_and_others_are_told() -> None:
    evaluator = Evaluator(TERMS)
    assert (evaluator.windows(), evaluator.left_out(), evaluator.uncounted_requests()) == ((), [], 0)
    evaluator.add_all([row("a"), row("b", at_s=86_400), row("c", at_s=10**8), row("d", service="x", at_s=-90_000)])
    assert str(evaluator.period) == "2023-06-14/P1D"
    assert {str(period): count for period, count in evaluator.other_periods.items()} == {"2023-06-15/P1D": 1, "None": 1}


def test_verdicts_come_back_one_by_one() -> None:
    evaluator = Evaluator(TERMS, PERIOD)
    verdicts = [evaluator.add(item) for item in (row(), row(), row(at_s=9))]
    assert verdicts == [Verdict.ACCEPTED, Verdict.DUPLICATE, Verdict.CONFLICT]


@pytest.mark.parametrize(("good", "bad"), [(-1, 0), (0, -1), (MAX_COUNT + 1, 0), (0, MAX_COUNT + 1)])
def test_counts_that_no_honest_source_gives_block_settlement(good: int, bad: int) -> None:
    with pytest.raises(ImplausibleCounts):
        Cell(good, bad)


@pytest.mark.parametrize("state", [WindowState.NO_DATA, WindowState.EXCLUDED])
def test_a_window_that_was_not_observed_has_no_counts(state: WindowState) -> None:
    with pytest.raises(ImplausibleCounts):
        Window(Interval(0, 1), state, (Cell(1, 0),))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])
@pytest.mark.parametrize("length", ["P1D", "P1W", "P1M", "P3M"])
def test_an_instant_is_in_the_period_found_for_it(zone: str, length: str) -> None:
    def change(plain: dict[str, Any]) -> None:
        put(plain, "timezone", zone)
        put(plain, "period", length)
        put(plain, "window", "PT30M")

    terms = agreement(change)
    first = terms.period_starting(terms.effective_from).interval.start_ns
    for step in range(-2, 70):
        instant = first + step * 130 * HOUR_NS
        found = terms.periods.at(instant)
        assert found is None or instant in found.interval
        assert (found is None) == (step < 0 or instant >= _end(terms)), step


@pytest.mark.parametrize("year", [1, 1677, 2262, 9999])
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_instants_at_the_edges_of_the_calendar_are_in_no_period(year: int, zone: str) -> None:
    terms = agreement(lambda d: put(d, "timezone", zone))
    days = [date(*day).toordinal() - date(1970, 1, 1).toordinal() for day in ((year, 1, 1), (year, 12, 31))]
    for instant_ns in (days[0] * 24 * HOUR_NS, (days[1] + 1) * 24 * HOUR_NS - 1):
        assert terms.periods.at(instant_ns) is None


def _end(terms: Any) -> int:
    periods = terms.periods.all()
    return max(period.interval.end_ns for period in periods)
