"""The Python model says what the circuit proves, on periods anywhere in the space of terms."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledger.attest.commitments.inputs import circuit_inputs
from ledger.attest.commitments.model import evaluate
from ledger.attest.commitments.statement import State
from ledger.attest.commitments.telemetry import WindowCounts
from ledger.attest.proving.prover import Groth16Prover
from ledger.domain.money import Rounding
from ledger.errors import ProofInvalid
from tests.circuits.claims import plain_claim, plain_terms, random_claim
from tests.circuits.lying_prover import commit, signals_of

HIGHEST = (1 << 28) - 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_circuit_proves_what_the_model_says(prover: Groth16Prover, seed: int) -> None:
    claim = random_claim(seed)
    evaluation = evaluate(claim)
    prover.prove(circuit_inputs(claim, evaluation), evaluation.signals)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_so_it_does_over_two_blocks(prover_two_blocks: Groth16Prover, seed: int) -> None:
    claim = random_claim(seed, blocks=2)
    evaluation = evaluate(claim)
    prover_two_blocks.prove(circuit_inputs(claim, evaluation), evaluation.signals)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rounding", "fee", "credit"),
    [
        (Rounding.FLOOR, 19, 1),
        (Rounding.HALF_UP, 14, 1),
        (Rounding.HALF_UP, 25, 3),
        (Rounding.HALF_EVEN, 15, 2),
        (Rounding.HALF_EVEN, 25, 2),
        (Rounding.HALF_EVEN, 26, 3),
    ],
)
def test_rounding_around_the_tie(prover: Groth16Prover, rounding: Rounding, fee: int, credit: int) -> None:
    claim = plain_claim(terms=plain_terms(rounding=rounding), fee=fee)
    evaluation = evaluate(claim)
    assert (evaluation.bps, evaluation.credit) == (1000, credit)
    prover.prove(circuit_inputs(claim, evaluation), evaluation.signals)


@pytest.mark.slow
def test_largest_counts_fit_the_comparisons(prover: Groth16Prover) -> None:
    claim = plain_claim(windows=(WindowCounts((HIGHEST,) * 2, (HIGHEST,) * 2),) * 25, fee=2**64 - 1)
    evaluation = evaluate(claim)
    assert evaluation.credit == 2**64 - 1
    prover.prove(circuit_inputs(claim, evaluation), evaluation.signals)


@pytest.mark.slow
def test_exactly_at_target_is_met_and_exactly_at_a_threshold_no_tier_applies(prover: Groth16Prover) -> None:
    claim = plain_claim(windows=(WindowCounts((999, 950), (1, 50)),) * 20)
    evaluation = evaluate(claim)
    assert evaluation.summary.states[:2] == (State.MET, State.MET)
    assert evaluation.credit == 0
    prover.prove(circuit_inputs(claim, evaluation), evaluation.signals)


@pytest.mark.slow
def test_one_more_credit_than_computed_has_no_proof(prover: Groth16Prover) -> None:
    claim = plain_claim()
    evaluation = evaluate(claim)
    dearer = replace(evaluation.signals, credit=evaluation.signals.credit + 1)
    with pytest.raises(ProofInvalid) as refusal:
        prover.prove(circuit_inputs(claim, evaluation), dearer)
    assert refusal.value.data["reason"] == "unsatisfied"


@pytest.mark.parametrize("seed", range(60))
def test_lying_prover_computes_like_the_model_while_it_does_not_lie(seed: int) -> None:
    claim = random_claim(seed)
    evaluation = evaluate(claim)
    inputs = circuit_inputs(claim, evaluation)
    honest = {**inputs}
    commit(inputs)
    assert inputs == honest
    assert signals_of(inputs) == evaluation.signals
