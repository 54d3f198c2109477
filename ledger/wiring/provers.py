"""The prover that the settings choose, one for each circuit, and where keys and Node's packages are looked for."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ledger.attest.proving.circuits import Circuit
from ledger.attest.proving.limits import Limits
from ledger.attest.proving.node_toolchain import NodeToolchain
from ledger.attest.proving.proof_makers import ProofMaker, RapidsnarkMaker, SnarkjsMaker
from ledger.attest.proving.prover import Groth16Prover, Keys
from ledger.settings import ProverName, ProverSettings


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
