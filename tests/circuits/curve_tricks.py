"""What an attacker does with points: re-randomise a proof, forge under a bad key, leave the subgroup."""

from __future__ import annotations

from typing import Any

from py_ecc.fields import optimized_bn128_FQ2 as FQ2
from py_ecc.optimized_bn128 import optimized_curve as curve

from ledger.attest.crypto.bn254 import G1Point, G2Point, negated, projective, sum_of_products
from ledger.attest.crypto.groth16 import Proof
from ledger.attest.crypto.verification_key import VerificationKey
from ledger.domain.attested import BASE_ORDER, SCALAR_ORDER


def rerandomised(proof: Proof, factor: int) -> Proof:
    """(factor * A, B / factor, C): another proof of the same signals, made without any secret."""
    (x0, x1), (y0, y1) = proof.b
    b = curve.multiply((FQ2((x0, x1)), FQ2((y0, y1)), FQ2.one()), pow(factor, -1, SCALAR_ORDER))
    return Proof(_affine_g1(curve.multiply(projective(proof.a), factor)), _affine_g2(b), proof.c)


def forged_where_delta_is_gamma(key: VerificationKey, signals: tuple[int, ...]) -> Proof:
    """A "proof" of any signals under a key whose delta is its gamma: A = alpha, B = beta, C = -IC(signals)."""
    weighted = sum_of_products(zip((1, *signals), key.ic, strict=True))
    return Proof(key.alpha, key.beta, negated(_affine_g1(weighted)))


def point_outside_the_subgroup() -> G2Point:
    """A point on the twist that is not of order r; almost every point is one."""
    x = FQ2((1, 0))
    while True:
        square = x * x * x + curve.b2
        root = _square_root(square)
        if root is not None:
            return _affine_g2((x, root, FQ2.one()))
        x = x + FQ2.one()


def _square_root(value: Any) -> Any:
    """A square root in FQ2, or None (Adj and Rodriguez-Henriquez 2012, algorithm 9; q = 3 mod 4)."""
    candidate = value ** ((BASE_ORDER - 3) // 4)
    alpha = candidate * candidate * value
    root = candidate * value
    if alpha == FQ2((BASE_ORDER - 1, 0)):
        root = FQ2((0, 1)) * root
    else:
        root = (FQ2.one() + alpha) ** ((BASE_ORDER - 1) // 2) * root
    return root if root * root == value else None


def _affine_g1(point: Any) -> G1Point:
    x, y = curve.normalize(point)
    return int(x), int(y)


def _affine_g2(point: Any) -> G2Point:
    x, y = curve.normalize(point)
    return (int(x.coeffs[0]), int(x.coeffs[1])), (int(y.coeffs[0]), int(y.coeffs[1]))
