"""The circuits compiled by circom itself, unoptimised and optimised: the order of their public signals, and that no
wire of a witness can be another value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from ledger.attest.commitments.incident_credit import evaluate_incidents, incident_inputs
from ledger.attest.commitments.inputs import CircuitInputs, circuit_inputs
from ledger.attest.commitments.model import evaluate
from ledger.attest.proving.circuits import circuit_named, compiled_signals, load_circuits
from ledger.domain.attested import SCALAR_ORDER as R
from ledger.resources import resource_dir
from tests.circuits.claims import plain_claim
from tests.circuits.compiled import Compiled, compiled
from tests.circuits.incident_claims import plain_incidents
from tests.circuits.make_signals import SMALLEST
from tests.support.node_packages import NodePackagesMissing

pytestmark = pytest.mark.slow

CHANGES = (1, R - 1, R // 3)
LEVELS = ("O0", "O2")


def satisfying(name: str) -> tuple[CircuitInputs, tuple[int, ...]]:
    """Inputs of an honest claim for the circuit, and their public signals."""
    if name == "incidents_64":
        claim = plain_incidents()
        found = evaluate_incidents(claim)
        return incident_inputs(claim, found), found.signals.as_tuple()
    period = plain_claim()
    evaluation = evaluate(period)
    return circuit_inputs(period, evaluation), evaluation.signals.as_tuple()


@pytest.fixture(scope="module")
def build(key_cache_dir: Path, absent: Callable[[str], NoReturn]) -> Callable[[str, str], Compiled]:
    def made(name: str, level: str) -> Compiled:
        try:
            return compiled(name, level, key_cache_dir)
        except NodePackagesMissing as missing:
            absent(f"circom2 ({missing})")

    return made


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", SMALLEST)
def test_public_signals_are_in_the_order_that_is_written_down(
    build: Callable[[str, str], Compiled], name: str, level: str
) -> None:
    circuit = circuit_named(resource_dir("circuits"), name)
    found = build(name, level).public_signals()
    assert found == circuit.signals == compiled_signals(resource_dir("circuits"))[circuit.template]


def test_every_template_is_compiled_here() -> None:
    folder = resource_dir("circuits")
    assert {circuit_named(folder, name).template for name in SMALLEST} == {
        one.template for one in load_circuits(folder)
    }


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", SMALLEST)
def test_no_wire_of_a_witness_can_have_another_value(
    build: Callable[[str, str], Compiled], name: str, level: str
) -> None:
    """The one exception is circomlib's own: where ``IsZero`` looks at a zero, its hint ``inv`` is multiplied by it."""
    circuit = build(name, level)
    inputs, signals = satisfying(name)
    constraints, witness = circuit.constraints(), circuit.witness(inputs)
    assert tuple(witness[1 : constraints.public + 1]) == signals
    assert not constraints.broken(witness)
    touching, names = constraints.of_wires(), circuit.names()
    free = []
    for wire in range(1, constraints.wires):
        honest = witness[wire]
        for change in CHANGES:
            witness[wire] = (honest + change) % R
            if not constraints.broken(witness, touching[wire]):
                free.append(wire)
                break
        witness[wire] = honest
    assert all(any("IsZero" in one and one.endswith(".inv") for one in names[wire]) for wire in free)
    assert all(witness[wire] == 0 for wire in free), "a hint of something that is not zero is not free"
    assert len(free) < constraints.wires // 100


@pytest.mark.parametrize("level", LEVELS)
def test_two_wires_changed_together_are_noticed_too(build: Callable[[str, str], Compiled], level: str) -> None:
    """A count moved from bad to good keeps every sum: only the words of the windows, and so the root, tell."""
    circuit = build("compliance_25x4", level)
    inputs, _ = satisfying("compliance_25x4")
    constraints, witness = circuit.constraints(), circuit.witness(inputs)
    wires = {name: wire for wire, names in circuit.names().items() for name in names}
    witness[wires["good[3][0]"]] += 5
    witness[wires["bad[3][0]"]] -= 5
    assert constraints.broken(witness)
