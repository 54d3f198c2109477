"""Settlement periods: calendar, fixed-day, anchored and rolling ones, and the parts of those that a term cuts."""

from __future__ import annotations

import itertools
import json
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.credits.proration import prorate, terms_for
from ledger.domain.credits.settlement import attestability, settle
from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.rows.observation import Reason
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.terms.periods import MAX_WINDOWS, PeriodGrid, count_windows, most_windows, rolling_step
from ledger.domain.time.calendar import Period, load_zone, parse_date, parse_period_length, parse_time_of_day
from ledger.domain.time.instant import SECOND_NS, format_instant_ns, parse_instant_ns
from ledger.domain.time.interval import Interval, union
from ledger.domain.windows.window import Cell, Window, WindowState
from ledger.errors import CalendarInvalid, DocumentInvalid
from tests.unit.domain.samples import agreement, put, row

MIDNIGHT_JUMPS = ["America/Sao_Paulo", "Asia/Beirut", "America/Havana", "Africa/Cairo", "America/Asuncion"]
DST_ZONES = ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca"]
ZONES = ["UTC", "Asia/Kathmandu", *DST_ZONES, *MIDNIGHT_JUMPS]
LENGTHS = ["P1D", "P30D", "P1W", "P1M", "P3M"]


def grid(first: str, until: str, length: str = "P1M", zone: str = "UTC", **changes: Any) -> PeriodGrid:
    anchor = parse_date(changes.pop("anchor", first))
    step = rolling_step(parse_period_length(length), changes.pop("step", length))
    return PeriodGrid(parse_date(first), parse_date(until), parse_period_length(length), zone, anchor, step, **changes)


def names(of: PeriodGrid) -> list[str]:
    return [str(period) for period in of.all()]


def utc(period: Period) -> tuple[str, str]:
    return format_instant_ns(period.interval.start_ns), format_instant_ns(period.interval.end_ns)


def yen(base: int) -> dict[str, Any]:
    return {
        "compensation__currency": "JPY",
        "compensation__base": str(base),
        "compensation__caps": {},
        "compensation__minimum": "0",
    }


def monthly(**members: Any) -> Agreement:
    """The example agreement by months in 2023, with other members."""

    def change(plain: dict[str, Any]) -> None:
        put(plain, "period", "P1M")
        for path, value in members.items():
            put(plain, path.replace("__", "."), value)

    return agreement(change)


@pytest.fixture
def case(sla_fixtures: Path) -> Any:
    return json.loads((sla_fixtures / "sla/cases/case_open_07_calendar_month_dst.json").read_text())


def month(zone: str, name: str) -> Period:
    first = parse_date(f"{name}-01")
    return grid(f"{name}-01", f"{first.year + 1}-02-01", zone=zone).starting(first)


def test_months_have_the_minutes_of_the_worked_case(case: Any) -> None:
    found = {row: month(zone, name).interval.duration_ns for row, name, zone in case["input"]["rows"]}
    assert found == {row: minutes * 60 * SECOND_NS for row, minutes in case["expected"]["minutes"].items()}


def test_the_zone_decides_whether_the_budget_of_the_worked_case_holds(case: Any) -> None:
    breach = case["input"]["breach"]
    for zone, expected in case["expected"]["breach"].items():
        seconds = month(zone, breach["month"]).interval.duration_ns // SECOND_NS
        budget = seconds * (1 - Fraction(breach["target_percent"]) / 100)
        assert budget == Fraction(expected["budget_seconds"])
        assert (breach["downtime_seconds"] > budget) is expected["breached"]


def test_a_window_with_a_wall_clock_start_follows_the_clock_of_the_worked_case(case: Any) -> None:
    given = case["input"]["openslo_window"]
    day, time = given["startTime"].split(" ")
    periods = grid(
        day, "2023-09-01", f"P{given['duration']}", given["timeZone"], day_start_s=parse_time_of_day(time[:5])
    )
    found = periods.at(parse_instant_ns(given["now"]))
    expected = case["expected"]["openslo_window"]
    assert found is not None
    assert utc(found) == (expected["start"], expected["end"])
    assert utc(found)[0] != expected["must_not_be"]["start"]


