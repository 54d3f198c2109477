from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.domain.credits.compensation import CreditTrace, credit_trace
from ledger.domain.credits.settlement import Settlement, settle
from ledger.domain.credits.verdict import ObjectiveState, judge
from ledger.domain.money import format_minor_units
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.errors import DocumentInvalid
from tests.unit.domain.samples import agreement, put, windows

FINE = (100, 0)


def settled(terms: Agreement, cells: dict[int, tuple[tuple[int, int], ...]], **states: tuple[int, ...]) -> Settlement:
    return settle(terms, period_named(terms, "2023-06-14/P1D"), windows(terms, cells, **states))


def trace(terms: Agreement, cells: dict[int, tuple[tuple[int, int], ...]], **states: tuple[int, ...]) -> CreditTrace:
    found = settled(terms, cells, **states).trace
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("good", "valid", "target_ppb", "state"),
    [
        (999, 1000, 999_000_000, ObjectiveState.MET),
        (998_999_999, 10**9, 999_000_000, ObjectiveState.BREACHED),
        (0, 0, 1, ObjectiveState.NO_DATA),
        (0, 1, 1, ObjectiveState.BREACHED),
        (10, 10, 10**9, ObjectiveState.MET),
        (95, 100, 950_000_000, ObjectiveState.MET),
        (94, 100, 950_000_000, ObjectiveState.BREACHED),
    ],
)
def test_verdicts_are_exact(good: int, valid: int, target_ppb: int, state: ObjectiveState) -> None:
    assert judge(good, valid, target_ppb) is state


@pytest.mark.parametrize(
    ("bad", "credit"),
    [
        (0, 0),
        (5, 0),  # 99.95 %: at the threshold, not below it
        (6, 80_000),
        (100, 80_000),  # 99 %
        (101, 200_000),
        (500, 200_000),  # 95 %
        (501, 400_000),
        (10_000, 400_000),
    ],
)
def test_tier_boundaries_are_half_open_and_exact(bad: int, credit: int) -> None:
    assert settled(agreement(), {3: ((10_000 - bad, bad), FINE, FINE)}).credit == credit


def test_the_cap_and_its_absence() -> None:
    worst = {0: ((0, 100), FINE, FINE)}
    assert settled(agreement(lambda d: put(d, "compensation.caps", {"service": "123.45"})), worst).credit == 12_345
    assert settled(agreement(lambda d: put(d, "compensation.caps", {})), worst).credit == 400_000


def test_no_rules_pay_nothing() -> None:
    free = trace(agreement(lambda d: put(d, "compensation.rules", [])), {0: ((0, 100), FINE, FINE)})
    assert (free.capped_amount, free.payable, free.credit) == (0, False, 0)


@pytest.mark.parametrize(
    ("name", "value"), [("base", "1.001"), ("minimum", "0.005"), ("caps.contract", "1.234"), ("currency", "XTS")]
)
def test_an_amount_or_currency_that_there_is_not_is_named(name: str, value: str) -> None:
    with pytest.raises(DocumentInvalid, match=r"more than 2 decimal places|not an ISO 4217") as error:
        agreement(lambda d: put(d, f"compensation.{name}", value))
    assert error.value.data["field"] == f"compensation.{name}"


@pytest.mark.parametrize("visibility", ["public", "committed"])
def test_a_credit_is_public_or_committed(visibility: str) -> None:
    terms = agreement(lambda d: put(d, "compensation.credit_visibility", visibility))
    assert terms.compensation.credit_visibility == visibility


def test_at_most_16_tiers_and_16_rules() -> None:
    def steps(count: int) -> list[dict[str, str]]:
        return [{"below": str(95 - at), "credit_percent": str(at + 1)} for at in range(count)]

    def tiers(count: int) -> Agreement:
        return agreement(lambda d: put(d, "compensation.rules.0.tiers.ttft", steps(count)))

    rule = tiers(16).compensation.tiered
    assert rule is not None
    assert len(rule.tiers["ttft"]) == 16
    with pytest.raises(DocumentInvalid, match="16"):
        tiers(17)
    tiered = agreement().document["compensation"]["rules"][0]
    for count, said in ((16, "a second tiered rule"), (17, "16")):
        with pytest.raises(DocumentInvalid, match=said):
            agreement(lambda d, n=count: put(d, "compensation.rules", [tiered] * n))  # type: ignore[misc]


