"""Instants as integer nanoseconds since 1970-01-01T00:00:00Z (POSIX time, no leap seconds), and RFC 3339.

The library function ``datetime.fromisoformat`` drops nanoseconds, so text is read here.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Protocol

from ledger.errors import InstantInvalid

SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS
HOUR_NS = 60 * MINUTE_NS
DAY_NS = 86_400 * SECOND_NS

# Hours and offsets are bounded here, because the library reads +00:99 as 99 minutes and, from 3.14, 24:00.
_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt]((?:[01]\d|2[0-3]):\d\d:\d\d)(?:\.(\d{1,9}))?(Z|z|[+-](?:[01]\d|2[0-3]):[0-5]\d)", re.ASCII
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The whole years that an agreement can name: their nanoseconds are positive and fit 63 bits.
_FIRST_NS = (datetime(1971, 1, 1, tzinfo=UTC) - _EPOCH).days * DAY_NS
_END_NS = (datetime(2262, 1, 1, tzinfo=UTC) - _EPOCH).days * DAY_NS


class Clock(Protocol):
    """Where the present comes from; passed in so that time can be simulated."""

    def now_ns(self) -> int:
        """Nanoseconds since the epoch."""
        ...


def parse_instant_ns(text: str) -> int:
    """Nanoseconds of an RFC 3339 instant such as ``2023-12-19T00:00:02.106523644Z``.

    A zone is required (``Z`` or ``+hh:mm``), at most nine fractional digits, and the instant lies in the years 1971
    to 2261. Raises ``InstantInvalid``.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        reason = "it has no zone" if re.fullmatch(r"\d{4}-\d\d-\d\d[Tt ][\d:.]+", text) else "not RFC 3339"
        raise InstantInvalid(f"{text[:40]!r} is not an instant: {reason}; write 2023-12-19T00:00:00Z", text=text[:40])
    day, clock, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{zone.upper()}")
        since = moment - _EPOCH
    except (ValueError, OverflowError) as error:
        raise InstantInvalid(f"{text!r} is not an instant: {error}", text=text) from error
    instant_ns = (since.days * 86_400 + since.seconds) * SECOND_NS + int((fraction or "").ljust(9, "0"))
    if not _FIRST_NS <= instant_ns < _END_NS:
        raise InstantInvalid(f"{text!r} is not an instant of the years 1971 to 2261", text=text)
    return instant_ns


def parse_date_or_instant_ns(text: str) -> int:
    """Nanoseconds of a date, which is its midnight in UTC, or of an RFC 3339 instant; raises ``InstantInvalid``."""
    try:
        return parse_instant_ns(f"{text}T00:00:00Z" if _DATE.fullmatch(text) else text)
    except InstantInvalid as error:
        raise InstantInvalid(
            f"{text[:40]!r} is no date and no instant with a zone of the years 1971 to 2261; write 2023-12-19 or "
            "2023-12-19T00:00:00Z",
            text=text[:40],
        ) from error


def format_instant_ns(instant_ns: int) -> str:
    """RFC 3339 in UTC, with nine fractional digits unless they are all zero.

    Any integer has a text, for messages: one that no four-digit year holds is shown as its nanoseconds.
    """
    seconds, fraction = divmod(instant_ns, SECOND_NS)
    days, rest = divmod(seconds, 86_400)
    if not date.min.toordinal() <= _EPOCH.toordinal() + days <= date.max.toordinal():
        return f"{instant_ns} ns since 1970-01-01T00:00:00Z"
    day = date.fromordinal(_EPOCH.toordinal() + days)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{day.isoformat()}T{clock}" + (f".{fraction:09}" if fraction else "") + "Z"
