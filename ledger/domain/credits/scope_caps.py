"""The cap of a scope: held against what the rules pay in each scope, not against the total.

What is combined is taken apart again by the objective it is paid for. A rule for one objective pays in the scope of
that one. Tiers that are added up pay each objective its own part (where the sum is held to the whole base, in
proportion), and the best tier pays in the scope of its objective. Scopes are told apart by what they name: one that
holds another is another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ledger.domain.credits.lost_time import RuleStep
from ledger.domain.credits.tier_steps import TierStep, tier_parts
from ledger.domain.money import fraction_document
from ledger.domain.terms.compensation_terms import Compensation
from ledger.domain.terms.objective import Scope

Parts = Mapping[str, Fraction]
"""What is paid for each objective, by its id; the parts of an amount sum to it exactly."""


@dataclass(frozen=True, slots=True)
class ScopeStep:
    """What the rules pay in one scope before (``amount``) and after its cap (``left``); ``parts`` sum to ``amount``.

    ``percent_bps``, of the scope's own base, where the cap is a share.
    """

    scope: str
    parts: tuple[tuple[str, Fraction], ...]
    amount: Fraction
    percent_bps: int | None
    limit: Fraction
    left: Fraction

    def as_document(self) -> dict[str, Any]:
        return {
            "scope": self.scope,
            "parts": [{"objective": name, "amount": fraction_document(amount)} for name, amount in self.parts],
            "amount": fraction_document(self.amount),
            "percent_bps": self.percent_bps,
            "limit": fraction_document(self.limit),
            "left": fraction_document(self.left),
        }


def paid_parts(
    terms: Compensation,
    tiered: tuple[Sequence[TierStep], Fraction | None],
    impact_amount: Fraction | None,
    rules: Sequence[RuleStep],
) -> Parts:
    """The combined amount of a period by the objectives it is paid for."""
    found: list[Parts] = []
    tiers, tier_amount = tiered
    if tier_amount is not None:
        found.append(tier_parts(terms.tiers_combine, terms.base, tiers, tier_amount))
    if terms.impact is not None and impact_amount is not None:
        found.append({terms.impact.objective: impact_amount})
    found += [{step.objective: step.amount} for step in rules]
    if terms.rules_combine == "best":
        return max(found, key=lambda parts: sum(parts.values(), Fraction(0)))
    together: dict[str, Fraction] = {}
    for parts in found:
        for name, amount in parts.items():
            together[name] = together.get(name, Fraction(0)) + amount
    return together


def scope_steps(terms: Compensation, paid: Parts, base: Callable[[Scope], Fraction]) -> tuple[ScopeStep, ...]:
    """One step for each of the terms' scopes; ``paid`` are the parts of the combined amount, ``base`` the base of a
    scope."""
    steps = []
    for cap in terms.caps:
        if cap.level != "scope":
            continue
        for scope, objectives in terms.scopes:
            parts = tuple((name, amount) for name, amount in paid.items() if name in objectives and amount)
            amount, limit = sum((part for _, part in parts), Fraction(0)), cap.limit(base(scope))
            steps.append(ScopeStep(str(scope), parts, amount, cap.percent_bps, limit, min(amount, limit)))
    return tuple(steps)


def kept_by_objective(steps: tuple[ScopeStep, ...]) -> dict[str, Fraction]:
    """What part of 1 the cap of its scope leaves of what is paid for an objective."""
    kept: dict[str, Fraction] = {}
    for step in steps:
        for name, _ in step.parts:
            kept[name] = step.left / step.amount  # exact: Fractions
    return kept
