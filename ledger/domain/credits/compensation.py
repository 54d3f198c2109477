"""From judged objectives to a credit, in exact steps that ``explain``, finance and the circuit share.

Order (semantics 12): tier percentages -> base -> combine -> caps of scope (``ledger.domain.credits.scope_caps``),
service and contract -> strict minimum -> one rounding.
Amounts between the base and the rounding are exact fractions of a minor unit.

``tiered-v1``: the last tier whose threshold an objective misses gives its percentage; ``tiers_combine`` takes the
largest (``best``) or the sum, at most 100 %.
``impact-v1``: an incident is a run of windows that breaks the objective's promise
(``ledger.domain.violations.violation``). Its amount is duration_s * qps * coefficient * unit price with qps = valid /
duration_s, so exactly valid * coefficient * unit price. The rule's amount is the sum over its incidents: each is a
claim of its own.
``ledger.domain.credits.lost_time`` has the rules that pay for lost time.
``rules_combine`` takes the largest amount of a rule (``best``: what broke two rules is paid once) or the sum.

The base is agreed on, or what finance recorded as charges in an objective's scope
(``ledger.domain.credits.charges``). Then the amounts of objectives are combined and not their percentages, and a sum
is at most the charges of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ledger.domain.credits.charges import Base, Charges, base_of, require_bases
from ledger.domain.credits.lost_time import Lost, RuleStep, rule_step
from ledger.domain.credits.scope_caps import ScopeStep, paid_parts, scope_steps
from ledger.domain.credits.tier_steps import TierStep, amount_of_tier, tier_step
from ledger.domain.credits.verdict import ObjectiveResult
from ledger.domain.methods.registry import Measuring
from ledger.domain.money import BASIS_POINTS, fraction_document, round_quotient
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.compensation_terms import NO_CAP, Compensation, ImpactRule
from ledger.domain.terms.objective import Objective, Scope
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.windows.window import Window
from ledger.domain.windows.window_columns import WindowColumns


@dataclass(frozen=True, slots=True)
class CapStep:
    """One cap and what was left after it; ``percent_bps`` of the base where it is a share."""

    level: str
    percent_bps: int | None
    limit: Fraction
    amount: Fraction


@dataclass(frozen=True, slots=True)
class Incident:
    """A violation as the impact rule pays it; ``first_window`` counts from 0."""

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
    it names none. ``payable`` says that ``capped_amount`` is strictly above ``minimum``. ``base`` is None where
    ``charges`` are the base. ``rules`` and ``caps`` are None where the terms are ``simple``. With ``scopes`` each of
    them has its own cap, and ``caps`` are those after them.
    """

    currency: str
    base: int | None
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
    charges: Charges | None = None
    rules: tuple[RuleStep, ...] | None = None
    caps: tuple[CapStep, ...] | None = None
    scopes: tuple[ScopeStep, ...] = ()

    def as_document(self) -> dict[str, Any]:
        """Plain JSON without floats: amounts as decimal strings, fractions as numerator and denominator."""
        return {
            "currency": self.currency,
            "base": None if self.base is None else str(self.base),
            "tiers": [
                {
                    "objective": step.objective,
                    "good": step.good,
                    "valid": step.valid,
                    "target_ppb": step.target_ppb,
                    "tier": step.tier,
                    "below_ppb": step.below_ppb,
                    "credit_bps": step.credit_bps,
                    **_base_document(step.base),
                }
                for step in self.tiers
            ],
            "tiers_combine": self.tiers_combine,
            "combined_bps": self.combined_bps,
            "tier_amount": _fraction(self.tier_amount),
            "price_per_request": _fraction(self.price_per_request),
            "incidents": [
                {
                    "objective": incident.objective,
                    "first_window": incident.first_window,
                    "windows": incident.windows,
                    "start_ns": str(incident.start_ns),
                    "end_ns": str(incident.end_ns),
                    "good": incident.good,
                    "valid": incident.valid,
                    "amount": fraction_document(incident.amount),
                }
                for incident in self.incidents
            ],
            "impact_amount": _fraction(self.impact_amount),
            "rules_combine": self.rules_combine,
            "combined_amount": fraction_document(self.combined_amount),
            "cap": None if self.cap is None else str(self.cap),
            "capped_amount": fraction_document(self.capped_amount),
            "minimum": str(self.minimum),
            "payable": self.payable,
            "rounding": self.rounding,
            "credit": str(self.credit),
            **self._added(),
        }

    def _added(self) -> dict[str, Any]:
        """What the trace of terms that are not ``simple`` has besides."""
        if self.rules is None or self.caps is None:
            return {}
        charges = self.charges
        recorded = None if charges is None else {"period": charges.period, "lines": list(charges.documents)}
        return {
            "charges": recorded,
            "rules": [step.as_document() for step in self.rules],
            **({"scopes": [step.as_document() for step in self.scopes]} if self.scopes else {}),
            "caps": [
                {
                    "level": step.level,
                    "percent_bps": step.percent_bps,
                    "limit": fraction_document(step.limit),
                    "amount": fraction_document(step.amount),
                }
                for step in self.caps
            ],
        }


