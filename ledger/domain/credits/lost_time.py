"""``proportional-v1``, ``multiplier-v1`` and ``step_table-v1``: from the incidents of an objective to an amount.

* ``proportional-v1``: base * lost time / scheduled time (Cloudflare, DigitalOcean), or base * (target - result).
* ``multiplier-v1``: the charge for the lost time, times a factor (UpCloud: 50; GPUHub: 1.5, in whole hours).
* ``step_table-v1``: each incident earns credited hours or a percentage by the row of its length (Vultr).

The charge for a time is what of the base falls on it. A charge with a life of its own is divided by that life, one
without by the period; what is excluded is no time of either, unless the rule takes the full period (``denominator``).
Nothing falls on excluded windows, also where an interval or a slice that counts as bad has some inside.
Amounts are exact fractions of a minor unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ledger.domain.credits.charged_time import ChargedTime, total
from ledger.domain.credits.charges import Base
from ledger.domain.credits.verdict import ObjectiveResult, ObjectiveState
from ledger.domain.methods.series import runs
from ledger.domain.money import BASIS_POINTS, PARTS_PER_BILLION, fraction_document
from ledger.domain.terms.incident_rules import (
    IncidentRule,
    MultiplierRule,
    ProportionalRule,
    StepTableRule,
    method_of,
)
from ledger.domain.time.instant import HOUR_NS
from ledger.domain.time.interval import Interval, clip
from ledger.domain.windows.window import WindowState
from ledger.domain.windows.window_columns import WindowColumns

_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class LostTime:
    """One incident and what it earned: ``credited_ns`` of time where the rule credits time (before a price), ``row``
    of a step table from 1. The amounts of a rule's incidents sum to the rule's amount."""

    first_window: int
    windows: int
    interval: Interval
    good: int
    valid: int
    credited_ns: int | None
    row: int | None
    amount: Fraction

    @property
    def lost_ns(self) -> int:
        return self.interval.duration_ns


@dataclass(frozen=True, slots=True)
class RuleStep:
    """What one rule came to. ``base`` is None where it needs none, ``missing`` is the part of 1 that a shortfall is."""

    method: str
    objective: str
    base: Fraction | None
    hourly_price: int | None
    missing: Fraction | None
    incidents: tuple[LostTime, ...]
    amount: Fraction

    def as_document(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "objective": self.objective,
            "base": None if self.base is None else fraction_document(self.base),
            "hourly_price": None if self.hourly_price is None else str(self.hourly_price),
            "missing": None if self.missing is None else fraction_document(self.missing),
            "incidents": [
                {
                    "first_window": incident.first_window,
                    "windows": incident.windows,
                    "start_ns": str(incident.interval.start_ns),
                    "end_ns": str(incident.interval.end_ns),
                    "good": incident.good,
                    "valid": incident.valid,
                    "credited_ns": None if incident.credited_ns is None else str(incident.credited_ns),
                    "row": incident.row,
                    "amount": fraction_document(incident.amount),
                }
                for incident in self.incidents
            ],
            "amount": fraction_document(self.amount),
        }


@dataclass(frozen=True, slots=True)
class Lost:
    """The incidents of one objective in a period, before any rule: runs of windows with their counts."""

    runs: Sequence[range]
    windows: WindowColumns
    index: int
    result: ObjectiveResult


def rule_step(rule: IncidentRule, lost: Lost, base: Base) -> RuleStep:
    """What a rule pays in a period."""
    missing, credited = None, []
    if isinstance(rule, ProportionalRule) and rule.shortfall:
        missing = _shortfall(lost.result)
    elif lost.runs:
        credited = _credited(rule, lost, base)
    incidents = tuple(_incident(lost, run, each) for run, each in zip(lost.runs, credited, strict=False))
    amount = total(incident.amount for incident in incidents)
    return RuleStep(
        method=method_of(rule),
        objective=rule.objective,
        base=base.amount if rule.needs_base else None,
        hourly_price=None if isinstance(rule, ProportionalRule) else rule.hourly_price,
        missing=missing,
        incidents=incidents,
        amount=amount if missing is None else base.amount * missing,
    )


@dataclass(frozen=True, slots=True)
class _Credited:
    amount: Fraction
    ns: int | None = None
    row: int | None = None


def _credited(rule: IncidentRule, lost: Lost, base: Base) -> list[_Credited]:
    """What each incident earns; there is one at least, so there are windows."""
    if isinstance(rule, ProportionalRule):
        return _proportional(rule, lost, base)
    if isinstance(rule, MultiplierRule):
        return _multiplied(rule, lost, base)
    return _by_table(rule, lost, base)


def _shortfall(result: ObjectiveResult) -> Fraction:
    """How far the result is below the target, as a part of 1; what is undecided is on the provider's side."""
    target = result.objective.target_ppb
    if not result.pays_below(target):
        return _ZERO
    return Fraction(target, PARTS_PER_BILLION) - Fraction(result.good + result.undecided, result.valid)


