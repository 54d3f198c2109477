"""Verdicts at their bounds: targets and tiers, what is undecided, and Wilson's interval against its own formula."""

from __future__ import annotations

import json
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from api.rest.values import attainment_percent
from ledger.cli.output import percent_floored
from ledger.domain.credits import verdict
from ledger.domain.credits.compensation import credit_trace
from ledger.domain.credits.verdict import (
    ObjectiveResult,
    ObjectiveState,
    judge,
    judge_objective,
    wilson_bound_misses,
)
from ledger.errors import DocumentInvalid
from tests.unit.domain.methods.timeline import settled, terms

PPB = 10**9


@pytest.mark.parametrize(
    ("good", "undecided", "state"),
    [
        (95, 0, "met"),
        (95, 5, "met"),
        (94, 1, "insufficient_data"),
        (90, 5, "insufficient_data"),
        (89, 5, "breached"),
        (94, 0, "breached"),
    ],
)
def test_what_is_undecided_may_be_good_or_bad(good: int, undecided: int, state: str) -> None:
    assert judge(good, 100, 950_000_000, undecided) == state


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(1, PPB))
def test_deciding_what_was_open_never_turns_a_verdict(good: int, bad: int, undecided: int, target_ppb: int) -> None:
    valid = good + bad + undecided
    state = judge(good, valid, target_ppb, undecided)
    ways = {judge(good + more, valid, target_ppb) for more in range(undecided + 1)}
    assert ways == {state} if state is not ObjectiveState.INSUFFICIENT_DATA else len(ways) == 2


