"""Which tier each objective reached, and what of the tier amount is paid for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ledger.domain.credits.charges import Base
from ledger.domain.credits.verdict import ObjectiveResult
from ledger.domain.money import BASIS_POINTS
from ledger.domain.terms.compensation_terms import TieredRule


@dataclass(frozen=True, slots=True)
class TierStep:
    """Which tier an objective reached: ``tier`` counts from 1, None for none. ``base`` are the charges recorded for
    it, None where one base is agreed on for all."""

    objective: str
    good: int
    valid: int
    target_ppb: int
    tier: int | None
    below_ppb: int | None
    credit_bps: int
    base: Base | None = None


def tier_step(rule: TieredRule, result: ObjectiveResult, base: Base | None) -> TierStep:
    """The last tier that a result is below, and what it pays."""
    reached: int | None = None
    tiers = rule.tiers.get(result.objective.id, ())
    for number, tier in enumerate(tiers, 1):
        if result.pays_below(tier.below_ppb):
            reached = number
    tier_or_none = tiers[reached - 1] if reached is not None else None
    return TierStep(
        objective=result.objective.id,
        good=result.good,
        valid=result.valid,
        target_ppb=result.objective.target_ppb,
        tier=reached,
        below_ppb=tier_or_none.below_ppb if tier_or_none else None,
        credit_bps=tier_or_none.credit_bps if tier_or_none else 0,
        base=base,
    )


def amount_of_tier(step: TierStep, agreed: int | None = None) -> Fraction:
    """What the tier of one objective gives of the charges recorded for it, or of the base that is agreed on for all."""
    whole = Fraction(agreed or 0) if step.base is None else step.base.amount
    return whole * Fraction(step.credit_bps, BASIS_POINTS)


def tier_parts(
    combine: str, base: int | None, tiers: Sequence[TierStep], tier_amount: Fraction
) -> Mapping[str, Fraction]:
    """The tier amount by the objectives it is paid for. ``base`` is the agreed one."""
    amounts = {step.objective: amount_of_tier(step, base) for step in tiers}
    if combine == "best":
        best = max(amounts, key=lambda name: amounts[name])
        return {best: amounts[best]}
    whole = sum(amounts.values(), Fraction(0))
    # Held to the whole base, a sum is less than its parts.
    return {name: amount * tier_amount / whole for name, amount in amounts.items() if amount}  # exact: Fractions
