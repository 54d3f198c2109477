"""The circuits of a week and of a month of hours: real proofs at the lengths that matter, and the lies of long periods.

A key of the month's circuit takes a minute and a gigabyte to make, so its proofs run where the key is cached already
and, in any case, with CI=true.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ledger.app.ports.evidence import Salts, StatementContext
from ledger.attest.commitments.inputs import CircuitInputs, circuit_inputs
from ledger.attest.commitments.model import PeriodClaim, evaluate
from ledger.attest.commitments.statement import State, Summary
from ledger.attest.commitments.telemetry import WindowCounts
from ledger.attest.crypto.groth16 import check_proof
from ledger.attest.crypto.verification_key import parse_verification_key
from ledger.attest.proving.attestor import CircuitAttestor
from ledger.attest.proving.circuits import circuit_named, load_circuits
from ledger.attest.proving.limits import Limits
from ledger.attest.proving.prover import Groth16Prover
from ledger.attest.proving.zk_keys import KeyCache
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.windows.window import Cell, Window, WindowState
from ledger.errors import ConstraintUnmet, CoverageBelowFloor, Refused
from ledger.resources import resource_dir
from tests.circuits.claims import plain_claim, plain_terms
from tests.circuits.lying_prover import commit, signals_of
from tests.unit.domain.samples import agreement

pytestmark = pytest.mark.slow

HIGH = (1 << 28) - 1
GOOD_HOUR = WindowCounts((1000, 1000), (0, 0))
BAD_HOUR = WindowCounts((0, 0), (1000, 1000))
WEEK_BLOCKS = 7


@pytest.fixture(scope="module")
def week(key_cache_dir: Path) -> Iterator[Groth16Prover]:
    circuits = resource_dir("circuits")
    with Groth16Prover(circuit_named(circuits, "compliance_175x4"), KeyCache(key_cache_dir, circuits, print)) as one:
        yield one


@pytest.fixture(scope="module")
def month(key_cache_dir: Path) -> Iterator[Groth16Prover]:
    circuits = resource_dir("circuits")
    if not any(key_cache_dir.glob("compliance_750x4-*")) and os.environ.get("CI") != "true":
        pytest.skip("no key of compliance_750x4 is cached; `sla-ledger init --proving-keys --windows 750` makes one")
    circuit = circuit_named(circuits, "compliance_750x4")
    with Groth16Prover(circuit, KeyCache(key_cache_dir, circuits, print), limits=Limits(600)) as one:
        yield one


def claim_of(windows: list[WindowCounts], **changes: object) -> PeriodClaim:
    return plain_claim(windows=tuple(windows), block_salts=tuple(range(1, WEEK_BLOCKS + 1)), **changes)


def hours(count: int) -> list[WindowCounts]:
    return [WindowCounts((995, 960), (5, 35))] * count


# --- the lengths at which something changes -----------------------------------------------------------


@pytest.mark.parametrize("count", [26, 150, 151, 175])
def test_a_period_ends_within_at_and_after_a_block(week: Groth16Prover, count: int) -> None:
    evaluation = evaluate(claim_of(hours(count)))
    week.prove(circuit_inputs(claim_of(hours(count)), evaluation), evaluation.signals)
    assert Summary.decode(evaluation.signals.summary).windows == count


def test_more_windows_than_the_blocks_hold_are_refused_by_number() -> None:
    with pytest.raises(ConstraintUnmet, match="176 windows"):
        evaluate(claim_of(hours(176)))


def test_the_largest_counts_fit_the_comparisons_of_a_week(week: Groth16Prover) -> None:
    """175 hours of 2^28 - 1 on both sides: 64-bit comparisons would wrap here."""
    claim = claim_of([WindowCounts((HIGH,) * 2, (HIGH,) * 2)] * 175)
    evaluation = evaluate(claim)
    assert evaluation.summary.states[:2] == (State.BREACHED, State.BREACHED)
    week.prove(circuit_inputs(claim, evaluation), evaluation.signals)


# --- lies ---------------------------------------------------------------------------------------------


def good_traffic_after_the_end(inputs: CircuitInputs) -> None:
    inputs["good"][174] = [HIGH, HIGH, 0, 0]


def good_traffic_in_an_observed_hour_after_the_end(inputs: CircuitInputs) -> None:
    inputs["good"][168] = [HIGH, HIGH, 0, 0]
    inputs["observed"][168] = 1


def the_bad_hour_is_taken_out_of_the_period(inputs: CircuitInputs) -> None:
    """A hole at a block's border, so that the period is shorter by the hour that hurts."""
    for name in ("good", "bad"):
        inputs[name][75] = [0, 0, 0, 0]
    inputs["observed"][75] = inputs["active"][75] = 0


@pytest.mark.parametrize(
    "lie",
    [
        good_traffic_after_the_end,
        good_traffic_in_an_observed_hour_after_the_end,
        the_bad_hour_is_taken_out_of_the_period,
    ],
)
def test_a_lie_about_a_week_has_no_proof(week: Groth16Prover, lie: Callable[[CircuitInputs], None]) -> None:
    told = hours(168)
    told[75] = BAD_HOUR
    claim = claim_of(told)
    inputs = circuit_inputs(claim, evaluate(claim))
    lie(inputs)
    commit(inputs)
    assert not week.groth16py_holds(week.prove_unchecked(inputs), signals_of(inputs))


