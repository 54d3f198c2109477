"""What a dishonest prover may try with the inputs of PeriodCompliance.

Each lie is carried through: hashes, division and signals are the ones the circuit computes from the
false values. The control circuit, which differs only in blank checks, accepts the proof; the
circuit refuses it. So every case fails if its check is ever dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from ledger.attest.field import SCALAR_ORDER as R
from ledger.attest.groth16 import check_proof
from ledger.attest.inputs import CircuitInputs, circuit_inputs
from ledger.attest.model import evaluate
from ledger.attest.prover import Groth16Prover
from ledger.attest.statement import Signals, State, Summary
from ledger.attest.telemetry import WindowCounts
from ledger.errors import ProofInvalid
from tests.circuits.claims import AVAILABILITY, plain_claim, plain_terms
from tests.circuits.lying_prover import commit, signals_of

pytestmark = pytest.mark.slow

Lie = Callable[[CircuitInputs], None]
LIES: dict[str, Lie] = {}


def lie(function: Lie) -> Lie:
    """Register a lie under its name."""
    LIES[function.__name__] = function
    return function


# --- the lies that verified against the first sketch of this circuit --------------------------------


@lie
def good_traffic_invented_in_unused_tail_windows(inputs: CircuitInputs) -> None:
    inputs["good"][24] = [HIGH, HIGH, 0, 0]


@lie
def good_traffic_invented_in_an_observed_window_after_the_end(inputs: CircuitInputs) -> None:
    inputs["good"][24] = [HIGH, HIGH, 0, 0]
    inputs["observed"][24] = 1


@lie
def healthy_data_in_the_slot_that_carries_the_tiers(inputs: CircuitInputs) -> None:
    for name in ("threshold", "tierBps"):
        inputs[name][2], inputs[name][0] = inputs[name][0], [0, 0, 0, 0]
    for row in inputs["good"][:24]:
        row[2] = 1000


@lie
def fee_that_wraps_to_one_minor_unit_of_credit(inputs: CircuitInputs) -> None:
    inputs["fee"] = 10_000 * pow(7, -1, R) % R
    inputs["tierBps"][0] = [7, 7, 7, 0]


@lie
def threshold_minus_one(inputs: CircuitInputs) -> None:
    inputs["threshold"][0] = [R - 1, 0, 0, 0]
    inputs["tierBps"][0] = [1000, 0, 0, 0]


@lie
def target_minus_one(inputs: CircuitInputs) -> None:
    inputs["target"][0] = R - 1


@lie
def cap_that_wraps_to_nothing(inputs: CircuitInputs) -> None:
    inputs["cap"] = pow(10_000, -1, R)


@lie
def tier_above_one_hundred_percent(inputs: CircuitInputs) -> None:
    inputs["tierBps"][0] = [10_001, 10_001, 10_001, 0]


# --- windows and masks ------------------------------------------------------------------------------


@lie
def negative_bad_count(inputs: CircuitInputs) -> None:
    inputs["bad"][0][0] = R - 100


@lie
def good_count_above_28_bits(inputs: CircuitInputs) -> None:
    inputs["good"][0][0] = 1 << 28


@lie
def bad_hour_unobserved_but_counted(inputs: CircuitInputs) -> None:
    inputs["observed"][3] = 0


@lie
def window_observed_and_excluded(inputs: CircuitInputs) -> None:
    inputs["excluded"][3] = 1


@lie
def window_excluded_outside_the_period(inputs: CircuitInputs) -> None:
    inputs["excluded"][24] = 1


@lie
def observed_twice(inputs: CircuitInputs) -> None:
    inputs["observed"][3] = 2
    inputs["excluded"][4] = R - 1


@lie
def hole_in_the_active_windows(inputs: CircuitInputs) -> None:
    _clear(inputs, 5)
    inputs["active"][5] = 0


@lie
def period_of_no_window(inputs: CircuitInputs) -> None:
    for index in range(25):
        _clear(inputs, index)
        inputs["active"][index] = 0


@lie
def first_window_left_out(inputs: CircuitInputs) -> None:
    _clear(inputs, 0)
    inputs["active"][0] = 0


@lie
def active_bit_of_two(inputs: CircuitInputs) -> None:
    inputs["active"][0] = 2


@lie
def coverage_below_the_floor(inputs: CircuitInputs) -> None:
    for index in range(3):
        _clear(inputs, index)


@lie
def counts_of_an_unused_objective(inputs: CircuitInputs) -> None:
    inputs["good"][0][3] = 1


# --- terms ------------------------------------------------------------------------------------------


@lie
def floor_above_one_hundred_percent(inputs: CircuitInputs) -> None:
    inputs["floorBps"] = R - 1


@lie
def target_above_one(inputs: CircuitInputs) -> None:
    inputs["target"][0] = 1_000_000_001


@lie
def target_of_an_unused_objective(inputs: CircuitInputs) -> None:
    inputs["target"][3] = 1


@lie
def tiers_of_an_unused_objective(inputs: CircuitInputs) -> None:
    inputs["threshold"][3][0] = 990_000_000


@lie
def used_bit_of_two(inputs: CircuitInputs) -> None:
    inputs["used"][0] = 2


@lie
def thresholds_rise(inputs: CircuitInputs) -> None:
    inputs["threshold"][0] = [950_000_000, 990_000_000, 999_000_000, 0]


@lie
def thresholds_repeat(inputs: CircuitInputs) -> None:
    inputs["threshold"][0] = [999_000_000, 999_000_000, 0, 0]
    inputs["tierBps"][0] = [1000, 500, 0, 0]


@lie
def hole_in_the_tiers(inputs: CircuitInputs) -> None:
    inputs["threshold"][0] = [999_000_000, 0, 950_000_000, 0]
    inputs["tierBps"][0] = [1000, 0, 10_000, 0]


@lie
def percentage_of_an_unused_tier(inputs: CircuitInputs) -> None:
    inputs["tierBps"][0][3] = 5


@lie
def first_threshold_above_one(inputs: CircuitInputs) -> None:
    inputs["threshold"][0][0] = 1_000_000_001


@lie
def later_threshold_negative(inputs: CircuitInputs) -> None:
    inputs["threshold"][0][2] = R - 1


@lie
def rounding_mode_three(inputs: CircuitInputs) -> None:
    inputs["halfUp"] = inputs["halfEven"] = 1


@lie
def rounding_signed_as_half_up_proved_as_floor(inputs: CircuitInputs) -> None:
    """flags = 2 either way, so the terms hash is the signed one."""
    inputs["sumCapped"] = 2


@lie
def half_up_signed_as_hidden_credit(inputs: CircuitInputs) -> None:
    inputs["halfUp"] = 4


@lie
def half_even_signed_as_hidden_credit(inputs: CircuitInputs) -> None:
    inputs["halfEven"] = 2


@lie
def hidden_by_two(inputs: CircuitInputs) -> None:
    inputs["hidden"] = 2


# --- money ------------------------------------------------------------------------------------------


@lie
def minimum_minus_one(inputs: CircuitInputs) -> None:
    inputs["minimum"] = R - 1


@lie
def fee_above_64_bits(inputs: CircuitInputs) -> None:
    inputs["fee"] = 1 << 64


@lie
def cap_above_64_bits(inputs: CircuitInputs) -> None:
    inputs["cap"] = 1 << 64


# A false value that the circuit's own hashes and division do not follow.
UNCOMMITTED: dict[str, Lie] = {
    "quotient_one_too_high": lambda i: i.update(quotient=i["quotient"] + 1, remainder=i["remainder"] - 10_000 + R),
    "quotient_one_too_low": lambda i: i.update(quotient=i["quotient"] - 1, remainder=i["remainder"] + 10_000),
    "quotient_of_another_amount": lambda i: i.update(quotient=i["quotient"] + 1),
    "fee_of_another_commitment": lambda i: i.update(fee=i["fee"] + 10_000, quotient=i["quotient"] + 1000),
    "counts_of_another_root": lambda i: i["good"][0].__setitem__(0, 994),
    "terms_of_another_hash": lambda i: i.update(cap=1_000_000),
}

HIGH = (1 << 28) - 1


def _clear(inputs: CircuitInputs, index: int) -> None:
    """The window as if it had not been observed."""
    inputs["good"][index] = [0, 0, 0, 0]
    inputs["bad"][index] = [0, 0, 0, 0]
    inputs["observed"][index] = 0


def _plain_inputs() -> CircuitInputs:
    claim = plain_claim()
    return circuit_inputs(claim, evaluate(claim))


def _py_ecc_holds(prover: Groth16Prover, signals: Signals, proof: bytes) -> bool:
    try:
        check_proof(prover.key().verification_key, signals.as_tuple(), proof)
    except ProofInvalid as refusal:
        if refusal.data["reason"] != "pairing":
            raise
        return False
    return True


def _verdicts(prover: Groth16Prover, control: Groth16Prover, inputs: CircuitInputs) -> tuple[bool, bool]:
    """Whether a proof of ``inputs`` with the signals the circuit computes holds: in the control circuit
    by groth16py, in the circuit by both verifiers, which must agree."""
    signals = signals_of(inputs)
    with ThreadPoolExecutor(2) as both:
        blank, checked = both.map(lambda one: one.prove_unchecked(inputs), (control, prover))
    verdict = prover.groth16py_holds(checked, signals)
    assert _py_ecc_holds(prover, signals, checked) is verdict
    return control.groth16py_holds(blank, signals), verdict


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_refused_and_only_by_the_checks(prover: Groth16Prover, control: Groth16Prover, name: str) -> None:
    inputs = _plain_inputs()
    LIES[name](inputs)
    commit(inputs)
    without_checks, with_checks = _verdicts(prover, control, inputs)
    assert without_checks, "the lie is not carried through, so its refusal proves nothing"
    assert not with_checks


@pytest.mark.parametrize("name", UNCOMMITTED)
def test_values_other_than_the_committed_are_refused(prover: Groth16Prover, control: Groth16Prover, name: str) -> None:
    inputs = _plain_inputs()
    UNCOMMITTED[name](inputs)
    without_checks, with_checks = _verdicts(prover, control, inputs)
    assert without_checks, "the lie is not carried through, so its refusal proves nothing"
    assert not with_checks


def test_cap_of_minus_one_is_refused_even_without_the_checks(prover: Groth16Prover, control: Groth16Prover) -> None:
    """A negative amount has no 64-bit quotient, so here the arithmetic refuses by itself."""
    inputs = _plain_inputs()
    inputs["cap"] = R - 1
    commit(inputs)
    assert _verdicts(prover, control, inputs) == (False, False)


# --- lies that no circuit can refuse: the summary shows them -----------------------------------------


def test_a_bad_hour_entered_as_zeros_shows_as_idle(prover: Groth16Prover) -> None:
    hours = [WindowCounts((1000, 1000), (0, 0))] * 24
    hours[7] = WindowCounts()
    claim = plain_claim(windows=tuple(hours))
    evaluation = evaluate(claim)
    prover.prove(circuit_inputs(claim, evaluation), evaluation.signals)
    shown = Summary.decode(evaluation.signals.summary)
    assert shown.states[0] is State.MET
    assert shown.idle == 1


def test_a_period_of_zeros_shows_as_no_data_and_all_idle(prover: Groth16Prover) -> None:
    claim = plain_claim(windows=(WindowCounts(),) * 24)
    evaluation = evaluate(claim)
    prover.prove(circuit_inputs(claim, evaluation), evaluation.signals)
    shown = Summary.decode(evaluation.signals.summary)
    assert shown.states == (State.NO_DATA, State.NO_DATA, State.UNUSED, State.UNUSED)
    assert shown.idle == shown.observed == 24


def test_tiers_that_sum_above_one_hundred_percent_pay_the_fee_and_no_more(prover: Groth16Prover) -> None:
    terms = plain_terms(objectives=(AVAILABILITY, AVAILABILITY, AVAILABILITY), sum_capped=True)
    claim = plain_claim(terms=terms, windows=(WindowCounts((900,) * 3, (100,) * 3),) * 24)
    evaluation = evaluate(claim)
    assert sum(result.bps for result in evaluation.objectives) == 30_000
    assert evaluation.credit == claim.fee
    prover.prove(circuit_inputs(claim, evaluation), evaluation.signals)
