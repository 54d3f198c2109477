"""Money as integer minor units of an ISO 4217 currency, and decimal texts as exact integers.

Nothing here is a float: a percentage is parts per billion, an amount is minor units.
"""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

from ledger.errors import MoneyInvalid

PARTS_PER_BILLION = 10**9
BASIS_POINTS = 10_000
MAX_MINOR_UNITS = 2**64 - 1

_DECIMAL = re.compile(r"(0|[1-9]\d{0,19})(?:\.(\d{1,9}))?", re.ASCII)
_WHOLE = re.compile(r"-?\d+", re.ASCII)

# ISO 4217 minor-unit exponents that are not 2 (ISO 4217:2015 list one).
_EXPONENTS = {
    **dict.fromkeys("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF".split(), 0),
    **dict.fromkeys("BHD IQD JOD KWD LYD OMR TND".split(), 3),
    **dict.fromkeys("CLF UYW".split(), 4),
}
_TWO_DIGIT = frozenset(
    """AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP
    CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR
    IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN
    NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP
    STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VES WST XCD YER ZAR ZMW ZWG""".split()
)
CURRENCIES = (*sorted({*_EXPONENTS, *_TWO_DIGIT}),)
"""The codes of all currencies that are known here."""


class Rounding(StrEnum):
    """How an amount becomes whole minor units, once, at the end of a line."""

    FLOOR = "floor"
    HALF_UP = "half_up"
    HALF_EVEN = "half_even"


def currency_exponent(currency: str) -> int:
    """Decimal digits of the minor unit: JPY 0, USD 2, KWD 3. Raises ``MoneyInvalid`` for an unknown code."""
    if currency in _EXPONENTS:
        return _EXPONENTS[currency]
    if currency in _TWO_DIGIT:
        return 2
    raise MoneyInvalid(
        f"{currency[:10]!r} is not an ISO 4217 currency code; write USD, EUR, CNY ...", currency=currency[:10]
    )


def scaled_integer(text: str, decimals: int) -> int:
    """The exact value of a plain decimal text times 10^decimals; raises ``MoneyInvalid`` if it does not fit.

    No sign, exponent, leading zeros or NaN: ``scaled_integer("99.95", 7) == 999_500_000``.
    """
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise MoneyInvalid(f"{text[:32]!r} is not a plain decimal number such as 99.95", text=text[:32])
    whole, fraction = match[1], match[2] or ""
    if len(fraction) > decimals:
        raise MoneyInvalid(f"{text!r} has more than {decimals} decimal places", text=text, decimals=decimals)
    return int(whole + fraction.ljust(decimals, "0"))


def percent_ppb(text: str) -> int:
    """A percentage text as parts per billion, 0 < p <= 100: ``percent_ppb("99.95") == 999_500_000``."""
    value = scaled_integer(text, 7)
    if not 0 < value <= PARTS_PER_BILLION:
        raise MoneyInvalid(f"{text!r} must be above 0 and at most 100 percent", text=text)
    return value


def percent_basis_points(text: str) -> int:
    """A percentage text as basis points, 0 <= p <= 100: ``percent_basis_points("12.5") == 1250``."""
    value = scaled_integer(text, 2)
    if value > BASIS_POINTS:
        raise MoneyInvalid(f"{text!r} must be at most 100 percent", text=text)
    return value


def minor_units(text: str, currency: str) -> int:
    """An amount text in whole minor units of ``currency``: ``minor_units("8000.00", "USD") == 800_000``."""
    value = scaled_integer(text, currency_exponent(currency))
    if value > MAX_MINOR_UNITS:
        raise MoneyInvalid(f"{text!r} {currency} is more than 2^64 - 1 minor units", text=text)
    return value


def format_minor_units(amount: int, currency: str) -> str:
    """Minor units as a decimal text with the currency's digits: ``800000 USD -> "8000.00"``."""
    exponent = currency_exponent(currency)
    digits = str(abs(amount)).rjust(exponent + 1, "0")
    sign = "-" if amount < 0 else ""
    return sign + (f"{digits[:-exponent]}.{digits[-exponent:]}" if exponent else digits)


def format_floored(numerator: int, denominator: int, decimals: int = 6) -> str:
    """A quotient as a decimal text, rounded down: what is below 1 never shows as 1."""
    scaled = numerator * 10**decimals // denominator
    digits = str(abs(scaled)).rjust(decimals + 1, "0")
    return ("-" if scaled < 0 else "") + (f"{digits[:-decimals]}.{digits[-decimals:]}" if decimals else digits)


def format_plain(value: Fraction) -> str:
    """A value of at most 30 decimals, which is what rows of facts have, as a decimal text without trailing zeros."""
    return format_floored(value.numerator, value.denominator, 30).rstrip("0").removesuffix(".")


def fraction_document(value: Fraction) -> dict[str, str]:
    """An exact fraction in lowest terms as JSON has it: numerator and denominator as decimal texts."""
    return {"numerator": digits(value.numerator), "denominator": digits(value.denominator)}


def digits(value: int) -> str:
    """A whole number of any length in decimal digits.

    ``str`` of an integer refuses more than 4,300 of them, and the exact sum of a few thousand fractions has more.
    """
    return str(Decimal(value))


def whole_number(text: str) -> int:
    """The number that ``digits`` wrote; raises ``ValueError`` for anything else."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is no whole number")
    return int(Decimal(text))


def round_quotient(numerator: int, denominator: int, mode: Rounding) -> int:
    """numerator / denominator as a whole number, for numerator >= 0 and denominator > 0."""
    quotient, rest = divmod(numerator, denominator)
    if mode is Rounding.FLOOR:
        return quotient
    above = 2 * rest > denominator or (2 * rest == denominator and (mode is Rounding.HALF_UP or quotient % 2 == 1))
    return quotient + above
