"""Lies about a period: refused by the circuit, or shown by the summary.

The control circuit differs from the real one only in blank checks. Every lie passes there and fails
here, so its refusal is the work of the checks and not of a badly built test.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ledger.attest.commitments.inputs import CircuitInputs, circuit_inputs
from ledger.attest.commitments.model import evaluate
from ledger.attest.commitments.statement import Signals, State, Summary
from ledger.attest.commitments.telemetry import WindowCounts
from ledger.attest.crypto.groth16 import check_proof
from ledger.attest.proving.circuits import circuit_named, circuit_sources
from ledger.attest.proving.prover import Groth16Prover
from ledger.domain.attested import SCALAR_ORDER as R
from ledger.errors import ProofInvalid
from ledger.resources import resource_dir
from tests.circuits.ablation import check_lines
from tests.circuits.claims import AVAILABILITY, plain_claim, plain_terms
from tests.circuits.lies import LIES
from tests.circuits.lying_prover import commit, signals_of

# To a verifier one broken constraint is as another: no pairing. py-ecc takes a hundred times as long to find that out.
FOR_BOTH = frozenset(list(LIES)[::8])


def test_every_check_has_a_lie_aimed_at_it_and_every_lie_a_check() -> None:
    folder = resource_dir("circuits")
    sources = circuit_sources(circuit_named(folder, "compliance_25x4"), folder)
    assert {line.check for line in check_lines(sources)} == {lie.check for lie in LIES.values()}


def _py_ecc_holds(prover: Groth16Prover, signals: Signals, proof: bytes) -> bool:
    try:
        check_proof(prover.key().verification_key, signals.as_tuple(), proof)
    except ProofInvalid as refusal:
        if refusal.data["reason"] != "pairing":
            raise
        return False
    return True


def _verdicts(
    prover: Groth16Prover, control: Groth16Prover, inputs: CircuitInputs, *, both: bool = True
) -> tuple[bool, bool]:
    """Whether a proof of ``inputs`` with the signals the circuit computes holds in the control circuit, and in the
    circuit: by groth16py, and with ``both`` by py-ecc as well, which must agree."""
    signals = signals_of(inputs)
    with ThreadPoolExecutor(2) as pair:
        blank, checked = pair.map(lambda one: one.prove_unchecked(inputs), (control, prover))
    verdict = prover.groth16py_holds(checked, signals)
    if both:
        assert _py_ecc_holds(prover, signals, checked) is verdict
    return control.groth16py_holds(blank, signals), verdict


@pytest.mark.slow
@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_refused_and_only_by_the_checks(request: pytest.FixtureRequest, name: str) -> None:
    lie = LIES[name]
    fixtures = ("prover", "control") if lie.blocks == 1 else ("prover_two_blocks", "control_two_blocks")
    prover, control = (request.getfixturevalue(fixture) for fixture in fixtures)
    without_checks, with_checks = _verdicts(prover, control, lie.inputs(), both=name in FOR_BOTH)
    assert without_checks, "the lie is not carried through, so its refusal proves nothing"
    assert not with_checks


@pytest.mark.slow
def test_cap_of_minus_one_is_refused_even_without_the_checks(prover: Groth16Prover, control: Groth16Prover) -> None:
    """A negative amount has no 64-bit quotient, so here the arithmetic refuses by itself."""
    claim = plain_claim()
    inputs = circuit_inputs(claim, evaluate(claim))
    inputs["cap"] = R - 1
    commit(inputs)
    assert _verdicts(prover, control, inputs) == (False, False)


# --- lies that no circuit can refuse: the summary shows them -----------------------------------------


@pytest.mark.slow
def test_a_bad_hour_entered_as_zeros_shows_as_idle(prover: Groth16Prover) -> None:
    hours = [WindowCounts((1000, 1000), (0, 0))] * 24
    hours[7] = WindowCounts()
    claim = plain_claim(windows=tuple(hours))
    evaluation = evaluate(claim)
    prover.prove(circuit_inputs(claim, evaluation), evaluation.signals)
    shown = Summary.decode(evaluation.signals.summary)
    assert shown.states[0] is State.MET
    assert shown.idle == 1


@pytest.mark.slow
def test_a_period_of_zeros_shows_as_no_data_and_all_idle(prover: Groth16Prover) -> None:
    claim = plain_claim(windows=(WindowCounts(),) * 24)
    evaluation = evaluate(claim)
    prover.prove(circuit_inputs(claim, evaluation), evaluation.signals)
    shown = Summary.decode(evaluation.signals.summary)
    assert shown.states == (State.NO_DATA, State.NO_DATA, State.UNUSED, State.UNUSED)
    assert shown.idle == shown.observed == 24


@pytest.mark.slow
def test_tiers_that_sum_above_one_hundred_percent_pay_the_fee_and_no_more(prover: Groth16Prover) -> None:
    terms = plain_terms(objectives=(AVAILABILITY, AVAILABILITY, AVAILABILITY), sum_capped=True)
    claim = plain_claim(terms=terms, windows=(WindowCounts((900,) * 3, (100,) * 3),) * 24)
    evaluation = evaluate(claim)
    assert sum(result.bps for result in evaluation.objectives) == 30_000
    assert evaluation.credit == claim.fee
    prover.prove(circuit_inputs(claim, evaluation), evaluation.signals)
