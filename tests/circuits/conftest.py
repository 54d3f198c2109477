"""Provers shared by all circuit tests; their keys are cached between runs and with the demo."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from ledger.attest.proving.circuits import circuit_named
from ledger.attest.proving.prover import Groth16Prover
from ledger.attest.proving.zk_keys import KeyCache
from ledger.resources import resource_dir

ROOT = Path(__file__).resolve().parents[2]
BLANK_CHECKS = """pragma circom 2.1.6;
template Zero() { signal input in; }
template Boolean() { signal input in; }
template Same() { signal input a; signal input b; }
template Excludes() { signal input a; signal input b; }
template Range(BITS) { signal input in; }
template AtMost(BITS, MAX) { signal input in; }
"""


@pytest.fixture(scope="session")
def key_cache_dir(absent: Callable[[str], NoReturn]) -> Path:
    """$SLA_LEDGER_KEY_CACHE, or ``var/keys`` in the repository."""
    if importlib.util.find_spec("groth16py") is None:
        absent("groth16py (extra 'prove')")
    return Path(os.environ.get("SLA_LEDGER_KEY_CACHE") or ROOT / "var" / "keys")


def variant(folder: Path, name: str, blocks: int, checked: bool) -> Path:
    """A copy of the circuits in ``folder`` with the one instance ``name``."""
    circuits = folder / "circuits"
    shutil.copytree(resource_dir("circuits"), circuits)
    if not checked:
        (circuits / "lib" / "checks.circom").write_text(BLANK_CHECKS)
    document = json.loads((circuits / "circuits.json").read_text())
    document["circuits"] = [document["circuits"][0] | {"name": name, "blocks": blocks}]
    (circuits / "circuits.json").write_text(json.dumps(document))
    return circuits


def incident_variant(folder: Path) -> Path:
    """A copy of the circuits with every check blank, and of instances ``incidents_64`` alone, as control_incidents."""
    circuits = variant(folder, "control", 1, checked=False)
    document = json.loads((resource_dir("circuits") / "circuits.json").read_text())
    (one,) = (each for each in document["circuits"] if each["name"] == "incidents_64")
    document["circuits"] = [one | {"name": "control_incidents"}]
    (circuits / "circuits.json").write_text(json.dumps(document))
    return circuits


@pytest.fixture(scope="session")
def prover(key_cache_dir: Path) -> Iterator[Groth16Prover]:
    """The prover of compliance_25x4."""
    circuits = resource_dir("circuits")
    with Groth16Prover(circuit_named(circuits, "compliance_25x4"), KeyCache(key_cache_dir, circuits, print)) as one:
        yield one


def _variant_prover(
    key_cache_dir: Path, factory: pytest.TempPathFactory, name: str, blocks: int, checked: bool
) -> Iterator[Groth16Prover]:
    circuits = variant(factory.mktemp(name), name, blocks, checked)
    with Groth16Prover(circuit_named(circuits, name), KeyCache(key_cache_dir / "tests", circuits, print)) as one:
        yield one


@pytest.fixture(scope="session")
def control(key_cache_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Groth16Prover]:
    """compliance_25x4 with every check blank. What it accepts, only a check can refuse."""
    yield from _variant_prover(key_cache_dir, tmp_path_factory, "control_25x4", 1, checked=False)


@pytest.fixture(scope="session")
def prover_two_blocks(key_cache_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Groth16Prover]:
    """The same template over two blocks, which no product instance needs yet."""
    yield from _variant_prover(key_cache_dir, tmp_path_factory, "compliance_50x4", 2, checked=True)


@pytest.fixture(scope="session")
def control_two_blocks(key_cache_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Groth16Prover]:
    """Two blocks with every check blank."""
    yield from _variant_prover(key_cache_dir, tmp_path_factory, "control_50x4", 2, checked=False)
