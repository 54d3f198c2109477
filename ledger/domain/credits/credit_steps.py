"""A credit trace as steps that a reader redoes by hand: each says what is done, with which numbers, and its result.

Amounts are minor units; those between the base and the rounding are exact fractions {numerator, denominator}. Products
that a JSON number may not hold are decimal strings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from ledger.domain.money import BASIS_POINTS, PARTS_PER_BILLION, digits, fraction_document, whole_number
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.compensation_terms import Tier
from ledger.domain.terms.incident_rules import IncidentRule, MultiplierRule, ProportionalRule, method_of

_HOW_BEST, _HOW_SUM = "the largest of them", "their sum"
_ROUNDING = {
    "floor": "the remainder is dropped",
    "half_up": "up where twice the remainder is at least the denominator",
    "half_even": "up where twice the remainder is above the denominator, or equal to it and the quotient is odd",
}
_RULES = {
    "proportional-v1": "what falls of the base on the lost time, or base x shortfall where `missing` is said",
    "multiplier-v1": "lost time x factor, rounded up as agreed, is credited at the price; where there is none, it is "
    "what falls of the base on the incident x that time / the incident's length; the shorter incidents pay nothing",
    "step_table-v1": "by length each incident has a row of the table, which credits hours or a share of the base",
}
_FALLS = "what falls of the base on a time: base x time / time of the period, both without excluded windows"
_FALLS_FULL = "what falls of the base on a time: base x time without excluded windows / time of the period with them"

Step = dict[str, Any]


def credit_steps(
    agreement: Agreement, trace: Mapping[str, Any], results: Sequence[Mapping[str, Any]], *, part: bool = False
) -> list[Step]:
    """The steps of a trace (``CreditTrace.as_document``), in the order in which they are taken.

    ``results`` are the statement's of its objectives; ``part``: it is about a part of a period. Raises ``LookupError``,
    ``TypeError`` or ``ValueError`` where the trace is none.
    """
    steps = [_base(trace, part=part)]
    if trace["tier_amount"] is not None:
        steps += [_tier(agreement, step, results) for step in trace["tiers"]]
        steps.append(_tiers_together(trace))
    if trace["impact_amount"] is not None:
        steps.append(_impact(trace))
    steps += [_rule(agreement, rule) for rule in trace.get("rules") or ()]
    steps.append(_together(trace))
    steps += _scopes(trace) + _caps(trace)
    capped, minimum = trace["capped_amount"], int(trace["minimum"])
    right = minimum * whole_number(capped["denominator"])
    steps.append(
        {
            "step": "minimum",
            "says": "paid only where the amount is strictly above the minimum: numerator > minimum x denominator",
            "amount": capped,
            "minimum": str(minimum),
            "left": capped["numerator"],
            "right": digits(right),
            "holds": whole_number(capped["numerator"]) > right,
        }
    )
    steps.append(_rounding(trace))
    return steps


def _base(trace: Mapping[str, Any], *, part: bool) -> Step:
    share = ", and of each its share by time, because the statement is about a part of the period" if part else ""
    if trace["base"] is not None:
        return {"step": "base", "says": f"the charges that percentages are of{share}", "result": trace["base"]}
    return {
        "step": "base",
        "says": "the recorded charges in each objective's scope, without one-time fees, tax and earlier "
        f"credits{share}",
        "charges": trace["charges"],
    }


def _tier(agreement: Agreement, step: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> Step:
    result = next((each for each in results if each["id"] == step["objective"]), {})
    rule = agreement.compensation.tiered
    tiers = rule.tiers.get(step["objective"], ()) if rule else ()
    judged = result.get("state") in ("met", "breached")
    good, valid = step["good"] + result.get("undecided", 0), step["valid"]
    return {
        "step": "tier",
        "objective": step["objective"],
        "says": "the last tier that the result is strictly below: good x 10^9 < valid x threshold"
        if judged
        else f"no tier, because the verdict is {result.get('state')}",
        "compared": [_compared(number, tier, good, valid) for number, tier in enumerate(tiers, 1)] if judged else [],
        "tier": step["tier"],
        "credit_bps": step["credit_bps"],
        **({"base": step["base"]} if "base" in step else {}),
    }


def _compared(number: int, tier: Tier, good: int, valid: int) -> Step:
    left, right = good * PARTS_PER_BILLION, valid * tier.below_ppb
    return {
        "tier": number,
        "below_ppb": tier.below_ppb,
        "credit_bps": tier.credit_bps,
        "left": str(left),
        "right": digits(right),
        "holds": left < right,
    }


def _tiers_together(trace: Mapping[str, Any]) -> Step:
    best = trace["tiers_combine"] == "best"
    says = f"of the tiers' percentages {_HOW_BEST if best else _HOW_SUM + ', at most 100 %'}"
    if trace["base"] is None:
        how = _HOW_BEST if best else f"{_HOW_SUM}, at most all of these charges together, a line of several scopes once"
        says = f"each objective's charges x its percentage, and of these amounts {how}"
    return {
        "step": "tiers",
        "says": f"{says}; amount = base x basis points / {BASIS_POINTS}",
        "combine": trace["tiers_combine"],
        "credit_bps": [step["credit_bps"] for step in trace["tiers"]],
        "combined_bps": trace["combined_bps"],
        "result": trace["tier_amount"],
    }


def _impact(trace: Mapping[str, Any]) -> Step:
    return {
        "step": "impact",
        "says": "valid requests of each incident x the price of a request, and the sum of these",
        "price_per_request": trace["price_per_request"],
        "incidents": list(trace["incidents"]),
        "result": trace["impact_amount"],
    }


def _rule(agreement: Agreement, step: Mapping[str, Any]) -> Step:
    """``terms`` are the figures of the rule as it was agreed on; times are nanoseconds."""
    signed = (each for each in agreement.compensation.incident_rules if each.objective == step["objective"])
    rule = next((each for each in signed if method_of(each) == step["method"]), None)
    return {
        "step": "rule",
        "says": _RULES.get(step["method"], "see the agreement"),
        "terms": None if rule is None else _rule_terms(rule),
        **step,
        "result": step["amount"],
    }


def _rule_terms(rule: IncidentRule) -> dict[str, Any]:
    falls = {"falls": _FALLS_FULL if rule.full else _FALLS}
    if isinstance(rule, ProportionalRule):
        return falls | {
            "of": "shortfall" if rule.shortfall else "lost_time",
            "affected": "share" if rule.by_share else "all",
            "pays": "always" if rule.always else "breached",
        }
    price = None if rule.hourly_price is None else str(rule.hourly_price)
    if isinstance(rule, MultiplierRule):
        return falls | {
            "factor": {"numerator": str(rule.factor_e9), "denominator": str(PARTS_PER_BILLION)},
            "longer_than_ns": str(rule.longer_than_ns),
            "round_up_ns": str(rule.round_up_ns),
            "rounded": "all together" if rule.together else "each incident",
            "hourly_price": price,
            "incident_cap_bps": rule.incident_cap_bps,
        }
    return falls | {
        "hourly_price": price,
        "rows": [
            {
                "row": number,
                "from_ns": str(row.from_ns),
                "below_ns": None if row.below_ns is None else str(row.below_ns),
                "credit_ns": None if row.credit_ns is None else str(row.credit_ns),
                "credit_bps": row.credit_bps,
            }
            for number, row in enumerate(rule.rows, 1)
        ],
    }


def _together(trace: Mapping[str, Any]) -> Step:
    amounts = [trace["tier_amount"], trace["impact_amount"], *(rule["amount"] for rule in trace.get("rules") or ())]
    best = trace["rules_combine"] == "best"
    return {
        "step": "combined",
        "says": f"of the rules' amounts {_HOW_BEST if best else _HOW_SUM}",
        "combine": trace["rules_combine"],
        "amounts": [amount for amount in amounts if amount is not None],
        "result": trace["combined_amount"],
    }


def _scopes(trace: Mapping[str, Any]) -> list[Step]:
    steps: list[Step] = [
        {
            "step": "scope",
            "says": "what of this is paid in the scope, objective by objective: the smaller of it and the cap",
            **{name: scope[name] for name in ("scope", "parts", "amount", "limit")},
            "result": scope["left"],
        }
        for scope in trace.get("scopes", ())
    ]
    if steps:
        whole = sum((_fraction(step["result"]) for step in steps), Fraction(0))
        left = [step["result"] for step in steps]
        says = "what the caps of the scopes leave, added up"
        steps.append({"step": "scopes", "says": says, "amounts": left, "result": fraction_document(whole)})
    return steps


def _caps(trace: Mapping[str, Any]) -> list[Step]:
    says = "the smaller of the amount and the cap"
    if trace.get("caps") is not None:
        return [
            {"step": "cap", "says": says, "level": cap["level"], "limit": cap["limit"], "result": cap["amount"]}
            for cap in trace["caps"]
        ]
    if trace["cap"] is None:
        return []
    limit = {"numerator": trace["cap"], "denominator": "1"}
    return [{"step": "cap", "says": says, "level": "smallest", "limit": limit, "result": trace["capped_amount"]}]


def _fraction(said: Mapping[str, str]) -> Fraction:
    return Fraction(whole_number(said["numerator"]), whole_number(said["denominator"]))


def _rounding(trace: Mapping[str, Any]) -> Step:
    capped = trace["capped_amount"]
    quotient, rest = divmod(whole_number(capped["numerator"]), whole_number(capped["denominator"]))
    return {
        "step": "rounding",
        "says": f"once, {trace['rounding']}: {_ROUNDING[trace['rounding']]}"
        if trace["payable"]
        else "nothing is paid, so there is nothing to round",
        "rounding": trace["rounding"],
        "quotient": str(quotient),
        "remainder": digits(rest),
        "denominator": capped["denominator"],
        "result": trace["credit"],
    }