def _proportional(rule: ProportionalRule, lost: Lost, base: Base) -> list[_Credited]:
    if not rule.always and lost.result.state is not ObjectiveState.BREACHED:
        return [_Credited(_ZERO)] * len(lost.runs)
    time = _time(lost.windows, base, full=rule.full)
    found = []
    for run in lost.runs:
        good, valid = _counts(lost, run)
        share = Fraction(valid - good, valid) if rule.by_share and valid else Fraction(1)
        found.append(_Credited(time.charge(_interval(lost, run)) * share))
    return found


def _multiplied(rule: MultiplierRule, lost: Lost, base: Base) -> list[_Credited]:
    time = _time(lost.windows, base, full=rule.full)
    spans = [_interval(lost, run) for run in lost.runs]
    together = sum(span.duration_ns for span in spans if span.duration_ns > rule.longer_than_ns)
    # All together are rounded up once; each has its part of that by its length.
    rounded = Fraction(_rounded_up(rule, together), together) if rule.together and together else None
    found = []
    for span in spans:
        if span.duration_ns <= rule.longer_than_ns:
            found.append(_Credited(_ZERO, 0))
            continue
        exact = Fraction(_rounded_up(rule, span.duration_ns)) if rounded is None else rounded * span.duration_ns
        if rule.hourly_price is None:
            amount = time.charge(span) * exact * Fraction(1, span.duration_ns)
        else:
            amount = rule.hourly_price * exact * Fraction(1, HOUR_NS)
        if rule.incident_cap_bps is not None:
            amount = min(amount, base.amount * Fraction(rule.incident_cap_bps, BASIS_POINTS))
        found.append(_Credited(amount, exact.numerator // exact.denominator))
    return found


def _rounded_up(rule: MultiplierRule, lost_ns: int) -> int:
    """Lost time times the factor; whole nanoseconds, because incidents last whole seconds."""
    credited = lost_ns * rule.factor_e9 // PARTS_PER_BILLION
    return -(-credited // rule.round_up_ns) * rule.round_up_ns if rule.round_up_ns else credited


def _by_table(rule: StepTableRule, lost: Lost, base: Base) -> list[_Credited]:
    time = _time(lost.windows, base, full=rule.full)
    found = []
    for run in lost.runs:
        at = rule.row_of(_interval(lost, run).duration_ns)
        if at is None:
            found.append(_Credited(_ZERO))
            continue
        row = rule.rows[at]
        if row.credit_ns is None:
            found.append(_Credited(base.amount * Fraction(row.credit_bps or 0, BASIS_POINTS), None, at + 1))
        elif rule.hourly_price is None:
            found.append(_Credited(time.charge_for(row.credit_ns), row.credit_ns, at + 1))
        else:
            found.append(_Credited(Fraction(rule.hourly_price * row.credit_ns, HOUR_NS), row.credit_ns, at + 1))
    return found


def _time(windows: WindowColumns, base: Base, *, full: bool) -> ChargedTime:
    """What of a base falls on a time of the period."""
    out = [state is WindowState.EXCLUDED for state in windows.states]
    excluded = [windows.interval(run.start, run.stop) for run in runs(out)]
    period = windows.interval(0, len(windows))
    lives = ((amount, period if life is None else clip(life, period)) for amount, life in base.parts)
    return ChargedTime([(amount, life) for amount, life in lives if life is not None], excluded, full=full)


def _interval(lost: Lost, run: range) -> Interval:
    return lost.windows.interval(run.start, run.stop)


def _counts(lost: Lost, run: range) -> tuple[int, int]:
    sums = lost.windows.cells[lost.index].sums(run)
    return sums.good, sums.valid


def _incident(lost: Lost, run: range, credited: _Credited) -> LostTime:
    good, valid = _counts(lost, run)
    span = _interval(lost, run)
    return LostTime(run.start, len(run), span, good, valid, credited.ns, credited.row, credited.amount)
