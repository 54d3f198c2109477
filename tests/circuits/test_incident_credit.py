"""The circuit of incident credits: equal to its model, and refusing every lie by a check that is there for it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from ledger.attest.commitments.incident_credit import (
    IncidentClaim,
    IncidentSignals,
    LoggedIncident,
    evaluate_incidents,
    incident_inputs,
)
from ledger.attest.proving.circuits import circuit_named, circuit_sources
from ledger.attest.proving.prover import Groth16Prover
from ledger.attest.proving.zk_keys import KeyCache
from ledger.domain.money import Rounding
from ledger.domain.terms.compensation_terms import NO_CAP
from ledger.errors import AttestationValueInvalid, ConstraintUnmet
from ledger.resources import resource_dir
from tests.circuits.ablation import check_lines
from tests.circuits.claims import plain_terms
from tests.circuits.conftest import incident_variant
from tests.circuits.incident_claims import INCIDENTS, claims, commit_incidents, lying_signals, plain_incidents
from tests.circuits.incident_lies import INCIDENT_LIES


@pytest.fixture(scope="module")
def prover(key_cache_dir: Path) -> Iterator[Groth16Prover]:
    circuits = resource_dir("circuits")
    with Groth16Prover(circuit_named(circuits, "incidents_64"), KeyCache(key_cache_dir, circuits, print)) as one:
        yield one


@pytest.fixture(scope="module")
def control(key_cache_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Groth16Prover]:
    """incidents_64 with every check blank."""
    circuits = incident_variant(tmp_path_factory.mktemp("control_incidents"))
    one = circuit_named(circuits, "control_incidents")
    with Groth16Prover(one, KeyCache(key_cache_dir / "tests", circuits, print)) as found:
        yield found


# --- the model ----------------------------------------------------------------------------------------


def test_the_larger_of_tiers_and_incidents_is_rounded_once() -> None:
    found = evaluate_incidents(plain_incidents())
    # 1,510 requests * 1.5 * 0.80.
    assert (found.credit, found.signals.summary) == (181_200, 3 | 7 << 8)
    assert evaluate_incidents(plain_incidents(sum_rules=True)).credit == 181_200 + 80_000
    assert evaluate_incidents(plain_incidents(tier_amount=3_000_000_000)).credit == 300_000
    assert evaluate_incidents(plain_incidents(incidents=())).credit == 80_000


@pytest.mark.parametrize(("rounding", "credit"), [(Rounding.FLOOR, 2), (Rounding.HALF_UP, 3), (Rounding.HALF_EVEN, 2)])
def test_two_halves_that_come_from_both_rules_are_one_tie(rounding: Rounding, credit: int) -> None:
    """1.25 minor units of the tiers and 1.25 of one incident: rounded apart they would be 2, 2 or 2."""
    one = LoggedIncident(0, 1, 0, 1)
    claim = plain_incidents(
        terms=plain_terms(exact=True, rounding=rounding),
        incidents=(one,),
        coefficient=10**9,
        price=1_250_000_000,
        sum_rules=True,
        tier_amount=12_500,
    )
    assert evaluate_incidents(claim).credit == credit


@given(claims())
@settings(max_examples=60)
def test_the_model_is_exact_fractions(claim: IncidentClaim) -> None:
    found, terms = evaluate_incidents(claim), claim.terms
    valid = sum(each.good + each.bad for each in claim.incidents)
    impact = valid * Fraction(claim.coefficient, 10**9) * Fraction(claim.price, 10**9)
    tiers = Fraction(claim.tier_amount, 10_000)
    amount = min(tiers + impact if claim.sum_rules else max(tiers, impact), Fraction(terms.cap))
    whole, rest = divmod(amount, 1)
    half = Fraction(1, 2)
    up = {
        Rounding.FLOOR: False,
        Rounding.HALF_UP: rest >= half,
        Rounding.HALF_EVEN: rest > half or (rest == half and whole % 2 == 1),
    }
    assert found.credit == (whole + up[terms.rounding] if amount > terms.minimum else 0)


@given(claims())
@settings(max_examples=40)
def test_the_lying_prover_computes_like_the_model_while_it_does_not_lie(claim: IncidentClaim) -> None:
    evaluation = evaluate_incidents(claim)
    inputs = incident_inputs(claim, evaluation)
    honest = {**inputs}
    commit_incidents(inputs)
    assert inputs == honest
    assert lying_signals(inputs) == evaluation.signals


@pytest.mark.parametrize(
    ("incidents", "constraint"),
    [
        ((INCIDENTS[1], INCIDENTS[0]), "incident_order"),
        ((INCIDENTS[0], INCIDENTS[0]), "incident_order"),
        ((LoggedIncident(0, 1000, 0, 1), LoggedIncident(1000, 24, 0, 1)), "incident_windows"),
    ],
)
def test_what_no_honest_prover_claims(incidents: tuple[LoggedIncident, ...], constraint: str) -> None:
    with pytest.raises(ConstraintUnmet) as refused:
        evaluate_incidents(plain_incidents(incidents=incidents))
    assert refused.value.data["constraint"] == constraint


def test_terms_that_round_the_tiers_are_refused() -> None:
    with pytest.raises(ConstraintUnmet, match="exact"):
        evaluate_incidents(plain_incidents(terms=plain_terms()))


@pytest.mark.parametrize("member", ["coefficient", "price"])
def test_a_coefficient_or_price_beyond_64_bits_is_refused(member: str) -> None:
    with pytest.raises(AttestationValueInvalid, match=member):
        evaluate_incidents(plain_incidents(**{member: 1 << 64}))


# --- the circuit --------------------------------------------------------------------------------------


def holds(prover: Groth16Prover, claim: IncidentClaim) -> IncidentSignals:
    """The signals of a claim whose proof both verifiers accept."""
    evaluation = evaluate_incidents(claim)
    prover.prove(incident_inputs(claim, evaluation), evaluation.signals)
    return evaluation.signals


@pytest.mark.slow
def test_the_largest_values_fit_the_comparisons(prover: Groth16Prover) -> None:
    top = (1 << 38) - 1
    many = tuple(LoggedIncident(2 * at, 1, top, top) for at in range(64))
    claim = plain_incidents(
        terms=plain_terms(exact=True, cap=NO_CAP),
        incidents=many,
        coefficient=NO_CAP,
        price=NO_CAP,
        sum_rules=True,
        tier_amount=(1 << 78) - 1,
    )
    assert holds(prover, claim).credit == NO_CAP


@pytest.mark.slow
@given(claims())
@settings(
    max_examples=8,
    phases=[Phase.explicit, Phase.generate],
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_the_circuit_proves_what_the_model_says(prover: Groth16Prover, claim: IncidentClaim) -> None:
    evaluation = evaluate_incidents(claim)
    proof = prover.prove_unchecked(incident_inputs(claim, evaluation))
    assert prover.groth16py_holds(proof, evaluation.signals)


@pytest.mark.slow
def test_the_plain_credit_is_accepted_by_both_verifiers(prover: Groth16Prover) -> None:
    assert holds(prover, plain_incidents()).credit == 181_200


def test_every_check_has_a_lie_aimed_at_it_and_every_lie_a_check() -> None:
    folder = resource_dir("circuits")
    sources = circuit_sources(circuit_named(folder, "incidents_64"), folder)
    assert {line.check for line in check_lines(sources)} == {lie.check for lie in INCIDENT_LIES.values()}


@pytest.mark.slow
@pytest.mark.parametrize("name", INCIDENT_LIES)
def test_a_lie_is_refused_and_only_by_the_checks(prover: Groth16Prover, control: Groth16Prover, name: str) -> None:
    inputs = INCIDENT_LIES[name].inputs()
    signals = lying_signals(inputs)
    blank = control.groth16py_holds(control.prove_unchecked(inputs), signals)
    assert blank, "the lie is not carried through, so its refusal proves nothing"
    assert not prover.groth16py_holds(prover.prove_unchecked(inputs), signals)


def test_a_dropped_incident_shows_in_root_and_count() -> None:
    """The verifier derives both from the log."""
    whole, less = (evaluate_incidents(plain_incidents(incidents=each)) for each in (INCIDENTS, INCIDENTS[:2]))
    assert less.credit < whole.credit
    assert whole.signals.incident_root != less.signals.incident_root
    assert (whole.signals.summary & 127, less.signals.summary & 127) == (3, 2)
