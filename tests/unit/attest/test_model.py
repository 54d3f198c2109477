"""The model of the circuit: verdicts and credits in exact arithmetic, and why it refuses."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.attest.commitments.inputs import circuit_inputs
from ledger.attest.commitments.model import evaluate
from ledger.attest.commitments.statement import State, Summary, credit_commit
from ledger.attest.commitments.telemetry import WindowCounts
from ledger.attest.commitments.terms import AttestedObjective, AttestedTier
from ledger.domain.attested import SCALAR_ORDER
from ledger.domain.money import Rounding
from ledger.errors import AttestationValueInvalid, ConstraintUnmet, CoverageBelowFloor
from tests.circuits.claims import AVAILABILITY, plain_claim, plain_terms, random_claim

MISSING = WindowCounts(observed=False)
EXCLUDED = WindowCounts(observed=False, excluded=True)
HOUR = WindowCounts((995, 960), (5, 35))


def test_the_plain_day_owes_ten_percent() -> None:
    evaluation = evaluate(plain_claim())
    assert [result.state for result in evaluation.objectives] == [
        State.BREACHED,
        State.MET,
        State.UNUSED,
        State.UNUSED,
    ]
    assert (evaluation.bps, evaluation.amount_e4, evaluation.credit) == (1000, 800_000_000, 80_000)
    assert evaluation.signals.credit == 80_000


@settings(max_examples=40, deadline=None)  # a claim takes about 20 ms, mostly hashes
@given(st.integers(1000, 20_000))
def test_states_and_tiers_are_those_of_exact_fractions(seed: int) -> None:
    claim = random_claim(seed)
    for result, slot in zip(evaluate(claim).objectives, claim.terms.slots, strict=True):
        total = result.good + result.bad
        if slot is None or total == 0:
            assert result.bps == 0
            continue
        ratio = Fraction(result.good, total)
        met = ratio >= Fraction(slot.target_ppb, 10**9)
        assert result.state is (State.MET if met else State.BREACHED)
        applying = [tier.bps for tier in slot.tiers if ratio < Fraction(tier.threshold_ppb, 10**9)]
        assert result.bps == (applying[-1] if applying else 0)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2000))
def test_a_credit_exceeds_neither_fee_nor_cap_and_is_paid_only_above_the_minimum(seed: int) -> None:
    claim = random_claim(seed)
    evaluation = evaluate(claim)
    assert 0 <= evaluation.credit <= min(claim.fee, claim.terms.cap)
    assert evaluation.credit == 0 or evaluation.amount_e4 > claim.terms.minimum * 10_000


@pytest.mark.parametrize(("minimum", "credit"), [(79_999, 80_000), (80_000, 0)])
def test_the_minimum_is_strict(minimum: int, credit: int) -> None:
    assert evaluate(plain_claim(terms=plain_terms(minimum=minimum))).credit == credit


def test_the_minimum_is_compared_before_rounding() -> None:
    terms = plain_terms(minimum=1, rounding=Rounding.FLOOR)
    assert evaluate(plain_claim(terms=terms, fee=11)).credit == 1


@pytest.mark.parametrize(("cap", "credit"), [(0, 0), (500, 500), (80_001, 80_000)])
def test_the_cap_holds(cap: int, credit: int) -> None:
    assert evaluate(plain_claim(terms=plain_terms(cap=cap))).credit == credit


@pytest.mark.parametrize(("sum_capped", "bps"), [(False, 2500), (True, 5000)])
def test_objectives_combine_by_the_largest_or_by_the_sum(sum_capped: bool, bps: int) -> None:
    terms = plain_terms(objectives=(AVAILABILITY, AVAILABILITY), sum_capped=sum_capped)
    windows = (WindowCounts((980, 980), (20, 20)),) * 24
    assert evaluate(plain_claim(terms=terms, windows=windows)).bps == bps


def test_a_later_tier_counts_even_where_it_pays_less() -> None:
    odd = AttestedObjective(990_000_000, (AttestedTier(990_000_000, 900), AttestedTier(950_000_000, 100)))
    claim = plain_claim(terms=plain_terms(objectives=(odd,)), windows=(WindowCounts((90,), (10,)),) * 24)
    assert evaluate(claim).bps == 100


def test_a_hidden_credit_shows_as_its_commitment() -> None:
    claim = plain_claim(terms=plain_terms(credit_hidden=True))
    evaluation = evaluate(claim)
    assert evaluation.signals.credit == credit_commit(claim.ctx, evaluation.credit, claim.credit_salt)


def test_missing_excluded_and_idle_windows_are_counted() -> None:
    windows = (*[HOUR] * 20, WindowCounts(), EXCLUDED, EXCLUDED, MISSING)
    evaluation = evaluate(plain_claim(windows=windows))
    assert Summary.decode(evaluation.signals.summary) == evaluation.summary
    summary = evaluation.summary
    assert (summary.windows, summary.observed, summary.excluded, summary.idle) == (24, 21, 2, 1)


@pytest.mark.parametrize(
    ("observed", "excluded", "covered"), [(18, 4, True), (17, 4, False), (0, 24, True), (9, 14, True), (21, 0, False)]
)
def test_coverage_is_of_the_windows_that_are_not_excluded(observed: int, excluded: int, covered: bool) -> None:
    windows = (*[HOUR] * observed, *[EXCLUDED] * excluded, *[MISSING] * (24 - observed - excluded))
    claim = plain_claim(windows=windows, terms=plain_terms(floor_bps=9000))
    if covered:
        assert evaluate(claim).summary.observed == observed
        return
    with pytest.raises(CoverageBelowFloor) as refusal:
        evaluate(claim)
    assert refusal.value.data["observed"] == observed


UNMET: dict[str, list[tuple[WindowCounts, ...]]] = {
    "window_count": [(), (HOUR,) * 26],
    "observed_or_excluded": [(HOUR, WindowCounts((1,), (0,), excluded=True))],
    "counts_only_if_observed": [
        (HOUR, WindowCounts((1,), (0,), observed=False)),
        (HOUR, WindowCounts((0,), (1,), observed=False, excluded=True)),
    ],
    "unused_objective_counts": [(HOUR, WindowCounts((1, 1, 1), (0, 0, 0)))],
}


@pytest.mark.parametrize(("constraint", "windows"), [(name, w) for name, cases in UNMET.items() for w in cases])
def test_what_has_no_honest_proof_names_its_constraint(constraint: str, windows: tuple[WindowCounts, ...]) -> None:
    with pytest.raises(ConstraintUnmet) as refusal:
        evaluate(plain_claim(windows=windows, terms=plain_terms(floor_bps=0)))
    assert refusal.value.data["constraint"] == constraint


@pytest.mark.parametrize(
    "changes",
    [
        {"fee": 2**64},
        {"fee": -1},
        {"seal_key": SCALAR_ORDER},
        {"base_salt": SCALAR_ORDER},
        {"credit_salt": -1},
        {"ctx": SCALAR_ORDER},
        {"block_salts": (SCALAR_ORDER,)},
    ],
    ids=str,
)
def test_values_outside_their_ranges_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(AttestationValueInvalid):
        evaluate(plain_claim(**changes))


def test_inputs_fill_the_circuit_instance() -> None:
    claim = plain_claim(windows=(HOUR,) * 3, block_salts=(1, 2))
    inputs = circuit_inputs(claim, evaluate(claim))
    for name in ("good", "bad", "observed", "excluded", "active"):
        assert len(inputs[name]) == 50
    assert inputs["active"] == [1] * 3 + [0] * 47
    assert inputs["good"][2:4] == [[995, 960, 0, 0], [0, 0, 0, 0]]
    assert sum(inputs["observed"]) == 3
