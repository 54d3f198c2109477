"""A statement says what its figures count, and what of them is open; where they are requests it says nothing more."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.cli.objectives import objective_cells, objective_documents
from tests.unit.domain.methods.timeline import settled, terms

PLAIN = {"id", "good", "valid", "target", "state"}


@pytest.mark.parametrize(
    ("objective", "unit"),
    [
        ({"method": "interval_mean-v1", "interval": "PT5M"}, "billionths of an interval"),
        ({"method": "downtime_minutes-v1", "error_rate": "10", "boundary": "above"}, "minutes"),
        ({"method": "attainment-v1", "slice": {"window": "PT5M", "target": "99"}}, "slices"),
        ({"method": "total_ratio", "indicator": "token_rate", "tokenizer": "cl100k_base"}, "streams"),
    ],
)
def test_another_unit_than_requests_is_said(objective: dict[str, Any], unit: str) -> None:
    found = settled(terms(objective), [(1, (9, 1))])
    (said,) = found.as_document()["objectives"]
    assert set(said) == PLAIN | {"unit"}
    assert said["unit"] == unit
    (shown,) = objective_documents(found)
    assert (shown["unit"], "undecided" in shown) == (unit, False)
    assert objective_cells(found.objectives[0])[1] == f"{said['good']}/{said['valid']} {unit}"


def test_requests_are_what_is_counted_where_nothing_is_said() -> None:
    found = settled(terms({"method": "total_ratio"}), [(1, (9, 1))])
    (said,) = found.as_document()["objectives"]
    assert said == {"id": "objective", "good": 9, "valid": 10, "target": "99.9", "state": "breached"}
    assert objective_cells(found.objectives[0])[1] == "9/10"
    (shown,) = objective_documents(found)
    assert set(shown) == {"id", "good", "valid", "target", "verdict"}


def test_what_is_undecided_is_said() -> None:
    found = settled(terms({"method": "total_ratio"}), [(1, (9, 0, 1))])
    (said,) = found.as_document()["objectives"]
    assert set(said) == PLAIN | {"undecided"}
    assert (said["good"], said["valid"], said["undecided"], said["state"]) == (9, 10, 1, "insufficient_data")
    assert objective_cells(found.objectives[0])[1] == "9/10 (1 undecided)"
    (shown,) = objective_documents(found)
    assert shown["undecided"] == 1
