from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledger.domain.time.instant import (
    DAY_NS,
    HOUR_NS,
    MINUTE_NS,
    SECOND_NS,
    format_instant_ns,
    parse_date_or_instant_ns,
    parse_instant_ns,
)
from ledger.errors import InstantInvalid


@given(st.integers(365 * 86_400 * 10**9, 2**63 - 2**55))
def test_an_instant_survives_its_text(instant_ns: int) -> None:
    assert parse_instant_ns(format_instant_ns(instant_ns)) == instant_ns


@given(st.integers())
@example(-(2**63))
@example(2**64)
@example(10**30)
def test_every_integer_has_a_text(instant_ns: int) -> None:
    assert format_instant_ns(instant_ns)


def test_units_are_what_clocks_show() -> None:
    midnight_ns = parse_instant_ns("2023-12-19T00:00:00Z")
    for unit_ns, text in (
        (SECOND_NS, "2023-12-19T00:00:01Z"),
        (MINUTE_NS, "2023-12-19T00:01:00Z"),
        (HOUR_NS, "2023-12-19T01:00:00Z"),
        (23 * HOUR_NS, "2023-12-19T23:00:00Z"),
        (DAY_NS, "2023-12-20T00:00:00Z"),
    ):
        assert parse_instant_ns(text) - midnight_ns == unit_ns
        assert format_instant_ns(midnight_ns + unit_ns) == text


def test_only_years_of_four_digits_are_shown_as_dates() -> None:
    after_ns = 253_402_300_800 * SECOND_NS
    assert format_instant_ns(after_ns - SECOND_NS) == "9999-12-31T23:59:59Z"
    assert format_instant_ns(after_ns) == "253402300800000000000 ns since 1970-01-01T00:00:00Z"
    assert format_instant_ns(-62_135_596_800 * SECOND_NS - 1) == "-62135596800000000001 ns since 1970-01-01T00:00:00Z"


def test_the_first_years_have_four_digits() -> None:
    assert format_instant_ns(-62_135_596_800 * 10**9) == "0001-01-01T00:00:00Z"
    assert parse_instant_ns("2261-12-31T23:59:59.999999999Z") < 2**63


def test_a_date_is_its_midnight_in_utc() -> None:
    assert parse_date_or_instant_ns("2023-12-19") == parse_instant_ns("2023-12-19T00:00:00Z")
    assert parse_date_or_instant_ns("2023-12-19T01:00:00+01:00") == parse_instant_ns("2023-12-19T00:00:00Z")
    for text in ("2023-12", "2023-02-30", "19.12.2023", "2023-12-1a", "٢٠٢٣-12-19"):
        with pytest.raises(InstantInvalid, match=f"'{text}"):
            parse_date_or_instant_ns(text)


def test_nanoseconds_are_kept() -> None:
    assert parse_instant_ns("2023-12-19T00:00:02.106523644Z") % 10**9 == 106_523_644


def test_an_offset_is_applied() -> None:
    assert parse_instant_ns("2023-12-19T05:30:00.5+05:30") == parse_instant_ns("2023-12-19T00:00:00.500Z")


@pytest.mark.parametrize(
    "text",
    [
        "2023-12-19T00:00:00",
        "2023-12-19",
        "2023-12-19T24:00:01Z",
        "2023-12-19T23:59:60Z",
        "2023-02-29T00:00:00Z",
        "2023-12-19T00:00:00.1234567891Z",
        "2023-12-19T00:00:00+05:30[Asia/Kolkata]",
        "2023-12-19 00:00:00Z",
        "2023-12-19T00:00:00 Z",
        "1702944000",
        "2023-12-19T00:00:00+00:99",
        "2023-12-19T00:00:00-05:60",
        "2023-12-19T00:00:00+24:00",
        "2023-12-19T24:00:00Z",
        "1970-12-31T23:59:59.999999999Z",
        "1971-01-01T00:00:00+00:01",
        "2262-01-01T00:00:00Z",
        "2261-12-31T23:59:59-00:01",
        "0001-01-01T00:00:00+10:00",
        "9999-12-31T23:00:00Z",
        "２023-12-19T00:00:00Z",
        "",
    ],
)
def test_texts_that_are_no_instants(text: str) -> None:
    with pytest.raises(InstantInvalid):
        parse_instant_ns(text)


def test_a_small_z_is_utc_and_a_small_t_begins_the_time() -> None:
    assert parse_instant_ns("2023-12-19t00:00:00z") == parse_instant_ns("2023-12-19T00:00:00Z")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2023-12-19T00:00:00.5", "it has no zone"),
        ("2023-12-19 00:00:00", "it has no zone"),
        ("19.12.2023", "not RFC 3339"),
        ("2023-12-19T00:00:00,5Z", "not RFC 3339"),
    ],
)
def test_a_missing_zone_is_named_as_such(text: str, reason: str) -> None:
    with pytest.raises(InstantInvalid) as refused:
        parse_instant_ns(text)
    assert refused.value.message == f"'{text}' is not an instant: {reason}; write 2023-12-19T00:00:00Z"
