"""What a ledger says of a period in the end, without what follows from the order in which things came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ledger.app.agreements.registering import RegisteredTimeline
from ledger.app.ports.store import Transaction
from ledger.domain.record.naming import credit_lines_stream, statement_stream, violations_stream, windows_stream

OF_ITS_ORDER = {
    *("statement_id", "statement_version", "closing_event", "telemetry_root"),
    *("restates", "reason", "objective_deltas", "credit_delta"),
}
"""Which version it is, what it replaces, and the root over secret salts."""


def said(tx: Transaction, timeline: RegisteredTimeline, part: str) -> dict[str, Any]:
    """What the newest statement, the windows and the violations of a part say, and what is owed for each of these.

    AssertionError where versions do not follow each other, or the lines do not add up to the newest credit.
    """
    _, period = timeline.timeline.named(part)
    owed: Counter[str] = Counter()
    statements = [event.payload for event in tx.events.stream(statement_stream(timeline.sla_id, period.first))]
    for each in statements:
        for event in tx.events.stream(credit_lines_stream(each["statement_id"])):
            owed[str(event.payload["violation_id"])] += int(event.payload["minor_units"])
    windows = {
        event.payload["index"]: event.payload
        for event in tx.events.stream(windows_stream(timeline.sla_id, period.first))
        if event.payload["period"] == part
    }
    told = {
        event.payload["violation_id"]: (event.type, event.payload)
        for event in tx.events.stream(violations_stream(timeline.sla_id, period.first))
    }
    newest = statements[-1]
    assert [each["statement_version"] for each in statements] == list(range(1, len(statements) + 1))
    assert sum(owed.values()) == int(newest["credit"]["minor_units"])
    return {
        "statement": _without(newest, *OF_ITS_ORDER),
        # A batch that comes after the closing and repeats what is known is nothing to judge, so no window names it.
        "windows": [_without(windows[index], "inputs") for index in sorted(windows)],
        "violations": [
            _without(payload, "revision", "evidence")
            for kind, payload in sorted(told.values(), key=lambda each: each[1]["violation_id"])
            if kind == "violation_closed"
        ],
        "owed": {name: units for name, units in owed.items() if units},
    }


def _without(said: Mapping[str, Any], *members: str) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name not in members}
