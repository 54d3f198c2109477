from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.instant import format_instant_ns, parse_instant_ns
from ledger.errors import InstantInvalid


@given(st.integers(-(2**60), 2**62))
def test_an_instant_survives_its_text(instant_ns: int) -> None:
    assert parse_instant_ns(format_instant_ns(instant_ns)) == instant_ns


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
        "２023-12-19T00:00:00Z",
        "",
    ],
)
def test_texts_that_are_no_instants(text: str) -> None:
    with pytest.raises(InstantInvalid):
        parse_instant_ns(text)


def test_a_missing_zone_is_named_as_such() -> None:
    with pytest.raises(InstantInvalid, match="no zone"):
        parse_instant_ns("2023-12-19T00:00:00.5")
