"""Whether maintenance that left windows out was announced in the log before it began.

``announced_at`` is the issuer's word. What was logged before the maintenance began nobody could choose by how it went.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.attest.checks.case import Case, require, require_same
from ledger.attest.checks.log_checks import require_logged, signed_checkpoint
from ledger.domain.events.exclusion_events import EXCLUSION_RECORDED
from ledger.domain.record.naming import exclusions_stream

_SAME = ("exclusion_id", "clause", "from_ns", "to_ns", "announced_at_ns", "approved_by")


def announced(case: Case) -> list[Mapping[str, Any]]:
    """The honoured exclusions of the statement that the terms want announced: those of maintenance classes."""
    classes = case.agreement.exclusion_terms.classes
    return [each for each in case.issued.get("exclusions", ()) if each["honoured"] and each["clause"] in classes]


def unlogged(case: Case) -> list[str]:
    """The exclusions for which no announcement was logged before they began, by the log's clock."""
    logged = {event["payload"]["exclusion_id"]: event for event in case.bundle.get("announcements", ())}
    return [
        each["exclusion_id"]
        for each in announced(case)
        if each["exclusion_id"] not in logged
        or int(logged[each["exclusion_id"]]["header"]["recorded_at_ns"]) > int(each["from_ns"])
    ]


def announcements(case: Case) -> str:
    """Every announcement that is given is in the log and about an exclusion of the statement, in its words."""
    listed, checkpoint = {each["exclusion_id"]: each for each in announced(case)}, signed_checkpoint(case)
    stream = exclusions_stream("0x" + case.sla_id.hex())
    for event in case.bundle.get("announcements", ()):
        name = event["payload"]["exclusion_id"]
        require(name in listed, f"an announcement of {name} is given, and the statement does not exclude for it")
        same = {member: event["payload"][member] for member in _SAME}
        require_same(same, {member: listed[name][member] for member in _SAME}, f"{name} was logged in other words")
        require_logged(event, checkpoint, EXCLUSION_RECORDED, stream, event["header"]["version"])
    late = unlogged(case)
    if late:
        more = f" and {len(late) - 1} more" if len(late) > 1 else ""
        return (
            f"no entry shows that {late[0]}{more} was logged before it began: that it was planned is the issuer's word"
        )
    return f"{len(listed)} exclusion(s) for maintenance were logged before they began, by the log's clock"
