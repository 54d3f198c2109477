"""The scope cap holds in each scope: two regions, and what one earned is not cut off for the other."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.domain.credits.charges import Charges, read_charges
from ledger.domain.credits.compensation import CreditTrace
from ledger.domain.credits.credit_lines import CreditShare, credit_shares
from ledger.domain.credits.settlement import Settlement, attestability, settle
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.violations.violation import violations
from ledger.domain.windows.window import Window
from tests.unit.domain.samples import agreement, windows

DAY = "2023-06-14/P1D"
EU, US = {"region": "eu"}, {"region": "us"}
PROPORTIONAL = {"kind": "proportional", "method": "proportional-v1", "of": "lost_time", "pays": "always"}
TIERS = [{"below": "99", "credit_percent": "10"}, {"below": "95", "credit_percent": "30"}]
NAMES = ("eu-up", "eu-fast", "us-up")
"""Two promises for one region, one for the other."""


def terms(rules: list[dict[str, Any]] | None = None, /, scopes: Any = (EU, EU, US), **money: Any) -> Agreement:
    tiered = {"kind": "tiered", "method": "tiered-v1", "tiers": dict.fromkeys(NAMES, TIERS)}

    def change(plain: dict[str, Any]) -> None:
        plain["objectives"] = [
            {"id": name, "method": "total_ratio", "indicator": "availability", "target": "99.9", "scope": scope}
            for name, scope in zip(NAMES, scopes, strict=True)
        ]
        plain["compensation"] |= {"base": "1000.00", "minimum": "0", "caps": {}, "tiers_combine": "sum"}
        plain["compensation"] |= {"rules": [tiered] if rules is None else rules, **money}
        if "charges" in money:
            del plain["compensation"]["base"]

    return agreement(change)


def rules(*names: str) -> list[dict[str, Any]]:
    return [{**PROPORTIONAL, "objective": name} for name in names]


def judged(of: Agreement, bad: dict[int, tuple[int, int, int]]) -> list[Window]:
    """Hours of 100 requests for each promise, of which some fail."""
    cells = {hour: tuple((100 - each, each) for each in bad.get(hour, (0, 0, 0))) for hour in range(24)}
    return windows(of, cells)


def settled(of: Agreement, bad: dict[int, tuple[int, int, int]], charges: Charges | None = None) -> Settlement:
    return settle(of, period_named(of, DAY), judged(of, bad), charges)


def trace(of: Agreement, bad: dict[int, tuple[int, int, int]], charges: Charges | None = None) -> CreditTrace:
    found = settled(of, bad, charges).trace
    assert found is not None
    return found


def recorded(of: Agreement, **amounts: str) -> Charges:
    lines = [
        {"service": "example-chat", "region": region, "kind": "recurring", "amount": amount, "currency": "USD"}
        for region, amount in amounts.items()
    ]
    return read_charges(of, DAY, lines)


WORST = dict.fromkeys(range(24), (100, 100, 100))
EU_DOWN = dict.fromkeys(range(24), (100, 100, 0))


# --- each scope has its own cap ------------------------------------------------------------------


def test_a_sum_over_two_regions_is_held_to_the_cap_in_each() -> None:
    """eu 30 % + 30 % of 1000, us 30 %: eu is cut to 400, and us keeps its 300."""
    found = trace(terms(caps={"scope": "400.00"}), WORST)
    assert [(step.scope, step.amount, step.limit, step.left) for step in found.scopes] == [
        ("region=eu", 60_000, 40_000, 40_000),
        ("region=us", 30_000, 40_000, 30_000),
    ]
    assert [step.parts for step in found.scopes] == [
        (("eu-up", 30_000), ("eu-fast", 30_000)),
        (("us-up", 30_000),),
    ]
    assert (found.combined_amount, found.capped_amount, found.credit) == (90_000, 70_000, 70_000)


def test_one_region_alone_is_cut_as_before() -> None:
    assert trace(terms(caps={"scope": "400.00"}), EU_DOWN).credit == 40_000


def test_the_service_and_the_contract_are_capped_after_the_scopes() -> None:
    found = trace(terms(caps={"scope": "400.00", "service": "650.00", "contract": "600.00"}), WORST)
    assert [(step.level, step.amount) for step in found.caps or ()] == [("service", 65_000), ("contract", 60_000)]
    assert found.credit == 60_000
    wide = trace(terms(caps={"scope": "400.00", "service": "800.00"}), WORST)
    assert [(step.level, step.amount) for step in wide.caps or ()] == [("service", 70_000)]


def test_the_minimum_is_held_against_what_the_scopes_leave() -> None:
    caps = {"scope": "0.50"}
    assert trace(terms(caps=caps, minimum="1.00"), WORST).credit == 0
    assert trace(terms(caps=caps, minimum="0.99"), WORST).credit == 100


def test_rules_that_are_added_up_are_capped_scope_by_scope() -> None:
    of = terms(rules("eu-up", "us-up"), rules_combine="sum", caps={"scope": "100.00"})
    found = trace(of, {3: (100, 0, 100), 4: (100, 0, 0), 5: (100, 0, 0)})
    assert [(step.amount, step.left) for step in found.scopes] == [
        (12_500, 10_000),
        (Fraction(12_500, 3), Fraction(12_500, 3)),
    ]


def test_incidents_are_paid_in_the_scope_of_their_objective() -> None:
    """2.00 USD for each request of the hours in which eu-fast fails; 10 % of 1000.00 for it and for us-up."""
    impact = {
        "kind": "impact",
        "method": "impact-v1",
        "objective": "eu-fast",
        "unit_price": "2",
        "level_coefficients": {"L2": "1"},
    }
    tiered = {"kind": "tiered", "method": "tiered-v1", "tiers": dict.fromkeys(NAMES, TIERS)}
    of = terms([tiered, impact], caps={"scope": "350.00"}, rules_combine="sum")
    found = trace(of, {3: (0, 50, 0), 4: (0, 50, 0), 6: (0, 0, 100)})
    assert [step.parts for step in found.scopes] == [(("eu-fast", 10_000 + 40_000),), (("us-up", 10_000),)]
    assert [(step.amount, step.left) for step in found.scopes] == [(50_000, 35_000), (10_000, 10_000)]


def test_the_best_tier_pays_in_the_scope_of_its_objective_alone() -> None:
    """30 % of 1000.00 once, for the first of three that earned them, and all of it for a day that us was away."""
    tiered = {"kind": "tiered", "method": "tiered-v1", "tiers": dict.fromkeys(NAMES, TIERS)}
    of = terms([tiered, *rules("us-up")], tiers_combine="best", rules_combine="sum", caps={"scope": "400.00"})
    found = trace(of, WORST)
    assert [step.parts for step in found.scopes] == [(("eu-up", 30_000),), (("us-up", 100_000),)]
    assert (found.combined_amount, found.capped_amount) == (130_000, 70_000)


def test_the_best_rule_pays_in_its_own_scope_alone() -> None:
    of = terms(rules("eu-up", "us-up"), caps={"scope": "10 %"}, charges={"of": "period"})
    charges = recorded(of, eu="1000.00", us="2400.00")
    found = trace(of, {3: (100, 0, 100)}, charges)
    assert [(step.amount, step.limit) for step in found.scopes] == [(0, 10_000), (10_000, 24_000)]
    assert found.credit == 10_000


def test_a_share_is_of_the_charges_in_the_scope() -> None:
    of = terms(caps={"scope": "20 %", "service": "25 %"}, charges={"of": "period"})
    found = trace(of, WORST, recorded(of, eu="1000.00", us="3000.00"))
    assert [(step.amount, step.limit, step.left) for step in found.scopes] == [
        (60_000, 20_000, 20_000),
        (90_000, 60_000, 60_000),
    ]
    assert [(step.level, step.limit) for step in found.caps or ()] == [("service", 100_000)]


def test_a_share_is_of_the_charges_in_the_one_scope_that_is_paid() -> None:
    """Nothing is paid for the other region, so its charges make no credit larger."""
    of = terms(rules("eu-up"), caps={"scope": "10 %", "service": "10 %"}, charges={"of": "period"})
    found = trace(of, WORST, recorded(of, eu="1000.00", us="9000.00"))
    assert [(step.amount, step.limit) for step in found.scopes] == [(100_000, 10_000)]
    assert [(step.level, step.limit) for step in found.caps or ()] == [("service", 100_000)]
    assert found.credit == 10_000
    assert not any("one cap" in reason for reason in attestability(of))


def test_a_sum_that_is_held_to_the_base_is_shared_by_the_parts() -> None:
    """60 % + 60 % + 60 % is 100 % of the base: a third for each promise."""
    steep = [{"below": "99", "credit_percent": "60"}]
    tiered = {"kind": "tiered", "method": "tiered-v1", "tiers": dict.fromkeys(NAMES, steep)}
    found = trace(terms([tiered], caps={"scope": "500.00"}), WORST)
    third = Fraction(100_000, 3)
    assert [(step.amount, step.left) for step in found.scopes] == [(2 * third, 50_000), (third, third)]


# --- where one cap for the total says the same ---------------------------------------------------


@pytest.mark.parametrize(
    "of",
    [
        terms(caps={"scope": "400.00"}, tiers_combine="best"),
        terms(caps={"scope": "400.00"}, scopes=(EU, EU, EU)),
        terms(caps={"service": "400.00"}),
        terms(rules("eu-up", "eu-fast"), rules_combine="sum", caps={"scope": "400.00"}),
    ],
)
def test_nothing_is_told_apart_where_only_one_scope_can_be_paid(of: Agreement) -> None:
    assert of.compensation.scopes == ()
    assert "scopes" not in trace(of, WORST).as_document()


def test_an_agreement_that_needs_a_cap_for_each_scope_is_not_attestable_and_says_so() -> None:
    (reason,) = attestability(terms(caps={"scope": "400.00"}))
    assert reason == "the scope cap holds for each of 2 scopes, and the circuit has one cap"
    assert attestability(terms(caps={"scope": "400.00"}, tiers_combine="best")) == ()
    assert attestability(terms(caps={"service": "400.00"})) == ()


# --- credit lines --------------------------------------------------------------------------------


def lines(of: Agreement, bad: dict[int, tuple[int, int, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for share in shares(of, bad):
        name = share.violation.objective.id if share.violation else "none"
        found[name] = found.get(name, 0) + share.minor_units
    return found


def shares(of: Agreement, bad: dict[int, tuple[int, int, int]]) -> tuple[CreditShare, ...]:
    return credit_shares(trace(of, bad), violations(of, judged(of, bad)))


def test_what_a_cap_cuts_off_is_taken_from_the_violations_of_its_scope() -> None:
    assert lines(terms(caps={"scope": "400.00"}), WORST) == {"eu-up": 20_000, "eu-fast": 20_000, "us-up": 30_000}


def test_what_a_cap_cuts_off_of_lost_time_is_taken_from_the_incidents_of_its_scope() -> None:
    """Two hours and one of 1000.00 in eu, of which 50.00 are left, and one in us."""
    of = terms(rules("eu-up", "us-up"), rules_combine="sum", caps={"scope": "50.00"})
    bad = {3: (100, 0, 100), 4: (100, 0, 0), 6: (50, 0, 0)}
    found = {
        (share.violation.objective.id, share.violation.first_window): share.minor_units
        for share in shares(of, bad)
        if share.violation
    }
    # 1000.00 / 24 for each hour, of which the cap leaves 5000 of 12500 minor units in eu.
    assert found == {("eu-up", 3): 3_333, ("eu-up", 6): 1_667, ("us-up", 3): 4_167}


COUNTS = st.dictionaries(st.integers(0, 23), st.tuples(*[st.integers(0, 100)] * 3), max_size=6)
CAPS = st.fixed_dictionaries(
    {"scope": st.sampled_from(["0.01", "123.45", "300.00", "45 %", "9999.00"])},
    optional={"service": st.sampled_from(["400.00", "60 %"]), "contract": st.sampled_from(["333.33", "50 %"])},
)
RULES = st.sampled_from([None, rules("eu-up", "us-up"), rules(*NAMES)])
COMBINE = st.sampled_from(["best", "sum"])


@settings(max_examples=120, deadline=None)
@given(COUNTS, CAPS, RULES, COMBINE, COMBINE)
def test_steps_follow_from_each_other_and_lines_sum_to_the_credit(
    bad: Any, caps: dict[str, str], by: Any, tiers: str, together: str
) -> None:
    of = terms(by, caps=caps, tiers_combine=tiers, rules_combine=together, rounding="floor")
    found = trace(of, bad)
    assert sum(share.minor_units for share in shares(of, bad)) == found.credit
    without = trace(terms(by, tiers_combine=tiers, rules_combine=together, rounding="floor"), bad)
    assert found.combined_amount == without.combined_amount
    if found.scopes:
        assert sum(step.amount for step in found.scopes) == found.combined_amount
        for step in found.scopes:
            assert sum((amount for _, amount in step.parts), Fraction(0)) == step.amount
            assert step.left == min(step.amount, step.limit)
    limits = [step.limit for step in found.caps or ()]
    left = sum((step.left for step in found.scopes), Fraction(0)) if found.scopes else found.combined_amount
    total = min([left, *limits, *([found.cap] if found.caps is None and found.cap is not None else [])])
    assert found.capped_amount == total


@settings(max_examples=60, deadline=None)
@given(COUNTS, st.integers(1, 100_000))
def test_a_cap_for_each_scope_never_pays_less_than_one_for_all(bad: Any, cap: int) -> None:
    amount = f"{cap // 100}.{cap % 100:02}"
    each = trace(terms(caps={"scope": amount}), bad)
    whole = trace(terms(caps={"service": amount}), bad)
    assert whole.credit <= each.credit <= 2 * cap
    assert each.credit <= whole.combined_amount
