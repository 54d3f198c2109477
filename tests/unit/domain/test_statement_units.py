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


CONTEXT = {
    "method": "total_ratio",
    "indicator": "context_fidelity",
    "evaluator": "cf4k 1",
    "minimum_valid": 1,
    "target": "95",
}


@pytest.mark.parametrize(
    ("good", "bad", "score"),
    [(196, 4, "0.980000"), (10**8 - 1, 1, "0.999999"), (7, 0, "1.000000"), (2, 1, "0.666666"), (0, 5, "0.000000")],
)
def test_facts_kept_and_lost_are_told_as_counts_and_as_a_score(good: int, bad: int, score: str) -> None:
    found = settled(terms(CONTEXT), [(1, (good, bad))])
    (shown,) = objective_documents(found)
    assert (shown["good"], shown["valid"], shown["unit"], shown["score"]) == (good, good + bad, "facts", score)
    assert objective_cells(found.objectives[0])[1] == f"{good}/{good + bad} facts (score {score})"


def test_of_no_facts_there_is_no_score_and_of_requests_neither() -> None:
    (empty,) = objective_documents(settled(terms(CONTEXT), []))
    (plain,) = objective_documents(settled(terms({"method": "total_ratio"}), [(1, (9, 1))]))
    assert "score" not in empty
    assert "score" not in plain


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
