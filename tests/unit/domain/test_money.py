from __future__ import annotations

from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.money import (
    MAX_MINOR_UNITS,
    Rounding,
    currency_exponent,
    digits,
    format_floored,
    format_minor_units,
    format_plain,
    fraction_document,
    minor_units,
    percent_basis_points,
    percent_ppb,
    round_quotient,
    scaled_integer,
    whole_number,
)
from ledger.errors import MoneyInvalid

DECIMAL_MODES = {
    Rounding.FLOOR: ROUND_FLOOR,
    Rounding.HALF_UP: ROUND_HALF_UP,
    Rounding.HALF_EVEN: ROUND_HALF_EVEN,
}


@given(st.integers(0, 10**20 - 1), st.integers(0, 9), st.integers(0, 999_999_999))
def test_a_decimal_text_is_read_exactly(whole: int, places: int, fraction: int) -> None:
    text = f"{whole}.{fraction:09}"[: len(str(whole)) + 1 + places] if places else str(whole)
    with localcontext() as context:
        context.prec = 60
        assert scaled_integer(text, 9) == Decimal(text) * 10**9


@given(st.integers(0, 2**78), st.integers(1, 10**6), st.sampled_from(Rounding))
def test_rounding_agrees_with_the_decimal_module(numerator: int, denominator: int, mode: Rounding) -> None:
    with localcontext() as context:
        context.prec = 60
        # Scaled to a common denominator that Decimal divides exactly: powers of ten.
        exact = Decimal(numerator) / Decimal(10_000)
        expected = int(exact.quantize(Decimal(1), rounding=DECIMAL_MODES[mode]))
    assert round_quotient(numerator, 10_000, mode) == expected
    assert abs(round_quotient(numerator, denominator, mode) * denominator - numerator) < denominator


@pytest.mark.parametrize(
    ("halves", "floor", "half_up", "half_even"),
    [(1, 0, 1, 0), (3, 1, 2, 2), (5, 2, 3, 2), (4, 2, 2, 2), (7, 3, 4, 4), (9, 4, 5, 4)],
)
def test_halves(halves: int, floor: int, half_up: int, half_even: int) -> None:
    assert round_quotient(halves, 2, Rounding.FLOOR) == floor
    assert round_quotient(halves, 2, Rounding.HALF_UP) == half_up
    assert round_quotient(halves, 2, Rounding.HALF_EVEN) == half_even


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        *((-1, "USD", "-0.01"), (0, "USD", "0.00"), (1, "USD", "0.01"), (800_000, "USD", "8000.00")),
        *((-5, "JPY", "-5"), (1, "KWD", "0.001"), (123_456, "CLF", "12.3456")),
    ],
)
def test_an_amount_is_written_with_the_digits_of_its_currency(amount: int, currency: str, text: str) -> None:
    assert format_minor_units(amount, currency) == text


@pytest.mark.parametrize(
    ("numerator", "denominator", "decimals", "text"),
    [
        *((999_999_999, 10**9, 6, "0.999999"), (1, 1, 6, "1.000000"), (1, 2, 2, "0.50"), (7, 2, 0, "3")),
        *((-1, 3, 2, "-0.34"), (0, 5, 2, "0.00"), (-1, 10**9, 2, "-0.01")),
    ],
)
def test_a_quotient_is_written_rounded_down(numerator: int, denominator: int, decimals: int, text: str) -> None:
    assert format_floored(numerator, denominator, decimals) == text


def test_a_quotient_has_six_decimals_where_nothing_is_said() -> None:
    assert format_floored(2, 3) == "0.666666"


def test_the_largest_amount_is_what_64_bits_hold() -> None:
    assert minor_units("184467440737095516.15", "USD") == 2**64 - 1
    with pytest.raises(MoneyInvalid, match="more than 2"):
        minor_units("184467440737095516.16", "USD")


@pytest.mark.parametrize(
    ("exponent", "currencies"),
    [
        (0, "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"),
        (2, "AED CNY EUR USD ZWG"),
        (3, "BHD IQD JOD KWD LYD OMR TND"),
        (4, "CLF UYW"),
    ],
)
def test_the_exponents_of_iso_4217(exponent: int, currencies: str) -> None:
    assert {currency: currency_exponent(currency) for currency in currencies.split()} == dict.fromkeys(
        currencies.split(), exponent
    )


