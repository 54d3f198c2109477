"""Instants as integer nanoseconds since 1970-01-01T00:00:00Z (POSIX time, no leap seconds), and RFC 3339.

The library function ``datetime.fromisoformat`` drops nanoseconds, so text is read here.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Protocol

from ledger.errors import InstantInvalid

SECOND_NS = 1_000_000_000
DAY_NS = 86_400 * SECOND_NS

_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|z|[+-]\d\d:\d\d)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """Where the present comes from; passed in so that time can be simulated."""

    def now_ns(self) -> int:
        """Nanoseconds since the epoch."""
        ...


def parse_instant_ns(text: str) -> int:
    """Nanoseconds of an RFC 3339 instant such as ``2023-12-19T00:00:02.106523644Z``.

    A zone is required (``Z`` or ``+hh:mm``), at most nine fractional digits. Raises ``InstantInvalid``.
    """
    match = _RFC3339.fullmatch(text) if len(text) <= 40 else None
    if match is None:
        reason = "it has no zone" if re.fullmatch(r"\d{4}-\d\d-\d\d[Tt ][\d:.]+", text[:40]) else "not RFC 3339"
        raise InstantInvalid(f"{text[:40]!r} is not an instant: {reason}; write 2023-12-19T00:00:00Z", text=text[:40])
    day, clock, fraction, zone = match.groups()
    zone = "+00:00" if zone in "Zz" else zone
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{zone}")
        since = moment - _EPOCH
    except (ValueError, OverflowError) as error:
        raise InstantInvalid(f"{text!r} is not an instant: {error}", text=text) from error
    return (since.days * 86_400 + since.seconds) * SECOND_NS + int((fraction or "").ljust(9, "0"))


def format_instant_ns(instant_ns: int) -> str:
    """RFC 3339 in UTC, with nine fractional digits unless they are all zero."""
    seconds, fraction = divmod(instant_ns, SECOND_NS)
    days, rest = divmod(seconds, 86_400)
    date = datetime.fromordinal(_EPOCH.toordinal() + days)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{date:%Y-%m-%d}T{clock}" + (f".{fraction:09}" if fraction else "") + "Z"