@pytest.mark.parametrize(
    ("zone", "name", "minutes"),
    [
        ("America/New_York", "2026-03", 44_580),
        ("America/New_York", "2026-11", 43_260),
        ("Australia/Lord_Howe", "2026-10", 44_610),
        ("UTC", "2016-12", 44_640),
        ("America/Sao_Paulo", "2018-11", 43_140),
        ("Asia/Beirut", "2026-03", 44_580),
    ],
)
def test_months_with_clock_changes(zone: str, name: str, minutes: int) -> None:
    assert month(zone, name).interval.duration_ns == minutes * 60 * SECOND_NS


def test_kibana_143190_a_zone_is_no_fixed_offset() -> None:
    """A daily period of 09:00 New York stays at 09:00 there when the clocks change."""
    days = grid("2026-03-06", "2026-03-10", "P1D", "America/New_York", day_start_s=9 * 3600)
    assert [utc(day)[0][11:16] for day in days.all()] == ["14:00", "14:00", "13:00", "13:00"]


def test_pyrra_1576_an_outage_one_second_before_the_month_is_not_of_the_month() -> None:
    terms = monthly()
    before, start = parse_instant_ns("2023-05-31T23:59:59.999999999Z"), parse_instant_ns("2023-06-01T00:00:00Z")
    assert str(terms.periods.at(before)) == "2023-05-01/P1M"
    assert str(terms.periods.at(start)) == "2023-06-01/P1M"
    june = period_named(terms, "2023-06-01/P1M")
    assert before not in june.interval
    windows = observed(terms, june)
    assert all(result.good == result.valid for result in settle(terms, june, windows).objectives)


def test_openstatus_2668_a_failure_counts_when_it_happened_not_when_it_was_inserted() -> None:
    # Handed in in any later month, a request of 14 June is one of June's, and of no other period.
    terms = monthly()
    june, july = (
        Evaluator(terms, period_named(terms, "2023-06-01/P1M")),
        Evaluator(terms, period_named(terms, "2023-07-01/P1M")),
    )
    late = row("late", code=500)
    june.add(late)
    july.add(late)
    assert (june.counts.accepted, july.counts.accepted) == (1, 0)
    assert july.counts.rejected == {Reason.OUTSIDE_PERIOD: 1}


def test_a_month_from_the_31st_keeps_its_day() -> None:
    assert names(grid("2026-01-31", "2026-06-30")) == [
        "2026-01-31/P1M",
        "2026-02-28/P1M",
        "2026-03-31/P1M",
        "2026-04-30/P1M",
        "2026-05-31/P1M",
    ]
    leap = grid("2027-11-30", "2028-04-30")
    assert [period.first.isoformat() for period in leap.all()][2:5] == ["2028-01-30", "2028-02-29", "2028-03-30"]


def test_the_earliest_period_that_is_not_over() -> None:
    months = grid("2026-01-01", "2026-04-01")
    for instant, name in (
        ("2025-01-01T00:00:00Z", "2026-01-01/P1M"),
        ("2026-01-31T23:59:59Z", "2026-01-01/P1M"),
        ("2026-02-01T00:00:00Z", "2026-02-01/P1M"),
        ("2026-03-31T23:59:59Z", "2026-03-01/P1M"),
    ):
        assert str(months.ending_after(parse_instant_ns(instant))) == name
    assert months.ending_after(parse_instant_ns("2026-04-01T00:00:00Z")) is None


def test_periods_that_share_an_instant_with_a_span() -> None:
    months = grid("2026-01-01", "2026-04-01")

    def touching(start: str, end: str) -> list[str]:
        span = Interval(parse_instant_ns(f"{start}T00:00:00Z"), parse_instant_ns(f"{end}T00:00:00Z"))
        return [period.first.isoformat() for period in months.touching(span)]

    assert touching("2026-02-01", "2026-03-01") == ["2026-02-01"]
    assert touching("2026-01-31", "2026-03-02") == ["2026-01-01", "2026-02-01", "2026-03-01"]
    assert touching("2025-01-01", "2026-01-01") == []
    assert touching("2026-04-01", "2026-05-01") == []


