"""Versions of a statement: which of them carry a proof, and by how much one differs from the one it replaces.

A verifier works both out again.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from ledger.domain.time.instant import DAY_NS

_COUNTS = ("good", "valid")
_ACCEPTED_NS = 30 * DAY_NS


class Standing(StrEnum):
    """``draft``: late facts are still taken; ``final``: they are not any more; ``restated``: another version replaced
    it."""

    DRAFT = "draft"
    FINAL = "final"
    RESTATED = "restated"


def final_from_ns(issued: Mapping[str, Any]) -> int:
    """Until when late facts are taken for a statement (its payload).

    Releases that did not say so issued statements under terms that named no deadline: it was 30 days.
    """
    said = issued.get("accepts_until_ns")
    return int(issued["end_ns"]) + _ACCEPTED_NS if said is None else int(said)


def carries_proof(issued: Mapping[str, Any]) -> bool:
    """Whether a statement (its payload) has, or will have, a proof: neither withheld nor beyond every circuit."""
    return bool(issued["attestable"]) and issued["state"] == "settled"


def differences(old: Mapping[str, Any], new: Mapping[str, Any], currency: str) -> dict[str, Any]:
    """``objective_deltas``, of the objectives that differ, and ``credit_delta`` of two statements of one period.

    Both are what statements say (payloads of ``statement_issued``). A withheld one owes nothing, so that a difference
    from it counts from 0; its amount is null. ``undecided`` counts stand where they differ, and nowhere else.
    """
    before = {result["id"]: result for result in old["objectives"]}
    after = {result["id"]: result for result in new["objectives"]}
    objectives = [
        {
            "id": name,
            **{count: _delta(before.get(name), after.get(name), count) for count in _COUNTS},
            "state": {"old": _of(before.get(name), "state"), "new": _of(after.get(name), "state")},
            **_undecided(before.get(name), after.get(name)),
        }
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]
    owed = {"old": old["credit"], "new": new["credit"]}
    units = {name: None if credit is None else credit["minor_units"] for name, credit in owed.items()}
    difference = int(units["new"] or 0) - int(units["old"] or 0)
    return {
        "objective_deltas": objectives,
        "credit_delta": {"currency": currency, **units, "difference": str(difference)},
    }


def _delta(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    before, after = _of(old, name), _of(new, name)
    return {"old": before, "new": after, "difference": (after or 0) - (before or 0)}


def _undecided(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> dict[str, Any]:
    """A result without the member has none that is undecided, which differs from no result at all."""
    before, after = (result if result is None else {"undecided": 0, **result} for result in (old, new))
    delta = _delta(before, after, "undecided")
    return {"undecided": delta} if delta["difference"] else {}


def _of(result: Mapping[str, Any] | None, name: str) -> Any:
    return None if result is None else result[name]
