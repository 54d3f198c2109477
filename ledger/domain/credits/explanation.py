"""The explanation of a statement: every number of it down to windows and clauses, so that a reader redoes it by hand.

A pure function of the terms and of what the ledger, or a bundle, holds: the command line and the API say the same.
Plain JSON: counts are numbers, products and amounts decimal strings, instants nanoseconds as decimal strings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ledger.domain.credits.credit_steps import credit_steps
from ledger.domain.credits.judged_units import Unit, units_of
from ledger.domain.credits.method_words import METHOD_WORDS
from ledger.domain.credits.verdict import Z_SQUARED_E18
from ledger.domain.methods.registry import METHODS, unit_of
from ledger.domain.money import PARTS_PER_BILLION
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.indicators import INDICATORS, shown_score
from ledger.domain.terms.objective import Objective
from ledger.domain.time.calendar import first_date
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.time.interval import Interval
from ledger.domain.violations.violation import clause_of
from ledger.domain.windows.window import Cell, Window, WindowState

FORMAT = "sla-ledger/explanation/v1"
MAX_LISTED = 50
"""Units, and runs of windows, that are listed unless all are asked for."""
MAX_ALL = 100_000

_COMPARED = "good x 10^9 against valid x target in parts per billion"


@dataclass(frozen=True, slots=True)
class Holdings:
    """What is at hand beside statement and terms; None: that was not to be had, as for a bundle.

    ``windows`` are payloads of ``window_evaluated``, by index; ``violations`` and ``lines`` are rows as the views
    have them; ``rulings`` say what became of each recorded exclusion.
    """

    windows: Sequence[Mapping[str, Any]] | None = None
    violations: Sequence[Mapping[str, Any]] | None = None
    lines: Sequence[Mapping[str, Any]] | None = None
    rulings: Sequence[Mapping[str, Any]] | None = None


def explain(
    agreement: Agreement,
    issued: Mapping[str, Any],
    held: Holdings,
    *,
    all_windows: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> dict[str, Any]:
    """The explanation of the statement whose ``statement_issued`` payload is ``issued``.

    ``progress`` is told objectives done, of how many. Raises ``LookupError``, ``TypeError`` or ``ValueError`` where
    the payload's trace is none.
    """
    windows = None if held.windows is None else [_window(agreement, payload) for payload in held.windows]
    limit = MAX_ALL if all_windows else MAX_LISTED
    objectives = []
    for at, result in enumerate(issued["objectives"]):
        progress(at, len(issued["objectives"]))
        objectives.append(_objective(agreement, result, windows, limit, all_windows=all_windows))
    return {
        "format": FORMAT,
        "statement": {
            name: issued.get(name)
            for name in (
                *("statement_id", "sla_id", "statement_version", "terms_version", "doc_sha256", "period"),
                *("start_ns", "end_ns", "state", "tzdata", "accepts_until_ns", "attestable"),
            )
        }
        | {"service": agreement.service, "timezone": agreement.timezone},
        "coverage": _coverage(agreement, issued, held.windows, limit),
        "objectives": objectives,
        "credit": None
        if issued["state"] == "withheld"
        else {
            "currency": issued["credit"]["currency"],
            "minor_units": issued["credit"]["minor_units"],
            "steps": credit_steps(agreement, issued["trace"], issued["objectives"], part=_is_part(agreement, issued)),
        },
        "exclusions": None if held.rulings is None else list(held.rulings),
        "violations": None if held.violations is None else list(held.violations),
        "credit_lines": None if held.lines is None else list(held.lines),
        "restatement": _restatement(issued),
    }


def _is_part(agreement: Agreement, issued: Mapping[str, Any]) -> bool:
    return bool(str(agreement.periods.uncut(first_date(issued["period"]))) != issued["period"])


def _window(agreement: Agreement, payload: Mapping[str, Any]) -> Window:
    start_ns = int(payload["start_ns"])
    interval = Interval(start_ns, start_ns + agreement.window_seconds * SECOND_NS)
    cells = (payload["cells"].get(objective.id) for objective in agreement.objectives)
    return Window(interval, WindowState(payload["state"]), tuple(Cell.from_document(cell) for cell in cells))


def _coverage(
    agreement: Agreement, issued: Mapping[str, Any], windows: Sequence[Mapping[str, Any]] | None, limit: int
) -> dict[str, Any]:
    whole = issued["windows"] - issued["excluded"]
    left, right = issued["observed"] * 10_000, whole * agreement.coverage_floor_bps
    found: dict[str, Any] = {
        "windows": issued["windows"],
        "observed": issued["observed"],
        "excluded": issued["excluded"],
        "no_data": whole - issued["observed"],
        "idle": issued["idle"],
        "window_seconds": agreement.window_seconds,
        "floor": {
            "floor_bps": agreement.coverage_floor_bps,
            "says": "observed x 10,000 against (windows - excluded) x the floor in basis points",
            "left": str(left),
            "right": str(right),
            "holds": left >= right,
        },
        "without_data": None,
        "left_out": None,
        "states": None,
        "requests_left_out": None,
    }
    if windows is not None:
        states = [payload["state"] for payload in windows]
        found |= {
            "without_data": _ranges(windows, "no_data", limit),
            "left_out": _ranges(windows, "excluded", limit),
            "states": _strip(windows, states),
            "requests_left_out": _left_out(windows),
        }
    return found


def _ranges(windows: Sequence[Mapping[str, Any]], state: str, limit: int) -> dict[str, Any]:
    """Runs of windows in a state, and why: which exclusions take them out."""
    runs = []
    for found, group in groupby(windows, key=lambda payload: payload["state"]):
        members = list(group)
        if found == state:
            reasons = sorted({name for each in members for name in each.get("exclusions", {})})
            runs.append(
                {
                    "first_window": members[0]["index"],
                    "windows": len(members),
                    "start_ns": members[0]["start_ns"],
                    "end_ns": members[-1]["end_ns"],
                    "exclusions": reasons,
                }
            )
    return {"total": sum(run["windows"] for run in runs), "runs": len(runs), "listed": runs[:limit]}


def _strip(windows: Sequence[Mapping[str, Any]], states: Sequence[str]) -> str:
    """One letter a window: observed, idle, excluded, no data."""
    letters = {"excluded": "e", "no_data": "n"}
    return "".join(
        letters.get(state) or ("o" if any(sum(cell.values()) for cell in payload["cells"].values()) else "i")
        for payload, state in zip(windows, states, strict=True)
    )


def _left_out(windows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Requests that leave both sides, by the clause and by the exclusion that says so."""
    sums: dict[str, dict[str, int]] = {"by_clause": {}, "by_exclusion": {}}
    for payload in windows:
        for name, member in (("by_clause", "excluded_requests"), ("by_exclusion", "exclusions")):
            for key, count in payload.get(member, {}).items():
                sums[name][key] = sums[name].get(key, 0) + count
    return {name: {key: count for key, count in found.items() if count} for name, found in sums.items()}


