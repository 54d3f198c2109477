from __future__ import annotations

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.time.calendar import (
    add_months,
    day_start_ns,
    first_date,
    load_zone,
    local_moment,
    make_period,
    parse_date,
    parse_period_length,
    parse_time_of_day,
    parse_window_seconds,
    tzdata_version,
)
from ledger.domain.time.instant import SECOND_NS, format_instant_ns, parse_instant_ns
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
    for minute in range(60):
        start = day_start_ns(date(2026, 3, 8), load_zone("America/New_York"), parse_time_of_day(f"02:{minute:02}"))
        assert format_instant_ns(start) == "2026-03-08T07:00:00Z"


@pytest.mark.parametrize("text", ["8:00", "24:00", "08:60", "08:00:00", "0800", "٠٨:٠٠", ""])
def test_a_time_of_day_is_written_in_one_way(text: str) -> None:
    with pytest.raises(CalendarInvalid, match="time of day"):
        parse_time_of_day(text)


def test_the_release_of_the_zone_rules_is_known() -> None:
    tzdata_version.cache_clear()
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
    "name",
    [
        *("Mars/Base", "", "../etc/passwd", "UTC+1", "Europe", "/UTC", "Europe/Berlin\0", "x" * 65),
        *("Europe/../UTC", "../zoneinfo/UTC", "./UTC"),
    ],
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


@pytest.mark.parametrize("text", ["PT0S", "PT5", "PT1D", "P5M", "PT10000S", "PT5M ", "PT٣M", "5M", ""])
def test_window_lengths_that_are_none(text: str) -> None:
    with pytest.raises(CalendarInvalid, match="not a window length"):
        parse_window_seconds(text)


@pytest.mark.parametrize(
    ("text", "first", "after"),
    [
        ("P1D", "2024-02-28", "2024-02-29"),
        ("P30D", "2024-02-28", "2024-03-29"),
        ("P1W", "2023-12-28", "2024-01-04"),
        ("P2W", "2023-12-28", "2024-01-11"),
        ("P1M", "2024-01-31", "2024-02-29"),
        ("P1M", "2023-12-15", "2024-01-15"),
        ("P11M", "2024-01-15", "2024-12-15"),
        ("P999D", "2024-01-01", "2026-09-26"),
    ],
)
def test_the_date_after_a_period(text: str, first: str, after: str) -> None:
    length = parse_period_length(text)
    assert str(length) == text
    assert length.after(parse_date(first)) == parse_date(after)


def test_days_of_a_length() -> None:
    assert [parse_period_length(text).days for text in ("P1D", "P30D", "P1W", "P3W")] == [1, 30, 7, 21]


@pytest.mark.parametrize(
    ("months", "day"),
    [(0, "2024-01-31"), (1, "2024-02-29"), (-1, "2023-12-31"), (-2, "2023-11-30"), (13, "2025-02-28")],
)
def test_the_same_day_of_another_month_or_its_last(months: int, day: str) -> None:
    assert add_months(parse_date("2024-01-31"), months) == parse_date(day)


@pytest.mark.parametrize(("text", "seconds"), [("00:00", 0), ("08:01", 28_860), ("19:30", 70_200), ("23:59", 86_340)])
def test_seconds_after_midnight(text: str, seconds: int) -> None:
    assert parse_time_of_day(text) == seconds


def test_a_period_begins_on_the_date_of_its_name() -> None:
    assert first_date("2023-12-19/P1D") == date(2023, 12, 19)


def test_a_period_lasts_from_the_start_of_its_first_day_to_that_of_the_day_after_it() -> None:
    march = make_period(date(2026, 3, 1), parse_period_length("P1M"), "America/New_York", day_start_s=9 * 3600)
    assert str(march) == "2026-03-01/P1M"
    assert (march.zone, march.whole) == ("America/New_York", None)
    assert format_instant_ns(march.interval.start_ns) == "2026-03-01T14:00:00Z"
    assert format_instant_ns(march.interval.end_ns) == "2026-04-01T13:00:00Z"
    cut = make_period(date(2026, 3, 1), parse_period_length("P1M"), "UTC", end=date(2026, 3, 2))
    assert cut.interval.duration_ns == 86_400 * SECOND_NS


def test_the_calendar_ends_with_the_year_9999() -> None:
    with pytest.raises(CalendarInvalid, match="no period P1D starts on 9999-12-31") as caught:
        make_period(date(9999, 12, 31), parse_period_length("P1D"), "UTC")
    assert caught.value.data["first"] == "9999-12-31"
    with pytest.raises(CalendarInvalid, match="no period P1M starts on 9999-12-01"):
        make_period(date(9999, 12, 1), parse_period_length("P1M"), "UTC")


def test_a_day_that_does_not_exist_is_named_with_its_zone() -> None:
    with pytest.raises(CalendarInvalid, match="2011-12-30 does not exist in Pacific/Apia") as caught:
        make_period(date(2011, 12, 30), parse_period_length("P1D"), "Pacific/Apia")
    assert caught.value.data == {"first": "2011-12-30", "zone": "Pacific/Apia"}


@pytest.mark.parametrize(
    ("instant", "zone", "shown"),
    [
        ("2026-03-08T06:59:59.9Z", "America/New_York", "2026-03-08T01:59:59-05:00"),
        ("2026-03-08T07:00:00Z", "America/New_York", "2026-03-08T03:00:00-04:00"),
        ("2026-11-01T06:30:00Z", "America/New_York", "2026-11-01T01:30:00-05:00"),
        ("1971-01-01T00:00:01Z", "UTC", "1971-01-01T00:00:01+00:00"),
    ],
)
def test_what_the_wall_clock_shows(instant: str, zone: str, shown: str) -> None:
    assert local_moment(parse_instant_ns(instant), zone).isoformat() == shown


@pytest.mark.parametrize(
    ("day", "start"),
    [
        ("2018-11-04", "2018-11-04T03:00:00Z"),
        ("2018-11-05", "2018-11-05T02:00:00Z"),
        ("2018-11-03", "2018-11-03T03:00:00Z"),
    ],
)
def test_days_around_a_jump_of_midnight(day: str, start: str) -> None:
    assert format_instant_ns(day_start_ns(parse_date(day), load_zone("America/Sao_Paulo"))) == start


def test_leap_seconds_do_not_exist() -> None:
    before, after = parse_instant_ns("2016-12-31T23:59:59Z"), parse_instant_ns("2017-01-01T00:00:00Z")
    assert after - before == SECOND_NS


@pytest.mark.parametrize(
    "text", ["2023-W51-2", "20231219", "2023-12-19T", "2023-1-019", "２023-12-19", " 2023-12-1", "2023-02-29", ""]
)
def test_a_date_is_written_in_one_way(text: str) -> None:
    with pytest.raises(CalendarInvalid, match="not a date"):
        parse_date(text)
