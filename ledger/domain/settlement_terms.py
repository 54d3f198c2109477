"""How credits of an agreement come to be paid, and until when: its ``settlement`` member.

``automatic``: what a statement credits is owed. ``claim``: it is owed once the customer asked for it in time. The
deadlines are those that providers publish; days and months are local ones of the agreement's zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.domain.calendar import parse_window_seconds
from ledger.domain.schema import Either, Integer, Object, OneOf, Text, convert, fail

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


_LEAST_S = {"days_after_period": 86_400, "months_after_period": 28 * 86_400}
"""What one of a deadline's units lasts at least, where it is counted from the period's end."""


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


def read_settlement(said: Mapping[str, Any] | None, waits_s: int) -> SettlementTerms:
    """The terms of a shape-checked member; raises ``DocumentInvalid`` where claims have no deadline, or one before the
    first statement that could be claimed. ``waits_s`` is how long after a period's end that may come."""
    if said is None:
        return AUTOMATIC
    by_claim, deadline = said["mode"] == "claim", said.get("deadline")
    if deadline is None:
        if by_claim:
            raise fail("settlement.deadline", "is missing: claims need one, such as 30 days_after_period")
        return AUTOMATIC
    found = Deadline(deadline["kind"], deadline["count"])
    if by_claim and found.kind in _LEAST_S and found.count * _LEAST_S[found.kind] <= waits_s:
        raise fail(
            "settlement.deadline",
            f"{found} comes before the first statement, which may wait {waits_s} s after the period's end (grace, "
            "closing); give claims more time",
        )
    return SettlementTerms(by_claim, found)
