"""Statements with two proofs on a chain, for tests that record them and lie about them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from eth_utils import keccak

from ledger.anchor.chain import DeployedVerifier, Statement
from ledger.anchor.verifier_key import circuit_id, constructor_words
from ledger.app.ports.evidence import IncidentProof
from ledger.errors import NotFound
from tests.contracts.ground import DEPLOYER, TERMS_HASH, Ground, word
from tests.contracts.trapdoor import Trapdoor, curve_order


@dataclass
class Pairs:
    """An agreement that pays for incidents: registered with a pair of circuits, both verifiers added."""

    ground: Ground
    trapdoor: Trapdoor = field(default_factory=lambda: Trapdoor("incidents"))
    registered: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        ground = self.ground
        self.verifier = _added(ground, self.trapdoor)
        pair = pair_of(ground.verifier.circuit_id, self.verifier.circuit_id)
        self.sla = ground.agreement(circuit_ids=self.registered or (pair,))

    def statement(
        self,
        *,
        alter_first: Callable[[list[int]], None] | None = None,
        alter_second: Callable[[list[int]], None] | None = None,
        incident_circuit_id: bytes | None = None,
        **changes: Any,
    ) -> Statement:
        """A statement whose proofs both hold, after changes to their signals: only a rule can refuse it."""
        first = self.ground.statement(self.sla, alter_signals=alter_first, **changes)
        signals = [3 | 7 << 8, 196_00, first.signals[2], first.signals[1], TERMS_HASH, curve_order - 9]
        if alter_second is not None:
            alter_second(signals)
        second = IncidentProof(
            circuit_id=incident_circuit_id or self.verifier.circuit_id,
            signals=tuple(signals),
            proof=self.trapdoor.forge(tuple(signals)),
            verification_key=self.trapdoor.verification_key,
            dev_unsafe=True,
        )
        return replace(first, incident_proof=second)


def pair_of(circuit_id: bytes, incident_circuit_id: bytes) -> bytes:
    """The id of two circuits together: written anew here, to check the contract by."""
    return keccak(keccak(text="sla-ledger/circuit-pair/v1") + word(circuit_id) + word(incident_circuit_id))


def _added(ground: Ground, trapdoor: Trapdoor) -> DeployedVerifier:
    """The verifier of a key, added to the registry unless another test was first."""
    circuit = circuit_id(constructor_words(trapdoor.verification_key))
    with suppress(NotFound):
        return ground.anchor.verifier_of(circuit)
    verifier = ground.deploy_verifier(trapdoor)
    ground.anchor.add_verifier(DEPLOYER, verifier, dev_unsafe=True, now_s=ground.tick())
    return verifier
