"""PeriodCompliance in integers: what the circuit computes, and why it would refuse.

The circuit proves; this says beforehand what it will say. Tests hold the two equal on random
periods, with real proofs.
"""

from __future__ import annotations

from dataclasses import dataclass

from ledger.attest.commitments.statement import Signals, State, Summary, base_commit, credit_commit, tier_commit
from ledger.attest.commitments.telemetry import WindowCounts, block_hashes, telemetry_root
from ledger.attest.commitments.terms import AttestedObjective, AttestedTerms
from ledger.attest.crypto.field import require_element, require_uint
from ledger.domain.attested import BLOCK_WINDOWS
from ledger.domain.money import BASIS_POINTS, PARTS_PER_BILLION, round_quotient
from ledger.errors import ConstraintUnmet, CoverageBelowFloor


@dataclass(frozen=True, slots=True)
class PeriodClaim:
    """One period to attest: signed terms, its windows in order, the base of its credit.

    ``block_salts`` has one salt for each block of the circuit instance, not only for those in use;
    salts are uniform below r. ``fee`` is in minor units. ``credit_salt`` is not used where the credit
    is public.
    """

    terms: AttestedTerms
    windows: tuple[WindowCounts, ...]
    seal_key: int
    block_salts: tuple[int, ...]
    fee: int
    base_salt: int
    credit_salt: int
    ctx: int


@dataclass(frozen=True, slots=True)
class ObjectiveResult:
    """Sums, state and basis points of one slot."""

    good: int
    bad: int
    state: State
    bps: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a proof of the claim shows, and the steps to it.

    ``amount_e4`` is the capped amount before rounding, in 1/10000 minor units; ``credit`` is in
    minor units, 0 where the amount is not above the minimum. Under ``exact`` terms the credit signal holds the
    amount before the cap, in 1/10000 minor units, instead.
    """

    signals: Signals
    summary: Summary
    objectives: tuple[ObjectiveResult, ...]
    bps: int
    amount_e4: int
    credit: int


def evaluate(claim: PeriodClaim) -> Evaluation:
    """Evaluate ``claim`` as the circuit does.

    Raises ConstraintUnmet (its data name the constraint) where no honest proof exists,
    CoverageBelowFloor among them, and AttestationValueInvalid on a value outside its range.
    """
    _check_windows(claim)
    terms, windows = claim.terms, claim.windows
    observed = sum(window.observed for window in windows)
    excluded = sum(window.excluded for window in windows)
    _check_coverage(observed, len(windows) - excluded, terms.floor_bps)

    results = tuple(_judge(claim, m, slot) for m, slot in enumerate(terms.slots))
    percentages = [result.bps for result in results]
    bps = min(sum(percentages), BASIS_POINTS) if terms.sum_capped else max(percentages)
    fee = require_uint(claim.fee, 64, "fee")
    amount_e4 = min(fee * bps, terms.cap * BASIS_POINTS)
    payable = amount_e4 > terms.minimum * BASIS_POINTS
    credit = round_quotient(amount_e4, BASIS_POINTS, terms.rounding) if payable else 0
    commit, amount = (tier_commit, fee * bps) if terms.exact else (credit_commit, credit)

    summary = Summary(
        states=tuple(result.state for result in results),
        windows=len(windows),
        observed=observed,
        excluded=excluded,
        idle=sum(window.observed and window.empty for window in windows),
    )
    require_element(claim.credit_salt, "credit_salt")
    hashes = block_hashes(claim.seal_key, windows, claim.block_salts)
    shown = commit(claim.ctx, amount, claim.credit_salt) if terms.credit_hidden else amount
    signals = Signals(
        summary=summary.encode(),
        credit=shown,
        ctx=claim.ctx,
        telemetry_root=telemetry_root(claim.seal_key, len(windows), hashes),
        terms_hash=terms.hash(),
        base_commit=base_commit(claim.seal_key, fee, claim.base_salt),
    )
    return Evaluation(signals, summary, results, bps, amount_e4, credit)


def _check_windows(claim: PeriodClaim) -> None:
    capacity = BLOCK_WINDOWS * len(claim.block_salts)
    if not 1 <= len(claim.windows) <= capacity:
        raise ConstraintUnmet(
            f"a period of {len(claim.windows)} windows does not fit a circuit of 1 to {capacity}",
            constraint="window_count",
            windows=len(claim.windows),
            capacity=capacity,
        )
    unused = [m for m, slot in enumerate(claim.terms.slots) if slot is None]
    for index, window in enumerate(claim.windows):
        if window.observed and window.excluded:
            raise ConstraintUnmet(
                f"window {index} is observed and excluded; an excluded window is sealed without data",
                constraint="observed_or_excluded",
                window=index,
            )
        if not window.observed and not window.empty:
            raise ConstraintUnmet(
                f"window {index} has counts but is not observed",
                constraint="counts_only_if_observed",
                window=index,
            )
        pairs = window.pairs()
        for m in unused:
            if any(pairs[m]):
                raise ConstraintUnmet(
                    f"window {index} has counts for objective slot {m}, which the terms do not use",
                    constraint="unused_objective_counts",
                    window=index,
                    slot=m,
                )


def _check_coverage(observed: int, due: int, floor_bps: int) -> None:
    if observed * BASIS_POINTS < due * floor_bps:
        raise CoverageBelowFloor(
            f"{observed} of {due} windows were observed, below the floor of {floor_bps} bps: "
            "the statement is withheld until missing windows arrive",
            constraint="coverage",
            observed=observed,
            due=due,
            floor_bps=floor_bps,
        )


def _judge(claim: PeriodClaim, m: int, slot: AttestedObjective | None) -> ObjectiveResult:
    pairs = [window.pairs()[m] for window in claim.windows]
    good = sum(pair[0] for pair in pairs)
    bad = sum(pair[1] for pair in pairs)
    total = good + bad
    if slot is None:
        return ObjectiveResult(good, bad, State.UNUSED, 0)
    if total == 0:
        return ObjectiveResult(good, bad, State.NO_DATA, 0)
    met = good * PARTS_PER_BILLION >= total * slot.target_ppb
    bps = 0
    for tier in slot.tiers:
        if good * PARTS_PER_BILLION < total * tier.threshold_ppb:
            bps = tier.bps
    return ObjectiveResult(good, bad, State.MET if met else State.BREACHED, bps)
