"""The objectives of a settlement as commands show them."""

from __future__ import annotations

from typing import Any

from ledger.cli.output import percent_floored
from ledger.domain.compensation import ObjectiveResult
from ledger.domain.settlement import Settlement

OBJECTIVE_COLUMNS = ("objective", "good/valid", "attained", "target", "verdict")


def objective_cells(result: ObjectiveResult) -> tuple[str, ...]:
    """One row of a table under ``OBJECTIVE_COLUMNS``."""
    return (
        result.objective.id,
        f"{result.good}/{result.valid}",
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
        }
        for result in settlement.objectives
    ]