def test_best_takes_the_largest_percentage_and_sum_adds_up_to_100_percent() -> None:
    all_bad = {0: ((0, 100), (0, 100), (0, 100))}
    uncapped = {"compensation.caps": {}}
    best = agreement(lambda d: [put(d, path, value) for path, value in uncapped.items()])
    total = agreement(lambda d: [put(d, "compensation.caps", {}), put(d, "compensation.tiers_combine", "sum")])
    assert trace(best, all_bad).combined_bps == 5000
    assert trace(total, all_bad).combined_bps == 8000
    greedy = agreement(
        lambda d: [
            put(d, "compensation.caps", {}),
            put(d, "compensation.tiers_combine", "sum"),
            put(d, "compensation.rules.0.tiers.ttft", [{"below": "95", "credit_percent": "90"}]),
        ]
    )
    assert trace(greedy, all_bad).combined_bps == 10_000


@pytest.mark.parametrize(
    ("base", "minimum", "rounding", "credit"),
    [
        ("10.05", "0", "floor", 100),  # 10 % of 1005 minor units = 100.5
        ("10.05", "0", "half_up", 101),
        ("10.05", "0", "half_even", 100),
        ("10.15", "0", "half_even", 102),
        ("10.05", "1.00", "floor", 100),  # 100.5 > 100: the unrounded amount is compared
        ("10.00", "1.00", "half_up", 0),  # 100 > 100 is false
    ],
)
def test_minimum_is_strict_and_before_the_one_rounding(base: str, minimum: str, rounding: str, credit: int) -> None:
    terms = agreement(
        lambda d: [
            put(d, "compensation.base", base),
            put(d, "compensation.minimum", minimum),
            put(d, "compensation.rounding", rounding),
        ]
    )
    assert settled(terms, {0: ((9990, 10), FINE, FINE)}).credit == credit


def impact(**changes: Any) -> Agreement:
    def change(plain: dict[str, Any]) -> None:
        for path, value in changes.items():
            put(plain, "compensation." + path.replace("__", "."), value)

    return agreement(change, "agreement-impact.yaml")


SLOW = (FINE, (10, 90), FINE)
HEALTHY = (FINE, FINE, FINE)


def test_an_incident_is_a_maximal_run_of_breaching_windows() -> None:
    found = trace(impact(), {1: SLOW, 2: SLOW, 3: HEALTHY, 5: SLOW}).incidents
    assert [(run.first_window, run.windows, run.valid, run.good) for run in found] == [(1, 2, 200, 20), (5, 1, 100, 10)]
    assert [run.amount for run in found] == [200 * 200, 100 * 200]  # 2.5 * 0.8 CNY = 200 fen a request


@pytest.mark.parametrize(
    ("between", "states"),
    [
        ({}, {}),  # idle
        ({}, {"excluded": (2,)}),
        ({}, {"no_data": (2,)}),
        ({2: ((0, 50), (0, 0), (0, 0))}, {}),  # traffic, but nothing valid for the objective
    ],
)
def test_what_ends_an_incident(between: Any, states: Any) -> None:
    terms = impact()
    terms = agreement(lambda d: put(d, "coverage_floor", "90"), "agreement-impact.yaml") if states else terms
    found = trace(terms, {1: SLOW, 3: SLOW, **between}, **states).incidents
    assert [run.first_window for run in found] == [1, 3]


def test_a_window_breaches_by_its_own_counts_even_when_the_period_is_met() -> None:
    result = trace(impact(), {1: (FINE, (94, 6), FINE), 2: (FINE, (10_000, 0), FINE)})
    assert result.tiers[1].credit_bps == 0
    assert [run.valid for run in result.incidents] == [100]


def test_duration_and_rate_cancel_out() -> None:
    """duration_s * qps * coefficient * price, with qps = valid / duration_s."""
    run = trace(impact(), {1: SLOW, 2: SLOW}).incidents[0]
    duration_s = Fraction(run.end_ns - run.start_ns, 10**9)
    assert duration_s == 7200
    assert run.amount == duration_s * (run.valid / duration_s) * Fraction("2.5") * Fraction("0.8") * 100


def test_rules_combine_best_pays_the_larger_rule_and_sum_pays_both() -> None:
    cells = {1: SLOW, 5: SLOW}
    best, total = trace(impact(), cells), trace(impact(rules_combine="sum"), cells)
    assert best.impact_amount == 40_000
    assert best.tier_amount == 58_000 * 1500 // 10_000
    assert best.combined_amount == 40_000
    assert total.combined_amount == 40_000 + 8_700


def test_an_impact_rule_alone() -> None:
    terms = agreement(
        lambda d: put(d, "compensation.rules", [d["compensation"]["rules"][1]]), name="agreement-impact.yaml"
    )
    result = trace(terms, {1: SLOW})
    assert (result.tier_amount, result.tiers, result.credit) == (None, (), 20_000)


def test_fractions_of_a_minor_unit_are_rounded_once_at_the_end() -> None:
    terms = impact(rules__1__unit_price="0.001")  # 0.25 fen a request
    result = trace(terms, {1: (FINE, (1, 2), FINE), 5: (FINE, (1, 2), FINE)})
    assert [run.amount for run in result.incidents] == [Fraction(3, 4), Fraction(3, 4)]
    assert result.impact_amount == Fraction(3, 2)


