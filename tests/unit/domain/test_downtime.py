"""Downtime from outages and exclusions: the worked cases, the field reports, and what no input can break."""

from __future__ import annotations

import json
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.methods.registry import Measuring
from ledger.domain.terms.exclusion_terms import MINUTE_NS
from ledger.domain.terms.objective import read_objectives
from ledger.domain.time.calendar import PeriodLength, make_period
from ledger.domain.time.instant import parse_instant_ns
from ledger.domain.time.interval import Interval, minus, union
from ledger.domain.windows.downtime import downtime, minute_windows
from ledger.domain.windows.window import Cell, Window


def case(folder: Path, name: str) -> dict[str, Any]:
    (found,) = (folder / "sla" / "cases").glob(f"case_{name}_*.json")
    loaded: dict[str, Any] = json.loads(found.read_text())
    return loaded


def intervals(pairs: list[list[str]]) -> list[Interval]:
    return [Interval(parse_instant_ns(start), parse_instant_ns(end)) for start, end in pairs]


def month(text: str) -> Interval:
    return make_period(date.fromisoformat(f"{text}-01"), PeriodLength(1, "M"), "UTC").interval


def by_method(period: Interval, windows: tuple[Window, ...], denominator: str) -> tuple[int, int]:
    """(up, judged) as ``downtime_minutes-v1`` settles the minutes."""
    item = {
        "id": "uptime",
        "method": "downtime_minutes-v1",
        "indicator": "availability",
        "target": "99.9",
        "error_rate": "10",
        "boundary": "above",
        "denominator": denominator,
    }
    measured = Measuring(read_objectives([item], 60), windows, 60).measure(0)
    return measured.good, measured.valid


def percent(up_and_all: tuple[int, int]) -> str:
    """Ten decimals, rounded to nearest as the cases print them."""
    return format_ten(round(Fraction(*up_and_all) * 100 * 10**10))


def format_ten(units: int) -> str:
    whole, rest = divmod(units, 10**10)
    return f"{whole}.{rest:010}"


@pytest.mark.long
@pytest.mark.parametrize("row", range(4))
def test_minutes_of_the_month_case_open_04(sla_fixtures: Path, row: int) -> None:
    found = case(sla_fixtures, "open_04")
    item, period = found["input"]["rows"][row], month(found["input"]["month"])
    expected = found["expected"]["rows"][item["id"]]
    outages = intervals(item["outages"])
    counted = downtime(period, outages)
    assert counted.minutes == found["expected"]["minutes_in_month"]
    assert counted.down == expected["downtime_minutes"]
    assert percent(counted.full) == expected["uptime_percent_10dp"]
    if "uptime_percent_fraction" in expected:
        assert Fraction(*counted.full) == Fraction(expected["uptime_percent_fraction"])
    assert by_method(period, minute_windows(period, outages), "full") == counted.full
    # The tier that the case names is the last one whose bound the exact value is strictly below.
    up, judged = counted.full
    tiers = [each for each in found["input"]["tiers"] if up * 100 < judged * Fraction(each["lt"])]
    assert (tiers[-1]["credit_percent"] if tiers else "0") == expected["credit_percent"]


@pytest.mark.long
def test_outages_minus_maintenance_case_open_06(sla_fixtures: Path) -> None:
    found = case(sla_fixtures, "open_06")
    period, expected = month(found["input"]["month"]), found["expected"]
    outages, maintenance = intervals(found["input"]["outages"]), intervals(found["input"]["maintenance"])
    assert downtime(period, outages).down == expected["outage_union_minutes"]
    assert downtime(period, maintenance).down == expected["maintenance_union_minutes"]
    counted = downtime(period, outages, maintenance)
    assert (counted.minutes, counted.excluded) == (expected["minutes_in_month"], expected["maintenance_union_minutes"])
    assert counted.down == expected["net_downtime_minutes"]
    assert counted.down not in expected["must_not_be"].values()
    assert Fraction(*counted.full) == Fraction(expected["uptime_percent_full_month_fraction"])
    assert Fraction(*counted.scheduled) == Fraction(expected["uptime_percent_scheduled_denominator_fraction"])
    assert percent(counted.full) == expected["uptime_percent_full_month_10dp"]
    assert percent(counted.scheduled) == expected["uptime_percent_scheduled_denominator_10dp"]
    windows = minute_windows(period, outages, maintenance)
    assert by_method(period, windows, "full") == counted.full
    assert by_method(period, windows, "scheduled") == counted.scheduled


DAY = Interval(parse_instant_ns("2023-06-14T00:00:00Z"), parse_instant_ns("2023-06-15T00:00:00Z"))


def at(start_s: int, end_s: int) -> Interval:
    """Seconds of the day; below 0 and above 86,400 on the days beside it."""
    return Interval(DAY.start_ns + start_s * 10**9, DAY.start_ns + end_s * 10**9)


