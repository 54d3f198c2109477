"""Credit lines: what a statement owes, violation by violation, as entries that are never edited.

Lines are issued with their statement, exactly once for its event and the version of the rule that splits credits. Those
of a restatement are differences: what each violation has now less all that was entered for it before. Where the
agreement settles by claim, only what was claimed has lines (``ledger.app.billing.claims``).
``ledger.app.billing.credit_changes`` takes them back and marks them as booked. The sum of all entries is what is owed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.app.agreements.registering import RegisteredAgreement
from ledger.app.ports.store import Receipt, Transaction
from ledger.domain.credits.credit_lines import RULE_VERSION, LineStatus, credit_shares
from ledger.domain.credits.settlement import Settlement
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.domain.record.naming import claims_stream, credit_line_id, credit_lines_stream, violation_id
from ledger.domain.violations.violation import violations
from ledger.domain.windows.window import Window

Line = Mapping[str, Any]
"""A line as events say it (``ledger.domain.events.credit_events``)."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a line says beside what it has in common with the others of its statement."""

    objective: str | None
    violation_id: str | None
    minor_units: int


def issue_credit_lines(
    tx: Transaction,
    registered: RegisteredAgreement,
    settlement: Settlement,
    windows: Sequence[Window],
    *,
    statement_id: str,
    statement_event: str,
    earlier: Sequence[str] = (),
    reason: str | None = None,
) -> tuple[Receipt, ...]:
    """Append the lines of a statement: one for each violation in its windows, which sum to its credit exactly.

    Empty for a withheld statement, and for one without violation and credit. Where it has ``earlier`` versions (their
    ids), its lines are the differences from all entries of those, reversals among them: all entries together then sum
    to this credit. Issuing again gives the first receipts.
    """
    entries = credited(registered, settlement, windows)
    if registered.agreement.settlement.by_claim:
        claimed = claimed_violations(tx, registered.sla_id, settlement)
        entries = [entry for entry in entries if entry.violation_id in claimed]
    if earlier:
        entries = _differences(entries, _entered(tx, earlier))
    if not entries:
        return ()
    common = line_members(registered, settlement, statement_id, statement_event) | {
        "reason": reason,
        **({"restates": earlier[-1]} if earlier else {}),
    }
    lines = [
        {**common, **entry_members(entry, credit_line_id(statement_id, number))}
        for number, entry in enumerate(entries, 1)
    ]
    return tx.events.append(
        credit_lines_stream(statement_id),
        [NewEvent("credit_line_issued", line, occurred_at_ns=settlement.period.interval.end_ns) for line in lines],
        expected_version=0,
        idempotency_key=f"credit-lines/{statement_event}/{RULE_VERSION}",
    )


def claimed_violations(tx: Transaction, sla_id: str, settlement: Settlement) -> frozenset[str | None]:
    """What of a period was claimed: its violations, and None for what no violation stands for."""
    events = tx.events.stream(claims_stream(sla_id, settlement.period.first))
    return frozenset(event.payload["violation_id"] for event in events)


def line_members(
    registered: RegisteredAgreement, settlement: Settlement, statement_id: str, statement_event: str
) -> dict[str, Any]:
    """What all new lines of a statement have in common."""
    return {
        "statement_id": statement_id,
        "statement_event": statement_event,
        "rule": RULE_VERSION,
        "sla_id": registered.sla_id,
        "customer": registered.agreement.customer.name,
        "period": str(settlement.period),
        "start_ns": str(settlement.period.interval.start_ns),
        "currency": settlement.currency,
        "status": str(LineStatus.ISSUED),
        # Of a withheld statement no proof comes.
        "proof_due": not settlement.not_attestable and settlement.trace is not None,
        "reverses": None,
        "reversed_by": None,
        "reason": None,
        "billing": None,
    }


def entry_members(entry: Entry, line_id: str) -> dict[str, Any]:
    """What one line says itself."""
    return {
        "line_id": line_id,
        "objective": entry.objective,
        "violation_id": entry.violation_id,
        "minor_units": str(entry.minor_units),
    }


def current_lines(events: Iterable[StoredEvent]) -> dict[str, Line]:
    """Every line and reversal entry of a statement's stream as it is now, by id."""
    lines: dict[str, Line] = {}
    for event in events:
        payload = event.payload
        if event.type == "credit_line_issued":
            changed = [payload]
        elif event.type == "credit_line_reversed":
            changed = [payload["reversed"], payload["entry"]]
        else:
            changed = [payload["line"]]
        lines |= {line["line_id"]: line for line in changed}
    return lines


def credited(registered: RegisteredAgreement, settlement: Settlement, windows: Sequence[Window]) -> list[Entry]:
    """What a settlement credits, violation by violation; empty where it is withheld."""
    if settlement.trace is None:
        return []
    entries = []
    for share in credit_shares(settlement.trace, violations(registered.agreement, windows)):
        violation = share.violation
        if violation is None:
            entries.append(Entry(None, None, share.minor_units))
            continue
        objective = violation.objective.id
        name = violation_id(registered.sla_id, settlement.period.first, objective, violation.first_window)
        entries.append(Entry(objective, name, share.minor_units))
    return entries


def _entered(tx: Transaction, statement_ids: Sequence[str]) -> list[Entry]:
    """What was entered for each violation, or for none, under earlier versions; in the order in which it first was."""
    sums: Counter[tuple[str | None, str | None]] = Counter()
    for name in statement_ids:
        for line in current_lines(tx.events.stream(credit_lines_stream(name))).values():
            sums[line["objective"], line["violation_id"]] += int(line["minor_units"])
    return [Entry(objective, violation, units) for (objective, violation), units in sums.items()]


def _differences(now: Sequence[Entry], before: Sequence[Entry]) -> list[Entry]:
    """What leads from ``before`` to ``now``, violation by violation; what stays the same is left out."""
    entered = {(entry.objective, entry.violation_id): entry.minor_units for entry in before}
    found = [
        Entry(
            entry.objective,
            entry.violation_id,
            entry.minor_units - entered.pop((entry.objective, entry.violation_id), 0),
        )
        for entry in now
    ]
    found += [Entry(objective, violation, -units) for (objective, violation), units in entered.items()]
    return [entry for entry in found if entry.minor_units]
