"""Groth16 verification over BN254, independent of the prover (py_ecc alone).

Source: Groth, "On the Size of Pairing-based Non-interactive Arguments" (2016), section 3.2; byte
order of proofs as in EIP-197. About 0.9 s a proof: four Miller loops and one final exponentiation. Many proofs
under one key take one Miller loop each and three for all (:func:`check_proofs`).

A proof can be re-randomised by anyone into another valid proof of the same signals. Identity and
replay protection therefore belong to the signals (ctx), never to the proof bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ledger.app.ports.store import Randomness
from ledger.attest.crypto import bn254
from ledger.attest.crypto.bn254 import G1Point, G2Point
from ledger.attest.crypto.verification_key import VerificationKey
from ledger.domain.attested import BASE_ORDER, PROOF_BYTES, SCALAR_ORDER
from ledger.errors import ProofInvalid

_POWER_BYTES: Final = 16


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


def well_formed(key: VerificationKey, signals: Sequence[int], proof: bytes) -> Proof:
    """The proof, where key, signals and bytes are in their one spelling; whether it holds is not looked at.

    Every verifier of ours asks this first, whichever library then does the pairing: libraries differ in what
    they reduce, pad or leave unread. Raises ProofInvalid for a wrong number of signals, a signal not in [0, r)
    (signals plus r would pass the pairing) and what :func:`parse_proof` refuses.
    """
    if len(signals) != key.public_signals:
        raise ProofInvalid(
            f"a proof under this key has {key.public_signals} signals, not {len(signals)}",
            reason="signal_count",
        )
    if any(type(value) is not int or not 0 <= value < SCALAR_ORDER for value in signals):
        raise ProofInvalid("a signal is not a field element from 0 to r-1", reason="signal_range")
    return parse_proof(proof)


def check_proof(key: VerificationKey, signals: Sequence[int], proof: bytes) -> None:
    """Return if ``proof`` proves ``signals`` under ``key``.

    Raises ProofInvalid otherwise: what :func:`well_formed` refuses, or an equation that does not hold.
    """
    points = well_formed(key, signals, proof)
    if not _hold(key, [(1, signals, points)]):
        raise ProofInvalid("the proof does not hold for these signals under this key", reason="pairing")


def check_proofs(key: VerificationKey, claims: Sequence[tuple[Sequence[int], bytes]], randomness: Randomness) -> None:
    """Return if each proof of ``claims`` (signals, proof) proves its signals under ``key``.

    The equations are multiplied together, each to the power of a number of 128 bits that is drawn now, after the
    proofs are fixed. All points are in groups of the prime order r, so one false equation among them leaves at
    most one value of its own power for which the product is 1: false proofs pass with a probability of at most
    2^-128, also where their errors were made to cancel. ``randomness`` must be unpredictable to whoever made
    the proofs. Source: Bellare, Garay and Rabin, "Fast Batch Verification for Modular Exponentiation and
    Digital Signatures" (1998), the small exponents test.

    Raises ProofInvalid as :func:`check_proof` does; where the product is not 1 it does not say which proof is false.
    """
    weighed = [
        (int.from_bytes(randomness.bytes(_POWER_BYTES), "big"), signals, well_formed(key, signals, proof))
        for signals, proof in claims
    ]
    if weighed and not _hold(key, weighed):
        raise ProofInvalid("one of these proofs does not hold for its signals under this key", reason="pairing")


def _hold(key: VerificationKey, weighed: Sequence[tuple[int, Sequence[int], Proof]]) -> bool:
    """Whether the product of the equations, each to its power, holds.

    One equation is e(A, B) = e(alpha, beta) * e(IC(signals), gamma) * e(C, delta). What stands under the same
    point of the key is summed before it is paired, and all is one product equal to 1.
    """
    powers = sum(power for power, _, _ in weighed)
    columns = zip(*(signals for _, signals, _ in weighed), strict=True)
    inputs = [sum(power * value for (power, _, _), value in zip(weighed, column, strict=True)) for column in columns]
    pairs = [(bn254.sum_of_products([(power, bn254.negated(points.a))]), points.b) for power, _, points in weighed]
    pairs += [
        (bn254.sum_of_products([(powers, key.alpha)]), key.beta),
        (bn254.sum_of_products(zip((powers, *inputs), key.ic, strict=True)), key.gamma),
        (bn254.sum_of_products((power, points.c) for power, _, points in weighed), key.delta),
    ]
    return bn254.pairing_product_is_one(pairs)