def incidents(agreement: Agreement, rule: ImpactRule, windows: Sequence[Window]) -> tuple[Incident, ...]:
    """The incidents of an impact rule over the windows of a period, in order."""
    index = next(at for at, objective in enumerate(agreement.objectives) if objective.id == rule.objective)
    columns = WindowColumns.of(windows, agreement.window_seconds * SECOND_NS, len(agreement.objectives))
    measuring = Measuring(agreement.objectives, columns, agreement.window_seconds)
    return tuple(_incident(rule, index, columns, run) for run in measuring.breaches(index))


def credit_trace(
    agreement: Agreement,
    results: Sequence[ObjectiveResult],
    windows: Sequence[Window],
    charges: Charges | None = None,
    runs: Sequence[Incident] | None = None,
) -> CreditTrace:
    """The credit of a period and every step to it.

    ``charges`` are those recorded, where the agreement takes its base from them; it raises ``ChargesRefused`` where an
    objective has none of them. ``runs`` are the incidents of the impact rule where they are known without the windows.
    """
    terms = agreement.compensation
    bases = _Bases(agreement, charges)
    tiers, bps, tier_amount = _tiers(terms, results, bases)
    found: tuple[Incident, ...] = ()
    impact_amount: Fraction | None = None
    if terms.impact is not None:
        found = incidents(agreement, terms.impact, windows) if runs is None else tuple(runs)
        impact_amount = sum((run.amount for run in found), Fraction(0))
    rules = _rule_steps(agreement, results, windows, bases)
    combined, scopes, caps = _combined(terms, (tiers, tier_amount), impact_amount, rules, bases)
    left = sum((step.left for step in scopes), Fraction(0)) if scopes else combined
    capped = caps[-1].amount if caps else left
    payable = capped > terms.minimum
    return CreditTrace(
        currency=terms.currency,
        base=terms.base if charges is None else None,
        tiers=tiers,
        tiers_combine=terms.tiers_combine,
        combined_bps=bps,
        tier_amount=tier_amount,
        price_per_request=terms.impact.price_per_request if terms.impact else None,
        incidents=found,
        impact_amount=impact_amount,
        rules_combine=terms.rules_combine,
        combined_amount=combined,
        cap=None if terms.cap == NO_CAP else terms.cap,
        capped_amount=capped,
        minimum=terms.minimum,
        payable=payable,
        rounding=str(terms.rounding),
        credit=_rounded(capped, terms) if payable else 0,
        charges=charges,
        rules=None if terms.simple else rules,
        caps=None if terms.simple else caps,
        scopes=scopes,
    )


