"""The cap of a scope: held against what the rules pay in each scope, not against the total.

What is combined is taken apart again by the objective it is paid for. A rule for one objective pays in that one's scope.
Tiers that are added up pay each objective its own part (where their sum is held to the whole base, in proportion), and
the best tier pays in the scope of its objective. Scopes are told apart by what they name: one that holds another is
another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ledger.domain.compensation_terms import Compensation
from ledger.domain.money import fraction_document
from ledger.domain.objective import Scope

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
    return {name: step.left / step.amount for step in steps for name, _ in step.parts if step.amount}  # exact: Fractions