def test_open_02_tiers(sla_fixtures: Path) -> None:
    (path,) = (sla_fixtures / "sla/cases").glob("case_open_02_*.json")
    case = json.loads(path.read_text())
    tiers = [{"below": tier["lt"], "credit_percent": tier["credit_percent"]} for tier in case["input"]["tiers"]]
    of = terms({"method": "total_ratio"}, compensation__rules__0__tiers={"objective": tiers})
    (objective,) = of.objectives
    found = {}
    for row in case["input"]["rows"]:
        if row["kind"] == "uptime_percent":
            share = Fraction(row["uptime_percent"]) / 100
            good, valid = share.numerator, share.denominator
        elif row["kind"] == "counts":
            good, valid = row["total"] - row["bad"], row["total"]
        else:
            continue  # the mean of intervals stands in methods/test_interval_mean.py
        result = ObjectiveResult(objective, good, valid, judge(good, valid, objective.target_ppb))
        trace = credit_trace(of, [result], [])
        found[row["id"]] = str(trace.combined_bps // 100)
        shown = case["expected"]["display_2dp_floor"].get(row["id"])
        if shown is not None:
            assert percent_floored(good, valid) == f"{attainment_percent(good, valid)} %"
            assert percent_floored(good, valid)[:-4] == shown
    expected = case["expected"]["credit_percent"]
    assert found == {name: expected[name] for name in found}
    assert set(expected) - set(found) == {"j"}


@given(st.integers(1, 2**60), st.data())
@example(25_000, None)  # 24999 of 25000 is 99.996 %
def test_100_percent_is_shown_only_where_nothing_failed(valid: int, data: Any) -> None:
    good = valid - 1 if data is None else data.draw(st.integers(0, valid) | st.just(valid - 1))
    for shown in (percent_floored(good, valid).removesuffix(" %"), attainment_percent(good, valid) or ""):
        assert (shown == "100.0000") is (good == valid)
        assert Fraction(shown) * valid <= good * 100 < (Fraction(shown) + Fraction(1, 10_000)) * valid


def _wilson_upper(good: int, valid: int) -> Decimal:
    """The upper end of Wilson's interval as his formula says it, with z of 95 % on one side, to 50 digits."""
    with localcontext() as context:
        context.prec = 50
        z = Decimal("1.64485362695147271486384890799163213608319574427532")
        p, n = Decimal(good) / valid, Decimal(valid)
        middle = p + z * z / (2 * n)
        spread = z * (p * (1 - p) / n + z * z / (4 * n * n)).sqrt()
        return (middle + spread) / (1 + z * z / n)


@given(st.integers(1, 5000), st.data())
def test_the_wilson_bound_is_wilsons(valid: int, data: st.DataObject) -> None:
    good = data.draw(st.integers(0, valid))
    upper = _wilson_upper(good, valid)
    nearest = int(upper * PPB)
    for target_ppb in {data.draw(st.integers(1, PPB)), nearest - 1, nearest, nearest + 1, nearest + 2}:
        if 0 < target_ppb <= PPB and abs(upper - Decimal(target_ppb) / PPB) > Decimal("1e-40"):
            assert wilson_bound_misses(good, valid, target_ppb) is (upper < Decimal(target_ppb) / PPB)


def test_the_square_of_z_to_eighteen_digits() -> None:
    with localcontext() as context:
        context.prec = 50
        z = Decimal("1.64485362695147271486384890799163213608319574427532")
        assert int(z * z * 10**18) == verdict.Z_SQUARED_E18


def test_states_are_spelt_as_statements_spell_them() -> None:
    assert [str(state) for state in ObjectiveState] == ["met", "breached", "no_data", "insufficient_data", "withheld"]


def test_wilson_at_its_target() -> None:
    # All good is never short of any target; all bad of one is short only of targets above z^2 / (1 + z^2).
    assert not wilson_bound_misses(10, 10, PPB)
    assert wilson_bound_misses(9, 10, PPB)
    assert not wilson_bound_misses(0, 1, 730_134_051)
    assert wilson_bound_misses(0, 1, 730_134_052)


# Samples: of 100 answers 98.2 have to agree with the facts.
FACTS = {
    "method": "total_ratio",
    "indicator": "fact_consistency",
    "evaluator": "factbench 2.1",
    "minimum_valid": 1,
    "target": "98.2",
    "confidence": "wilson-95",
}


@pytest.mark.parametrize(
    ("good", "bad", "state"),
    [
        (983, 17, "met"),
        (982, 18, "met"),
        (981, 19, "insufficient_data"),  # below, but not surely
        # 1000 * (0.982 - p)^2 > z^2 * 0.982 * 0.018 where more than 6.9 are short of 982.
        (976, 24, "insufficient_data"),
        (975, 25, "breached"),
        (0, 1, "breached"),
        (0, 0, "no_data"),
    ],
)
def test_a_breach_needs_the_confidence_agreed_on(good: int, bad: int, state: str) -> None:
    found = settled(terms(FACTS), [(1, (good, bad))])
    assert found.objectives[0].state == state
    assert found.credit == (80_000 if state == "breached" else 0)
    plain = settled(terms({key: value for key, value in FACTS.items() if key != "confidence"}), [(1, (good, bad))])
    assert plain.objectives[0].state == ("breached" if state == "insufficient_data" else state)


def test_what_is_undecided_counts_for_the_confidence_as_good() -> None:
    assert settled(terms(FACTS), [(1, (975, 25, 0))]).objectives[0].state == "breached"
    assert settled(terms(FACTS), [(1, (974, 25, 1))]).objectives[0].state == "breached"
    assert settled(terms(FACTS), [(1, (975, 24, 1))]).objectives[0].state == "insufficient_data"


@pytest.mark.parametrize(
    "objective",
    [
        {"method": "interval_mean-v1", "interval": "PT5M"},
        {"method": "attainment-v1", "slice": {"window": "PT5M", "target": "99"}},
        {"method": "deployment_minutes-v1", "indicator": "deployment_up"},
        {
            "method": "graded_score-v1",
            "indicator": "response_latency",
            "grades": [{"at_most_ms": "1000", "score": "1"}],
        },
        {"method": "total_ratio", "indicator": "logical_consistency", "measure": {"score_of": "5"}},
    ],
)
def test_confidence_is_for_what_is_counted_one_by_one(objective: dict[str, Any]) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        terms({**objective, "confidence": "wilson-95"})
    assert caught.value.data["field"] == "objectives[0].confidence"


@pytest.mark.parametrize(
    ("state", "pays"), [("met", True), ("breached", True), ("no_data", False), ("insufficient_data", False)]
)
def test_without_a_verdict_nothing_is_paid(state: str, pays: bool) -> None:
    (objective,) = terms({"method": "total_ratio"}).objectives
    result = ObjectiveResult(objective, 90, 100, ObjectiveState(state), undecided=5)
    assert result.pays_below(950_000_001) is pays
    assert not result.pays_below(950_000_000)
    assert not ObjectiveResult(objective, 90, 100, ObjectiveState.WITHHELD).pays_below(PPB)


def test_the_volume_is_that_of_the_indicator() -> None:
    (objective,) = terms({"method": "total_ratio", "minimum_valid": 100}).objectives
    assert judge_objective(objective, 10, 10, 0, 100) is ObjectiveState.MET
    assert judge_objective(objective, 1000, 1000, 0, 99) is ObjectiveState.INSUFFICIENT_DATA
    assert judge_objective(objective, 0, 0, 0, 0) is ObjectiveState.NO_DATA
