"""The methods as published: name, version, unit, and why a circuit cannot follow one."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.domain.credits.settlement import attestability
from ledger.domain.methods.registry import METHODS, grid_of, unit_of
from ledger.errors import DocumentInvalid
from tests.unit.domain.methods.timeline import terms

NOT_A_SUM = "is no sum over sealed counts, which is all that the circuits add up"


def test_the_methods_as_published() -> None:
    assert [(each.name, each.version, each.unit, each.not_attestable) for each in METHODS.values()] == [
        ("total_ratio", 1, None, None),
        ("exact_quantile", 1, None, None),
        ("graded_score-v1", 1, "thousandths of a request", None),
        ("interval_mean-v1", 1, "billionths of an interval", f"a mean of ratios {NOT_A_SUM}"),
        ("downtime_minutes-v1", 1, "minutes", f"whether a minute is down {NOT_A_SUM}"),
        ("interval_threshold-v1", 1, "intervals", f"whether an interval is down {NOT_A_SUM}"),
        ("deployment_minutes-v1", 1, "deployment windows", None),
        ("attainment-v1", 1, "slices", f"whether a slice meets its target {NOT_A_SUM}"),
    ]
    assert list(METHODS) == [each.name for each in METHODS.values()]


def test_what_each_method_looks_at_and_which_divide_by_time() -> None:
    assert {name: (each.looks_at, each.of_time) for name, each in METHODS.items()} == {
        "total_ratio": ("window", False),
        "exact_quantile": ("window", False),
        "graded_score-v1": ("window", False),
        "interval_mean-v1": ("interval", True),
        "downtime_minutes-v1": ("minute", True),
        "interval_threshold-v1": ("interval", True),
        "deployment_minutes-v1": ("window", False),
        "attainment-v1": ("slice", False),
    }


@pytest.mark.parametrize(
    ("objective", "grid"),
    [
        ({"method": "total_ratio"}, (1, 1)),
        ({"method": "interval_mean-v1", "interval": "PT5M"}, (5, 5)),
        ({"method": "downtime_minutes-v1", "error_rate": "5", "boundary": "above"}, (1, 1)),
        ({"method": "attainment-v1", "slice": {"window": "PT15M", "target": "95"}}, (15, 15)),
        ({"method": "attainment-v1", "slice": {"window": "PT15M", "step": "PT5M", "target": "95"}}, (15, 5)),
    ],
)
def test_windows_in_what_a_method_looks_at_and_from_one_to_the_next(
    objective: dict[str, Any], grid: tuple[int, int]
) -> None:
    (found,) = terms({"target": "99", **objective}).objectives
    assert grid_of(found, 60) == grid


@pytest.mark.parametrize(
    ("objective", "unit"),
    [
        ({"method": "total_ratio"}, "requests"),
        ({"method": "total_ratio", "indicator": "checksum_failure"}, "loads"),
        ({"method": "interval_mean-v1", "interval": "PT5M"}, "billionths of an interval"),
    ],
)
def test_a_result_has_the_unit_of_its_method_or_indicator(objective: dict[str, str], unit: str) -> None:
    (found,) = terms(objective).objectives
    assert unit_of(found) == unit


def test_why_a_statement_is_not_proved_names_objective_and_method() -> None:
    hourly = {"window": "PT1H", "period": "P1D"}
    mean = terms({"method": "interval_mean-v1", "interval": "PT1H"}, **hourly)
    assert attestability(mean) == (f"objective is measured by interval_mean-v1: a mean of ratios {NOT_A_SUM}",)
    assert attestability(terms({"method": "total_ratio"}, **hourly)) == ()
    (reason,) = attestability(terms({"method": "total_ratio", "confidence": "wilson-95"}, **hourly))
    assert reason == "objective asks for confidence (wilson-95), which no circuit works out"
    (reason,) = attestability(terms({"method": "total_ratio", "minimum_valid": 1}, **hourly))
    assert reason == "objective has a minimum volume, which no circuit checks"


@pytest.mark.parametrize(
    ("method", "members"),
    [
        ("interval_mean-v1", {"interval": "PT1H"}),
        ("interval_threshold-v1", {"interval": "PT1H", "error_rate": "5", "boundary": "above"}),
        ("downtime_minutes-v1", {"error_rate": "5", "boundary": "above"}),
        ("deployment_minutes-v1", {"indicator": "deployment_up"}),
        ("attainment-v1", {"slice": {"window": "PT1H", "target": "95"}}),
    ],
)
def test_a_window_without_effect_is_refused(method: str, members: dict[str, Any]) -> None:
    said = {"method": method, "target": "99", **members}
    assert terms(said).objectives[0].window_seconds is None
    with pytest.raises(DocumentInvalid, match=rf"objectives\[0\]\.window: {method} .* so PT5M has no effect") as caught:
        terms({**said, "window": "PT5M"})
    assert caught.value.data["field"] == "objectives[0].window"
