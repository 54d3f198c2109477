"""The objectives of a settlement as commands show them."""

from __future__ import annotations

from typing import Any

from ledger.cli.output import percent_floored
from ledger.domain.credits.settlement import Settlement, SettlementState, result_unit
from ledger.domain.credits.verdict import ObjectiveResult
from ledger.domain.terms.indicators import REQUESTS, shown_score

OBJECTIVE_COLUMNS = ("objective", "good/valid", "attained", "target", "verdict")


def objective_cells(result: ObjectiveResult) -> tuple[str, ...]:
    """One row of a table under ``OBJECTIVE_COLUMNS``."""
    return (
        result.objective.id,
        counts_text(result.good, result.valid, result.undecided, result_unit(result)),
        percent_floored(result.good, result.valid),
        f"{result.objective.target} %",
        str(result.state),
    )


def counts_text(good: int, valid: int, undecided: int, unit: str) -> str:
    """Counts in a table: the unit where it is not requests, how many may be good or bad, and the score they are also
    told as."""
    counts = f"{good}/{valid}" if unit == REQUESTS else f"{good}/{valid} {unit}"
    score = shown_score(unit, good, valid)
    said = [*([f"{undecided} undecided"] if undecided else []), *([] if score is None else [f"score {score}"])]
    return f"{counts} ({', '.join(said)})" if said else counts


def objective_documents(settlement: Settlement) -> list[dict[str, Any]]:
    """The member ``objectives`` of JSON output; ``target`` is the percentage as the agreement spells it. ``unit`` says
    what is counted where it is not requests, ``undecided`` how much of it may be good or bad where anything is,
    ``score`` what of the facts of a context was kept, from 0 to 1."""
    return [
        {
            "id": result.objective.id,
            "good": result.good,
            "valid": result.valid,
            "target": result.objective.target,
            "verdict": str(result.state),
            **_beyond_requests(result),
        }
        for result in settlement.objectives
    ]


def _beyond_requests(result: ObjectiveResult) -> dict[str, Any]:
    unit = result_unit(result)
    return {
        **({} if unit == REQUESTS else {"unit": unit}),
        **({"undecided": result.undecided} if result.undecided else {}),
        **({} if (score := shown_score(unit, result.good, result.valid)) is None else {"score": score}),
    }


def withheld_reason(settlement: Settlement) -> str | None:
    """Why a statement has neither verdict nor credit; None for one that has."""
    if settlement.state is not SettlementState.WITHHELD:
        return None
    coverage = settlement.coverage
    floor = f"{coverage.floor_bps // 100}.{coverage.floor_bps % 100:02}"
    return (
        f"Withheld: {coverage.observed} of {coverage.windows - coverage.excluded} windows were observed, "
        f"below the agreement's floor of {floor} %. No verdict, no credit."
    )
