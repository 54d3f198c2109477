"""How an agreement turns a breach into money: the shape of its ``compensation`` member, and what is read from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

from ledger.domain import money
from ledger.domain.money import BASIS_POINTS, Rounding
from ledger.domain.record.event_values import CURRENCY
from ledger.domain.schema import Either, ListOf, MapOf, Object, OneOf, Text, convert, fail
from ledger.domain.terms.incident_rules import (
    INCIDENT_RULES,
    PERCENT,
    IncidentRule,
    ProportionalRule,
    percent_text_bps,
    read_incident_rule,
)
from ledger.domain.terms.objective import Objective, Scope
from ledger.domain.terms.objective_shapes import DECIMAL, MAX_OBJECTIVES, OBJECTIVE_ID, OBJECTIVE_ID_TEXT

NO_CAP = money.MAX_MINOR_UNITS
MAX_TIERS = 16
MAX_RULES = 16

_TIER = Object({"below": DECIMAL, "credit_percent": DECIMAL})
_COMBINE = OneOf(("best", "sum"))
_RULE = Either(
    "kind",
    {
        "tiered": Object(
            {
                "kind": OneOf(("tiered",)),
                "method": OneOf(("tiered-v1",)),
                "tiers": MapOf(OBJECTIVE_ID, ListOf(_TIER, 1, MAX_TIERS), MAX_OBJECTIVES),
            }
        ),
        "impact": Object(
            {
                "kind": OneOf(("impact",)),
                "method": OneOf(("impact-v1",)),
                "objective": OBJECTIVE_ID_TEXT,
                "unit_price": DECIMAL,
                "level_coefficients": MapOf("L[1-4]", DECIMAL, 4),
            }
        ),
        **INCIDENT_RULES,
    },
)
_CAP = Text(rf"{DECIMAL.pattern}|{PERCENT.pattern}", "an amount, or a percentage of the base such as '50 %'", 32)
LEVELS = ("scope", "service", "contract")
"""What caps are for, in the order in which they apply."""

COMPENSATION = Object(
    {
        "currency": CURRENCY,
        "rules": ListOf(_RULE, 0, MAX_RULES),
        "tiers_combine": _COMBINE,
        "rules_combine": _COMBINE,
        "caps": Object({}, dict.fromkeys(LEVELS, _CAP)),
        "minimum": DECIMAL,
        "rounding": OneOf(("floor", "half_up", "half_even")),
        "credit_visibility": OneOf(("public", "committed")),
    },
    {"base": DECIMAL, "charges": Object({"of": OneOf(("period", "previous_period"))})},
)


class ChargesOf(StrEnum):
    """Whose charges are the base, where finance hands them in: those of the period settled or of the one before."""

    PERIOD = "period"
    PREVIOUS_PERIOD = "previous_period"


@dataclass(frozen=True, slots=True)
class Tier:
    """Attainment strictly below ``below_ppb`` pays ``credit_bps`` of the base (absolute, not an increment)."""

    below_ppb: int
    credit_bps: int


@dataclass(frozen=True, slots=True)
class TieredRule:
    """``tiered-v1``: per objective, tiers with strictly falling thresholds and rising credits."""

    tiers: Mapping[str, tuple[Tier, ...]]


@dataclass(frozen=True, slots=True)
class ImpactRule:
    """``impact-v1``: duration_s * qps * coefficient * unit price, per incident of one objective.

    ``coefficient_e9`` is that of the agreement's business level in billionths, ``price_e9`` the unit price in
    billionths of a minor unit.
    """

    objective: str
    coefficient_e9: int
    price_e9: int

    @property
    def price_per_request(self) -> Fraction:
        """Coefficient * unit price, in minor units."""
        return Fraction(self.coefficient_e9 * self.price_e9, 10**18)


@dataclass(frozen=True, slots=True)
class Cap:
    """The most that is paid in a period at one level: minor units, or a share of the base."""

    level: str
    minor_units: int | None
    percent_bps: int | None

    def limit(self, base: Fraction) -> Fraction:
        if self.minor_units is not None:
            return Fraction(self.minor_units)
        return base * Fraction(self.percent_bps or 0, BASIS_POINTS)


@dataclass(frozen=True, slots=True)
class Compensation:
    """How a breach becomes money; all amounts in minor units of ``currency``.

    ``charges``: whose recorded charges are the base; None where ``base`` is. ``based``: for each objective that a rule
    pays a share of the base for, the clause that says so. ``scopes``: what the scope cap holds for one by one, each
    with the objectives that rules pay for in it; empty where holding the total to it comes to the same.
    """

    currency: str
    base: int
    charges: ChargesOf | None
    tiered: TieredRule | None
    impact: ImpactRule | None
    incident_rules: tuple[IncidentRule, ...]
    based: Mapping[str, str]
    tiers_combine: str
    rules_combine: str
    caps: tuple[Cap, ...]
    minimum: int
    rounding: Rounding
    credit_visibility: str
    scopes: tuple[tuple[Scope, frozenset[str]], ...] = ()

    @property
    def cap(self) -> int:
        """The smallest of the caps that are amounts; without ``scopes`` all of them apply to one total."""
        return min((cap.minor_units for cap in self.caps if cap.minor_units is not None), default=NO_CAP)

    @property
    def simple(self) -> bool:
        """Whether tiers and impacts of an agreed base and fixed caps are all there is: the trace says no more then."""
        percent = any(cap.percent_bps is not None for cap in self.caps)
        return self.charges is None and not self.incident_rules and not percent and not self.scopes

    @property
    def pays_for_incidents(self) -> bool:
        """Whether a rule looks at incidents, which the totals of a period do not show."""
        by_result = [isinstance(rule, ProportionalRule) and rule.shortfall for rule in self.incident_rules]
        return self.impact is not None or not all(by_result)


def read_compensation(
    document: Mapping[str, Any], objectives: Mapping[str, Objective], business_level: str
) -> Compensation:
    """The compensation of a shape-checked agreement document; raises ``DocumentInvalid`` naming the field."""
    currency = document["currency"]
    convert("compensation.currency", currency, money.currency_exponent)

    def amount(path: str, text: str) -> int:
        value: int = convert(path, text, lambda t: money.minor_units(t, currency))
        return value

    tiered, impact, incident_rules, based = _rules(document["rules"], objectives, currency, business_level)
    caps = tuple(_cap(level, document["caps"][level], amount) for level in LEVELS if level in document["caps"])
    charges = ChargesOf(document["charges"]["of"]) if "charges" in document else None
    if (charges is None) != ("base" in document):
        said = "contradict each other" if charges else "are both missing"
        raise fail("compensation.base", f"base and charges {said}: the base is agreed on, or handed in by finance")
    base = amount("compensation.base", document["base"]) if "base" in document else 0
    percent_caps = (f"compensation.caps.{cap.level}" for cap in caps if cap.percent_bps is not None)
    if charges is None and base == 0 and (clause := next(iter((*based.values(), *percent_caps)), None)):
        raise fail("compensation.base", f"{document['base']} {currency} is zero, and {clause} is a share of it")
    found = Compensation(
        currency=currency,
        base=base,
        charges=charges,
        tiered=tiered,
        impact=impact,
        incident_rules=incident_rules,
        based=based,
        tiers_combine=document["tiers_combine"],
        rules_combine=document["rules_combine"],
        caps=caps,
        minimum=amount("compensation.minimum", document["minimum"]),
        rounding=Rounding(document["rounding"]),
        credit_visibility=document["credit_visibility"],
    )
    return replace(found, scopes=_scopes(found, objectives))


def _scopes(terms: Compensation, objectives: Mapping[str, Objective]) -> tuple[tuple[Scope, frozenset[str]], ...]:
    """The scopes that rules pay in, in the order of the objectives, where a scope cap tells them apart: amounts of
    several are added up, or it is a share of each one's charges, of which there are others."""
    cap = next((each for each in terms.caps if each.level == "scope"), None)
    tiers = [] if terms.tiered is None else [{*terms.tiered.tiers}]
    single = ([] if terms.impact is None else [terms.impact]) + list(terms.incident_rules)
    by_rule = [*tiers, *({rule.objective} for rule in single)]
    paid = set[str]().union(*by_rule)
    found: dict[Scope, frozenset[str]] = {}
    for objective in objectives.values():
        if objective.id in paid:
            found[objective.scope] = found.get(objective.scope, frozenset()) | {objective.id}
    summed = terms.rules_combine == "sum" or (
        terms.tiers_combine == "sum" and len({objectives[each].scope for of_rule in tiers for each in of_rule}) > 1
    )
    shares = cap is not None and cap.percent_bps is not None and terms.charges is not None
    others = {objective.scope for objective in objectives.values()} - found.keys()
    apart = (len(found) > 1 and (summed or shares)) or (shares and len(found) == 1 and bool(others))
    return tuple(found.items()) if cap is not None and apart else ()


