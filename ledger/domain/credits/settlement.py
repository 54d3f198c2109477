"""The settlement of one period: coverage, objective by objective a state, and the credit with its trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ledger.domain.attested import INCIDENTS, OBJECTIVES, PRICE_BITS, TIERS, WINDOWS
from ledger.domain.credits.charges import Charges, charges_period
from ledger.domain.credits.compensation import CreditTrace, credit_trace
from ledger.domain.credits.proration import terms_for
from ledger.domain.credits.verdict import ObjectiveResult, ObjectiveState, judge_objective
from ledger.domain.methods.registry import METHODS, Measuring, unit_of
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.incident_rules import method_of
from ledger.domain.terms.indicators import REQUESTS
from ledger.domain.terms.log_kinds import HISTOGRAMS, SAMPLES
from ledger.domain.terms.objective import Objective
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.windows.window import Window, WindowState, coverage_ok
from ledger.domain.windows.window_columns import WindowColumns
from ledger.errors import ChargesMissing, ImplausibleCounts

CHARGES_RETRY_S = 3600
"""Charges that come are looked at right away; this is for those that came while nobody looked."""


class SettlementState(StrEnum):
    """``withheld``: too few windows were observed, so there is neither verdict nor credit."""

    SETTLED = "settled"
    WITHHELD = "withheld"


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a period stands behind a result, in windows; ``idle`` ones are among the observed."""

    windows: int
    observed: int
    excluded: int
    no_data: int
    idle: int
    floor_bps: int

    @property
    def enough(self) -> bool:
        return coverage_ok(self.observed, self.windows, self.excluded, self.floor_bps)


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a period came to. ``credit`` (minor units) and ``trace`` are None where it is withheld.

    ``not_attestable`` holds the reasons why no circuit can prove it; empty when one can.
    """

    period: Period
    state: SettlementState
    coverage: Coverage
    objectives: tuple[ObjectiveResult, ...]
    currency: str
    credit: int | None
    trace: CreditTrace | None
    not_attestable: tuple[str, ...]

    def as_document(self) -> dict[str, Any]:
        """The figures as plain JSON: what a statement says, and what its versions are compared by.

        They follow from facts and terms alone, so the same facts give the same canonical bytes in whatever order they
        came.
        """
        coverage = self.coverage
        return {
            "windows": coverage.windows,
            "observed": coverage.observed,
            "excluded": coverage.excluded,
            "idle": coverage.idle,
            "state": str(self.state),
            "objectives": [_result_document(result) for result in self.objectives],
            "credit": None if self.credit is None else {"currency": self.currency, "minor_units": str(self.credit)},
            "trace": {} if self.trace is None else self.trace.as_document(),
        }


def settle(
    agreement: Agreement, period: Period, windows: Sequence[Window], charges: Charges | None = None
) -> Settlement:
    """Settle a period from its judged windows, which must be the agreement's windows of that period in order.

    A pure function of its arguments. ``charges`` are those recorded, where the agreement takes its base from them:
    without them it raises ``ChargesMissing``. Raises ``ImplausibleCounts`` where windows and agreement do not fit.
    """
    columns = _columns(agreement, period, windows)
    coverage = Coverage(
        windows=len(columns),
        observed=columns.count(WindowState.OBSERVED),
        excluded=columns.count(WindowState.EXCLUDED),
        no_data=columns.count(WindowState.NO_DATA),
        idle=columns.idle,
        floor_bps=agreement.coverage_floor_bps,
    )
    withheld = not coverage.enough
    if not withheld:
        _require_charges(agreement, period, charges)
    measuring = Measuring(agreement.objectives, columns, agreement.window_seconds)
    results = []
    for index, objective in enumerate(agreement.objectives):
        found = measuring.measure(index)
        state = judge_objective(objective, found.good, found.valid, found.undecided, found.volume)
        state = ObjectiveState.WITHHELD if withheld else state
        results.append(ObjectiveResult(objective, found.good, found.valid, state, found.undecided))
    trace = None if withheld else credit_trace(terms_for(agreement, period), results, columns, charges)
    return Settlement(
        period=period,
        state=SettlementState.WITHHELD if withheld else SettlementState.SETTLED,
        coverage=coverage,
        objectives=tuple(results),
        currency=agreement.compensation.currency,
        credit=None if trace is None else trace.credit,
        trace=trace,
        not_attestable=unattested_reasons(agreement, results),
    )


def unattested_reasons(agreement: Agreement, results: Sequence[ObjectiveResult]) -> tuple[str, ...]:
    """Why a statement of these results carries no proof: by its terms, or by counts that its data leave open; empty
    where one is due."""
    return (*attestability(agreement), *undecided_reasons(results))


def undecided_reasons(results: Sequence[ObjectiveResult]) -> tuple[str, ...]:
    """Why a statement of these results cannot be proved, whatever its terms; empty where no count is left open."""
    return tuple(
        f"{result.objective.id} has counts that its data leave undecided, which no circuit adds up"
        for result in results
        if result.undecided
    )


def may_leave_undecided(agreement: Agreement, objective: Objective) -> bool:
    """Whether data can leave counts of an objective open: those of histograms and of what samples add up, and those of
    slices that are held against such counts. A request or a reading of a counter is good or bad."""
    companion = objective.slices.only_with if objective.slices is not None else None
    sources = {each.source.kind for each in agreement.objectives if each.id in (objective.id, companion)}
    return bool(sources & {HISTOGRAMS, SAMPLES})


def _require_charges(agreement: Agreement, period: Period, charges: Charges | None) -> None:
    if agreement.compensation.charges is not None and charges is None:
        of = charges_period(agreement, period)
        raise ChargesMissing(
            f"{period} is settled by the charges of {of}, and none are recorded; hand them in "
            "(`sla-ledger charges record`)",
            period=str(of),
            retry_after_s=CHARGES_RETRY_S,
        )


def attestability(agreement: Agreement) -> tuple[str, ...]:
    """Why statements of this agreement cannot be proved by any circuit; empty when they can."""
    reasons: list[str] = []
    terms = agreement.compensation
    if terms.impact is not None and max(terms.impact.coefficient_e9, terms.impact.price_e9) >= 1 << PRICE_BITS:
        reasons.append(
            f"coefficient or unit price of the impact rule has more than {PRICE_BITS} bits in billionths (of a minor "
            f"unit), which the circuit incidents_{INCIDENTS} takes"
        )
    reasons += [f"no circuit works out {name}" for name in dict.fromkeys(map(method_of, terms.incident_rules))]
    if terms.charges is not None:
        reasons.append("the base are charges that finance records, which no circuit commits to")
    if len(terms.scopes) > 1:
        reasons.append(f"the scope cap holds for each of {len(terms.scopes)} scopes, and the circuit has one cap")
    if any(cap.percent_bps is not None for cap in terms.caps):
        reasons.append("a cap is a percentage of the base, and the circuit takes amounts")
    if len(agreement.objectives) > OBJECTIVES:
        reasons.append(f"{len(agreement.objectives)} objectives; the circuit takes at most {OBJECTIVES}")
    for objective in agreement.objectives:
        why = METHODS[objective.method].not_attestable
        if why is not None:
            reasons.append(f"{objective.id} is measured by {objective.method}: {why}")
        elif objective.down is not None and not objective.down.scheduled:
            said = "takes what is excluded as up (denominator: full), and no circuit adds up what is not sealed"
            reasons.append(f"{objective.id} {said}")
        if objective.wilson:
            reasons.append(f"{objective.id} asks for confidence (wilson-95), which no circuit works out")
        if objective.minimum_valid:
            reasons.append(f"{objective.id} has a minimum volume, which no circuit checks")
    # In the order of the canonical document, whichever the one that was written has.
    for objective_id, tiers in sorted(terms.tiered.tiers.items()) if terms.tiered else ():
        if len(tiers) > TIERS:
            reasons.append(f"{len(tiers)} tiers for {objective_id}; the circuit takes at most {TIERS}")
    if agreement.periods.rolling:
        reasons.append(
            f"periods of {agreement.period_length} every {agreement.period_step} overlap; the registry takes periods "
            "that follow each other"
        )
    longest = agreement.most_windows
    if longest > WINDOWS:
        reasons.append(
            f"a period of {agreement.period_length} has up to {longest} windows of {agreement.window_seconds} s; "
            f"the largest circuit, compliance_{WINDOWS}x{OBJECTIVES}, takes at most {WINDOWS}"
        )
    return tuple(reasons)


def result_unit(result: ObjectiveResult) -> str:
    """What ``good`` and ``valid`` of a result count: requests, minutes, billionths of an interval ..."""
    return unit_of(result.objective)


def _result_document(result: ObjectiveResult) -> dict[str, Any]:
    """A result in a statement: without a unit it counts requests, without ``undecided`` nothing is."""
    unit = result_unit(result)
    return {
        "id": result.objective.id,
        "good": result.good,
        "valid": result.valid,
        "target": result.objective.target,
        "state": str(result.state),
        **({} if unit == REQUESTS else {"unit": unit}),
        **({"undecided": result.undecided} if result.undecided else {}),
    }


def _columns(agreement: Agreement, period: Period, windows: Sequence[Window]) -> WindowColumns:
    """The windows as columns, if they are those of the agreement in this period."""
    step_ns = agreement.window_seconds * SECOND_NS
    columns = WindowColumns.of(windows, step_ns, len(agreement.objectives))
    due = (period.interval.start_ns, step_ns, agreement.window_count(period))
    if (columns.start_ns, columns.step_ns, len(columns)) != due:
        raise ImplausibleCounts(
            f"the windows given are not the windows of {period} in order", period=str(period), windows=len(columns)
        )
    return columns
