"""Credit lines sum to the credit, to the last minor unit, whatever the currency and the order."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.domain.credits.compensation import CreditTrace, credit_trace
from ledger.domain.credits.credit_lines import RULE_VERSION, LineStatus, credit_shares
from ledger.domain.credits.proration import apportion
from ledger.domain.credits.settlement import settle
from ledger.domain.money import currency_exponent, format_minor_units, minor_units
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period
from ledger.domain.violations.violation import violations
from ledger.domain.windows.window import Window
from tests.unit.domain import test_charges as charges
from tests.unit.domain.samples import agreement, put, windows

IDLE = (0, 0)
weights = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3),
    st.fractions(min_value=0, max_value=10**6, max_denominator=1000),
    min_size=1,
    max_size=12,
)


@settings(max_examples=50)
@given(st.integers(0, 10**12), weights)
def test_the_parts_are_the_whole(total: int, given_weights: dict[str, Fraction]) -> None:
    whole = sum(given_weights.values())
    if whole == 0:
        given_weights = {**given_weights, "z": Fraction(1)}
        whole = Fraction(1)
    parts = apportion(total, given_weights)
    assert sum(parts.values()) == total
    for key, part in parts.items():
        exact = total * given_weights[key] / whole
        assert abs(part - exact) < 1
        assert part == exact == 0 or given_weights[key] > 0


@settings(max_examples=50)
@given(st.integers(0, 10**9), weights, st.randoms())
def test_the_order_does_not_matter(total: int, given_weights: dict[str, Fraction], random: Any) -> None:
    given_weights |= {"z": Fraction(1, 3)}
    shuffled = list(given_weights.items())
    random.shuffle(shuffled)
    assert apportion(total, dict(shuffled)) == apportion(total, given_weights)


def test_equal_shares_get_the_rest_by_key() -> None:
    assert apportion(100, dict.fromkeys("cab", Fraction(1))) == {"a": 34, "b": 33, "c": 33}
    # An equal split of what is less than one each.
    assert apportion(2, dict.fromkeys("cab", Fraction(1))) == {"a": 1, "b": 1, "c": 0}


def test_nothing_can_be_shared_out_by_no_weight() -> None:
    assert apportion(0, {"a": Fraction(0)}) == {"a": 0}
    with pytest.raises(ValueError, match="weight"):
        apportion(1, {"a": Fraction(0)})


def settled(terms: Agreement, cells: dict[int, tuple[tuple[int, int], ...]]) -> tuple[CreditTrace, list[Window]]:
    judged = windows(terms, cells)
    period: Period = terms.period_starting(terms.effective_from.replace(month=6, day=14))
    trace = settle(terms, period, judged).trace
    assert trace is not None
    return trace, judged


def shares(terms: Agreement, cells: dict[int, tuple[tuple[int, int], ...]]) -> list[tuple[str | None, int | None, int]]:
    trace, judged = settled(terms, cells)
    found = credit_shares(trace, violations(terms, judged))
    assert sum(share.minor_units for share in found) == trace.credit
    return [
        (
            share.violation and share.violation.objective.id,
            share.violation and share.violation.first_window,
            share.minor_units,
        )
        for share in found
    ]


def test_the_objective_that_earned_the_credit_carries_it_by_bad_requests() -> None:
    cells = {1: ((80, 20), IDLE, IDLE), 2: ((100, 0), IDLE, IDLE), 3: ((0, 10), (8, 2), IDLE)}
    # availability 180/210 pays 50 % (capped at 4000.00), ttft 8/10 pays 15 %: the best one alone.
    assert shares(agreement(), cells) == [
        ("availability", 1, 266_667),
        ("availability", 3, 133_333),
        ("ttft", 3, 0),
    ]


def test_summed_tiers_are_carried_by_all_that_were_paid() -> None:
    terms = agreement(lambda plain: put(plain, "compensation.tiers_combine", "sum"))
    # response is met, so its line is 0; it has no breached window here and so no line at all.
    cells = {1: ((95, 5), IDLE, (99, 1)), 3: ((100, 0), (8, 2), IDLE)}
    found = shares(terms, cells)
    assert [name for name, _, _ in found] == ["availability", "ttft"]
    assert [units for _, _, units in found] == [228_571, 91_429]


def test_a_credit_that_no_violation_stands_for_has_a_line_of_its_own() -> None:
    # The ratio of a period follows from its windows; here the violation that earned the credit is left out.
    trace, judged = settled(agreement(), {1: ((90, 10), IDLE, IDLE), 3: (IDLE, (8, 2), IDLE)})
    terms = agreement()
    others = [each for each in violations(terms, judged) if each.objective.id == "ttft"]
    found = credit_shares(trace, others)
    assert [(share.violation and share.violation.objective.id, share.minor_units) for share in found] == [
        ("ttft", 0),
        (None, trace.credit),
    ]
    assert [(share.violation, share.minor_units) for share in credit_shares(trace, [])] == [(None, trace.credit)]


def test_no_credit_gives_lines_of_nothing() -> None:
    terms = agreement(lambda plain: put(plain, "compensation.minimum", "9999.00"))
    assert shares(terms, {1: ((0, 1), IDLE, IDLE)}) == [("availability", 1, 0)]
    assert shares(agreement(), {1: ((1, 0), IDLE, IDLE)}) == []


def test_incidents_carry_what_the_trace_says_of_them() -> None:
    terms = agreement(name="agreement-impact.yaml")
    objective = next(at for at, each in enumerate(terms.objectives) if each.id == terms.compensation.impact.objective)  # type: ignore[union-attr]

    def cell(good: int, bad: int) -> tuple[tuple[int, int], ...]:
        return tuple((good, bad) if at == objective else IDLE for at in range(len(terms.objectives)))

    trace, judged = settled(terms, {1: cell(90, 10), 2: cell(100, 0), 3: cell(0, 50)})
    found = {
        share.violation.first_window: share.minor_units
        for share in credit_shares(trace, violations(terms, judged))
        if share.violation
    }
    assert sum(found.values()) == trace.credit > 0
    for incident in trace.incidents:
        if trace.tier_amount is None and trace.combined_amount == trace.capped_amount:
            assert abs(found[incident.first_window] - incident.amount) < 1


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(["JPY", "USD", "KWD"]),
    st.integers(1, 10**7),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 9)), min_size=24, max_size=24),
    st.sampled_from(["best", "sum"]),
    st.randoms(),
)
def test_lines_sum_to_the_credit_in_every_currency(
    currency: str, base: int, hours: list[tuple[int, int, int]], combine: str, random: Any
) -> None:
    def change(plain: dict[str, Any]) -> None:
        plain["compensation"] |= {
            "currency": currency,
            "base": format_minor_units(base, currency),
            "caps": {},
            "minimum": "0",
            "tiers_combine": combine,
        }

    terms = agreement(change)
    cells = {hour: ((good, bad), (good, late), (good, 0)) for hour, (good, bad, late) in enumerate(hours)}
    trace, judged = settled(terms, cells)
    found = list(violations(terms, judged))
    lines = credit_shares(trace, found)
    assert sum(line.minor_units for line in lines) == trace.credit
    assert all(line.minor_units >= 0 for line in lines)
    assert sum(line.violation is not None for line in lines) == len(found)
    amounts = [format_minor_units(line.minor_units, currency) for line in lines]
    assert sum(minor_units(amount, currency) for amount in amounts) == trace.credit
    assert all(len(amount.partition(".")[2]) == currency_exponent(currency) for amount in amounts)
    random.shuffle(found)
    assert credit_shares(trace, found) == lines


FINE, SLOW = (100, 0), (10, 90)


@pytest.mark.parametrize(
    ("combine", "cells", "lines"),
    [
        # 50 % of 580.00 for availability is more than 2.00 for each of 100 requests of the slow hour.
        (
            "best",
            {1: (FINE, SLOW, FINE), 2: ((1, 9), FINE, (0, 3))},
            [("ttft", 1, 0), ("availability", 2, 29_000), ("response", 2, 0)],
        ),
        (
            "sum",
            {1: (FINE, SLOW, FINE), 2: ((1, 9), FINE, (0, 3))},
            [("ttft", 1, 20_000), ("availability", 2, 29_000), ("response", 2, 0)],
        ),
        # No tier is reached, and one hour is slow.
        ("sum", {1: (FINE, (94, 6), FINE), 2: (FINE, (10_000, 0), FINE)}, [("ttft", 1, 20_000)]),
        # 15 % of 580.00 for the first token is less than two slow hours.
        (
            "best",
            {1: (FINE, SLOW, FINE), 5: (FINE, (10, 40), FINE)},
            [("ttft", 1, 20_000), ("ttft", 5, 10_000)],
        ),
        # Both are carried by the first token: 87.00 by late requests, and each hour what it costs by itself.
        (
            "sum",
            {1: (FINE, SLOW, FINE), 5: (FINE, (10, 40), FINE)},
            [("ttft", 1, 20_000 + 6_023), ("ttft", 5, 10_000 + 2_677)],
        ),
    ],
)
def test_of_two_rules_the_larger_one_or_both_are_carried_by_what_earned_them(
    combine: str, cells: dict[int, Any], lines: list[tuple[str, int, int]]
) -> None:
    terms = agreement(lambda plain: put(plain, "compensation.rules_combine", combine), "agreement-impact.yaml")
    assert shares(terms, cells) == lines


def test_an_impact_rule_alone_is_carried_by_its_incidents_and_no_rule_by_nothing() -> None:
    impact = agreement(lambda plain: plain["compensation"]["rules"].pop(0), "agreement-impact.yaml")
    assert shares(impact, {1: (FINE, SLOW, FINE)}) == [("ttft", 1, 20_000)]
    assert shares(impact, {2: ((1, 9), FINE, FINE)}) == [("availability", 2, 0)]
    none = agreement(lambda plain: put(plain, "compensation.rules", []))
    assert shares(none, {2: ((1, 9), FINE, FINE)}) == [("availability", 2, 0)]


def test_a_hundredth_of_a_percent_is_paid_and_carried() -> None:
    def change(plain: dict[str, Any]) -> None:
        put(plain, "compensation.rules.0.tiers", {"availability": [{"below": "99", "credit_percent": "0.01"}]})
        put(plain, "compensation.minimum", "0")

    assert shares(agreement(change), {1: ((90, 10), IDLE, IDLE)}) == [("availability", 1, 80)]


def test_lines_are_named_as_their_events_name_them() -> None:
    assert RULE_VERSION == "credit-lines-v1"
    assert [str(status) for status in LineStatus] == ["draft", "issued", "applied", "void"]


def test_what_failed_in_an_hour_and_not_in_the_period_carries_nothing_of_a_sum() -> None:
    terms = agreement(lambda plain: put(plain, "compensation.tiers_combine", "sum"))
    found = shares(terms, {1: ((96, 4), IDLE, (98, 2)), 2: (IDLE, IDLE, (1_000, 0))})
    assert found == [("availability", 1, 200_000), ("response", 1, 0)]


# --- recorded charges: each objective has its own base -----------------------------------------------


def charged(of: Agreement, *lines: dict[str, Any]) -> dict[str, int]:
    """990 of 1000 available, 80 of 100 and 90 of 100 in time: 10 %, 15 % and 15 % of what was charged for each."""
    trace = charges.settled(of, *lines).trace
    assert trace is not None
    judged = windows(of, {3: ((990, 10), (80, 20), (90, 10))})
    found = {
        share.violation.objective.id: share.minor_units
        for share in credit_shares(trace, violations(of, judged))
        if share.violation
    }
    assert sum(found.values()) == trace.credit
    return found


def in_eu(**members: Any) -> Agreement:
    """The first token is promised for eu alone."""
    return charges.terms(objectives__1__scope={"region": "eu"}, compensation__caps={}, **members)


@pytest.mark.parametrize(
    ("eu", "us", "carried"),
    [
        # 15 % of 1000.00 for the response is the most, whatever percentage eu earned.
        ("100.00", "900.00", {"availability": 0, "ttft": 0, "response": 15_000}),
        # Of two that are equal each carries by what was bad: 20 and 10.
        ("1000.00", "0.00", {"availability": 0, "ttft": 10_000, "response": 5_000}),
    ],
)
def test_the_largest_amount_is_carried_by_the_objectives_that_earned_it(
    eu: str, us: str, carried: dict[str, int]
) -> None:
    assert charged(in_eu(), charges.line(eu, region="eu"), charges.line(us, region="us")) == carried


def test_a_sum_over_charges_is_carried_by_each_for_its_own() -> None:
    of = in_eu(compensation__tiers_combine="sum", compensation__minimum="0")
    lines = [charges.line("0.10", region="eu"), charges.line("0.23", region="us")]
    # 3.3, 1.5 and 4.95 of a minor unit each: ten in all, to the nearest.
    assert charged(of, *lines) == {"availability": 3, "ttft": 2, "response": 5}


@pytest.mark.parametrize(
    ("eu", "us", "carried"),
    [
        # 10 % and an hour of 24 of 1000.00, 15 % of 100.00, 15 % of 1000.00.
        ("100.00", "900.00", {"availability": 14_167, "ttft": 1_500, "response": 15_000}),
        # 1.275, 0.15 and 1.35 minor units: three in all.
        ("0.01", "0.08", {"availability": 1, "ttft": 0, "response": 2}),
    ],
)
def test_what_tiers_and_lost_time_pay_of_charges_is_added_up_for_each_violation(
    eu: str, us: str, carried: dict[str, int]
) -> None:
    lost = {"kind": "proportional", "method": "proportional-v1", "of": "lost_time", "pays": "always"}
    both = [*agreement().document["compensation"]["rules"], {**lost, "objective": "availability"}]
    money = {"tiers_combine": "sum", "rules_combine": "sum", "rules": both, "minimum": "0"}
    of = in_eu(**{f"compensation__{name}": value for name, value in money.items()})
    assert charged(of, charges.line(eu, region="eu"), charges.line(us, region="us")) == carried


def test_of_equal_parts_the_one_that_no_violation_stands_for_gets_the_rest() -> None:
    """100.5 minor units each: 10 % of 10.05 for availability, 15 % of 6.70 for the first token."""
    tiers = {name: [{"below": "95", "credit_percent": paid}] for name, paid in (("availability", "10"), ("ttft", "15"))}
    of = in_eu(compensation__tiers_combine="sum", compensation__rules__0__tiers=tiers)
    recorded = charges.charges(of, charges.line("6.70", region="eu"), charges.line("3.35", region="us"))
    judged = windows(of, {0: ((90, 10), (90, 10), IDLE)})
    trace = settle(of, of.period_starting(of.effective_from.replace(month=6, day=14)), judged, recorded).trace
    assert trace is not None
    late = [each for each in violations(of, judged) if each.objective.id == "ttft"]
    assert [share.minor_units for share in credit_shares(trace, late)] == [100, 101]


@pytest.mark.parametrize("combine", ["best", "sum"])
def test_a_part_of_a_period_without_a_charge_pays_nothing_and_has_its_lines(combine: str) -> None:
    life = {"from": "2023-03-20T00:00:00Z", "until": "2023-03-21T00:00:00Z"}
    (before, _), (none, _) = charges.cut(10), charges.parts_of_march(10, charges.line("100.00", life=life))
    of = agreement(lambda plain: plain.update(before.document) or put(plain, "compensation.tiers_combine", combine))
    results = charges.settled(charges.terms(), charges.line()).objectives
    trace = credit_trace(of, results, (), none)
    assert (trace.credit, credit_shares(trace, [])) == (0, ())
