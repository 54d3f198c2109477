from __future__ import annotations

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.calendar import (
    day_start_ns,
    load_zone,
    parse_date,
    parse_period_length,
    parse_time_of_day,
    parse_window_seconds,
    tzdata_version,
)
from ledger.domain.instant import SECOND_NS, format_instant_ns, parse_instant_ns
from ledger.errors import CalendarInvalid

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu"]


def test_a_day_whose_midnight_is_skipped_starts_with_the_jump() -> None:
    start, end = (day_start_ns(date(2018, 11, day), load_zone("America/Sao_Paulo")) for day in (4, 5))
    assert format_instant_ns(start) == "2018-11-04T03:00:00Z"
    assert end - start == 23 * 3600 * SECOND_NS


def test_a_day_whose_midnight_comes_twice_starts_with_the_first() -> None:
    start = day_start_ns(date(2021, 11, 7), load_zone("America/Havana"))
    assert format_instant_ns(start) == "2021-11-07T04:00:00Z"


@pytest.mark.parametrize(
    ("day", "starts"),
    [("2026-03-07", "13:00"), ("2026-03-08", "12:00"), ("2026-11-01", "13:00"), ("2026-10-31", "12:00")],
)
def test_a_day_may_start_at_another_time_of_the_wall_clock(day: str, starts: str) -> None:
    start = day_start_ns(parse_date(day), load_zone("America/New_York"), parse_time_of_day("08:00"))
    assert format_instant_ns(start) == f"{day}T{starts}:00Z"


def test_a_day_start_that_the_clock_jumps_over_is_the_jump() -> None:
    start = day_start_ns(date(2026, 3, 8), load_zone("America/New_York"), parse_time_of_day("02:30"))
    assert format_instant_ns(start) == "2026-03-08T07:00:00Z"


@pytest.mark.parametrize("text", ["8:00", "24:00", "08:60", "08:00:00", "0800", "٠٨:٠٠", ""])
def test_a_time_of_day_is_written_in_one_way(text: str) -> None:
    with pytest.raises(CalendarInvalid, match="time of day"):
        parse_time_of_day(text)


def test_the_release_of_the_zone_rules_is_known() -> None:
    assert re.fullmatch(r"20\d\d[a-z]{1,2}", tzdata_version())


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
