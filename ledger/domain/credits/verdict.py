"""Verdicts: what counts say about a promise. Whole numbers only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ledger.domain.money import PARTS_PER_BILLION
from ledger.domain.terms.objective import Objective

# The square of z for one side at 95 %, 1.6448536269514727...^2, in units of 10^-18.
Z_SQUARED_E18 = 2_705_543_454_095_414_567


class ObjectiveState(StrEnum):
    """What the counts of a period say about one objective.

    ``no_data``: nothing was valid. ``insufficient_data``: too few, or what is undecided could turn it either way, or
    the confidence that the agreement asks for is not reached. ``withheld``: coverage forbids a verdict.
    """

    MET = "met"
    BREACHED = "breached"
    NO_DATA = "no_data"
    INSUFFICIENT_DATA = "insufficient_data"
    WITHHELD = "withheld"


@dataclass(frozen=True, slots=True)
class ObjectiveResult:
    """One objective over a period. ``valid`` counts what the method divides by, in its unit; of that ``undecided`` may
    be good or bad."""

    objective: Objective
    good: int
    valid: int
    state: ObjectiveState
    undecided: int = 0

    def pays_below(self, below_ppb: int) -> bool:
        """Whether the attainment is strictly below a threshold, so that its tier is reached.

        What is undecided is on the provider's side, and without a verdict nothing is paid.
        """
        if self.state in (ObjectiveState.NO_DATA, ObjectiveState.INSUFFICIENT_DATA, ObjectiveState.WITHHELD):
            return False
        return (self.good + self.undecided) * PARTS_PER_BILLION < self.valid * below_ppb


def judge(good: int, valid: int, target_ppb: int, undecided: int = 0) -> ObjectiveState:
    """met exactly when good * 10^9 >= valid * target, breached when all that is undecided could not make it so."""
    if valid == 0:
        return ObjectiveState.NO_DATA
    if good * PARTS_PER_BILLION >= valid * target_ppb:
        return ObjectiveState.MET
    if (good + undecided) * PARTS_PER_BILLION < valid * target_ppb:
        return ObjectiveState.BREACHED
    return ObjectiveState.INSUFFICIENT_DATA


def judge_objective(objective: Objective, good: int, valid: int, undecided: int, volume: int) -> ObjectiveState:
    """``judge`` with the objective's minimum volume and confidence. ``volume`` is what was valid in the indicator's
    unit, which ``valid`` is not where the method counts minutes, slices or shares of an interval."""
    state = judge(good, valid, objective.target_ppb, undecided)
    if state is ObjectiveState.NO_DATA:
        return state
    if volume < objective.minimum_valid:
        return ObjectiveState.INSUFFICIENT_DATA
    if state is ObjectiveState.BREACHED and objective.wilson:
        return state if wilson_bound_misses(good + undecided, valid, objective.target_ppb) else _UNSURE
    return state


def wilson_bound_misses(good: int, valid: int, target_ppb: int) -> bool:
    """Whether the upper end of the one-sided 95 % Wilson interval of good / valid lies below the target.

    The interval inverts the score test (Wilson 1927): its end lies below t exactly when p < t and
    n * (t - p)^2 > z^2 * t * (1 - t), which needs no root and, times n * 10^18, no fraction.
    """
    short = valid * target_ppb - good * PARTS_PER_BILLION
    return max(short, 0) ** 2 * 10**18 > Z_SQUARED_E18 * valid * target_ppb * (PARTS_PER_BILLION - target_ppb)


_UNSURE = ObjectiveState.INSUFFICIENT_DATA