# --- a bad hour that is made to disappear shows -------------------------------------------------------


@pytest.mark.parametrize(
    ("instead", "shows"),
    [
        (BAD_HOUR, (State.BREACHED, 168, 0, 0)),
        (WindowCounts(), (State.MET, 168, 0, 1)),
        (WindowCounts(observed=False), (State.MET, 167, 0, 0)),
        (WindowCounts(observed=False, excluded=True), (State.MET, 167, 1, 0)),
    ],
    ids=["told", "entered as zeros", "dropped", "excluded"],
)
def test_a_bad_hour_of_a_week_that_disappears_shows_in_the_summary(
    week: Groth16Prover, instead: WindowCounts, shows: tuple[State, int, int, int]
) -> None:
    told = [GOOD_HOUR] * 168
    told[75] = instead
    claim = claim_of(told, terms=plain_terms(floor_bps=9900))
    evaluation = evaluate(claim)
    week.prove(circuit_inputs(claim, evaluation), evaluation.signals)
    shown = Summary.decode(evaluation.signals.summary)
    assert (shown.states[0], shown.observed, shown.excluded, shown.idle) == shows


def test_dropped_hours_do_not_read_met_below_the_floor(week: Groth16Prover) -> None:
    """Two hours of 168 may be missing at a floor of 98.8 %; a third has no proof, whoever makes the inputs."""
    told = [GOOD_HOUR] * 168
    told[10:12] = [WindowCounts(observed=False)] * 2
    terms = plain_terms(floor_bps=9880)
    allowed = claim_of(told, terms=terms)
    inputs = circuit_inputs(allowed, evaluate(allowed))
    told[12] = WindowCounts(observed=False)
    with pytest.raises(CoverageBelowFloor):
        evaluate(claim_of(told, terms=terms))
    for name in ("good", "bad"):
        inputs[name][12] = [0, 0, 0, 0]
    inputs["observed"][12] = 0
    commit(inputs)
    assert not week.groth16py_holds(week.prove_unchecked(inputs), signals_of(inputs))


# --- a month, through the agreement -------------------------------------------------------------------


def monthly(zone: str = "Europe/Berlin") -> Agreement:
    def change(plain: dict[str, Any]) -> None:
        plain.update(period="P1M", window="PT1H", timezone=zone)

    return agreement(change)


def seen(of: Agreement, name: str) -> tuple[Any, list[Window]]:
    """The period with every hour of it observed, 1 request in 500 bad."""
    period = period_named(of, name)
    cells = tuple(Cell(998, 2) for _ in of.objectives)
    return period, [Window(each, WindowState.OBSERVED, cells) for each in of.windows(period)]


@pytest.mark.parametrize(
    ("first", "count"),
    [(date(2023, 2, 1), 672), (date(2023, 3, 1), 743), (date(2023, 7, 1), 744), (date(2023, 10, 1), 745)],
)
def test_every_month_is_sealed_in_the_blocks_of_the_largest_circuit(first: date, count: int) -> None:
    terms = monthly()
    period, windows = seen(terms, f"{first:%Y-%m-%d}/P1M")
    attestor = CircuitAttestor(load_circuits(resource_dir("circuits")), {})
    assert (len(windows), attestor.block_count(len(windows))) == (count, 30)
    assert len(attestor.seal(terms, period, windows, range(30)).blocks) == 30


@pytest.mark.parametrize(
    ("windows", "name"),
    [(1, "25x4"), (25, "25x4"), (26, "175x4"), (175, "175x4"), (176, "750x4"), (750, "750x4")],
)
def test_the_smallest_circuit_that_holds_the_windows_is_chosen(windows: int, name: str) -> None:
    attestor = CircuitAttestor(load_circuits(resource_dir("circuits")), {})
    assert attestor.circuits_up_to(windows)[-1] == f"compliance_{name}"
    with pytest.raises(Refused, match="751 windows"):
        attestor.block_count(751)


def test_a_month_with_an_hour_more_is_proved_and_both_verifiers_agree(month: Groth16Prover) -> None:
    terms = monthly()
    period, windows = seen(terms, "2023-10-01/P1M")
    attestor = CircuitAttestor(load_circuits(resource_dir("circuits")), {"compliance_750x4": month})
    found = attestor.attest(
        terms,
        period,
        windows,
        Salts(tuple(range(1, 31)), 5, 6),
        StatementContext(31337, terms.issuer.evm_address, 1, 1),
    )
    assert found.circuit == "compliance_750x4"
    shown = Summary.decode(found.signals[0])
    assert (shown.windows, shown.observed, shown.states[0]) == (745, 745, State.BREACHED)
    # Attesting asked both verifiers; py-ecc once more, with nothing but what a bundle holds.
    check_proof(parse_verification_key(found.verification_key), found.signals, found.proof)


def test_good_traffic_after_the_end_of_a_month_has_no_proof(month: Groth16Prover) -> None:
    claim = plain_claim(windows=tuple(hours(745)), block_salts=tuple(range(1, 31)))
    inputs = circuit_inputs(claim, evaluate(claim))
    inputs["good"][749] = [HIGH, HIGH, 0, 0]
    commit(inputs)
    assert not month.groth16py_holds(month.prove_unchecked(inputs), signals_of(inputs))
