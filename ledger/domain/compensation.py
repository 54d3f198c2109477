"""From judged objectives to a credit, in exact steps that ``explain``, finance and the circuit share.

Order (semantics 12): tier percentages -> base -> combine -> smallest cap -> strict minimum -> one rounding.
Amounts between the base and the rounding are exact fractions of a minor unit.

``tiered-v1``: the last tier whose threshold an objective misses gives its percentage; ``tiers_combine`` takes
the largest (``best``) or the sum, at most 100 %.
``impact-v1``: an incident is a maximal run of windows that each miss the objective's target by their own
counts; an idle, excluded or missing window ends it, and so does one without valid requests for the objective.
Its amount is duration_s * qps * coefficient * unit price with qps = valid / duration_s, so exactly valid *
coefficient * unit price. The rule's amount is the sum over its incidents: each is a claim of its own.
``rules_combine`` takes the largest amount of a rule (``best``: what broke two rules is paid once) or the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ledger.domain.agreement import Agreement
from ledger.domain.compensation_terms import NO_CAP, Compensation, ImpactRule, TieredRule
from ledger.domain.instant import SECOND_NS
from ledger.domain.methods.registry import Measuring
from ledger.domain.money import BASIS_POINTS, round_quotient
from ledger.domain.verdict import ObjectiveResult
from ledger.domain.window import Window
from ledger.domain.window_columns import WindowColumns


@dataclass(frozen=True, slots=True)
class TierStep:
    """Which tier an objective reached: ``tier`` counts from 1, None for none."""

    objective: str
    good: int
    valid: int
    target_ppb: int
    tier: int | None
    below_ppb: int | None
    credit_bps: int


@dataclass(frozen=True, slots=True)
class Incident:
    """A maximal run of windows in breach of one objective; ``first_window`` counts from 0."""

    objective: str
    first_window: int
    windows: int
    start_ns: int
    end_ns: int
    good: int
    valid: int
    amount: Fraction


@dataclass(frozen=True, slots=True)
class CreditTrace:
    """Every step from counts to a credit. Amounts are in minor units; fractions are exact.

    ``tier_amount`` and ``impact_amount`` are None where the agreement has no such rule; ``cap`` is None where
    it names none. ``payable`` says that ``capped_amount`` is strictly above ``minimum``.
    """

    currency: str
    base: int
    tiers: tuple[TierStep, ...]
    tiers_combine: str
    combined_bps: int
    tier_amount: Fraction | None
    price_per_request: Fraction | None
    incidents: tuple[Incident, ...]
    impact_amount: Fraction | None
    rules_combine: str
    combined_amount: Fraction
    cap: int | None
    capped_amount: Fraction
    minimum: int
    payable: bool
    rounding: str
    credit: int

    def as_document(self) -> dict[str, Any]:
        """Plain JSON without floats: amounts as decimal strings, fractions as numerator and denominator."""
        return {
            "currency": self.currency,
            "base": str(self.base),
            "tiers": [
                {
                    "objective": step.objective,
                    "good": step.good,
                    "valid": step.valid,
                    "target_ppb": step.target_ppb,
                    "tier": step.tier,
                    "below_ppb": step.below_ppb,
                    "credit_bps": step.credit_bps,
                }
                for step in self.tiers
            ],
            "tiers_combine": self.tiers_combine,
            "combined_bps": self.combined_bps,
            "tier_amount": _ratio(self.tier_amount),
            "price_per_request": _ratio(self.price_per_request),
            "incidents": [
                {
                    "objective": incident.objective,
                    "first_window": incident.first_window,
                    "windows": incident.windows,
                    "start_ns": str(incident.start_ns),
                    "end_ns": str(incident.end_ns),
                    "good": incident.good,
                    "valid": incident.valid,
                    "amount": _ratio(incident.amount),
                }
                for incident in self.incidents
            ],
            "impact_amount": _ratio(self.impact_amount),
            "rules_combine": self.rules_combine,
            "combined_amount": _ratio(self.combined_amount),
            "cap": None if self.cap is None else str(self.cap),
            "capped_amount": _ratio(self.capped_amount),
            "minimum": str(self.minimum),
            "payable": self.payable,
            "rounding": self.rounding,
            "credit": str(self.credit),
        }


def incidents(agreement: Agreement, rule: ImpactRule, windows: Sequence[Window]) -> tuple[Incident, ...]:
    """The incidents of an impact rule over the windows of a period, in order."""
    index = next(at for at, objective in enumerate(agreement.objectives) if objective.id == rule.objective)
    columns = WindowColumns.of(windows, agreement.window_seconds * SECOND_NS, len(agreement.objectives))
    measuring = Measuring(agreement.objectives, columns, agreement.window_seconds)
    return tuple(_incident(rule, index, columns, run) for run in measuring.breaches(index))


def credit_trace(agreement: Agreement, results: Sequence[ObjectiveResult], windows: Sequence[Window]) -> CreditTrace:
    """The credit of a period and every step to it."""
    terms = agreement.compensation
    tiers: tuple[TierStep, ...] = ()
    bps = 0
    tier_amount: Fraction | None = None
    if terms.tiered is not None:
        rule = terms.tiered
        tiers = tuple(_tier_step(rule, result) for result in results)
        percentages = [step.credit_bps for step in tiers]
        bps = max(percentages) if terms.tiers_combine == "best" else min(sum(percentages), BASIS_POINTS)
        tier_amount = Fraction(terms.base * bps, BASIS_POINTS)
    runs: tuple[Incident, ...] = ()
    impact_amount: Fraction | None = None
    if terms.impact is not None:
        runs = incidents(agreement, terms.impact, windows)
        impact_amount = sum((run.amount for run in runs), Fraction(0))
    amounts = [amount for amount in (tier_amount, impact_amount) if amount is not None]
    combined = max(amounts, default=Fraction(0)) if terms.rules_combine == "best" else sum(amounts, Fraction(0))
    capped = min(combined, Fraction(terms.cap))
    payable = capped > terms.minimum
    return CreditTrace(
        currency=terms.currency,
        base=terms.base,
        tiers=tiers,
        tiers_combine=terms.tiers_combine,
        combined_bps=bps,
        tier_amount=tier_amount,
        price_per_request=terms.impact.price_per_request if terms.impact else None,
        incidents=runs,
        impact_amount=impact_amount,
        rules_combine=terms.rules_combine,
        combined_amount=combined,
        cap=None if terms.cap == NO_CAP else terms.cap,
        capped_amount=capped,
        minimum=terms.minimum,
        payable=payable,
        rounding=str(terms.rounding),
        credit=_rounded(capped, terms) if payable else 0,
    )


def _tier_step(rule: TieredRule, result: ObjectiveResult) -> TierStep:
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
    )


def _incident(rule: ImpactRule, index: int, windows: WindowColumns, run: range) -> Incident:
    interval, counts = windows.interval(run.start, run.stop), windows.cells[index].sums(run)
    return Incident(
        objective=rule.objective,
        first_window=run.start,
        windows=len(run),
        start_ns=interval.start_ns,
        end_ns=interval.end_ns,
        good=counts.good,
        valid=counts.valid,
        amount=counts.valid * rule.price_per_request,
    )


def _rounded(amount: Fraction, terms: Compensation) -> int:
    return round_quotient(amount.numerator, amount.denominator, terms.rounding)


def _ratio(value: Fraction | None) -> dict[str, str] | None:
    if value is None:
        return None
    return {"numerator": str(value.numerator), "denominator": str(value.denominator)}
