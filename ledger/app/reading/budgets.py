"""Error budgets of an agreement's period as a principal may see them.

A budget says what the target is, so all of it needs the scope of thresholds; the figures of an objective need the scope
of its indicator as well. Fractions are exact: numerator and denominator as decimal strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ledger.app.access import RESOURCE_SCOPES, Principal, metric_scopes, require
from ledger.app.agreements.registering import timeline_of
from ledger.app.paging import Row
from ledger.app.ports.store import Transaction
from ledger.domain.methods.registry import unit_of
from ledger.domain.money import fraction_document
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.lifecycle import Terms, Timeline
from ledger.domain.time.calendar import Period, parse_window_seconds
from ledger.domain.time.interval import Interval
from ledger.domain.violations.budget import ASSUMPTION, BudgetReport, Burn, budget_reports
from ledger.domain.windows.window import Cell, Window, WindowState
from ledger.errors import CalendarInvalid, NotFound, QueryInvalid

DEFAULT_WINDOWS = ("PT1H", "PT6H", "PT72H")
MAX_WINDOWS = 10

FIGURES = ("counted", "bad", "undecided", "valid", "allowed", "remaining", "burnt", "exhausted", "burns")
"""Members of a budget that the scope of its indicator shows."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """The budgets of one period, in the order of the agreement's objectives.

    ``judged_to_ns`` is the end of the last window with data, None where none has. Each of ``objectives`` has id,
    indicator, method, unit, target and ``FIGURES``, which are None where they are withheld.
    """

    sla_id: str
    period: str
    start_ns: int
    end_ns: int
    judged_to_ns: int | None
    assumption: str
    objectives: tuple[Row, ...]


def read_windows_asked(text: str | None) -> tuple[str, ...]:
    """The windows that burn rates are asked over, such as ``PT1H,PT6H``; raises ``QueryInvalid``."""
    names = DEFAULT_WINDOWS if text is None else tuple(part.strip() for part in text.split(","))
    if len(names) > MAX_WINDOWS:
        raise QueryInvalid(f"{len(names)} windows are asked for; at most {MAX_WINDOWS}", parameter="window")
    try:
        for name in names:
            parse_window_seconds(name)
    except CalendarInvalid as error:
        raise QueryInvalid(f"window: {error.message}", parameter="window") from error
    return names


def read_budgets(
    tx: Transaction,
    principal: Principal,
    sla_id: str,
    *,
    period: str | None = None,
    over: Sequence[str] = DEFAULT_WINDOWS,
    now_ns: int,
) -> Budgets:
    """The budgets of a period by its newest judgements: of the one named, else of the one that runs, where it was
    judged already, else of the newest with a statement.

    Raises ``AccessDenied``, and ``NotFound`` for an agreement that is not there or not seen, or has no period yet.
    """
    require(principal, *sorted(RESOURCE_SCOPES["budgets"]))
    if not principal.may_see(sla_id):
        raise NotFound(f"there is no agreement {sla_id}", agreement=sla_id)
    terms, chosen = _period(tx, sla_id, timeline_of(tx, sla_id), period, now_ns)
    agreement = terms.agreement
    windows = judged_windows(agreement, chosen, tx.views.windows(sla_id, str(chosen)))
    reports = budget_reports(agreement, windows, [parse_window_seconds(name) for name in over])
    return Budgets(
        sla_id=sla_id,
        period=str(chosen),
        start_ns=chosen.interval.start_ns,
        end_ns=chosen.interval.end_ns,
        judged_to_ns=reports[0].judged_to_ns,
        assumption=ASSUMPTION,
        objectives=tuple(_visible(report, over, principal) for report in reports),
    )


def judged_windows(agreement: Agreement, period: Period, rows: Sequence[Row]) -> list[Window]:
    """All windows of a period from the view's rows; those that were not judged yet have no data."""
    known = {row["index"]: row for row in rows}
    return [_window(agreement, interval, known.get(at)) for at, interval in enumerate(agreement.windows(period))]


def _window(agreement: Agreement, interval: Interval, row: Row | None) -> Window:
    if row is None or row["state"] != WindowState.OBSERVED:
        state = WindowState.NO_DATA if row is None else WindowState(row["state"])
        return Window(interval, state, tuple(Cell(0, 0) for _ in agreement.objectives))
    # Terms may have changed since the window was judged.
    cells = (row["cells"].get(objective.id) for objective in agreement.objectives)
    return Window(interval, WindowState.OBSERVED, tuple(Cell.from_document(cell) for cell in cells))


def _period(tx: Transaction, sla_id: str, timeline: Timeline, name: str | None, now_ns: int) -> tuple[Terms, Period]:
    if name is not None:
        return timeline.named(name)
    running = timeline.at(now_ns)
    if running is not None and tx.views.windows_page(sla_id, str(running), after=None, limit=1):
        return timeline.starting(running.first)
    settled = tx.views.statements(sla_id)
    if settled:
        return timeline.named(max(settled, key=lambda row: row["start_ns"])["period"])
    if running is not None:
        return timeline.starting(running.first)
    newest = timeline.newest
    raise NotFound(
        f"no period of {sla_id} runs now and none was settled; name one, such as {newest.effective_from}/"
        f"{newest.period_length}",
        agreement=sla_id,
    )


def _visible(report: BudgetReport, over: Sequence[str], principal: Principal) -> Row:
    budget, objective = report.budget, report.budget.objective
    shown: dict[str, Any] = {
        "id": objective.id,
        "indicator": objective.indicator,
        "method": objective.method,
        "unit": unit_of(objective),
        "target": objective.target,
        "counted": budget.counted,
        "bad": budget.bad,
        "undecided": budget.undecided,
        "valid": budget.valid,
        "allowed": fraction_document(budget.allowed),
        "remaining": fraction_document(budget.remaining),
        "burnt": None if budget.burnt is None else fraction_document(budget.burnt),
        "exhausted": budget.exhausted,
        "burns": [_burn(name, burn) for name, burn in zip(over, report.burns, strict=True)],
    }
    hidden = () if principal.holds(*metric_scopes(objective.indicator)) else FIGURES
    return {**shown, **dict.fromkeys(hidden), "withheld": list(hidden)}


def _burn(name: str, burn: Burn) -> dict[str, Any]:
    return {
        "window": name,
        "start_ns": None if burn.interval is None else burn.interval.start_ns,
        "end_ns": None if burn.interval is None else burn.interval.end_ns,
        "bad": burn.bad,
        "valid": burn.valid,
        "rate": None if burn.rate is None else fraction_document(burn.rate),
        "exhaustion": str(burn.exhaustion),
        "exhausted_at_ns": burn.exhausted_at_ns,
    }
