"""Reading the explanation of a statement from the ledger, and what of it a principal may see.

What led to a statement is what the log held before it: facts and violations that came later change no number of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from ledger.app.access import FIELD_SCOPES, Principal, Scope, metric_scopes, redact
from ledger.app.agreements.registering import timeline_of
from ledger.app.judgement.windows import judgements
from ledger.app.periods.exclusions import rulings_by_id, standing
from ledger.app.ports.store import Transaction
from ledger.app.reading.lists import visible_violation
from ledger.app.settlement.statements import issued_event
from ledger.domain.credits.explanation import Holdings, explain
from ledger.domain.record.naming import exclusions_stream, violations_stream
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import first_date
from ledger.domain.time.interval import Interval
from ledger.errors import NotFound

MAX_LINES = 1000

_TERMS = ("clause", "parameters", "selects", "verdict", "units")
"""Members of an objective that give its target or its threshold away."""
_COUNTS = ("counts", "verdict", "units")
_VIOLATION = (
    *("violation_id", "objective", "state", "revision", "from_ns", "to_ns", "first_window", "windows", "clause"),
    *("target", "good", "valid", "bad", "unit", "ended_by", "evidence"),
)


def read_explanation(
    tx: Transaction,
    statement_id: str,
    *,
    all_windows: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> dict[str, Any]:
    """All of it (``ledger.domain.credits.explanation``); raises ``NotFound``."""
    event = issued_event(tx, statement_id)
    issued = event.payload
    agreement = _terms(tx, issued)
    held = Holdings(
        windows=judgements(tx, issued["sla_id"], issued["period"], before_seq=event.place),
        violations=_violations(tx, issued["sla_id"], first_date(issued["period"]), event.place),
        lines=tx.views.credit_lines(statement_id=statement_id, limit=MAX_LINES),
        rulings=_rulings(tx, agreement, issued, event.place),
    )
    return explain(agreement, issued, held, all_windows=all_windows, progress=progress)


def visible_explanation(found: Mapping[str, Any], principal: Principal) -> dict[str, Any]:
    """An explanation without what the principal may not see: that is None and named in ``withheld``."""
    shown, withheld = dict(found), []
    hidden = {
        "credit": not principal.holds(*FIELD_SCOPES["statement"]["trace"]),
        "credit_lines": not principal.holds(Scope.READ_CREDITS),
        "violations": not principal.holds(Scope.READ_VIOLATIONS),
    }
    for name, lacking in hidden.items():
        if lacking:
            shown[name] = None
            withheld.append(name)
    if shown["violations"] is not None:
        shown["violations"] = [_violation(row, principal) for row in shown["violations"]]
    if shown["exclusions"] is not None:
        shown["exclusions"] = [_without(row, redact("exclusion", row, principal)[1]) for row in shown["exclusions"]]
    shown["objectives"] = [_objective(each, principal) for each in found["objectives"]]
    shown["coverage"] = _without(found["coverage"], () if principal.holds(Scope.READ_THRESHOLDS) else ("floor",))
    shown["restatement"] = _restatement(found["restatement"], principal)
    return {**shown, "withheld": withheld}


def _terms(tx: Transaction, issued: Mapping[str, Any]) -> Agreement:
    """The terms that a statement was made under."""
    version = issued["terms_version"]
    for terms in timeline_of(tx, issued["sla_id"]).terms:
        if terms.version == version:
            return terms.agreement
    raise NotFound(f"the log holds no version {version} of {issued['sla_id']}", statement=issued["statement_id"])


def _rulings(tx: Transaction, agreement: Agreement, issued: Mapping[str, Any], before_seq: int) -> list[dict[str, Any]]:
    """What became of each exclusion that touches the period, honoured or not, as they stood for the statement."""
    period = Interval(int(issued["start_ns"]), int(issued["end_ns"]))
    events = tx.events.stream(exclusions_stream(issued["sla_id"]))
    recorded = standing(event for event in events if event.seq is not None and event.seq < before_seq)
    said = {payload["exclusion_id"]: payload for payload in recorded}
    found = []
    for name, ruled in rulings_by_id(agreement, recorded).items():
        asked, honoured = ruled.exclusion.interval, ruled.honoured
        if asked.start_ns < period.end_ns and period.start_ns < asked.end_ns:
            found.append(
                {
                    "id": name,
                    "clause": ruled.exclusion.clause,
                    "from_ns": str(asked.start_ns),
                    "to_ns": str(asked.end_ns),
                    "reason": said[name]["reason"],
                    "ruling": str(ruled.ruling),
                    "why": ruled.why,
                    "honoured_from_ns": None if honoured is None else str(honoured.start_ns),
                    "honoured_to_ns": None if honoured is None else str(honoured.end_ns),
                }
            )
    return found


def _violations(tx: Transaction, sla_id: str, first: date, before_seq: int) -> list[dict[str, Any]]:
    """Violations as they stood when the statement was made, without those that had been withdrawn."""
    last: dict[str, dict[str, Any]] = {}
    for event in tx.events.stream(violations_stream(sla_id, first)):
        if event.seq is not None and event.seq < before_seq:
            kind = event.type.removeprefix("violation_")
            state = kind if kind in ("closed", "withdrawn") else "open"
            name = event.payload["violation_id"]
            last[name] = {"clause": None, "unit": None, "ended_by": None, **event.payload, "state": state}
    return [row for row in last.values() if row["state"] != "withdrawn"]


def _violation(row: Mapping[str, Any], principal: Principal) -> dict[str, Any]:
    seen = visible_violation(row, principal)
    withheld = [name for name in seen["withheld"] if name in _VIOLATION or name == "requests"]
    return {**{name: seen.get(name) for name in _VIOLATION}, "withheld": withheld}


def _objective(row: Mapping[str, Any], principal: Principal) -> dict[str, Any]:
    hidden: list[str] = []
    if not principal.holds(Scope.READ_THRESHOLDS):
        hidden += _TERMS
    if not principal.holds(*metric_scopes(row["indicator"])):
        hidden += [name for name in _COUNTS if name not in hidden]
    return _without(row, hidden)


def _restatement(row: Mapping[str, Any] | None, principal: Principal) -> dict[str, Any] | None:
    if row is None:
        return None
    hidden = [] if principal.holds(Scope.READ_CREDITS) else ["credit_delta"]
    if not principal.holds(*metric_scopes(None)):
        hidden.append("objective_deltas")
    return _without(row, hidden)


def _without(row: Mapping[str, Any], hidden: Any) -> dict[str, Any]:
    return {**row, **dict.fromkeys(hidden), "withheld": list(hidden)}
