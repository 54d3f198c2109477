from __future__ import annotations

import itertools
import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.calendar import (
    PeriodLength,
    day_start_ns,
    load_zone,
    make_period,
    parse_date,
    parse_period_length,
    parse_window_seconds,
    periods_from,
)
from ledger.domain.instant import SECOND_NS, format_instant_ns, parse_instant_ns
from ledger.errors import CalendarInvalid

MONTH = PeriodLength(1, "M")
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu"]


def minutes_of_month(zone: str, year: int, month: int) -> int:
    return make_period(date(year, month, 1), MONTH, zone).interval.duration_ns // (60 * SECOND_NS)


def test_months_have_the_lengths_of_the_worked_case(sla_fixtures: Path) -> None:
    case = json.loads((sla_fixtures / "sla/cases/case_open_07_calendar_month_dst.json").read_text())
    found = {}
    for row, month, zone in case["input"]["rows"]:
        year, number = map(int, month.split("-"))
        found[row] = minutes_of_month(zone, year, number)
    assert found == case["expected"]["minutes"]


@pytest.mark.parametrize(
    ("zone", "year", "month", "minutes"),
    [
        ("America/New_York", 2026, 3, 44_580),
        ("America/New_York", 2026, 11, 43_260),
        ("Australia/Lord_Howe", 2026, 10, 44_610),
        ("UTC", 2016, 12, 44_640),
    ],
)
def test_months_with_clock_changes(zone: str, year: int, month: int, minutes: int) -> None:
    assert minutes_of_month(zone, year, month) == minutes


def test_a_day_whose_midnight_is_skipped_starts_with_the_jump() -> None:
    start = day_start_ns(date(2018, 11, 4), load_zone("America/Sao_Paulo"))
    assert format_instant_ns(start) == "2018-11-04T03:00:00Z"
    hours = make_period(date(2018, 11, 4), PeriodLength(1, "D"), "America/Sao_Paulo").interval.duration_ns
    assert hours == 23 * 3600 * SECOND_NS


def test_a_day_whose_midnight_comes_twice_starts_with_the_first() -> None:
    start = day_start_ns(date(2021, 11, 7), load_zone("America/Havana"))
    assert format_instant_ns(start) == "2021-11-07T04:00:00Z"


@given(
    st.sampled_from(ZONES),
    st.sampled_from(["P1D", "P3D", "P1W", "P1M", "P3M"]),
    st.dates(date(2000, 1, 1), date(2030, 1, 1)).map(lambda day: day.replace(day=min(day.day, 28))),
)
def test_periods_follow_each_other_without_gap_or_overlap(zone: str, length: str, first: date) -> None:
    until = date(first.year + 2, 1, 1)
    periods = list(itertools.islice(periods_from(first, parse_period_length(length), zone, until=until), 30))
    assert all(a.interval.end_ns == b.interval.start_ns for a, b in itertools.pairwise(periods))
    assert periods[0].first == first


@given(st.sampled_from(ZONES), st.dates(date(1980, 1, 1), date(2035, 1, 1)))
def test_the_first_instant_of_a_day_is_the_first_with_its_date(zone: str, day: date) -> None:
    from datetime import UTC, datetime, timedelta

    start_s = day_start_ns(day, load_zone(zone)) // SECOND_NS

    def local(posix_s: int) -> date:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=posix_s)
        return moment.astimezone(load_zone(zone)).date()

    assert local(start_s) == day
    assert local(start_s - 1) < day


@pytest.mark.parametrize(
    "name", ["Mars/Base", "", "../etc/passwd", "UTC+1", "Europe", "/UTC", "Europe/Berlin\0", "x" * 65]
)
def test_unknown_zones(name: str) -> None:
    with pytest.raises(CalendarInvalid, match="time zone"):
        load_zone(name)


@pytest.mark.parametrize("text", ["P0D", "P1Y", "P-1D", "1D", "PT1H", "P1D ", "P1000D", "P٣D"])
def test_periods_that_are_none(text: str) -> None:
    with pytest.raises(CalendarInvalid):
        parse_period_length(text)


@pytest.mark.parametrize(("text", "seconds"), [("PT1H", 3600), ("PT5M", 300), ("PT30S", 30), ("PT72H", 259_200)])
def test_window_lengths(text: str, seconds: int) -> None:
    assert parse_window_seconds(text) == seconds


def test_leap_seconds_do_not_exist() -> None:
    before, after = parse_instant_ns("2016-12-31T23:59:59Z"), parse_instant_ns("2017-01-01T00:00:00Z")
    assert after - before == SECOND_NS


@pytest.mark.parametrize(
    "text", ["2023-W51-2", "20231219", "2023-12-19T", "2023-1-019", "２023-12-19", " 2023-12-1", "2023-02-29", ""]
)
def test_a_date_is_written_in_one_way(text: str) -> None:
    with pytest.raises(CalendarInvalid, match="not a date"):
        parse_date(text)


def test_a_day_that_a_zone_skipped_is_named() -> None:
    with pytest.raises(CalendarInvalid, match="2011-12-30 does not exist in Pacific/Apia"):
        make_period(date(2011, 12, 30), PeriodLength(1, "D"), "Pacific/Apia")
    week = make_period(date(2011, 12, 26), PeriodLength(1, "W"), "Pacific/Apia")
    assert week.interval.duration_ns == 6 * 24 * 3600 * SECOND_NS
