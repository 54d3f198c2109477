"""The prover that ``tests.circuits.ablation`` tries constraints with computes as circom does, and notices a gap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from ledger.attest.commitments.incident_credit import evaluate_incidents, incident_inputs
from tests.circuits.ablation import solver_of_incidents
from tests.circuits.compiled import compiled
from tests.circuits.incident_claims import plain_incidents
from tests.circuits.incident_lies import INCIDENT_LIES
from tests.circuits.left_out import families
from tests.support.node_packages import NodePackagesMissing

pytestmark = pytest.mark.slow


def test_the_witness_is_circoms_and_a_lie_breaks_its_check_alone(
    key_cache_dir: Path, absent: Callable[[str], NoReturn]
) -> None:
    try:
        solver = solver_of_incidents(key_cache_dir)
    except NodePackagesMissing as missing:
        absent(f"circom2 ({missing})")
    claim = plain_incidents()
    inputs = incident_inputs(claim, evaluate_incidents(claim))
    witness = solver.solve(inputs)
    assert witness == compiled("incidents_64", "O0", key_cache_dir).witness(inputs)
    assert not solver.broken(witness)
    checks, _ = families(solver)
    for name, check in (("an_incident_paid_twice", "Excludes"), ("cap_that_wraps_to_nothing", "Range")):
        broken = {checks[at] for at in solver.broken(solver.solve(INCIDENT_LIES[name].inputs()))}
        assert len(broken) == 1
        assert check in broken.pop()
    # A definition left out: the count is what the prover likes, and nothing else is broken.
    wire = solver.wires["summary"]
    changed = solver.lie(witness, wire, witness[wire] + 1, follow=True)
    assert solver.broken(witness, changed) == {solver.definition[wire]}
