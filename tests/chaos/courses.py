"""What becomes of a period in a trial. Every contract has one that is over, and every course does the same to it
whoever does it: a deployment that is killed, or a ledger that nobody disturbs."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from tests.support.deployment import request, request_log

_LATE_MINUTES = (20 * 60 + 1, 20 * 60 + 2)
"""In an hour in which all went well until then."""
_EXCLUDED_HOUR = _CLAIMED_HOUR = 3
_SIGN_AHEAD = timedelta(seconds=45)
"""An amendment is signed, and registered on chain, before it takes effect."""


class Course(StrEnum):
    """What happens to a period after facts came and it was closed."""

    PLAIN = "settled once"
    LATE = "failures come late"
    EXCLUDED = "an hour is excluded"
    CLAIMED = "claimed, failures come late, the rest claimed"
    AMENDED = "cut in two by an amendment"


@dataclass(frozen=True)
class Contract:
    """One agreement and what is known of its period. ``start`` is where the period begins, which takes a day."""

    course: Course
    service: str
    document: Mapping[str, Any]
    amendment: Mapping[str, Any] | None
    start: datetime

    @property
    def end(self) -> datetime:
        return self.start + timedelta(days=1)

    @property
    def first(self) -> date:
        return self.start.date()

    @property
    def first_period(self) -> str:
        """As it was signed first: an amendment comes later."""
        return f"{self.first}/{self.document['period']}"

    @property
    def facts(self) -> bytes:
        hours = range(1, 20, 4) if self.course is Course.AMENDED else range(1, 20, 2)
        minute = self.start.hour * 60 + self.start.minute
        return request_log(self.service, self.first, from_minute=minute, bad_hours=hours)

    @property
    def late_facts(self) -> bytes:
        rows = [self.start + timedelta(minutes=minute) for minute in _LATE_MINUTES]
        return b"".join(request(self.service, at, failed=True) for at in rows)

    @property
    def excluded(self) -> tuple[datetime, datetime]:
        start = self.start + timedelta(hours=_EXCLUDED_HOUR)
        return start, start + timedelta(hours=1)

    @property
    def claimed(self) -> str:
        """The violation that is claimed for itself: its objective and first window."""
        return f"availability.w{_CLAIMED_HOUR}"


class Doer(Protocol):
    """Does what a course asks for. Each call returns once it is done or written down."""

    def register(self, contract: Contract) -> None: ...

    def amend(self, contract: Contract) -> None: ...

    def observe(self, contract: Contract, rows: bytes) -> None: ...

    def close(self, contract: Contract) -> None: ...

    def wait_for_end(self, contract: Contract) -> None: ...

    def wait_for_statement(self, contract: Contract, version: int) -> None: ...

    def exclude(self, contract: Contract) -> None: ...

    def claim(self, contract: Contract, version: int, violation: str | None) -> None: ...


def begin(contract: Contract, doer: Doer) -> None:
    """Register, and settle what is over."""
    doer.register(contract)
    if contract.course is Course.AMENDED:
        doer.amend(contract)
    else:
        _settle(contract, doer)


def go_on(contract: Contract, doer: Doer) -> None:
    """What comes after the first statement, or after the first part."""
    match contract.course:
        case Course.AMENDED:
            doer.wait_for_end(contract)
            _settle(contract, doer)
        case Course.LATE:
            doer.wait_for_statement(contract, 1)
            doer.observe(contract, contract.late_facts)
        case Course.EXCLUDED:
            doer.wait_for_statement(contract, 1)
            doer.exclude(contract)
        case Course.CLAIMED:
            doer.wait_for_statement(contract, 1)
            doer.claim(contract, 1, contract.claimed)
            doer.observe(contract, contract.late_facts)
            doer.wait_for_statement(contract, 2)
            doer.claim(contract, 2, None)
        case Course.PLAIN:
            pass


def _settle(contract: Contract, doer: Doer) -> None:
    doer.observe(contract, contract.facts)
    doer.close(contract)


class Signing(Protocol):
    """Both parties of the contracts."""

    def agreement(self, service: str, **changes: Any) -> dict[str, Any]: ...

    def signed(self, document: Mapping[str, Any], **changes: Any) -> dict[str, Any]: ...


def contract_of(course: Course, service: str, signing: Signing, now: datetime) -> Contract:
    """A contract whose period is the day before today's, or (amended) ends within two minutes from now."""
    if course is Course.AMENDED:
        return _amended(service, signing, now)
    start = datetime(now.year, now.month, now.day, tzinfo=UTC) - timedelta(days=1)
    document = signing.agreement(service, **_dates(start, 1), **_terms(course))
    return Contract(course, service, document, None, start)


def _amended(service: str, signing: Signing, now: datetime) -> Contract:
    """A period of two days, of which one is over at the next full minute that leaves time to sign: there the other
    terms begin."""
    change = (now + _SIGN_AHEAD + timedelta(minutes=1)).replace(second=0, microsecond=0)
    start = change - timedelta(days=1)
    same = {"day_start": f"{start:%H:%M}", "period": "P2D", "window": "PT2H"}
    document = signing.agreement(service, **_dates(start, 2), **same)
    compensation = deepcopy(document["compensation"]) | {"base": "9000.00"}
    amendment = signing.signed(
        document,
        effective={**document["effective"], "from": str(change.date())},
        anchor=str(start.date()),
        partial_periods="prorate",
        compensation=compensation,
    )
    return Contract(Course.AMENDED, service, document, amendment, start)


def _dates(start: datetime, days: int) -> dict[str, Any]:
    return {"effective": {"from": str(start.date()), "until": str(start.date() + timedelta(days=days))}}


def _terms(course: Course) -> dict[str, Any]:
    match course:
        case Course.CLAIMED:
            return {"settlement": {"mode": "claim", "deadline": {"kind": "days_after_period", "count": 30}}}
        case Course.EXCLUDED:
            return {"carve_outs": [{"id": "dispute", "kind": "dispute", "reason": "both agree"}]}
        case _:
            return {}
