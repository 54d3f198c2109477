"""From totals to states and credit, and what a later version says of an earlier one: sections 7, 11 and 12 of
docs/attestation-format.md for ``outsider``."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tests.vectors.outsider_shapes import jcs
from tests.vectors.outsider_terms import U64, Period, Terms, percent_bps, ppb, scaled

Z2 = Fraction(2_705_543_454_095_414_567, 10**18)
STATES = ("unused", "no_data", "met", "breached")
OPEN = ("no_data", "insufficient_data", "withheld")


def possible_states(terms: Terms, objective: Any, found: Any) -> set[str]:
    """What an objective may be by its counts; more than one where the volume is not shown."""
    good, total, undecided = found["good"], found["valid"], found.get("undecided", 0)
    target = ppb(objective["target"])
    if total == 0:
        return {"no_data"}
    state = "insufficient_data"
    if good * 10**9 >= total * target:
        state = "met"
    elif (good + undecided) * 10**9 < total * target:
        state = "breached"
        share, wanted = Fraction(good + undecided, total), Fraction(target, 10**9)
        if "confidence" in objective and not total * (wanted - share) ** 2 > Z2 * wanted * (1 - wanted):
            state = "insufficient_data"
    least = objective.get("minimum_valid", 0)
    shown = objective["method"] in ("total_ratio", "exact_quantile") and objective.get("source") != "outages"
    if shown:
        return {state if total >= least else "insufficient_data"}
    return {state, "insufficient_data"} if least else {state}


def tier_steps(terms: Terms, results: list[Any]) -> list[dict[str, Any]]:
    steps = []
    for objective, found in zip(terms.objectives, results, strict=True):
        step: dict[str, Any] = {"tier": None, "below_ppb": None, "credit_bps": 0}
        for place, (below, bps) in enumerate(terms.tiers.get(objective["id"], []), 1):
            most = found["good"] + found.get("undecided", 0)
            if found["state"] not in OPEN and most * 10**9 < found["valid"] * below:
                step = {"tier": place, "below_ppb": below, "credit_bps": bps}
        shown = {"objective": objective["id"], "good": found["good"], "valid": found["valid"]}
        steps.append({**shown, "target_ppb": ppb(objective["target"]), **step})
    return steps


def trace(terms: Terms, period: Period, results: list[Any]) -> dict[str, Any]:
    """The steps to a credit of tiers alone."""
    paid, base = terms.paid, terms.base(period)
    tiered = any(rule["kind"] == "tiered" for rule in paid["rules"])
    steps = tier_steps(terms, results) if tiered else []
    percentages = [step["credit_bps"] for step in steps]
    bps = max(percentages, default=0) if paid["tiers_combine"] == "best" else min(sum(percentages), 10_000)
    amount = Fraction(base * bps, 10_000)
    capped, minimum = min(amount, Fraction(terms.cap)), terms.money(paid["minimum"])
    payable = capped > minimum
    return {
        "currency": paid["currency"],
        "base": str(base),
        "tiers": steps,
        "tiers_combine": paid["tiers_combine"],
        "combined_bps": bps,
        "tier_amount": fraction(amount) if tiered else None,
        "price_per_request": None,
        "incidents": [],
        "impact_amount": None,
        "rules_combine": paid["rules_combine"],
        "combined_amount": fraction(amount),
        "cap": None if terms.cap == U64 - 1 else str(terms.cap),
        "capped_amount": fraction(capped),
        "minimum": str(minimum),
        "payable": payable,
        "rounding": paid["rounding"],
        "credit": str(rounded(capped, paid["rounding"]) if payable else 0),
    }


def needs_base(rule: Any) -> bool:
    """Whether a rule beside the tiers pays a share of the base."""
    shares = "incident_cap" in rule or any("percent" in row for row in rule.get("rows", []))
    return rule["kind"] == "proportional" or "hourly_price" not in rule or shares


def rules_beside(terms: Terms, period: Period) -> list[dict[str, Any]]:
    """Of the rules for lost time what the terms alone say."""
    return [
        {
            "method": f"{rule['kind']}-v1",
            "objective": rule["objective"],
            "base": fraction(Fraction(terms.base(period))) if needs_base(rule) else None,
            "hourly_price": str(terms.money(rule["hourly_price"])) if "hourly_price" in rule else None,
            "missing": None,
        }
        for rule in terms.paid["rules"]
        if rule["kind"] not in ("tiered", "impact")
    ]


def trace_under_caps(terms: Terms, period: Period, results: list[Any]) -> dict[str, Any]:
    """The steps to a credit of tiers of an agreed base, whatever the caps."""
    found, base = trace(terms, period, results), Fraction(terms.base(period))
    amount = Fraction(int(found["combined_amount"]["numerator"]), int(found["combined_amount"]["denominator"]))
    caps = [(level, *limit(terms, text, base)) for level, text in terms.caps]
    added: dict[str, Any] = {"charges": None, "rules": []}
    if terms.scopes:
        (_, bps, most), *caps = caps
        steps = scope_steps(terms, found, amount, base, (bps, most))
        added["scopes"] = [step for _, step in steps]
        amount = sum((left for left, _ in steps), Fraction(0))
    added["caps"] = []
    for level, bps, most in caps:
        amount = min(amount, most)
        added["caps"].append({"level": level, "percent_bps": bps, "limit": fraction(most), "amount": fraction(amount)})
    payable = amount > terms.money(terms.paid["minimum"])
    found["capped_amount"], found["payable"] = fraction(amount), payable
    found["credit"] = str(rounded(amount, terms.paid["rounding"]) if payable else 0)
    return found | added


def limit(terms: Terms, text: str, base: Fraction) -> tuple[int | None, Fraction]:
    if "%" not in text:
        return None, Fraction(terms.money(text))
    bps = percent_bps(text.removesuffix("%").strip())
    return bps, base * bps / 10_000


def scope_steps(
    terms: Terms, found: Any, amount: Fraction, base: Fraction, cap: tuple[int | None, Fraction]
) -> list[tuple[Fraction, dict[str, Any]]]:
    """What is left of the tiers of each scope, and its step."""
    own = {step["objective"]: base * step["credit_bps"] / 10_000 for step in found["tiers"]}
    if terms.paid["tiers_combine"] == "best":
        best = max(own, key=lambda name: own[name])
        parts = {best: own[best]}
    else:
        parts = {name: each * amount / sum(own.values()) for name, each in own.items() if each}
    steps, inside = [], dict[str, list[str]]()
    for objective in terms.objectives:
        if objective["id"] in terms.tiers:
            named = objective.get("scope", {})
            scope = " ".join(f"{key}={named[key]}" for key in ("region", "model") if key in named) or "all"
            inside.setdefault(scope, []).append(objective["id"])
    bps, most = cap
    for scope, names in inside.items():
        paid = [(name, part) for name, part in parts.items() if name in names and part]
        whole = sum((part for _, part in paid), Fraction(0))
        step = {
            "scope": scope,
            "parts": [{"objective": name, "amount": fraction(part)} for name, part in paid],
            "amount": fraction(whole),
            "percent_bps": bps,
            "limit": fraction(most),
            "left": fraction(min(whole, most)),
        }
        steps.append((min(whole, most), step))
    return steps


def price(terms: Terms) -> dict[str, str] | None:
    """What the impact rule pays for a request."""
    for rule in terms.paid["rules"]:
        if rule["kind"] == "impact":
            coefficient = Fraction(rule["level_coefficients"][terms.doc["business_level"]])
            return fraction(coefficient * scaled(rule["unit_price"], 10**9) * terms.money("1") / 10**9)
    return None


def fraction(value: Fraction) -> dict[str, str]:
    return {"numerator": str(value.numerator), "denominator": str(value.denominator)}


def rounded(amount: Fraction, mode: str) -> int:
    whole, rest = divmod(amount, 1)
    half = Fraction(1, 2)
    up = {"floor": False, "half_up": rest >= half, "half_even": rest > half or (rest == half and whole % 2 == 1)}
    return int(whole) + up[mode]


def same(one: Any, other: Any) -> bool:
    """To Python 1 equals true, and not to canonical JSON."""
    return jcs(one) == jcs(other)


def differences(old: Any, new: Any, currency: str) -> dict[str, Any]:
    """Section 11: by how much a version differs from the one before it."""
    before, after = ({one["id"]: one for one in said["objectives"]} for said in (old, new))
    owed = [None if said["credit"] is None else said["credit"]["minor_units"] for said in (old, new)]
    changed = []
    for name in {**before, **after}:
        was, now = before.get(name), after.get(name)
        if was == now:
            continue
        one: dict[str, Any] = {"id": name}
        for member in ("good", "valid", "undecided"):
            absent = 0 if member == "undecided" else None
            values = [None if side is None else side.get(member, absent) for side in (was, now)]
            gap = (values[1] or 0) - (values[0] or 0)
            if member != "undecided" or gap:
                one[member] = {"old": values[0], "new": values[1], "difference": gap}
        one["state"] = {"old": was and was["state"], "new": now and now["state"]}
        changed.append(one)
    gap = int(owed[1] or 0) - int(owed[0] or 0)
    delta = {"currency": currency, "old": owed[0], "new": owed[1], "difference": str(gap)}
    return {"objective_deltas": changed, "credit_delta": delta}