@given(st.integers(0, MAX_MINOR_UNITS), st.sampled_from(["JPY", "USD", "KWD", "CLF"]))
def test_an_amount_survives_its_text(amount: int, currency: str) -> None:
    assert minor_units(format_minor_units(amount, currency), currency) == amount


def test_minor_units_follow_the_currency() -> None:
    assert minor_units("8000.00", "USD") == 800_000
    assert minor_units("8000", "JPY") == 8000
    assert minor_units("8000.125", "KWD") == 8_000_125
    assert [currency_exponent(code) for code in ("JPY", "USD", "KWD")] == [0, 2, 3]


@pytest.mark.parametrize(("text", "currency"), [("1.5", "JPY"), ("1.005", "USD"), (str(2**64), "JPY"), ("1", "XXX")])
def test_amounts_that_a_currency_cannot_hold(text: str, currency: str) -> None:
    with pytest.raises(MoneyInvalid):
        minor_units(text, currency)


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "1e3", "NaN", "Infinity", "01", ".5", "5.", "1_000", "1,5", "٣", " 1"]
)
def test_texts_that_are_not_plain_decimals(text: str) -> None:
    with pytest.raises(MoneyInvalid):
        scaled_integer(text, 9)


def test_percentages_are_exact_integers() -> None:
    assert percent_ppb("99.95") == 999_500_000
    assert percent_ppb("100") == 10**9
    assert percent_ppb("0.0000001") == 1
    assert percent_ppb("99.9999999") == 999_999_999
    assert percent_basis_points("12.5") == 1250
    assert percent_basis_points("0") == 0
    assert percent_basis_points("100") == 10_000


@pytest.mark.parametrize("text", ["0", "0.0", "100.1", "100.0000001", "99.99999999", "NaN"])
def test_targets_outside_zero_to_a_hundred(text: str) -> None:
    with pytest.raises(MoneyInvalid):
        percent_ppb(text)


@pytest.mark.parametrize("text", ["100.01", "0.001"])
def test_credit_percentages_that_are_no_basis_points(text: str) -> None:
    with pytest.raises(MoneyInvalid):
        percent_basis_points(text)


def test_the_modes_as_agreements_name_them() -> None:
    assert [str(mode) for mode in Rounding] == ["floor", "half_up", "half_even"]


def test_an_exact_fraction_is_written_in_lowest_terms() -> None:
    assert fraction_document(Fraction(-6, 4)) == {"numerator": "-3", "denominator": "2"}
    assert fraction_document(Fraction(0)) == {"numerator": "0", "denominator": "1"}


@pytest.mark.parametrize(
    "value",
    [0, 7, -7, 10**5_000, 10**5_000 - 1, 1 - 10**5_000, 12_345 * 10**9_000 + 6],
    ids=lambda value: f"{value.bit_length()} bits",
)
def test_a_number_longer_than_python_writes_is_written_and_read(value: int) -> None:
    text = digits(value)
    assert whole_number(text) == value
    # By hand: its last digits, and how many there are.
    unsigned = text.removeprefix("-")
    assert int(unsigned[-9:]) == abs(value) % 10 ** len(unsigned[-9:])
    assert (unsigned != text) is (value < 0)
    assert 10 ** (len(unsigned) - 1) <= max(abs(value), 1) < 10 ** len(unsigned)


@pytest.mark.parametrize("text", ["", "-", "+1", "1.0", " 1", "1_000", "1e3", "\u0663", "--1", "9" * 5_000 + "x"])
def test_a_text_that_is_no_whole_number(text: str) -> None:
    with pytest.raises(ValueError, match="is no whole number"):
        whole_number(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(100), "100"),
        (Fraction(0), "0"),
        (Fraction(-1, 4), "-0.25"),
        (Fraction(1, 10**30), f"0.{'0' * 29}1"),
        (Fraction(1, 3), f"0.{'3' * 30}"),
    ],
)
def test_a_plain_value_has_the_decimals_that_it_needs_up_to_thirty(value: Fraction, text: str) -> None:
    assert format_plain(value) == text
