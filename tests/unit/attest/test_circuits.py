"""The generated circom files are those circuits.json and the tags give."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ledger.attest.commitments.incident_credit import SLOTS, IncidentSignals
from ledger.attest.commitments.statement import Signals
from ledger.attest.proving.circuits import Circuit, generated_files, load_circuits
from ledger.domain.attested import BLOCK_WINDOWS, OBJECTIVES, TIERS
from ledger.resources import resource_dir

CIRCUITS = resource_dir("circuits")


@pytest.mark.parametrize("path", generated_files(CIRCUITS), ids=lambda path: path.name)
def test_generated_files_are_current(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == generated_files(CIRCUITS)[path]


@pytest.mark.parametrize("circuit", load_circuits(CIRCUITS), ids=lambda circuit: circuit.name)
def test_sizes_and_signals_are_those_of_the_formats(circuit: Circuit) -> None:
    as_python = [re.sub("[A-Z]", lambda capital: "_" + capital[0].lower(), name) for name in circuit.signals]
    if circuit.incidents:
        assert circuit.incidents == SLOTS
        assert as_python == list(IncidentSignals.__slots__)
    else:
        assert (circuit.windows_per_block, circuit.objectives, circuit.tiers) == (BLOCK_WINDOWS, OBJECTIVES, TIERS)
        assert as_python == list(Signals.__slots__)