def _rules(
    documents: Sequence[Mapping[str, Any]], objectives: Mapping[str, Objective], currency: str, level: str
) -> tuple[TieredRule | None, ImpactRule | None, tuple[IncidentRule, ...], dict[str, str]]:
    tiered: TieredRule | None = None
    impact: ImpactRule | None = None
    others: list[IncidentRule] = []
    based: dict[str, str] = {}
    for index, rule in enumerate(documents):
        at, kind = f"compensation.rules[{index}]", rule["kind"]
        if kind == "tiered":
            _require_first(at, kind, tiered)
            tiered = _tiered_rule(at, rule, objectives)
            for objective_id in tiered.tiers:
                based.setdefault(objective_id, f"{at}.tiers.{objective_id}")
        elif kind == "impact":
            _require_first(at, kind, impact)
            impact = _impact_rule(at, rule, objectives, currency, level)
        else:
            found = read_incident_rule(at, rule, objectives, currency)
            if any(type(other) is type(found) and other.objective == found.objective for other in others):
                raise fail(at, f"a second {kind} rule for {found.objective}; an objective has at most one of each kind")
            others.append(found)
            if found.needs_base:
                based.setdefault(found.objective, at)
    return tiered, impact, tuple(others), based


def _require_first(at: str, kind: str, before: TieredRule | ImpactRule | None) -> None:
    if before is not None:
        raise fail(at, f"a second {kind} rule; an agreement has at most one of each kind")