def test_the_trace_is_plain_json_without_floats() -> None:
    for terms in (agreement(), impact()):
        document = trace(terms, {1: SLOW, 2: ((1, 9), FINE, (0, 3))}).as_document()

        def refuse(text: str) -> None:
            raise AssertionError(f"a float in the trace: {text}")

        assert json.loads(json.dumps(document), parse_float=refuse) == document
        assert int(document["credit"]) == settled(terms, {1: SLOW, 2: ((1, 9), FINE, (0, 3))}).credit


def test_the_trace_can_be_followed_by_hand() -> None:
    result = trace(agreement(), {1: ((970, 30), (90, 10), FINE)})
    availability, ttft, response = result.tiers
    assert (availability.tier, availability.below_ppb, availability.credit_bps) == (2, 990_000_000, 2500)
    assert (ttft.tier, ttft.credit_bps, response.tier, response.credit_bps) == (1, 500, None, 0)
    assert (result.combined_bps, result.tier_amount, result.capped_amount) == (2500, 200_000, 200_000)
    assert (result.cap, result.minimum, result.payable, result.credit) == (400_000, 100, True, 200_000)


def _tiers(currency: str, base: int, rounding: str, combine: str = "best", **members: Any) -> Agreement:
    def change(plain: dict[str, Any]) -> None:
        terms = {"currency": currency, "base": format_minor_units(base, currency), "rounding": rounding}
        plain["compensation"] |= {**terms, "caps": {}, "minimum": "0", "tiers_combine": combine, **members}

    return agreement(change)


requests = st.tuples(st.integers(0, 500), st.integers(0, 500))
hours = st.dictionaries(st.integers(0, 23), st.tuples(requests, requests, requests), max_size=5)
currencies = st.sampled_from(["JPY", "USD", "KWD", "CLF"])
modes = st.sampled_from(["floor", "half_up", "half_even"])


@settings(max_examples=60, deadline=None)
@given(currencies, st.integers(1, 10**9), modes, hours)
def test_a_credit_is_rounded_once_and_never_negative(currency: str, base: int, mode: str, cells: Any) -> None:
    found = trace(_tiers(currency, base, mode), cells)
    assert 0 <= found.credit <= base
    distance = found.credit - found.capped_amount
    assert -1 < distance <= 0 if mode == "floor" else abs(distance) <= Fraction(1, 2)
    assert format_minor_units(found.credit, currency).partition(".")[2].isdigit() is (currency != "JPY")


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 10**9), st.integers(1, 10**9), st.sampled_from(["best", "sum"]), hours)
def test_a_base_cut_in_two_pays_the_same_before_rounding(one: int, other: int, combine: str, cells: Any) -> None:
    amounts = [
        trace(_tiers("USD", base, "floor", combine), cells).combined_amount for base in (one, other, one + other)
    ]
    assert amounts[0] + amounts[1] == amounts[2]


@settings(max_examples=60, deadline=None)
@given(hours, st.integers(0, 23), st.integers(0, 2), st.integers(1, 500))
def test_one_more_failure_never_pays_less_and_best_at_most_sum(
    cells: Any, hour: int, objective: int, more: int
) -> None:
    before = list(cells.get(hour, ((0, 0),) * 3))
    good, bad = before[objective]
    worse = {**cells, hour: tuple((good, bad + more) if at == objective else pair for at, pair in enumerate(before))}
    for combine in ("best", "sum"):
        paid = [trace(_tiers("USD", 800_000, "floor", combine), each).credit for each in (cells, worse)]
        assert paid[0] <= paid[1]
    best, total = (trace(_tiers("USD", 800_000, "floor", combine), worse).credit for combine in ("best", "sum"))
    assert best <= total


@pytest.mark.parametrize("name", ["agreement.yaml", "agreement-impact.yaml"])
def test_whoever_has_results_and_incidents_needs_no_windows(name: str) -> None:
    terms = agreement(name=name)
    found = settled(terms, {1: (FINE, (10, 90), FINE), 2: ((1, 9), FINE, (0, 3))})
    assert found.trace is not None
    assert credit_trace(terms, found.objectives, (), runs=found.trace.incidents) == found.trace


def test_a_base_of_charges_is_never_taken_for_nothing() -> None:
    def by_charges(plain: dict[str, Any]) -> None:
        del plain["compensation"]["base"]
        put(plain, "compensation.charges", {"of": "period"})

    results = settled(agreement(), {1: (FINE, FINE, FINE)}).objectives
    with pytest.raises(ValueError, match="is charges, and none are given"):
        credit_trace(agreement(by_charges), results, ())
