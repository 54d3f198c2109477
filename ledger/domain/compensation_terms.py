"""How an agreement turns a breach into money: the shape of its ``compensation`` member, and what is read from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ledger.domain import money
from ledger.domain.money import Rounding
from ledger.domain.objective import DECIMAL, MAX_OBJECTIVES, OBJECTIVE_ID, OBJECTIVE_ID_TEXT, Objective
from ledger.domain.schema import Either, ListOf, MapOf, Object, OneOf, Text, convert, fail

NO_CAP = money.MAX_MINOR_UNITS
MAX_TIERS = 16

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
    },
)

COMPENSATION = Object(
    {
        "currency": Text(r"[A-Z]{3}", "an ISO 4217 currency code", 3),
        "base": DECIMAL,
        "rules": ListOf(_RULE, 0, 2),
        "tiers_combine": _COMBINE,
        "rules_combine": _COMBINE,
        "caps": Object({}, {"scope": DECIMAL, "service": DECIMAL, "contract": DECIMAL}),
        "minimum": DECIMAL,
        "rounding": OneOf(("floor", "half_up", "half_even")),
        "credit_visibility": OneOf(("public", "committed")),
    }
)


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

    ``price_per_request`` is coefficient of the agreement's business level * unit price, in minor units.
    """

    objective: str
    price_per_request: Fraction


@dataclass(frozen=True, slots=True)
class Compensation:
    """How a breach becomes money; all amounts in minor units of ``currency``."""

    currency: str
    base: int
    tiered: TieredRule | None
    impact: ImpactRule | None
    tiers_combine: str
    rules_combine: str
    caps: Mapping[str, int]
    minimum: int
    rounding: Rounding
    credit_visibility: str

    @property
    def cap(self) -> int:
        """The smallest of the caps. One agreement names one service and scope, so all apply to one total."""
        return min(self.caps.values(), default=NO_CAP)


def read_compensation(
    document: Mapping[str, Any], objectives: Mapping[str, Objective], business_level: str
) -> Compensation:
    """The compensation of a shape-checked agreement document; raises ``DocumentInvalid`` naming the field."""
    currency = document["currency"]
    convert("compensation.currency", currency, money.currency_exponent)

    def amount(path: str, text: str) -> int:
        value: int = convert(path, text, lambda t: money.minor_units(t, currency))
        return value

    tiered: TieredRule | None = None
    impact: ImpactRule | None = None
    for index, rule in enumerate(document["rules"]):
        at = f"compensation.rules[{index}]"
        if (tiered if rule["kind"] == "tiered" else impact) is not None:
            raise fail(at, f"a second {rule['kind']} rule; an agreement has at most one of each kind")
        if rule["kind"] == "tiered":
            tiered = _tiered_rule(at, rule, objectives)
        else:
            impact = _impact_rule(at, rule, objectives, currency, business_level)
    return Compensation(
        currency=currency,
        base=amount("compensation.base", document["base"]),
        tiered=tiered,
        impact=impact,
        tiers_combine=document["tiers_combine"],
        rules_combine=document["rules_combine"],
        caps={name: amount(f"compensation.caps.{name}", text) for name, text in document["caps"].items()},
        minimum=amount("compensation.minimum", document["minimum"]),
        rounding=Rounding(document["rounding"]),
        credit_visibility=document["credit_visibility"],
    )


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
                raise fail(where, "thresholds must fall and credits must rise from tier to tier")
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
    return ImpactRule(rule["objective"], Fraction(coefficient * price * minor, 10**18))
