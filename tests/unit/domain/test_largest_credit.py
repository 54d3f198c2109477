"""The most that terms could pay: which clause is named, and what bounds it. The bounds of rules in bases are tried in
``test_refused_agreements``."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from ledger.domain.money import MAX_MINOR_UNITS, format_minor_units
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.largest_credit import Bounds, excess
from ledger.errors import DocumentInvalid
from tests.unit.domain.samples import agreement

PROPORTIONAL = {"kind": "proportional", "method": "proportional-v1", "objective": "availability", "of": "shortfall"}
TIMES = {"kind": "multiplier", "method": "multiplier-v1", "objective": "availability", "factor": "2", "per": "incident"}
TABLE = {"kind": "step_table", "method": "step_table-v1", "objective": "availability"}
TIERED: dict[str, Any] = agreement().document["compensation"]["rules"][0]
IMPACT = {
    "kind": "impact",
    "method": "impact-v1",
    "objective": "ttft",
    "unit_price": "9000000000000000",
    "level_coefficients": {"L2": "1"},
}
DAY = 24


def money(units: int) -> str:
    return format_minor_units(units, "USD")


def terms(*rules: dict[str, Any], **changes: Any) -> Agreement:
    def change(plain: dict[str, Any]) -> None:
        # Where the base is agreed on, terms that could pay too much are none.
        plain["compensation"] |= {"rules": list(rules), "caps": {}, "charges": {"of": "period"}, **changes}
        del plain["compensation"]["base"]

    return agreement(change)


def most(of: Agreement, base: int | None, windows: int = DAY) -> tuple[str, str] | None:
    bounds = Bounds.of(None if base is None else Fraction(base), windows, 3600)
    return excess(of.compensation, of.document["compensation"]["rules"], bounds)


def test_the_clause_that_pays_most_is_named_with_what_it_could_pay() -> None:
    best = terms(PROPORTIONAL, TIMES)
    assert most(best, MAX_MINOR_UNITS // 2) is None
    found = most(best, MAX_MINOR_UNITS)
    assert found is not None
    assert found[0] == "compensation.rules[1].factor"
    assert found[1].startswith(
        f"2 could pay {2 * MAX_MINOR_UNITS} minor units of USD in one period of 24 windows, and an amount is at most "
        "2^64 - 1; agree on less, or on a cap"
    )
    third = terms({**TIMES, "factor": "1.000000001"})
    assert (most(third, MAX_MINOR_UNITS) or ("", ""))[1].startswith("1.000000001 could pay 18446744092156295688 minor")


def test_tiers_pay_the_base_and_have_no_figure_of_their_own() -> None:
    found = most(terms(TIERED), MAX_MINOR_UNITS + 1)
    assert found is not None
    assert found[0] == "compensation.rules[0].tiers"
    assert found[1].startswith(f"they could pay {MAX_MINOR_UNITS + 1} minor units")
    assert most(terms(TIERED), MAX_MINOR_UNITS) is None


def test_rules_that_are_added_up_may_pay_all_that_an_amount_holds() -> None:
    of = terms(TIERED, PROPORTIONAL, {**PROPORTIONAL, "objective": "ttft"}, rules_combine="sum")
    assert 3 * (MAX_MINOR_UNITS // 3) == MAX_MINOR_UNITS
    assert most(of, MAX_MINOR_UNITS // 3) is None
    assert most(of, MAX_MINOR_UNITS // 3 + 1) is not None


@pytest.mark.parametrize(
    ("per", "hours"),
    [
        # Every hour twice, and three more for each of twelve incidents or once for all of them.
        ("incident", 24 * 2 + 12 * 3),
        ("period", 24 * 2 + 3),
    ],
)
def test_an_hourly_price_is_paid_for_all_windows_and_what_is_rounded_up(per: str, hours: int) -> None:
    def at(price: int) -> Agreement:
        return terms({**TIMES, "per": per, "round_up_to": "PT3H", "hourly_price": money(price)})

    assert most(at(MAX_MINOR_UNITS // hours), 0) is None
    with pytest.raises(DocumentInvalid) as refused:
        at(MAX_MINOR_UNITS // hours + 1)
    assert refused.value.data["field"] == "compensation.rules[0].factor"


def test_a_table_of_nothing_pays_nothing_whatever_the_windows() -> None:
    of = terms({**TABLE, "rows": [{"from_minutes": "0", "percent": "0"}]})
    assert most(of, MAX_MINOR_UNITS, windows=30_001) is None
    some = terms({**TABLE, "rows": [{"from_minutes": "0", "percent": "0.01"}]})
    assert most(some, MAX_MINOR_UNITS, windows=30_001) is not None


def test_a_base_that_is_not_known_bounds_no_share_of_it_and_a_price_all_the_same() -> None:
    huge = terms({**TIMES, "factor": "99999999999999999999"})
    assert most(huge, None) is None
    assert most(huge, 1) is not None
    assert most(terms(IMPACT, caps={"contract": "1.00"}, minimum="0"), None) is None
    for caps in ({}, {"contract": "50 %"}):
        with pytest.raises(DocumentInvalid) as refused:
            terms(IMPACT, caps=caps)
        assert refused.value.data["field"] == "compensation.rules[0].unit_price"


def test_a_price_is_paid_for_all_that_windows_can_hold() -> None:
    """Good, bad and undecided requests of a window are each at most 2^28 - 1."""
    requests = DAY * 3 * (2**28 - 1)
    billionths = MAX_MINOR_UNITS * 10**9 // (requests * 100)

    def priced(units: int) -> Agreement:
        return terms({**IMPACT, "unit_price": f"{units // 10**9}.{units % 10**9:09}"})

    assert most(priced(billionths), None) is None
    with pytest.raises(DocumentInvalid, match=r"rules\[0\].unit_price"):
        priced(billionths + 1)


def test_beside_an_impact_rule_the_others_are_bounded_by_themselves() -> None:
    cheap = {**IMPACT, "unit_price": "0.01"}
    assert most(terms(cheap, TIMES), MAX_MINOR_UNITS // 2) is None
    assert (most(terms(cheap, TIMES), MAX_MINOR_UNITS) or ("",))[0] == "compensation.rules[1].factor"


def test_a_cap_of_a_scope_counts_once_for_each_and_no_other_cap_does() -> None:
    top = money(MAX_MINOR_UNITS)
    assert most(terms(TIMES, caps={"scope": top}), MAX_MINOR_UNITS) is None

    def in_two(caps: dict[str, str]) -> Agreement:
        def change(plain: dict[str, Any]) -> None:
            plain["objectives"][0]["scope"], plain["objectives"][1]["scope"] = {"region": "eu"}, {"region": "us"}
            rules = [{**TIMES, "objective": name} for name in ("availability", "ttft")]
            plain["compensation"] |= {"rules": rules, "rules_combine": "sum", "caps": caps, "charges": {"of": "period"}}
            del plain["compensation"]["base"]

        return agreement(change)

    assert most(in_two({"scope": top}), MAX_MINOR_UNITS) is not None
    assert most(in_two({"scope": top, "contract": top}), MAX_MINOR_UNITS) is None