def _objective(
    agreement: Agreement,
    result: Mapping[str, Any],
    windows: Sequence[Window] | None,
    limit: int,
    *,
    all_windows: bool,
) -> dict[str, Any]:
    index = {objective.id: at for at, objective in enumerate(agreement.objectives)}[result["id"]]
    objective = agreement.objectives[index]
    words = METHOD_WORDS[objective.method]
    undecided = result.get("undecided", 0)
    bad = result["valid"] - result["good"] - undecided
    score = shown_score(unit_of(objective), result["good"], result["valid"])
    return {
        "id": objective.id,
        "indicator": objective.indicator,
        "clause": clause_of(agreement, objective),
        "method": {
            "name": objective.method,
            "version": METHODS[objective.method].version,
            "words": words.words,
            "formula": words.formula,
            "published_by": words.publishers,
            "counts_as_good": objective.source.counts_as_good or INDICATORS[objective.indicator].good,
        },
        "parameters": _parameters(agreement, objective.id),
        "selects": None if objective.where is None else str(objective.where),
        "unit": unit_of(objective),
        "counts": {"good": result["good"], "valid": result["valid"], "bad": bad, "undecided": undecided}
        | ({} if score is None else {"score": score}),
        "state": result["state"],
        "verdict": _verdict(objective, result, undecided),
        "units": None if windows is None else _units(agreement, windows, index, limit, all_windows=all_windows),
    }


