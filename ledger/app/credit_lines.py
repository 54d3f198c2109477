"""Credit lines: what a statement owes, violation by violation, as entries that are never edited.

Lines are issued with their statement, exactly once for its event and the version of the rule that splits credits.
``ledger.app.credit_changes`` takes them back and marks them as booked. The sum of all entries is what is owed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ledger.app.agreements import RegisteredAgreement
from ledger.app.ports import Receipt, Transaction
from ledger.domain.credit_lines import RULE_VERSION, CreditShare, LineStatus, credit_shares
from ledger.domain.events import NewEvent
from ledger.domain.naming import credit_line_id, credit_lines_stream, violation_id
from ledger.domain.settlement import Settlement
from ledger.domain.violations import violations
from ledger.domain.window import Window


def issue_credit_lines(
    tx: Transaction,
    registered: RegisteredAgreement,
    settlement: Settlement,
    windows: Sequence[Window],
    *,
    statement_id: str,
    statement_event: str,
) -> tuple[Receipt, ...]:
    """Append the lines of a statement: one for each violation in its windows, which sum to its credit exactly.

    Empty for a withheld statement, and for one without violation and credit. Issuing again gives the first receipts.
    """
    if settlement.trace is None:
        return ()
    shares = credit_shares(settlement.trace, violations(registered.agreement, windows))
    if not shares:
        return ()
    lines = [
        _line(registered, settlement, share, credit_line_id(statement_id, number), statement_id, statement_event)
        for number, share in enumerate(shares, 1)
    ]
    end_ns = settlement.period.interval.end_ns
    return tx.events.append(
        credit_lines_stream(statement_id),
        [NewEvent("credit_line_issued", line, occurred_at_ns=end_ns) for line in lines],
        expected_version=0,
        idempotency_key=f"credit-lines/{statement_event}/{RULE_VERSION}",
    )


def _line(
    registered: RegisteredAgreement,
    settlement: Settlement,
    share: CreditShare,
    line_id: str,
    statement_id: str,
    statement_event: str,
) -> dict[str, Any]:
    period, violation = settlement.period, share.violation
    name = None
    if violation is not None:
        name = violation_id(registered.sla_id, period.first, violation.objective.id, violation.first_window)
    return {
        "line_id": line_id,
        "statement_id": statement_id,
        "statement_event": statement_event,
        "rule": RULE_VERSION,
        "sla_id": registered.sla_id,
        "customer": registered.agreement.customer.name,
        "period": str(period),
        "start_ns": str(period.interval.start_ns),
        "objective": None if violation is None else violation.objective.id,
        "violation_id": name,
        "currency": settlement.currency,
        "minor_units": str(share.minor_units),
        "status": str(LineStatus.ISSUED),
        "proof_due": not settlement.not_attestable,
        "reverses": None,
        "reversed_by": None,
        "reason": None,
        "billing": None,
    }
