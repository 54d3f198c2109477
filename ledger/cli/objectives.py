"""The objectives of a settlement as commands show them."""

from __future__ import annotations

from typing import Any

from ledger.cli.output import percent_floored
from ledger.domain.indicators import REQUESTS
from ledger.domain.settlement import Settlement, SettlementState, result_unit
from ledger.domain.verdict import ObjectiveResult

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
    """Counts in a table: the unit where it is not requests, and how many may be good or bad."""
    counts = f"{good}/{valid}" if unit == REQUESTS else f"{good}/{valid} {unit}"
    return f"{counts} ({undecided} undecided)" if undecided else counts


def objective_documents(settlement: Settlement) -> list[dict[str, Any]]:
    """The member ``objectives`` of JSON output; ``target`` is the percentage as the agreement spells it. ``unit`` says
    what is counted where it is not requests, ``undecided`` how much of it may be good or bad where anything is."""
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
