"""What a verifier can say of a credit that totals alone do not give: where rules look at incidents or at charges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.attest.checks.case import Case, require, require_same
from ledger.domain.credits.charges import CHARGE_LINES, Charges, charges_for, charges_period, require_bases
from ledger.domain.credits.compensation import CreditTrace
from ledger.domain.money import format_minor_units
from ledger.errors import BundleCheckFailed, ChargesRefused, DocumentInvalid

_FROM_INCIDENTS = frozenset(
    {"incidents", "impact_amount", "rules", "combined_amount", "scopes", "caps", "capped_amount", "payable", "credit"}
)
"""Members of a credit trace that only the counts of single windows give, where a rule looks at incidents."""


def recorded_charges(case: Case) -> Charges | None:
    """The charges that the statement says it stands on; None where the terms agree on a base."""
    if case.agreement.compensation.charges is None:
        return None
    said = case.issued["trace"].get("charges")
    if not isinstance(said, Mapping):
        raise BundleCheckFailed("the trace names no charges, and the terms take their base from them")
    period = str(charges_period(case.agreement, case.period))
    require(said.get("period") == period, f"the base of this period are the charges of {period}")
    try:
        CHARGE_LINES.check(said.get("lines"), "lines")
        charges = charges_for(case.agreement, case.period, said["lines"])
        require_bases(case.agreement, charges)
    except (DocumentInvalid, ChargesRefused) as error:
        raise BundleCheckFailed(f"the charges of the trace cannot be a base: {error.message}") from error
    return charges


def credit_by_totals(case: Case, trace: CreditTrace) -> str:
    """Every step to a credit that no rule for incidents adds to, and the credit."""
    issued = case.issued
    require_same(issued["trace"], trace.as_document(), "the steps to the credit are not those of the terms")
    expected = {"currency": trace.currency, "minor_units": str(trace.credit)}
    require(issued["credit"] == expected, f"the credit by these totals is {trace.credit} minor units")
    states = ", ".join(f"{each.objective.id} {each.good}/{each.valid} {each.state}" for each in case.results)
    found = "" if case.agreement.compensation.impact is None else f"; {len(trace.incidents)} incident(s) as stated"
    return f"{states}{found}; credit {format_minor_units(trace.credit, trace.currency)} {trace.currency} by the terms"


def credit_with_incidents(case: Case, without: CreditTrace) -> str:
    """What totals alone say of a credit that incidents add to: its tiers, its rules, and that it is not below them."""
    issued, expected = case.issued, without.as_document()
    same = expected.keys() - _FROM_INCIDENTS
    require(issued["trace"].keys() == expected.keys(), "the steps to the credit are not those of the terms")
    require_same(
        {name: issued["trace"][name] for name in same},
        {name: expected[name] for name in same},
        "the tier steps of the credit are not those of the terms",
    )
    require_same(_ruled(issued["trace"]), _ruled(expected), "the rules for lost time are not those of the terms")
    credit = issued["credit"]
    require(credit is not None and credit["currency"] == without.currency, "the credit is missing or in another money")
    require(issued["trace"]["credit"] == credit["minor_units"], "the credit is not the last of its own steps")
    require(int(credit["minor_units"]) >= without.credit, f"the tiers alone give {without.credit} minor units")
    return "states and tiers follow from the totals by the terms; the incidents stand as stated"


def _ruled(trace: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rules without what their incidents come to."""
    rules = trace.get("rules", [])
    if not isinstance(rules, list) or not all(isinstance(rule, Mapping) for rule in rules):
        raise BundleCheckFailed("the rules of the trace are no list of steps")
    return [{key: value for key, value in rule.items() if key not in ("incidents", "amount")} for rule in rules]
