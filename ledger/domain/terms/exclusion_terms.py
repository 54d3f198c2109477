"""What an agreement lets leave both sides of every ratio by time: the members ``maintenance`` and ``carve_outs``.

Maintenance is agreed by ticket classes, each with its own limits; a carve-out is a cause that the provider does not
answer for. Both only say what may be excluded: what was excluded is recorded (``ledger.domain.windows.exclusions``).
No limit is assumed: one that the agreement leaves out does not apply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.domain.schema import Flag, Integer, ListOf, Object, OneOf, Shape, Text, convert, fail
from ledger.domain.terms.objective_shapes import OBJECTIVE_ID
from ledger.domain.time.calendar import parse_window_seconds
from ledger.domain.time.instant import MINUTE_NS, SECOND_NS

CLAUSE_ID = Text(OBJECTIVE_ID, "a clause id (lowercase letters, digits, - and _)", 40)
CALENDAR_UNITS = ("month", "quarter")
CARVE_OUT_KINDS = ("client_fault", "force_majeure", "dispute")

_DURATION = Text(r"PT\d{1,4}[SMH]", "a duration such as PT15M", 7)
_REASON = Text(max_length=500, what="the reason both parties agreed on", visible=True)
_MOST = Object({"count": Integer(1, 10_000), "per": OneOf(CALENDAR_UNITS)})
_CLASS = Object(
    {"id": CLAUSE_ID, "reason": _REASON},
    {"longest": _DURATION, "at_most": _MOST, "notice": _DURATION, "automatic": Flag()},
)

MAINTENANCE = Object({"classes": ListOf(_CLASS, 1, 20)}, {"cap_minutes": Integer(1, 1_000_000)})
CARVE_OUTS = ListOf(Object({"id": CLAUSE_ID, "kind": OneOf(CARVE_OUT_KINDS), "reason": _REASON}), 1, 50)

EXCLUSION_MEMBERS: Mapping[str, Shape] = {"maintenance": MAINTENANCE, "carve_outs": CARVE_OUTS}
"""Optional members of the agreement document."""


@dataclass(frozen=True, slots=True)
class Most:
    """At most ``count`` tickets that start in one calendar month or quarter of the agreement's zone."""

    count: int
    per: str


@dataclass(frozen=True, slots=True)
class MaintenanceClass:
    """A class of tickets. ``longest_ns``: how much of one counts as maintenance; ``notice_ns``: how long before its
    start it must be announced; ``automatic``: it needs nobody's approval. None: no such limit."""

    id: str
    reason: str
    longest_ns: int | None
    most: Most | None
    notice_ns: int | None
    automatic: bool


@dataclass(frozen=True, slots=True)
class CarveOut:
    """A cause outside the provider's duty: ``client_fault``, ``force_majeure`` or ``dispute``."""

    id: str
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class ExclusionTerms:
    """The clauses by which time may be excluded; ``cap_ns`` bounds the maintenance of one settlement period."""

    classes: Mapping[str, MaintenanceClass]
    cap_ns: int | None
    carve_outs: Mapping[str, CarveOut]

    @property
    def clauses(self) -> tuple[str, ...]:
        """The ids of all clauses, as the document lists them."""
        return (*self.classes, *self.carve_outs)


def read_exclusion_terms(document: Mapping[str, Any]) -> ExclusionTerms:
    """The terms of a document whose shape was checked. Raises ``DocumentInvalid`` naming the clause."""
    maintenance: Mapping[str, Any] = document.get("maintenance") or {"classes": []}
    taken = {clause["id"]: f"exclusions[{at}]" for at, clause in enumerate(document["exclusions"])}
    classes = [_class(item, f"maintenance.classes[{at}]", taken) for at, item in enumerate(maintenance["classes"])]
    carve_outs = _carve_outs(document.get("carve_outs") or (), taken)
    cap_minutes = maintenance.get("cap_minutes")
    return ExclusionTerms(
        {each.id: each for each in classes},
        None if cap_minutes is None else cap_minutes * MINUTE_NS,
        {each.id: each for each in carve_outs},
    )


def _class(item: Mapping[str, Any], at: str, taken: dict[str, str]) -> MaintenanceClass:
    _take(item["id"], at, taken)
    most = item.get("at_most")
    return MaintenanceClass(
        item["id"],
        item["reason"],
        _duration_ns(item, "longest", at),
        None if most is None else Most(most["count"], most["per"]),
        _duration_ns(item, "notice", at),
        item.get("automatic", False),
    )


def _carve_outs(items: Sequence[Mapping[str, Any]], taken: dict[str, str]) -> list[CarveOut]:
    found = []
    for at, item in enumerate(items):
        _take(item["id"], f"carve_outs[{at}]", taken)
        found.append(CarveOut(item["id"], item["kind"], item["reason"]))
    return found


def _duration_ns(item: Mapping[str, Any], name: str, at: str) -> int | None:
    if name not in item:
        return None
    seconds: int = convert(f"{at}.{name}", item[name], parse_window_seconds)
    return seconds * SECOND_NS


def _take(clause_id: str, at: str, taken: dict[str, str]) -> None:
    """One id names one clause of the agreement, whatever member it stands in."""
    if clause_id in taken:
        raise fail(f"{at}.id", f"{clause_id!r} is the id of {taken[clause_id]} already; name each clause once")
    taken[clause_id] = at
