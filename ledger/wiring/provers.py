"""The prover that the settings choose, one for each circuit, and the proving keys that a directory is pinned to."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ledger.attest.ceremony_keys import read_pins, write_pin
from ledger.attest.circuits import Circuit
from ledger.attest.limits import Limits
from ledger.attest.node_toolchain import NodeToolchain
from ledger.attest.proof_makers import ProofMaker, RapidsnarkMaker, SnarkjsMaker
from ledger.attest.prover import Groth16Prover, Keys
from ledger.settings import ProverName, ProverSettings
from ledger.wiring.data_directory import KEY_FOLDER
from ledger.wiring.files import replace_file

PROVING_PINS: Final = "proving-keys.json"
"""In a data directory. It is no secret: whoever proves must see it, and so it does not lie among the keys."""


def pins_of(folder: Path) -> dict[str, str]:
    """The pins of a data directory, by circuit. Raises ``ProvingKeyInvalid``."""
    return read_pins(_pins_file(folder))


def pin_circuit(folder: Path, circuit: str, digest: str) -> None:
    """Pin a circuit of a data directory. Raises ``ProvingKeyInvalid``."""
    write_pin(_pins_file(folder), circuit, digest)


def move_pins(folder: Path) -> None:
    """Put pins that lie among the keys, as they once did, where every process sees them. Raises ``OSError``."""
    found = _pins_file(folder)
    if found.parent != folder:
        replace_file(folder / PROVING_PINS, found.read_bytes())
        found.unlink()


def default_key_cache() -> Path:
    """Where proving keys are kept: ``SLA_LEDGER_KEY_CACHE``, or ``sla-ledger/keys`` in the user's cache."""
    named = os.environ.get("SLA_LEDGER_KEY_CACHE")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "sla-ledger" / "keys"


def chosen_provers(circuits: Iterable[Circuit], keys: Keys, settings: ProverSettings) -> dict[str, Groth16Prover]:
    """Provers by the name of their circuit; nothing is started or loaded yet."""
    limits = Limits(settings.timeout_s, settings.memory_mb)
    return {circuit.name: Groth16Prover(circuit, keys, _maker(keys, settings, limits), limits) for circuit in circuits}


def node_toolchain(settings: ProverSettings) -> NodeToolchain:
    """Where snarkjs, circom2 and circomlib are looked for."""
    return NodeToolchain(settings.node_modules) if settings.node_modules else NodeToolchain()


def _maker(keys: Keys, settings: ProverSettings, limits: Limits) -> ProofMaker | None:
    toolchain = node_toolchain(settings)
    if settings.prover is ProverName.SNARKJS:
        return SnarkjsMaker(toolchain, limits, keys.notify)
    if settings.prover is ProverName.RAPIDSNARK:
        return RapidsnarkMaker(toolchain=toolchain, limits=limits, notify=keys.notify)
    # None: groth16py in the child that verifies, too.
    return None


def _pins_file(folder: Path) -> Path:
    present, before = folder / PROVING_PINS, folder / KEY_FOLDER / PROVING_PINS
    return before if before.exists() and not present.exists() else present
