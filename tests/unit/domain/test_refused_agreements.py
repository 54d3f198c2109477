"""Bad input to the settlement engine: each is refused with the clause and the value that is wrong.

One table for terms, and beside it what is no document of terms: a later version, charges, and a quantile where nothing
was counted. More good than all is refused where it is handed in (``test_samples``, ``test_counter_feed``).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from ledger.domain.credits.charges import CHARGE_LINES, read_charges, require_payable
from ledger.domain.credits.settlement import settle
from ledger.domain.money import MAX_MINOR_UNITS
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.largest_credit import Bounds, excess
from ledger.domain.terms.lifecycle import Timeline, check_amendment
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import parse_instant_ns
from ledger.errors import ChargesRefused, DocumentInvalid
from tests.unit.domain.samples import agreement, document, put, windows

DAY = "2023-06-14/P1D"
TIERS, TIERS_SAID = "compensation.rules.0.tiers.availability", "compensation.rules[0].tiers.availability"
RATIO = {"id": "availability", "method": "total_ratio", "indicator": "availability", "target": "99.95"}
FACTS = {**RATIO, "indicator": "fact_consistency", "evaluator": "factbench 2.1", "minimum_valid": 1000}
RATE = {**RATIO, "indicator": "token_rate"}
SLICED = {**FACTS, "method": "attainment-v1", "slice": {"window": "PT1H", "target": "95"}}
IMPACT = {
    "kind": "impact",
    "method": "impact-v1",
    "objective": "availability",
    "unit_price": "1",
    "level_coefficients": {"L1": "1", "L2": "1", "L3": "1", "L4": "1"},
}
MULTIPLIER = {
    "kind": "multiplier",
    "method": "multiplier-v1",
    "objective": "availability",
    "factor": "2",
    "per": "incident",
}
HOURS = {
    "kind": "step_table",
    "method": "step_table-v1",
    "objective": "availability",
    "rows": [{"from_minutes": "0", "hours": "1"}],
}


def without(member: str, of: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in of.items() if key != member}


def claims(kind: str, count: int) -> dict[str, Any]:
    return {"mode": "claim", "deadline": {"kind": kind, "count": count}}


REFUSED: list[tuple[str, str, object, str, str]] = [
    # what is wrong, member, value, the clause that is named, and what is said of the value
    ("contradictory tiers", f"{TIERS}.1.below", "99.95", f"{TIERS_SAID}[1]", "below 99.95"),
    ("tiers that pay less", f"{TIERS}.1.credit_percent", "9", f"{TIERS_SAID}[1]", "9 %"),
    ("a tier above the target", f"{TIERS}.0.below", "99.96", f"{TIERS_SAID}[0].below", "99.96"),
    ("no term", "effective.until", "2023-01-01", "effective.until", "2023-01-01 is not later"),
    ("unknown currency", "compensation.currency", "XTS", "compensation.currency", "'XTS' is not an ISO 4217"),
    ("zero base", "compensation.base", "0.00", "compensation.base", "0.00 USD is zero"),
    ("a window longer than the period", "window", "PT48H", "window", "172800 s is longer than the period"),
    ("longer windows of an objective", "objectives.0.window", "PT48H", "objectives[0].window", "takes 172800 s"),
    ("longer repeats", "objectives.0.repeat_window", "PT25H", "objectives[0].repeat_window", "takes 90000 s"),
    (
        "incidents that no period holds",
        "compensation.rules.0",
        {**MULTIPLIER, "longer_than": "PT24H"},
        "compensation.rules[0].longer_than",
        "no incident is longer than PT24H",
    ),
    ("a quantile of no samples", "objectives.1.indicator", "error_rate", "objectives[1].indicator", "'error_rate'"),
    ("a quantile that is not the target", "objectives.1.quantile", "0.96", "objectives[1].quantile", "0.96"),
    ("a cap of no money", "compensation.caps.contract", "0.00", "compensation.caps.contract", "0.00 would cap"),
    ("a cap of no share", "compensation.caps.service", "0 %", "compensation.caps.service", "0 % would cap"),
    (
        "an incident cap of nothing",
        "compensation.rules.0",
        {**MULTIPLIER, "incident_cap": "0 %"},
        "compensation.rules[0].incident_cap",
        "0 % would cap",
    ),
    (
        "claims before there is a statement",
        "settlement",
        claims("days_after_incident", 3),
        "settlement.deadline",
        "3 days after the end of the incident comes before the first statement",
    ),
    (
        "cycles that are over before",
        "settlement",
        claims("billing_cycles", 2),
        "settlement.deadline",
        "2 billing cycles after that of the incident comes before",
    ),
    ("no evaluator", "objectives.0", without("evaluator", FACTS), "objectives[0].evaluator", "is missing: fact_cons"),
    (
        "an evaluator without a version",
        "objectives.0",
        {**FACTS, "evaluator": "factbench"},
        "objectives[0].evaluator",
        "'factbench' has no version",
    ),
    ("no sample size", "objectives.0", without("minimum_valid", FACTS), "objectives[0].minimum_valid", "is missing"),
    ("no sample size of a slice", "objectives.0", SLICED, "objectives[0].slice.minimum_valid", "is missing"),
    ("no tokenizer", "objectives.0", RATE, "objectives[0].tokenizer", "is missing: token_rate counts tokens"),
    (
        "a tokenizer of what has no tokens",
        "objectives.0",
        {**FACTS, "tokenizer": "cl100k_base"},
        "objectives[0].tokenizer",
        "fact_consistency counts no tokens",
    ),
    (
        "a price that no amount can hold",
        "compensation",
        {"rules": [{**IMPACT, "unit_price": "99999999"}], "caps": {}},
        "compensation.rules[0].unit_price",
        "99999999 could pay",
    ),
    (
        "a factor that no amount can hold",
        "compensation",
        {"rules": [{**MULTIPLIER, "factor": "99999999999999999999"}], "caps": {}},
        "compensation.rules[0].factor",
        "99999999999999999999 could pay",
    ),
    (
        "hours that no amount can hold",
        "compensation",
        {"rules": [{**HOURS, "hourly_price": "99999999999999999"}], "caps": {}},
        "compensation.rules[0].rows",
        "hours 1 could pay",
    ),
]


@pytest.mark.parametrize(
    ("path", "value", "clause", "said"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED]
)
def test_the_clause_and_the_value_are_named(path: str, value: Any, clause: str, said: str) -> None:
    plain = document()
    put(plain, path, {**plain["compensation"], **value} if path == "compensation" else value)
    with pytest.raises(DocumentInvalid) as refused:
        Agreement.from_document(plain)
    assert refused.value.data["field"] == clause
    assert refused.value.message.startswith(f"{clause}: ")
    assert said in refused.value.message
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("compensation.caps.contract", "0.01"),
        ("compensation.caps.contract", "0.01 %"),
        ("objectives.0.repeat_window", "PT24H"),
        ("settlement", claims("days_after_incident", 4)),
        ("settlement", claims("billing_cycles", 4)),
        ("objectives.0", FACTS),
        ("objectives.0", {**RATE, "tokenizer": "cl100k_base"}),
        ("objectives.0", {**SLICED, "slice": {**SLICED["slice"], "minimum_valid": 1}}),  # type: ignore[dict-item]
    ],
)
def test_what_is_just_inside_is_taken(path: str, value: Any) -> None:
    def change(plain: dict[str, Any]) -> None:
        put(plain, path, value)

    assert agreement(change).objectives


def test_effective_dates_that_overlap() -> None:
    first, second = agreement(), agreement(lambda plain: put(plain, "effective.from", "2023-05-01"))
    early = agreement(lambda plain: put(plain, "effective.from", "2023-04-01"))
    with pytest.raises(DocumentInvalid) as refused:
        check_amendment(Timeline((first, second)), early, now_ns=parse_instant_ns("2023-02-01T00:00:00Z"))
    assert refused.value.data["field"] == "effective.from"
    assert "2023-04-01 overlaps version 2, which is in force from 2023-05-01" in refused.value.message


def test_a_quantile_without_samples_is_no_figure_and_pays_nothing() -> None:
    of = agreement()
    settled = settle(of, period_named(of, DAY), windows(of, {}))
    ttft = next(each for each in settled.objectives if each.objective.id == "ttft")
    assert (ttft.objective.method, ttft.good, ttft.valid) == ("exact_quantile", 0, 0)
    assert (str(ttft.state), settled.credit) == ("no_data", 0)


# --- what no amount can hold -----------------------------------------------------------------------


def bounds(base: int, count: int = 24) -> Bounds:
    return Bounds.of(Fraction(base), count, 3600)


def terms(*rules: dict[str, Any], **changes: Any) -> Agreement:
    def change(plain: dict[str, Any]) -> None:
        plain["compensation"] |= {"rules": list(rules), "caps": {}, **changes}

    return agreement(change)


def most(of: Agreement, given: Bounds) -> bool:
    """Whether some clause could pay more than an amount can hold."""
    return excess(of.compensation, of.document["compensation"]["rules"], given) is not None


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ({"kind": "proportional", "method": "proportional-v1", "objective": "availability", "of": "shortfall"}, 1),
        (MULTIPLIER, 2),
        ({**MULTIPLIER, "round_up_to": "PT3H"}, 5),
        ({**MULTIPLIER, "factor": "50", "incident_cap": "50 %"}, 6),  # of twelve incidents at most
        ({**HOURS, "rows": [{"from_minutes": "0", "hours": "3"}]}, 3),
        ({**HOURS, "rows": [{"from_minutes": "0", "percent": "25"}]}, 3),
    ],
)
def test_the_bound_of_a_rule_in_bases(rule: dict[str, Any], holds: int) -> None:
    of = terms(rule)
    assert not most(of, bounds(MAX_MINOR_UNITS // holds))
    assert most(of, bounds(MAX_MINOR_UNITS // holds + 1))


@pytest.mark.parametrize(("cap", "over"), [({"contract": "1.00"}, False), ({"service": "100 %"}, False), ({}, True)])
def test_a_cap_bounds_what_rules_could_pay(cap: dict[str, str], over: bool) -> None:
    of = terms(MULTIPLIER, caps=cap, minimum="0")
    assert most(of, bounds(MAX_MINOR_UNITS)) is over


def test_a_cap_of_each_scope_leaves_as_much_in_all_of_them() -> None:
    def change(plain: dict[str, Any]) -> None:
        plain["objectives"][0]["scope"], plain["objectives"][1]["scope"] = {"region": "eu"}, {"region": "us"}
        rules = [{**MULTIPLIER, "objective": name, "factor": "9"} for name in ("availability", "ttft")]
        plain["compensation"] |= {"rules": rules, "rules_combine": "sum", "caps": {"scope": "100 %"}}

    of = agreement(change)
    assert len(of.compensation.scopes) == 2
    assert most(of, bounds(MAX_MINOR_UNITS // 2 + 1))
    assert not most(of, bounds(MAX_MINOR_UNITS // 2))


def test_rules_that_add_up_are_bounded_by_their_sum() -> None:
    tiered = document()["compensation"]["rules"][0]
    twice = {"kind": "proportional", "method": "proportional-v1", "objective": "availability", "of": "shortfall"}
    assert not most(terms(tiered, twice, rules_combine="best"), bounds(MAX_MINOR_UNITS))
    assert most(terms(tiered, twice, rules_combine="sum"), bounds(MAX_MINOR_UNITS // 2 + 1))
    assert not most(terms(tiered, twice, rules_combine="sum"), bounds(MAX_MINOR_UNITS // 2))


def test_no_rules_can_pay_nothing_and_a_base_that_is_not_known_bounds_nothing_yet() -> None:
    assert not most(terms(), bounds(MAX_MINOR_UNITS))
    assert not most(terms(MULTIPLIER), Bounds.of(None, 24, 3600))


def of_charges(change: Callable[[dict[str, Any]], object]) -> Agreement:
    def recorded(plain: dict[str, Any]) -> None:
        del plain["compensation"]["base"]
        plain["compensation"] |= {"charges": {"of": "period"}, "caps": {}}
        change(plain)

    return agreement(recorded)


def test_recorded_charges_that_could_earn_more_than_an_amount_can_hold() -> None:
    of = of_charges(lambda plain: plain["compensation"].update(rules=[{**MULTIPLIER, "factor": "50"}]))
    line = {"service": "example-chat", "kind": "recurring", "currency": "USD", "amount": "9999999999999999.00"}
    CHARGE_LINES.check([line], "lines")
    with pytest.raises(ChargesRefused) as refused:
        require_payable(of, read_charges(of, period_named(of, DAY), [line]))
    assert refused.value.data["clause"] == "compensation.rules[0].factor"
    assert "of charges of 999999999999999900 minor units 50 could pay 49999999999999995000" in refused.value.message
    require_payable(of, read_charges(of, period_named(of, DAY), [{**line, "amount": "99.00"}]))