def test_outage_not_clipped_to_the_period_kuvasz_219() -> None:
    assert downtime(DAY, [at(-3600, 600), at(86_400 - 300, 90_000)]).down == 15
    assert downtime(DAY, [at(-7200, -60), at(86_400, 90_000)]).down == 0


def test_each_minute_counts_itself_as_up_or_down_or_is_excluded_whole() -> None:
    hour = at(0, 3_600)
    minutes = minute_windows(hour, [at(60, 180)], [at(120, 240)])
    assert [(minute.state.value, minute.cells) for minute in minutes[:5]] == [
        ("observed", (Cell(1, 0),)),
        ("observed", (Cell(0, 1),)),
        ("excluded", (Cell(0, 0),)),
        ("excluded", (Cell(0, 0),)),
        ("observed", (Cell(1, 0),)),
    ]
    assert [minute.interval for minute in minutes] == [at(60 * number, 60 * number + 60) for number in range(60)]


@pytest.mark.parametrize(("length_s", "minutes"), [(30, 0), (60, 1), (119, 1), (120, 2), (121, 2)])
def test_what_is_left_over_at_the_end_of_a_period_is_no_minute(length_s: int, minutes: int) -> None:
    assert downtime(at(0, length_s), [at(0, 3_600)]).minutes == minutes


@pytest.mark.parametrize(
    ("outage", "minutes"),
    [
        ((60, 120), 1),
        ((60, 119), 0),
        ((61, 120), 0),
        ((30, 150), 1),
        ((0, 59), 0),
        ((59, 121), 1),
    ],
)
def test_a_partial_minute_does_not_count(outage: tuple[int, int], minutes: int) -> None:
    assert downtime(DAY, [at(*outage)]).down == minutes


def test_a_minute_that_is_excluded_in_part_is_neither_down_nor_excluded() -> None:
    counted = downtime(DAY, [at(0, 300)], [at(90, 200)])
    assert (counted.down, counted.excluded) == (2, 1)
    assert (counted.full, counted.scheduled) == ((1438, 1440), (1437, 1439))


def test_two_outages_that_touch_are_one_so_that_the_minute_between_counts() -> None:
    assert downtime(DAY, [at(0, 90), at(90, 180)]).down == 3


SOME = st.lists(
    st.tuples(st.integers(-600, 87_000), st.integers(1, 7_000)).map(lambda pair: at(pair[0], pair[0] + pair[1])),
    max_size=8,
)


@given(SOME, SOME, st.randoms())
def test_neither_order_nor_repeats_change_anything(
    outages: list[Interval], excluded: list[Interval], random: Any
) -> None:
    expected = downtime(DAY, outages, excluded)
    twice = [*outages, *outages]
    random.shuffle(twice)
    assert downtime(DAY, twice, [*reversed(excluded), *excluded]) == expected


@given(SOME, SOME, SOME)
def test_one_more_exclusion_never_adds_downtime(
    outages: list[Interval], excluded: list[Interval], more: list[Interval]
) -> None:
    before, after = downtime(DAY, outages, excluded), downtime(DAY, outages, [*excluded, *more])
    assert after.down <= before.down
    assert after.full[0] >= before.full[0]
    assert 0 <= after.scheduled[0] <= after.scheduled[1]


@given(SOME, SOME, st.integers(1, 1439))
def test_a_period_cut_in_two_at_a_minute_sums_to_the_whole(
    outages: list[Interval], excluded: list[Interval], minute: int
) -> None:
    middle_ns = DAY.start_ns + minute * MINUTE_NS
    first, second = Interval(DAY.start_ns, middle_ns), Interval(middle_ns, DAY.end_ns)
    parts = [downtime(part, outages, excluded) for part in (first, second)]
    whole = downtime(DAY, outages, excluded)
    assert (sum(each.down for each in parts), sum(each.excluded for each in parts)) == (whole.down, whole.excluded)


@given(SOME, SOME, st.integers(-600, 87_000))
def test_minus_leaves_exactly_the_instants_of_the_one_that_are_not_in_the_other(
    ones: list[Interval], others: list[Interval], second: int
) -> None:
    instant_ns = DAY.start_ns + second * 10**9
    left = minus(union(ones), union(others))
    expected = any(instant_ns in each for each in ones) and not any(instant_ns in each for each in others)
    assert any(instant_ns in each for each in left) == expected
    assert left == union(left)


@pytest.mark.long
def test_a_month_of_outages_is_quick() -> None:
    """A minute costs a look at its own place, so that thousands of outages in a month are no matter."""
    period = month("2026-03")
    outages = [
        Interval(period.start_ns + at * 120 * 10**9, period.start_ns + (at * 120 + 60) * 10**9) for at in range(22_000)
    ]
    assert downtime(period, outages).down == 22_000