def test_of_rolling_periods_as_many_as_fit_side_by_side_share_a_span() -> None:
    rolling = grid("2026-01-01", "2026-01-15", "P3D", step="P1D")
    within = Interval(parse_instant_ns("2026-01-02T00:00:00Z"), parse_instant_ns("2026-01-10T00:00:00Z"))
    assert [period.first.day for period in rolling.sharing(within)] == [1, 4, 7]
    assert [period.first.day for period in rolling.touching(within)] == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_rolling_quarters_from_the_31st_keep_its_day() -> None:
    quarters = grid("2026-01-31", "2027-01-31", "P3M", step="P1M")
    assert [utc(period)[0][:10] for period in quarters.all()][:3] == ["2026-01-31", "2026-02-28", "2026-03-31"]
    assert [utc(period)[1][:10] for period in quarters.all()][:3] == ["2026-04-30", "2026-05-31", "2026-06-30"]


def test_windows_fill_a_period_and_are_not_too_many() -> None:
    (day,) = grid("2026-01-01", "2026-01-02", "P1D").all()
    assert [count_windows(day, seconds) for seconds in (86_400, 43_200, 1)] == [1, 2, 86_400]
    with pytest.raises(DocumentInvalid, match="86401 s is longer than the period 2026-01-01/P1D of 86400 s"):
        count_windows(day, 86_401)
    with pytest.raises(DocumentInvalid, match="lasts 86400 s in UTC, which is not a whole number of 7 s windows"):
        count_windows(day, 7)
    (most,) = grid("2026-01-01", "2026-09-08", "P250D").all()
    assert count_windows(most, 216) == MAX_WINDOWS == 100_000
    (more,) = grid("2026-01-01", "2026-09-09", "P251D").all()
    with pytest.raises(DocumentInvalid, match="would have 100400 windows; agree on longer ones, at most 100000"):
        count_windows(more, 216)


def test_the_longest_period_has_the_most_windows() -> None:
    months = grid("2026-02-01", "2026-05-01")
    assert most_windows(months, 3_600) == 31 * 24
    with pytest.raises(DocumentInvalid, match="no whole period of P1M fits between"):
        most_windows(grid("2026-01-10", "2026-01-20", anchor="2026-01-01"), 3_600)


@pytest.mark.parametrize(("until", "windows"), [("2025-09-26", 999), ("2025-09-27", None)])
def test_the_days_of_a_part_can_be_said_in_its_name(until: str, windows: int | None) -> None:
    part = grid("2023-01-01", until, "P90M", keeps_last=True)
    if windows is None:
        with pytest.raises(DocumentInvalid, match="the part from 2023-01-01 has 1000 days, and its name can say 999"):
            most_windows(part, 86_400)
    else:
        assert most_windows(part, 86_400) == windows


def test_a_zone_that_skipped_a_period_is_the_fault_of_the_timezone() -> None:
    with pytest.raises(DocumentInvalid, match="2011-12-30 does not exist") as caught:
        most_windows(grid("2011-12-29", "2011-12-31", "P1D", "Pacific/Apia"), 3_600)
    assert caught.value.data["field"] == "timezone"


def test_the_local_day_of_an_instant_begins_when_the_days_of_the_term_do() -> None:
    days = grid("2026-01-01", "2026-02-01", "P1D", "America/New_York", day_start_s=9 * 3600)
    assert days.local_date(parse_instant_ns("2026-01-11T13:59:59Z")) == date(2026, 1, 10)
    assert days.local_date(parse_instant_ns("2026-01-11T14:00:00Z")) == date(2026, 1, 11)


