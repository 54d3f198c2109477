"""Groth16 verification over BN254, independent of the prover (py_ecc alone).

Source: Groth, "On the Size of Pairing-based Non-interactive Arguments" (2016), section 3.2; byte
order of proofs as in EIP-197. About 0.9 s a proof: four Miller loops and one final exponentiation.

A proof can be re-randomised by anyone into another valid proof of the same signals. Identity and
replay protection therefore belong to the signals (ctx), never to the proof bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ledger.attest import bn254
from ledger.attest.bn254 import G1Point, G2Point
from ledger.attest.verification_key import VerificationKey
from ledger.domain.attested import BASE_ORDER, PROOF_BYTES, SCALAR_ORDER
from ledger.errors import ProofInvalid


@dataclass(frozen=True, slots=True)
class Proof:
    """Three affine points in their groups; made by :func:`parse_proof`."""

    a: G1Point
    b: G2Point
    c: G1Point

    def encode(self) -> bytes:
        """256 bytes: A.x A.y B.x1 B.x0 B.y1 B.y0 C.x C.y, 32 bytes big-endian each."""
        (x0, x1), (y0, y1) = self.b
        return b"".join(v.to_bytes(32, "big") for v in (*self.a, x1, x0, y1, y0, *self.c))

    def document(self) -> dict[str, Any]:
        """The snarkjs JSON document of this proof."""
        b = [[str(v) for v in coordinate] for coordinate in self.b]
        return {
            "protocol": "groth16",
            "curve": "bn128",
            "pi_a": [*map(str, self.a), "1"],
            "pi_b": [*b, ["1", "0"]],
            "pi_c": [*map(str, self.c), "1"],
        }


def parse_proof(data: bytes) -> Proof:
    """The proof in 256 bytes.

    Raises ProofInvalid on another length, a coordinate not below q, a point off its curve, or a B
    outside the subgroup (where pairings say nothing). Points at infinity are off the curve here.
    """
    if type(data) is not bytes or len(data) != PROOF_BYTES:
        raise ProofInvalid(f"a proof has {PROOF_BYTES} bytes", reason="proof_length")
    ax, ay, bx1, bx0, by1, by0, cx, cy = words = tuple(
        int.from_bytes(data[i : i + 32], "big") for i in range(0, PROOF_BYTES, 32)
    )
    if max(words) >= BASE_ORDER:
        raise ProofInvalid("the proof has a coordinate that is not below q", reason="coordinate_range")
    proof = Proof((ax, ay), ((bx0, bx1), (by0, by1)), (cx, cy))
    if not (bn254.on_g1(proof.a) and bn254.on_g1(proof.c)):
        raise ProofInvalid("point A or C of the proof is not on the curve", reason="off_curve")
    if not bn254.in_g2(proof.b):
        raise ProofInvalid("point B of the proof is not in the group", reason="off_subgroup")
    return proof


def check_proof(key: VerificationKey, signals: Sequence[int], proof: bytes) -> None:
    """Return if ``proof`` proves ``signals`` under ``key``.

    Raises ProofInvalid otherwise: a wrong number of signals, a signal not in [0, r) (signals plus r
    would pass the pairing), what :func:`parse_proof` refuses, or an equation that does not hold.
    """
    if len(signals) != key.public_signals:
        raise ProofInvalid(
            f"a proof under this key has {key.public_signals} signals, not {len(signals)}",
            reason="signal_count",
        )
    if any(type(value) is not int or not 0 <= value < SCALAR_ORDER for value in signals):
        raise ProofInvalid("a signal is not a field element from 0 to r-1", reason="signal_range")
    points = parse_proof(proof)
    weighted = bn254.linear_combination(key.ic[0], zip(signals, key.ic[1:], strict=True))
    # e(A, B) = e(alpha, beta) * e(IC(signals), gamma) * e(C, delta), as one product equal to 1.
    holds = bn254.pairing_product_is_one(
        [
            (bn254.projective(bn254.negated(points.a)), points.b),
            (bn254.projective(key.alpha), key.beta),
            (weighted, key.gamma),
            (bn254.projective(points.c), key.delta),
        ]
    )
    if not holds:
        raise ProofInvalid("the proof does not hold for these signals under this key", reason="pairing")
