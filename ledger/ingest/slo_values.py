"""Numbers, durations and times as OpenSLO and Sloth write them, read exactly.

A number stays the text it was written as until it is an exact decimal; no float is made. ``m`` is minutes and ``M``
months, as the specification has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal

from ledger.domain.schema import convert, fail
from ledger.domain.time.calendar import PeriodLength, load_zone, parse_date
from ledger.errors import NoCounterpart
from ledger.ingest.slo_model import Place

DAY_S = 86_400

_NUMBER = re.compile(r"-?\d{1,20}(\.\d{1,20})?([eE][+-]?\d{1,2})?", re.ASCII)
_DURATION = re.compile(r"(\d{1,6})([mhdwMQY])", re.ASCII)
_WALL_CLOCK = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d):(\d\d):(\d\d)", re.ASCII)
_UNIT_SECONDS = {"m": 60, "h": 3600, "d": DAY_S, "w": 7 * DAY_S}
_MONTHS = {"M": 1, "Q": 3, "Y": 12}
_MAX_DECIMALS = 7
_MAX_COUNT = 999
_MAX_SECONDS = 10**10
_MAX_BOUND = 10**15
_BOUND_DECIMALS = 9
_STEP = Decimal("0.000000001")


def number(place: Place, text: str) -> Decimal:
    """The exact value of a number; raises ``DocumentInvalid``."""
    if not _NUMBER.fullmatch(text):
        raise fail(place.field, f"{text[:40]!r} is not a number")
    return Decimal(text)


def plain(value: Decimal) -> str:
    """A decimal without exponent and without zeros at the end: 0.9950 is ``0.995``, 1E+2 is ``100``."""
    text = f"{value:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def share(place: Place, text: str, *, whole: int, inside: Callable[[Decimal], bool], said: str) -> str:
    """A share of ``whole`` (1 or 100) as a percentage text.

    Raises ``DocumentInvalid`` outside its range, and ``NoCounterpart`` where an agreement cannot say it: 0 %, or more
    than seven decimals of a percent.
    """
    value = number(place, text)
    if not inside(value):
        raise fail(place.field, f"{text} is outside {said}")
    percent = value * (100 // whole)
    if percent == 0:
        raise NoCounterpart(f"{place.field}: {text}: an agreement cannot promise 0 %", field=place.field)
    if max(0, -int(percent.normalize().as_tuple().exponent)) > _MAX_DECIMALS:
        raise NoCounterpart(
            f"{place.field}: {text} has more than {_MAX_DECIMALS} decimals of a percent", field=place.field
        )
    return plain(percent)


def period_length(place: Place, text: str) -> PeriodLength:
    """A duration as a settlement period.

    Raises ``DocumentInvalid``, and ``NoCounterpart`` for what is no whole number of days.
    """
    count, unit = _duration(place, text)
    if unit in _MONTHS:
        return _length(place, text, count * _MONTHS[unit], "M")
    if unit == "w":
        return _length(place, text, count, "W")
    days, rest = divmod(count * _UNIT_SECONDS[unit], DAY_S)
    if rest:
        meant = f"; m is minutes, so write {count}M for months" if unit == "m" else ""
        raise NoCounterpart(
            f"{place.field}: {text} is no whole number of days, and an agreement settles days, weeks or months{meant}",
            field=place.field,
        )
    return _length(place, text, days, "D")


def unit_length(place: Place, count: str, unit: str) -> PeriodLength:
    """``period_length`` of a count and a unit by name (Second, Day, Week, Month, Quarter), as v1alpha has them."""
    at = place.at("count")
    found = number(at, count)
    if found != found.to_integral_value() or not 1 <= found <= _MAX_SECONDS:
        raise fail(at.field, f"{count} is no whole number above 0")
    whole = int(found)
    if unit == "Second":
        if whole % DAY_S:
            raise NoCounterpart(f"{at.field}: {count} s are no whole number of days", field=at.field)
        return _length(at, f"{count} s", whole // DAY_S, "D")
    months = 3 if unit == "Quarter" else 1
    return _length(at, f"{count} {unit}", whole * months, {"Day": "D", "Week": "W"}.get(unit, "M"))


def bound(place: Place, operator: str, text: str) -> tuple[str, str]:
    """``at_most`` or ``at_least`` and the bound that says the same as ``lt``, ``lte``, ``gt`` or ``gte`` and a value.

    Bounds have nine decimals, so ``lt 500`` is at most 499.999999999. Raises ``NoCounterpart`` for one that an
    agreement cannot name.
    """
    said = number(place, text)
    decimals = len(plain(said).partition(".")[2])
    # Checked before adding, which rounds to the digits of Python's decimal context.
    if abs(said) < _MAX_BOUND and decimals <= _BOUND_DECIMALS:
        value = said + {"lt": -_STEP, "gt": _STEP}.get(operator, Decimal(0))
    else:
        value = Decimal(-1)
    if value < 0:
        raise NoCounterpart(
            f"{place.field}: {operator} {text}: bounds of an agreement are at least 0 and have at most nine decimals",
            field=place.field,
        )
    return ("at_most" if operator in ("lt", "lte") else "at_least"), plain(value)


def slice_seconds(place: Place, text: str) -> int:
    """The length of a time slice: a duration, or a bare number of minutes. Raises as ``period_length`` does."""
    count, unit = _duration(place, f"{text}m" if text.isascii() and text.isdigit() else text)
    if unit in _MONTHS:
        raise NoCounterpart(f"{place.field}: {text}: months have no fixed length to slice by", field=place.field)
    return count * _UNIT_SECONDS[unit]


def wall_clock(place: Place, text: str) -> tuple[date, int]:
    """A local date and the second of its day, written without a zone.

    Raises ``DocumentInvalid``, and ``NoCounterpart`` for a day that begins within a minute.
    """
    match = _WALL_CLOCK.fullmatch(text)
    if match is None:
        raise fail(place.field, f"{text[:40]!r} is not a time such as 2022-01-01 12:00:00 (without a zone)")
    day: date = convert(place.field, match[1], parse_date)
    hours, minutes, seconds = (int(match[part]) for part in (2, 3, 4))
    if hours > 23 or minutes > 59 or seconds > 59:
        raise fail(place.field, f"{text[:40]!r} is no time of day")
    if seconds:
        raise NoCounterpart(
            f"{place.field}: {text}: the days of an agreement begin on a whole minute", field=place.field
        )
    return day, hours * 3600 + minutes * 60


def zone_name(place: Place, text: str) -> str:
    """An IANA zone; raises ``DocumentInvalid``."""
    convert(place.field, text, load_zone)
    return text


def _duration(place: Place, text: str) -> tuple[int, str]:
    match = _DURATION.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise fail(
            place.field, f"{text[:40]!r} is not a duration such as 1m (minute), 1h, 30d, 4w, 1M (month), 1Q or 1Y"
        )
    return int(match[1]), match[2]


def _length(place: Place, text: str, count: int, unit: str) -> PeriodLength:
    if count > _MAX_COUNT:
        raise NoCounterpart(f"{place.field}: {text} is longer than an agreement's periods", field=place.field)
    return PeriodLength(count, unit)
