"""A statement's credit split over the violations of its period, to the last minor unit (``credit-lines-v1``).

Each violation has one line. The credit is shared out by largest remainder, so that the lines sum to it exactly, in
proportion to what each violation contributed to it:

* the tier amount, where the tiered rule earned the credit: by bad requests, over the violations of the objectives
  whose tier was paid (``best``: those with the largest percentage; ``sum``: all that reached a tier);
* the amount of its incident in the credit's trace, where the impact rule or a rule for lost time earned the credit;
* its bad requests, where a rule for the shortfall below the target did.

Where each scope has a cap of its own, what it cuts off in one is taken from the violations of that scope's objectives
alone.

A violation that contributed nothing has a line of 0. A tier may be reached although no single window misses the
target; what has no violation to stand for it is one line without a violation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import partial

from ledger.domain.credits.compensation import CreditTrace, Incident
from ledger.domain.credits.lost_time import LostTime, RuleStep
from ledger.domain.credits.proration import apportion
from ledger.domain.credits.scope_caps import kept_by_objective
from ledger.domain.credits.tier_steps import amount_of_tier, tier_parts
from ledger.domain.violations.violation import Violation

RULE_VERSION = "credit-lines-v1"


class LineStatus(StrEnum):
    """``draft``: the proof of its statement is still due; ``issued``: owed; ``applied``: finance has booked it;
    ``void``: taken back before it was booked, and so is the entry that took it back."""

    DRAFT = "draft"
    ISSUED = "issued"
    APPLIED = "applied"
    VOID = "void"


@dataclass(frozen=True, slots=True)
class CreditShare:
    """What one violation, or none, has of a credit, in minor units."""

    violation: Violation | None
    minor_units: int


def credit_shares(trace: CreditTrace, violations: Sequence[Violation]) -> tuple[CreditShare, ...]:
    """One share for each violation, by first window and objective, then what no violation stands for, if anything.

    The order of ``violations`` does not matter.
    """
    ordered = sorted(violations, key=_key)
    earned = _Earned(ordered, kept_by_objective(trace.scopes) if trace.scopes else None)
    for amount, place in _paid_rules(trace):
        place(earned, amount)
    weights = earned.weights
    if earned.unplaced and trace.credit:
        weights[_NO_VIOLATION] = earned.unplaced
    shares = apportion(trace.credit, weights)
    lines = [CreditShare(violation, shares[_key(violation)]) for violation in ordered]
    if _NO_VIOLATION in shares:
        lines.append(CreditShare(None, shares[_NO_VIOLATION]))
    return tuple(lines)


class _Earned:
    """What each violation contributed to a credit."""

    def __init__(self, ordered: Sequence[Violation], kept: Mapping[str, Fraction] | None) -> None:
        self._ordered = ordered
        self._kept = kept
        self.weights = {_key(violation): Fraction(0) for violation in ordered}
        self.unplaced = Fraction(0)

    def by_bad_requests(self, amount: Fraction, objectives: Collection[str]) -> None:
        """An amount that the bad requests of these objectives earned together."""
        if self._kept is not None:
            (objective,) = objectives
            amount *= self._kept.get(objective, 0)
        paid = [violation for violation in self._ordered if violation.objective.id in objectives]
        bad = sum(violation.bad for violation in paid)
        if not bad:
            self.unplaced += amount
            return
        for violation in paid:
            self.weights[_key(violation)] += amount * Fraction(violation.bad, bad)

    def by_incident(self, objective: str, incidents: Sequence[Incident | LostTime]) -> None:
        kept = Fraction(1) if self._kept is None else self._kept.get(objective, Fraction(0))
        for incident in incidents:
            self.weights[incident.first_window, objective] += incident.amount * kept


_Place = Callable[[_Earned, Fraction], None]


def _paid_rules(trace: CreditTrace) -> list[tuple[Fraction, _Place]]:
    """The amount of each rule that was paid, and how it is placed: all of them, or the first of the largest.

    Nothing where the agreement has no rule.
    """
    rules: list[tuple[Fraction, _Place]] = []
    if trace.tier_amount is not None:
        rules.append((trace.tier_amount, lambda earned, _: _place_tiers(trace, earned)))
    if trace.impact_amount is not None:
        objective = trace.incidents[0].objective if trace.incidents else ""
        rules.append((trace.impact_amount, lambda earned, _: earned.by_incident(objective, trace.incidents)))
    rules += [(step.amount, partial(_place_rule, step)) for step in trace.rules or ()]
    if trace.rules_combine == "sum":
        return rules
    return [max(rules, key=lambda rule: rule[0])] if rules else []


def _place_rule(step: RuleStep, earned: _Earned, amount: Fraction) -> None:
    if step.missing is not None:
        earned.by_bad_requests(amount, {step.objective})
    else:
        earned.by_incident(step.objective, step.incidents)


def _place_tiers(trace: CreditTrace, earned: _Earned) -> None:
    """The tier amount, over the objectives whose tier was paid; each has its own where it has its own charges."""
    amount = trace.tier_amount or Fraction(0)
    if trace.scopes:
        for name, part in tier_parts(trace.tiers_combine, trace.base, trace.tiers, amount).items():
            earned.by_bad_requests(part, {name})
        return
    paid = [step for step in trace.tiers if step.credit_bps > 0]
    if trace.charges is None:
        best = trace.tiers_combine == "best"
        earned.by_bad_requests(
            amount, {step.objective for step in paid if not best or step.credit_bps == trace.combined_bps}
        )
        return
    if trace.tiers_combine == "best":
        paid = [step for step in paid if amount_of_tier(step) == amount]
    together = sum((amount_of_tier(step) for step in paid), Fraction(0))
    if trace.tiers_combine == "best" or not together:
        earned.by_bad_requests(amount, {step.objective for step in paid})
        return
    for step in paid:
        share = amount_of_tier(step) / together  # exact: Fractions
        earned.by_bad_requests(amount * share, {step.objective})


_NO_VIOLATION = (-1, "")


def _key(violation: Violation) -> tuple[int, str]:
    return violation.first_window, violation.objective.id