def _combined(
    terms: Compensation,
    tiered: tuple[Sequence[TierStep], Fraction | None],
    impact_amount: Fraction | None,
    rules: Sequence[RuleStep],
    bases: _Bases,
) -> tuple[Fraction, tuple[ScopeStep, ...], tuple[CapStep, ...]]:
    """What the rules come to together, and the caps that it is held to."""
    rule_amounts = (tiered[1], impact_amount, *(step.amount for step in rules))
    amounts = [amount for amount in rule_amounts if amount is not None]
    combined = max(amounts, default=Fraction(0)) if terms.rules_combine == "best" else sum(amounts, Fraction(0))
    if not terms.scopes:
        return combined, (), _capped(terms, combined, bases.whole)
    scopes = scope_steps(terms, paid_parts(terms, tiered, impact_amount, rules), bases.of_scope)
    return combined, scopes, _capped(terms, sum((step.left for step in scopes), Fraction(0)), bases.whole)


class _Bases:
    """What the percentages of each objective are of."""

    def __init__(self, agreement: Agreement, charges: Charges | None) -> None:
        if agreement.compensation.charges is not None and charges is None:
            raise ValueError("the base of this agreement is charges, and none are given")
        self._agreement = agreement
        self._charges = charges
        if charges is not None:
            require_bases(agreement, charges)

    def of(self, objective: Objective) -> Base:
        return self._of((objective.scope,))

    def of_scope(self, scope: Scope) -> Fraction:
        return self._of((scope,)).amount

    def recorded(self, objective: Objective) -> Base | None:
        """The same where it is recorded; None where the whole is agreed on."""
        return None if self._charges is None else self.of(objective)

    @property
    def whole(self) -> Fraction:
        """The base of all objectives; a charge in the scope of several counts once."""
        return self._of([objective.scope for objective in self._agreement.objectives]).amount

    def _of(self, scopes: Sequence[Scope]) -> Base:
        if self._charges is not None:
            return base_of(self._charges, self._agreement.service, scopes)
        amount = Fraction(self._agreement.compensation.base)
        return Base(amount, (), ((amount, None),))


def _tiers(
    terms: Compensation, results: Sequence[ObjectiveResult], bases: _Bases
) -> tuple[tuple[TierStep, ...], int, Fraction | None]:
    """The tier of each objective, the percentage they give together, and the amount."""
    rule = terms.tiered
    if rule is None:
        return (), 0, None
    steps = tuple(tier_step(rule, result, bases.recorded(result.objective)) for result in results)
    percentages = [step.credit_bps for step in steps]
    best = terms.tiers_combine == "best"
    bps = max(percentages) if best else min(sum(percentages), BASIS_POINTS)
    if terms.charges is None:
        return steps, bps, Fraction(terms.base * bps, BASIS_POINTS)
    amounts = [amount_of_tier(step) for step in steps]
    if not best:
        return steps, bps, min(sum(amounts, Fraction(0)), bases.whole)
    largest = max(range(len(steps)), key=lambda at: amounts[at])
    return steps, percentages[largest], amounts[largest]


def _rule_steps(
    agreement: Agreement, results: Sequence[ObjectiveResult], windows: Sequence[Window], bases: _Bases
) -> tuple[RuleStep, ...]:
    columns = WindowColumns.of(windows, agreement.window_seconds * SECOND_NS, len(agreement.objectives))
    measuring = Measuring(agreement.objectives, columns, agreement.window_seconds)
    index = {objective.id: at for at, objective in enumerate(agreement.objectives)}
    found = []
    for rule in agreement.compensation.incident_rules:
        at = index[rule.objective]
        lost = Lost(measuring.breaches(at), columns, at, results[at])
        found.append(rule_step(rule, lost, bases.of(agreement.objectives[at])))
    return tuple(found)


def _capped(terms: Compensation, amount: Fraction, base: Fraction) -> tuple[CapStep, ...]:
    steps = []
    for cap in terms.caps:
        if terms.scopes and cap.level == "scope":
            continue
        limit = cap.limit(base)
        amount = min(amount, limit)
        steps.append(CapStep(cap.level, cap.percent_bps, limit, amount))
    return tuple(steps)


def _fraction(value: Fraction | None) -> dict[str, str] | None:
    return None if value is None else fraction_document(value)


def _base_document(base: Base | None) -> dict[str, Any]:
    return {} if base is None else {"base": {"lines": list(base.lines), "amount": fraction_document(base.amount)}}


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
