"""The objectives of a settlement as commands show them."""

from __future__ import annotations

from typing import Any

from ledger.cli.output import percent_floored
from ledger.domain.settlement import Settlement, SettlementState
from ledger.domain.verdict import ObjectiveResult

OBJECTIVE_COLUMNS = ("objective", "good/valid", "attained", "target", "verdict")


def objective_cells(result: ObjectiveResult) -> tuple[str, ...]:
    """One row of a table under ``OBJECTIVE_COLUMNS``."""
    return (
        result.objective.id,
        f"{result.good}/{result.valid}" + (f" ({result.undecided} undecided)" if result.undecided else ""),
        percent_floored(result.good, result.valid),
        f"{result.objective.target} %",
        str(result.state),
    )


def objective_documents(settlement: Settlement) -> list[dict[str, Any]]:
    """The member ``objectives`` of JSON output; ``target`` is the percentage as the agreement spells it."""
    return [
        {
            "id": result.objective.id,
            "good": result.good,
            "valid": result.valid,
            "target": result.objective.target,
            "verdict": str(result.state),
            **({"undecided": result.undecided} if result.undecided else {}),
        }
        for result in settlement.objectives
    ]


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
