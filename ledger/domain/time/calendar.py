"""Local dates of an IANA zone as UTC instants, and calendar lengths (semantics 10).

A period is named by its first local date and an ISO 8601 duration (``2023-12-19/P1D``); ``periods`` says which ones
an agreement has. Zone rules come from the pinned ``tzdata`` package and never from the machine, so two verifiers
agree.
"""

from __future__ import annotations

import calendar
import importlib.resources
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from ledger.domain.time.instant import SECOND_NS
from ledger.domain.time.interval import Interval
from ledger.errors import CalendarInvalid

_ZONE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}", re.ASCII)
_PERIOD = re.compile(r"P(\d{1,3})([DWM])", re.ASCII)
_WINDOW = re.compile(r"PT(\d{1,4})([SMH])", re.ASCII)
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PeriodLength:
    """A calendar duration: ``count`` days, weeks or months (``unit`` D, W or M)."""

    count: int
    unit: str

    def __str__(self) -> str:
        return f"P{self.count}{self.unit}"

    @property
    def days(self) -> int:
        """Its days; months have none that hold for all of them."""
        return self.count * {"D": 1, "W": 7}[self.unit]

    def after(self, first: date) -> date:
        """The date that lies this long after ``first``; of a month that is too short its last day."""
        return add_months(first, self.count) if self.unit == "M" else first + timedelta(days=self.days)


@dataclass(frozen=True, slots=True)
class Period:
    """One settlement period: local dates from ``first`` in ``zone``, as instants in ``interval``.

    ``whole`` is the period that this one is a part of; None where it is whole.
    """

    first: date
    length: PeriodLength
    zone: str
    interval: Interval
    whole: Interval | None = None

    def __str__(self) -> str:
        return f"{self.first.isoformat()}/{self.length}"


@lru_cache(maxsize=64)
def load_zone(name: str) -> ZoneInfo:
    """The IANA zone ``name`` by the rules of the ``tzdata`` package. Raises ``CalendarInvalid``."""
    try:
        if not _ZONE_NAME.fullmatch(name):
            raise ValueError("no name of a zone")
        with importlib.resources.files("tzdata").joinpath("zoneinfo", name).open("rb") as stream:
            return ZoneInfo.from_file(stream, key=name)
    except (OSError, ValueError) as error:
        raise CalendarInvalid(
            f"unknown time zone {name[:64]!r}; write an IANA name such as Europe/Berlin", zone=name[:64]
        ) from error


def parse_period_length(text: str) -> PeriodLength:
    """``P1D``, ``P7D``, ``P1W`` or ``P1M``; raises ``CalendarInvalid``."""
    match = _PERIOD.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise CalendarInvalid(f"{text[:20]!r} is not a period; write P1D, P1W or P1M", text=text[:20])
    return PeriodLength(int(match[1]), match[2])


def parse_window_seconds(text: str) -> int:
    """Seconds of ``PT1H``, ``PT5M`` or ``PT30S``; raises ``CalendarInvalid``."""
    match = _WINDOW.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise CalendarInvalid(f"{text[:20]!r} is not a window length; write PT1H, PT5M or PT30S", text=text[:20])
    return int(match[1]) * {"S": 1, "M": 60, "H": 3600}[match[2]]


def parse_time_of_day(text: str) -> int:
    """Seconds after midnight of ``08:00``, by the wall clock; raises ``CalendarInvalid``."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise CalendarInvalid(f"{text[:20]!r} is not a time of day; write HH:MM, such as 08:00", text=text[:20])
    return int(match[1]) * 3600 + int(match[2]) * 60


def parse_date(text: str) -> date:
    """A calendar date ``2023-12-19``; raises ``CalendarInvalid``."""
    try:
        # The library also reads 2023-W51-2 and, in other places, 20231219.
        if not _DATE.fullmatch(text):
            raise ValueError("write YYYY-MM-DD")
        return date.fromisoformat(text)
    except ValueError as error:
        raise CalendarInvalid(f"{text[:20]!r} is not a date: {error}", text=text[:20]) from error


def first_date(period: str) -> date:
    """The first local date of a period by its name, such as ``2023-12-19/P1D``; raises ``CalendarInvalid``."""
    return parse_date(period.partition("/")[0])


@lru_cache(maxsize=1)
def tzdata_version() -> str:
    """The release of the zone rules that periods follow, such as ``2026a``."""
    rules = importlib.resources.files("tzdata").joinpath("zoneinfo", "tzdata.zi")
    # Its first line is "# version 2026a".
    return rules.read_bytes().split()[2].decode()


def add_months(day: date, months: int) -> date:
    """The same day of another month, or the last one of a month that is too short for it."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


@lru_cache(maxsize=4096)
def day_start_ns(day: date, zone: ZoneInfo, day_start_s: int = 0) -> int:
    """The first instant of a local day, which starts ``day_start_s`` seconds after midnight by the wall clock.

    Where the clock jumps over that time the day starts with the jump (midnight in America/Sao_Paulo until 2018);
    where it comes twice, with the first.
    """
    hours, minutes = divmod(day_start_s // 60, 60)
    shown = datetime(day.year, day.month, day.day, hours, minutes, tzinfo=zone)
    late, early = (_posix_s(shown.replace(fold=fold)) for fold in (0, 1))
    # PEP 495: in a gap fold=1 reads the offset after the jump, so the jump lies in (early, late]. Elsewhere there is
    # nothing to look for, since fold=1 is no earlier.
    before = _offset(early, zone)
    while late - early > 1:
        middle = (early + late) // 2
        early, late = (middle, late) if _offset(middle, zone) == before else (early, middle)
    return late * SECOND_NS


def make_period(
    first: date, length: PeriodLength, zone_name: str, *, end: date | None = None, day_start_s: int = 0
) -> Period:
    """The period that begins on local date ``first`` and ends at the start of ``end``, or after its length.

    Raises ``CalendarInvalid`` at the calendar's edge, and where the period has no instant because a zone crossed the
    date line (Pacific/Apia had no 2011-12-30).
    """
    zone = load_zone(zone_name)
    try:
        days = (first, length.after(first) if end is None else end)
        start_ns, end_ns = (day_start_ns(day, zone, day_start_s) for day in days)
        if start_ns >= end_ns:
            raise CalendarInvalid(
                f"{first} does not exist in {zone_name}, so no period {length} starts on it; choose longer periods, "
                "or effective dates without that day",
                first=str(first),
                zone=zone_name,
            )
        interval = Interval(start_ns, end_ns)
    except (ValueError, OverflowError) as error:
        raise CalendarInvalid(f"no period {length} starts on {first}: {error}", first=str(first)) from error
    return Period(first, length, zone_name, interval)


def local_moment(instant_ns: int, zone_name: str) -> datetime:
    """What the wall clock of a zone shows at an instant, to the second."""
    return (_EPOCH + timedelta(seconds=instant_ns // SECOND_NS)).astimezone(load_zone(zone_name))


def _posix_s(moment: datetime) -> int:
    since = moment.astimezone(UTC) - _EPOCH
    return since.days * 86_400 + since.seconds


def _offset(posix_s: int, zone: ZoneInfo) -> timedelta | None:
    return (_EPOCH + timedelta(seconds=posix_s)).astimezone(zone).utcoffset()
