"""A statement's credit split over the violations of its period, to the last minor unit (``credit-lines-v1``).

Each violation has one line. The credit is shared out by largest remainder, so that the lines sum to it exactly, in
proportion to what each violation contributed to it:

* the tier amount, where the tiered rule earned the credit: by bad requests, over the violations of the objectives
  whose tier was paid (``best``: those with the largest percentage; ``sum``: all that reached a tier);
* the amount of its incident in the credit's trace, where the impact rule earned the credit.

A violation that contributed nothing has a line of 0. A tier may be reached although no single window misses the
target; what has no violation to stand for it is one line without a violation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TypeVar

from ledger.domain.compensation import CreditTrace
from ledger.domain.violations import Violation

RULE_VERSION = "credit-lines-v1"

K = TypeVar("K", bound="int | str | tuple[int, str]")


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
    weights = {_key(violation): Fraction(0) for violation in ordered}
    unplaced = Fraction(0)
    tier, impact = trace.tier_amount or Fraction(0), trace.impact_amount or Fraction(0)
    pays_both = trace.rules_combine == "sum"
    if pays_both or tier >= impact:
        earning = {step.objective for step in trace.tiers if _was_paid(trace, step.credit_bps)}
        paid = [violation for violation in ordered if violation.objective.id in earning]
        bad = sum(violation.bad for violation in paid)
        for violation in paid:
            weights[_key(violation)] += tier * Fraction(violation.bad, bad)
        unplaced = Fraction(0) if paid else tier
    if pays_both or impact > tier:
        for incident in trace.incidents:
            weights[incident.first_window, incident.objective] += incident.amount
    if unplaced and trace.credit:
        weights[_NO_VIOLATION] = unplaced
    shares = apportion(trace.credit, weights)
    lines = [CreditShare(violation, shares[_key(violation)]) for violation in ordered]
    if _NO_VIOLATION in shares:
        lines.append(CreditShare(None, shares[_NO_VIOLATION]))
    return tuple(lines)


def apportion(total: int, weights: Mapping[K, Fraction]) -> dict[K, int]:
    """Whole parts of ``total`` >= 0 in proportion to the weights, by largest remainder; equal ones by key.

    The parts sum to ``total`` exactly, none is a whole unit away from its exact share, and what weighs nothing gets
    nothing. Nothing to share out gives zeros. Raises ``ValueError`` where nothing has a weight to share by.
    """
    weight = sum(weights.values(), Fraction(0))
    if total == 0:
        return dict.fromkeys(weights, 0)
    if weight <= 0:
        raise ValueError("nothing has a weight to share by")
    exact = {key: total * each / weight for key, each in weights.items()}  # exact: Fractions
    parts = {key: share.numerator // share.denominator for key, share in exact.items()}
    rest = total - sum(parts.values())
    for key in sorted(exact, key=lambda key: (parts[key] - exact[key], key))[:rest]:
        parts[key] += 1
    return parts


_NO_VIOLATION = (-1, "")


def _key(violation: Violation) -> tuple[int, str]:
    return violation.first_window, violation.objective.id


def _was_paid(trace: CreditTrace, credit_bps: int) -> bool:
    if trace.tiers_combine == "best":
        return 0 < credit_bps == trace.combined_bps
    return credit_bps > 0
