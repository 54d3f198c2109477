"""How credits of an agreement come to be paid, and until when: its ``settlement`` member.

``automatic``: what a statement credits is owed. ``claim``: it is owed once the customer asked for it in time. The
deadlines are those that providers publish; days and months are local ones of the agreement's zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.domain.schema import Either, Integer, Object, OneOf, fail

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


def read_settlement(said: Mapping[str, Any] | None, grace_seconds: int) -> SettlementTerms:
    """The terms of a shape-checked member; raises ``DocumentInvalid`` where claims have no deadline, or one before the
    first statement that could be claimed."""
    if said is None:
        return AUTOMATIC
    by_claim, deadline = said["mode"] == "claim", said.get("deadline")
    if deadline is None:
        if by_claim:
            raise fail("settlement.deadline", "is missing: claims need one, such as 30 days_after_period")
        return AUTOMATIC
    found = Deadline(deadline["kind"], deadline["count"])
    if by_claim and found.kind in _LEAST_S and found.count * _LEAST_S[found.kind] <= grace_seconds:
        raise fail(
            "settlement.deadline",
            f"{found} comes before the first statement, which waits for the grace of {grace_seconds} s; give claims "
            "more time",
        )
    return SettlementTerms(by_claim, found)
