"""How credits of an agreement come to be paid, and until when: its ``settlement`` member.

``automatic``: what a statement credits is owed. ``claim``: it is owed once the customer asked for it in time. The
deadlines are those that providers publish; days and months are local ones of the agreement's zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

from ledger.domain.schema import Either, Integer, Object, OneOf, Text, convert, fail
from ledger.domain.terms.periods import PeriodGrid
from ledger.domain.time.calendar import Period, add_months, day_start_ns, load_zone, parse_window_seconds
from ledger.domain.time.instant import SECOND_NS, format_instant_ns

DEFAULT_DAYS = 30

_DEADLINE = Either(
    "kind",
    {
        "days_after_period": Object({"kind": OneOf(("days_after_period",)), "count": Integer(1, 1100)}),
        "months_after_period": Object({"kind": OneOf(("months_after_period",)), "count": Integer(1, 36)}),
        "billing_cycles": Object({"kind": OneOf(("billing_cycles",)), "count": Integer(1, 36)}),
        "days_after_incident": Object({"kind": OneOf(("days_after_incident",)), "count": Integer(1, 1100)}),
    },
)

SETTLEMENT = Object({"mode": OneOf(("automatic", "claim"))}, {"deadline": _DEADLINE})


@dataclass(frozen=True, slots=True)
class Deadline:
    """``count`` days or months after the period's end, billing cycles after the one of the incident, or days after
    the incident (``kind``)."""

    kind: str
    count: int

    def __str__(self) -> str:
        return f"{self.count} {_SAID[self.kind]}"


_SAID = {
    "days_after_period": "days after the end of the period",
    "months_after_period": "months after the end of the period",
    "billing_cycles": "billing cycles after that of the incident",
    "days_after_incident": "days after the end of the incident",
}


@dataclass(frozen=True, slots=True)
class SettlementTerms:
    """``by_claim``: nothing is owed that was not asked for before the deadline."""

    by_claim: bool
    deadline: Deadline


AUTOMATIC = SettlementTerms(False, Deadline("days_after_period", DEFAULT_DAYS))
"""What holds where an agreement says nothing."""


CLOSING = Either(
    "when",
    {
        "grace": Object({"when": OneOf(("grace",))}),
        "watermark": Object(
            {
                "when": OneOf(("watermark",)),
                "at_latest": Text(r"PT\d{1,4}[SMH]", "a duration after the period's end such as PT168H", 7),
            }
        ),
    },
)


def read_closing(said: Mapping[str, Any] | None, grace_seconds: int) -> int | None:
    """How many seconds after a period's end it is closed though its source has not got past that end; None where the
    grace alone is waited for. Raises ``DocumentInvalid``."""
    if said is None or said["when"] == "grace":
        return None
    at_latest: int = convert("closing.at_latest", said["at_latest"], parse_window_seconds)
    if at_latest <= grace_seconds:
        raise fail(
            "closing.at_latest",
            f"{said['at_latest']} after the end is not later than the grace of {grace_seconds} s, so nothing would be "
            "waited for; give the source longer, or leave the closing out",
        )
    return at_latest


def read_settlement(said: Mapping[str, Any] | None) -> SettlementTerms:
    """The terms of a shape-checked member; raises ``DocumentInvalid`` where claims have no deadline."""
    if said is None:
        return AUTOMATIC
    by_claim, deadline = said["mode"] == "claim", said.get("deadline")
    if deadline is None:
        if by_claim:
            raise fail("settlement.deadline", "is missing: claims need one, such as 30 days_after_period")
        return AUTOMATIC
    return SettlementTerms(by_claim, Deadline(deadline["kind"], deadline["count"]))


def deadline_ns(deadline: Deadline, periods: PeriodGrid, period: Period, incident_end_ns: int) -> int:
    """The first instant at which a claim for an incident of a period is too late.

    It is the start of a local day. Billing cycles are the agreement's periods: with 2 of them a claim for January may
    be filed until March ends.
    """
    if deadline.kind == "billing_cycles":
        day = periods.cycles_after(period, deadline.count)
    elif deadline.kind == "months_after_period":
        day = add_months(periods.local_date(period.interval.end_ns), deadline.count)
    elif deadline.kind == "days_after_period":
        day = periods.local_date(period.interval.end_ns) + timedelta(days=deadline.count)
    else:
        # The day on which it ended does not count.
        day = periods.local_date(incident_end_ns - 1) + timedelta(days=deadline.count + 1)
    return day_start_ns(day, load_zone(period.zone), periods.day_start_s)


@lru_cache(maxsize=256)
def check_deadline(deadline: Deadline, periods: PeriodGrid, window_seconds: int, waits_s: int) -> None:
    """Raises ``DocumentInvalid`` where a claim would be too late before the first statement that it could stand on.

    Of each period that is so for what ended in its first window, where the deadline runs from the incident. ``waits_s``
    is how long after a period's end the first statement may come.
    """
    for period in periods.all():
        statement_ns = period.interval.end_ns + waits_s * SECOND_NS
        too_late_ns = deadline_ns(deadline, periods, period, period.interval.start_ns + window_seconds * SECOND_NS)
        if too_late_ns <= statement_ns:
            raise fail(
                "settlement.deadline",
                f"{deadline} comes before the first statement: of {period} claims would be too late from "
                f"{format_instant_ns(too_late_ns)} on, and its first statement may wait {waits_s} s after its "
                f"end (grace, closing), until {format_instant_ns(statement_ns)}; give claims more time, or agree on "
                "shorter periods",
            )