def _parameters(agreement: Agreement, name: str) -> dict[str, Any]:
    """The objective as the parties signed it."""
    document = next(each for each in agreement.document["objectives"] if each["id"] == name)
    return {key: value for key, value in document.items() if key not in ("id", "indicator", "method", "clause")}


def _verdict(objective: Objective, result: Mapping[str, Any], undecided: int) -> dict[str, Any]:
    """How the state follows from the counts, as comparisons of whole numbers."""
    good, valid, target = result["good"], result["valid"], objective.target_ppb
    right = valid * target
    found: dict[str, Any] = {
        "target_ppb": target,
        "says": _COMPARED,
        "left": str(good * PARTS_PER_BILLION),
        "right": str(right),
        "holds": good * PARTS_PER_BILLION >= right,
        "follows": _FOLLOWS[result["state"]],
    }
    if undecided:
        at_best = (good + undecided) * PARTS_PER_BILLION
        found["with_undecided"] = {"left": str(at_best), "right": str(right), "holds": at_best >= right}
    if objective.minimum_valid:
        found["minimum_valid"] = objective.minimum_valid
    if objective.wilson:
        found["confidence"] = (
            "breached only where (valid x target - (good + undecided) x 10^9)^2 x 10^18 is above "
            f"{Z_SQUARED_E18} x valid x target x (10^9 - target): the 95 % Wilson bound misses the target, too"
        )
    return found


_FOLLOWS = {
    "met": "left is at least right: met",
    "breached": "left is below right: breached",
    "no_data": "nothing was valid: no verdict",
    "insufficient_data": "too few, undecided, or not sure enough by the agreement: no verdict",
    "withheld": "coverage is below the floor: no verdict",
}


def _units(
    agreement: Agreement, windows: Sequence[Window], index: int, limit: int, *, all_windows: bool
) -> dict[str, Any]:
    called, found = units_of(agreement.objectives, windows, index, agreement.window_seconds)
    telling = found if all_windows else [unit for unit in found if unit.bad or unit.undecided or unit.lost]
    listed = telling[:limit]
    shown = {unit.first_window for unit in listed}
    rest = [unit for unit in found if unit.first_window not in shown]
    return {
        "unit": called,
        "total": len(found),
        "counted": sum(unit.counted for unit in found),
        "lost": sum(unit.lost for unit in found),
        "picture": _picture(found, len(windows)),
        "listed": [_unit_document(unit, windows) for unit in listed],
        # What is not listed, so that sums can be worked out all the same.
        "others": {
            "units": len(rest),
            "counted": sum(unit.counted for unit in rest),
            "lost": sum(unit.lost for unit in rest),
            "good": sum(unit.good for unit in rest),
            "bad": sum(unit.bad for unit in rest),
            "undecided": sum(unit.undecided for unit in rest),
        },
    }


def _picture(found: Sequence[Unit], windows: int) -> str:
    """One letter a window: x where something counts as bad, a dot elsewhere."""
    letters = ["."] * windows
    for unit in found:
        if unit.lost:
            letters[unit.first_window : unit.first_window + unit.windows] = "x" * unit.windows
    return "".join(letters)


def _unit_document(unit: Unit, windows: Sequence[Window]) -> dict[str, Any]:
    last = unit.first_window + unit.windows - 1
    return {
        "first_window": unit.first_window,
        "windows": unit.windows,
        "start_ns": str(windows[unit.first_window].interval.start_ns),
        "end_ns": str(windows[last].interval.end_ns),
        "state": str(unit.state),
        "good": unit.good,
        "bad": unit.bad,
        "undecided": unit.undecided,
        "counted": unit.counted,
        "lost": unit.lost,
    }


def _restatement(issued: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a later version says of the one it replaces."""
    if "restates" not in issued:
        return None
    return {name: issued.get(name) for name in ("restates", "reason", "objective_deltas", "credit_delta")}
