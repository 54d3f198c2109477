"""What names a proved statement: circuit, hash of signals, hash of proof, and the leaf of a batch that they give.

A statement has one proof, or two where its terms pay for incidents beside the tiers. Then a pair stands in the place of
the circuit and the hashes go over both proofs, so that whatever names the statement binds both
(docs/attestation-format.md, section 10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.attest.crypto.field import require_bytes, require_element
from ledger.attest.crypto.keccak import bytes32_word, keccak256, keccak_text, uint_word
from ledger.domain.attested import PROOF_BYTES, SIGNAL_COUNT
from ledger.errors import AttestationValueInvalid


@dataclass(frozen=True, slots=True)
class OneProof:
    """A proof of 256 bytes, its six signals and its circuit.

    Raises AttestationValueInvalid on another number of signals or bytes, and on a signal that is no field element.
    """

    circuit_id: bytes
    signals: tuple[int, ...]
    proof: bytes

    def __post_init__(self) -> None:
        if len(self.signals) != SIGNAL_COUNT:
            raise AttestationValueInvalid(f"a proof has {SIGNAL_COUNT} signals", field="signals")
        for index, signal in enumerate(self.signals):
            require_element(signal, f"signals[{index}]")
        require_bytes(self.proof, PROOF_BYTES, "proof")


@dataclass(frozen=True, slots=True)
class StatementName:
    """How registry, events and batches name a proved statement; 32 bytes each."""

    circuit_id: bytes
    signals_hash: bytes
    proof_hash: bytes

    def leaf(self, ctx: int) -> bytes:
        """The statement as a leaf of a batch; hashed twice so that it is never a node of that tree."""
        encoded = (
            keccak_text("sla-ledger/leaf/v1")
            + uint_word(ctx, 256, "ctx")
            + self.signals_hash
            + self.proof_hash
            + bytes32_word(self.circuit_id, "circuit_id")
        )
        return keccak256(keccak256(encoded))


def statement_name(proof: OneProof, incidents: OneProof | None = None) -> StatementName:
    """The name of a statement with one proof, or with a second one of its incident credit."""
    if incidents is None:
        return StatementName(proof.circuit_id, signals_hash(proof.signals), keccak256(proof.proof))
    return StatementName(
        circuit_id=pair_id(proof.circuit_id, incidents.circuit_id),
        signals_hash=signals_hash((*proof.signals, *incidents.signals)),
        proof_hash=keccak256(proof.proof + incidents.proof),
    )


def pair_id(circuit_id: bytes, incident_circuit_id: bytes) -> bytes:
    """Two circuits that prove a statement together, as registrations and events name them."""
    return keccak256(
        keccak_text("sla-ledger/circuit-pair/v1")
        + bytes32_word(circuit_id, "circuit_id")
        + bytes32_word(incident_circuit_id, "incident_circuit_id")
    )


def signals_hash(signals: Sequence[int]) -> bytes:
    """keccak256(abi.encode(signals)): of six signals, or of the twelve of a pair; zero where there are none."""
    if not signals:
        return bytes(32)
    return keccak256(b"".join(uint_word(signal, 256, "signal") for signal in signals))