def _cap(level: str, text: str, amount: Callable[[str, str], int]) -> Cap:
    path = f"compensation.caps.{level}"
    percent = text.endswith("%")
    most = convert(path, text, percent_text_bps) if percent else amount(path, text)
    if most == 0:
        raise fail(path, f"{text} would cap every credit at nothing; leave the cap out, or the rules")
    return Cap(level, None, most) if percent else Cap(level, most, None)


def _tiered_rule(at: str, rule: Mapping[str, Any], objectives: Mapping[str, Objective]) -> TieredRule:
    found: dict[str, tuple[Tier, ...]] = {}
    for objective_id, steps in rule["tiers"].items():
        path = f"{at}.tiers.{objective_id}"
        if objective_id not in objectives:
            raise fail(path, "is not an objective of this agreement")
        tiers: list[Tier] = []
        for index, step in enumerate(steps):
            where = f"{path}[{index}]"
            below = convert(f"{where}.below", step["below"], money.percent_ppb)
            credit = convert(f"{where}.credit_percent", step["credit_percent"], money.percent_basis_points)
            if below > objectives[objective_id].target_ppb:
                raise fail(f"{where}.below", f"{step['below']} is above the target: a met objective would pay")
            if tiers and (below >= tiers[-1].below_ppb or credit <= tiers[-1].credit_bps):
                before = steps[index - 1]
                raise fail(
                    where,
                    f"below {step['below']} pays {step['credit_percent']} %, after below {before['below']} pays "
                    f"{before['credit_percent']} %: thresholds must fall and credits must rise from tier to tier",
                )
            if credit == 0:
                raise fail(f"{where}.credit_percent", "must be above 0")
            tiers.append(Tier(below, credit))
        found[objective_id] = tuple(tiers)
    if not found:
        raise fail(f"{at}.tiers", "names no objective")
    return TieredRule(found)


def _impact_rule(
    at: str, rule: Mapping[str, Any], objectives: Mapping[str, Objective], currency: str, level: str
) -> ImpactRule:
    if rule["objective"] not in objectives:
        raise fail(f"{at}.objective", f"{rule['objective']!r} is not an objective of this agreement")
    if level not in rule["level_coefficients"]:
        raise fail(f"{at}.level_coefficients", f"has no coefficient for business_level {level}")
    coefficient = convert(
        f"{at}.level_coefficients.{level}", rule["level_coefficients"][level], lambda t: money.scaled_integer(t, 9)
    )
    price = convert(f"{at}.unit_price", rule["unit_price"], lambda t: money.scaled_integer(t, 9))
    minor = 10 ** money.currency_exponent(currency)
    return ImpactRule(rule["objective"], coefficient, price * minor)