def test_wholes_are_those_of_the_grid_whatever_the_term_cuts() -> None:
    cut = grid("2026-01-10", "2026-04-20", anchor="2026-01-01")
    assert str(cut.uncut(parse_date("2026-01-15"))) == "2026-01-01/P1M"
    assert str(cut.uncut(parse_date("2026-01-15"), 1)) == "2025-12-01/P1M"
    assert str(cut.uncut(parse_date("2026-06-01"), 2)) == "2026-04-01/P1M"
    assert cut.uncut_starting(parse_date("2026-03-01")) == (cut.uncut(parse_date("2026-03-01")), 2)
    assert cut.uncut_starting(parse_date("2026-03-02")) is None


def test_billing_cycles_after_a_period_are_those_of_the_grid() -> None:
    kept = grid("2026-01-10", "2026-06-20", anchor="2026-01-01", keeps_first=True, keeps_last=True)
    part, whole = kept.starting(parse_date("2026-01-10")), kept.starting(parse_date("2026-03-01"))
    assert [str(kept.cycles_after(part, count)) for count in (1, 2)] == ["2026-03-01", "2026-04-01"]
    assert [str(kept.cycles_after(whole, count)) for count in (1, 3)] == ["2026-05-01", "2026-07-01"]


def test_a_clock_that_goes_back_over_midnight_does_not_go_back_a_period() -> None:
    # At 00:01 on 29 October 2006 the clocks of St. John's went back to 23:01 on the 28th.
    days = grid("2006-10-01", "2006-11-01", "P1D", "America/St_Johns")
    for instant, name in (
        ("2006-10-29T02:29:59Z", "2006-10-28"),
        ("2006-10-29T02:30:00Z", "2006-10-29"),
        ("2006-10-29T02:31:00Z", "2006-10-29"),
        ("2006-10-29T03:29:59Z", "2006-10-29"),
    ):
        assert str(days.at(parse_instant_ns(instant))) == f"{name}/P1D"


def test_a_day_that_starts_in_the_morning_holds_the_night_after_it() -> None:
    days = grid("2026-01-01", "2026-02-01", "P1D", day_start_s=9 * 3600)
    assert str(days.at(parse_instant_ns("2026-01-11T08:59:59Z"))) == "2026-01-10/P1D"
    assert str(days.at(parse_instant_ns("2026-01-11T09:00:00Z"))) == "2026-01-11/P1D"
    assert days.at(parse_instant_ns("2026-01-01T08:59:59Z")) is None
    assert str(days.at(parse_instant_ns("2026-02-01T08:59:59Z"))) == "2026-01-31/P1D"
    assert days.at(parse_instant_ns("2026-02-01T09:00:00Z")) is None


def test_no_period_holds_an_instant_far_from_the_term_or_of_an_empty_one() -> None:
    months = grid("2026-01-01", "2026-04-01")
    for far in ("1971-01-01T00:00:00Z", "2025-06-01T00:00:00Z", "2026-08-01T00:00:00Z", "2261-12-31T00:00:00Z"):
        assert months.at(parse_instant_ns(far)) is None
    empty = grid("2026-01-10", "2026-01-20", anchor="2026-01-01")
    assert (empty.empty, empty.ends) == (True, ())
    assert empty.at(parse_instant_ns("2026-01-15T00:00:00Z")) is None
    assert months.empty is False
    assert [str(end) for end in months.ends] == ["2026-01-01/P1M", "2026-03-01/P1M"]


@pytest.mark.parametrize("first", ["2025-12-31", "2025-12-01", "2026-01-02", "2026-02-28", "2026-04-01", "2027-01-01"])
def test_a_date_on_which_no_period_starts_is_refused_with_the_term_and_the_anchor(first: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        grid("2026-01-01", "2026-04-01").starting(parse_date(first))
    assert caught.value.data["field"] == "period"
    why = f"no period of this agreement starts on {first}: periods of P1M run from 2026-01-01 to 2026-04-01, counted"
    assert why in caught.value.message


def test_fixed_days_do_not_follow_the_calendar() -> None:
    thirty = grid("2026-01-01", "2026-04-15", "P30D")
    assert names(thirty) == ["2026-01-01/P30D", "2026-01-31/P30D", "2026-03-02/P30D"]
    assert {period.interval.duration_ns for period in thirty.all()} == {30 * 86_400 * SECOND_NS}


def test_partial_periods_are_dropped_or_kept_by_the_terms() -> None:
    dropped = grid("2026-01-10", "2026-04-20", anchor="2026-01-01")
    assert names(dropped) == ["2026-02-01/P1M", "2026-03-01/P1M"]
    kept = grid("2026-01-10", "2026-04-20", anchor="2026-01-01", keeps_first=True, keeps_last=True)
    assert names(kept) == ["2026-01-10/P22D", "2026-02-01/P1M", "2026-03-01/P1M", "2026-04-01/P19D"]
    one = grid("2026-01-10", "2026-01-20", anchor="2025-12-31", keeps_first=True, keeps_last=True)
    assert names(one) == ["2026-01-10/P10D"]
    (part,) = one.all()
    assert part.whole is not None
    assert part.whole.covers(part.interval)


def test_a_part_is_found_by_its_own_name_only() -> None:
    terms = monthly(anchor="2022-12-15", partial_periods="prorate")
    assert str(period_named(terms, "2023-01-01/P14D")) == "2023-01-01/P14D"
    for wrong in ("2023-01-01/P1M", "2022-12-15/P1M", "2023-01-02/P13D", "2023-01-15/P31D"):
        with pytest.raises(DocumentInvalid):
            period_named(terms, wrong)


def test_rolling_periods_overlap_and_the_latest_holds_an_instant() -> None:
    rolling = grid("2026-01-01", "2026-02-03", "P30D", step="P1D")
    assert names(rolling) == [f"2026-01-0{day}/P30D" for day in (1, 2, 3, 4)]
    assert str(rolling.at(parse_instant_ns("2026-01-03T12:00:00Z"))) == "2026-01-03/P30D"
    assert str(rolling.at(parse_instant_ns("2026-02-01T12:00:00Z"))) == "2026-01-04/P30D"
    assert str(rolling.ending_after(parse_instant_ns("2026-01-31T00:00:00Z"))) == "2026-01-02/P30D"
    within = Interval(parse_instant_ns("2026-01-05T00:00:00Z"), parse_instant_ns("2026-01-06T00:00:00Z"))
    assert [str(period) for period in rolling.sharing(within)] == ["2026-01-01/P30D"]


@pytest.mark.parametrize(
    ("length", "step", "fits"),
    [
        ("P30D", "P1D", True),
        ("P1W", "P7D", True),
        ("P1M", "P1D", True),
        ("P3M", "P1M", True),
        ("P30D", "P7D", False),
        ("P1D", "P2D", False),
        ("P1M", "P1W", False),
        ("P1D", "P1M", False),
        ("P3M", "P2M", False),
    ],
)
def test_steps_fill_a_rolling_period(length: str, step: str, fits: bool) -> None:
    if fits:
        assert str(rolling_step(parse_period_length(length), step)) in (step, length)
        return
    with pytest.raises(CalendarInvalid, match=f"a period of {length} is no whole number of steps of {step}"):
        rolling_step(parse_period_length(length), step)


def test_a_rolling_agreement_is_measured_and_judged_and_pays_nothing() -> None:
    terms = monthly(period="P3D", step="P1D", compensation__rules=[])
    period = period_named(terms, "2023-06-14/P3D")
    windows = list(observed(terms, period))
    windows[0] = Window(windows[0].interval, WindowState.OBSERVED, (Cell(0, 9), Cell(0, 0), Cell(0, 0)))
    result = settle(terms, period, windows)
    assert (str(result.objectives[0].state), result.credit) == ("breached", 0)
    assert any("overlap" in reason for reason in attestability(terms))


@pytest.mark.parametrize(
    ("members", "field", "value"),
    [
        ({"step": "P1D"}, "compensation.rules", "P1D"),
        ({"step": "P2W"}, "step", "P2W"),
        ({"step": "P1D", "compensation__rules": [], "partial_periods": "prorate"}, "partial_periods", "prorate"),
        ({"period": "P1D", "window": "PT48H"}, "window", "172800"),
        ({"anchor": "1970-12-31"}, "anchor", "1970-12-31"),
        ({"anchor": "2023-02-30"}, "anchor", "2023-02-30"),
        ({"day_start": "24:00"}, "day_start", "24:00"),
        ({"partial_periods": "keep"}, "partial_periods", "keep"),
        ({"period": "P1W", "window": "PT7H", "anchor": "2022-12-30", "partial_periods": "prorate"}, "window", "25200"),
        ({"period": "P90M", "effective__until": "2027-01-01", "partial_periods": "prorate"}, "partial_periods", "1461"),
    ],
)
def test_terms_without_a_calendar_are_refused_with_clause_and_value(
    members: dict[str, Any], field: str, value: str
) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        monthly(**members)
    assert caught.value.data["field"] == field
    assert value in caught.value.message


def test_a_step_as_long_as_the_period_is_no_rolling_and_may_pay() -> None:
    assert not monthly(period="P1W", step="P7D").periods.rolling


def observed(terms: Agreement, period: Period) -> tuple[Window, ...]:
    idle = tuple(Cell(0, 0) for _ in terms.objectives)
    return tuple(Window(interval, WindowState.OBSERVED, idle) for interval in terms.windows(period))


@st.composite
def grids(draw: st.DrawFn) -> PeriodGrid:
    first = draw(st.dates(date(2005, 1, 1), date(2035, 1, 1)))
    days = draw(st.integers(1, 500))
    length = parse_period_length(draw(st.sampled_from(LENGTHS)))
    kept = draw(st.booleans())
    return PeriodGrid(
        first=first,
        until=date.fromordinal(first.toordinal() + days),
        length=length,
        zone=draw(st.sampled_from(ZONES)),
        anchor=date.fromordinal(first.toordinal() + draw(st.integers(-400, 400))),
        step=length,
        day_start_s=draw(st.sampled_from([0, 0, 8 * 3600, 2 * 3600 + 1800])),
        keeps_first=kept,
        keeps_last=kept,
    )


@given(grids())
def test_periods_follow_each_other_and_are_found_by_instant_date_and_neighbour(of: PeriodGrid) -> None:
    periods = list(of.all())
    assert all(a.interval.end_ns == b.interval.start_ns for a, b in itertools.pairwise(periods))
    for before, period, after in zip([None, *periods], periods, [*periods[1:], None], strict=False):
        assert of.at(period.interval.start_ns) == of.at(period.interval.end_ns - 1) == period
        assert of.starting(period.first) == period
        assert (of.before(period), of.after(period)) == (before, after)
        assert of.ending_after(period.interval.start_ns) == period
    if periods:
        assert of.at(periods[0].interval.start_ns - 1) is None
        assert of.at(periods[-1].interval.end_ns) is None


@given(grids())
def test_kept_parts_fill_the_term(of: PeriodGrid) -> None:
    kept = PeriodGrid(of.first, of.until, of.length, of.zone, of.anchor, of.step, of.day_start_s, True, True)
    periods = list(kept.all())
    assert (periods[0].first, len(union(period.interval for period in periods))) == (of.first, 1)
    # Nothing but the first and the last one can be a part, and dropping the parts leaves the others as they are.
    assert all(period.whole is None for period in periods[1:-1])
    dropped = PeriodGrid(of.first, of.until, of.length, of.zone, of.anchor, of.step, of.day_start_s)
    assert list(dropped.all()) == [period for period in periods if period.whole is None]


@given(
    st.sampled_from(DST_ZONES),
    st.integers(2020, 2030),
    st.integers(1, 12),
    st.sampled_from(["PT30M", "PT10M", "PT5M"]),
)
def test_the_windows_of_a_month_sum_to_it_in_every_zone(zone: str, year: int, number: int, window: str) -> None:
    terms = monthly(timezone=zone, window=window, effective={"from": f"{year}-01-01", "until": f"{year + 1}-01-01"})
    period = terms.period_starting(date(year, number, 1))
    windows = terms.windows(period)
    assert sum(each.duration_ns for each in windows) == period.interval.duration_ns
    assert union(windows) == (period.interval,)


@given(st.sampled_from(DST_ZONES), st.integers(1, 12), st.integers(2, 27), st.integers(1, 10**9))
def test_a_period_cut_in_two_sums_to_the_whole(zone: str, number: int, day: int, base: int) -> None:
    terms = monthly(timezone=zone, window="PT30M", **yen(base))
    whole, cut = terms.period_starting(date(2023, number, 1)), date(2023, number, day)
    first = terms.ending_on(cut).period_starting(whole.first)
    second = monthly(
        timezone=zone,
        window="PT30M",
        **yen(base),
        anchor="2023-01-01",
        partial_periods="prorate",
        effective={"from": str(cut), "until": "2024-01-01"},
    ).period_starting(cut)
    assert (first.interval.end_ns, second.interval.end_ns) == (second.interval.start_ns, whole.interval.end_ns)
    assert terms.windows(first) + terms.windows(second) == terms.windows(whole)
    shares = [terms_for(terms, part).compensation.base for part in (first, second)]
    assert sum(shares) == base
    assert shares == list(prorate(base, [part.interval.duration_ns for part in (first, second)]))


@given(st.integers(1, 10**12), st.sets(st.integers(2, 31), max_size=8))
def test_however_often_a_period_is_cut_its_shares_sum_to_the_base(base: int, days: set[int]) -> None:
    terms = monthly(**yen(base))
    whole = terms.period_starting(date(2023, 7, 1))
    cuts = [date(2023, 7, 1), *(date(2023, 7, day) for day in sorted(days)), date(2023, 8, 1)]
    shares = []
    for start, end in itertools.pairwise(cuts):
        part = grid(str(start), str(end), anchor="2023-07-01", keeps_first=True, keeps_last=True).starting(start)
        share = terms_for(terms, part).compensation.base
        assert abs(share - Fraction(base * part.interval.duration_ns, whole.interval.duration_ns)) < 1
        shares.append(share)
    assert sum(shares) == base


@given(st.integers(0, 10**9), st.lists(st.integers(0, 50), min_size=1, max_size=6).filter(any))
def test_shares_sum_to_the_total_and_are_less_than_a_unit_off(total: int, weights: list[int]) -> None:
    shares = prorate(total, weights)
    assert sum(shares) == total
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share - Fraction(total * weight, sum(weights))) < 1


def test_of_equal_remainders_the_earlier_part_has_the_unit() -> None:
    assert prorate(1, [1, 1]) == (1, 0)
    assert prorate(100, [1, 1, 1]) == (34, 33, 33)


def test_a_day_that_a_zone_skipped_is_named() -> None:
    with pytest.raises(CalendarInvalid, match="2011-12-30 does not exist in Pacific/Apia"):
        list(grid("2011-12-30", "2011-12-31", "P1D", "Pacific/Apia").all())
    (week,) = grid("2011-12-26", "2012-01-02", "P1W", "Pacific/Apia").all()
    assert week.interval.duration_ns == 6 * 24 * 3600 * SECOND_NS


@pytest.mark.parametrize("zone", MIDNIGHT_JUMPS)
def test_no_second_of_a_year_is_lost_where_clocks_change_at_midnight(zone: str) -> None:
    days = list(grid("2010-01-01", "2019-01-01", "P1D", zone).all())
    assert len(union(day.interval for day in days)) == 1
    assert {day.interval.duration_ns // (3600 * SECOND_NS) for day in days} == {23, 24, 25}
    assert load_zone(zone).key == zone
