"""The BN254 groups and pairing, as thin typed access to py_ecc's optimized_bn128.

Points here are affine integers with coordinates below q; the point at infinity has no such form and
is therefore on no curve, which suits keys and proofs: none of their points may be infinity.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from py_ecc.fields import optimized_bn128_FQ as FQ
from py_ecc.fields import optimized_bn128_FQ2 as FQ2
from py_ecc.fields import optimized_bn128_FQ12 as FQ12
from py_ecc.optimized_bn128 import optimized_curve as curve
from py_ecc.optimized_bn128 import optimized_pairing as pairing

from ledger.domain.attested import BASE_ORDER, SCALAR_ORDER

G1Point = tuple[int, int]
G2Point = tuple[tuple[int, int], tuple[int, int]]
"""((x0, x1), (y0, y1)) with x = x0 + x1 * u: snarkjs' order. Byte formats put x1 before x0."""


def on_g1(point: G1Point) -> bool:
    """Whether ``point`` is on y^2 = x^3 + 3, a curve whose whole group has order r."""
    x, y = point
    return (y * y - x * x * x - 3) % BASE_ORDER == 0


@functools.lru_cache(maxsize=64)
def in_g2(point: G2Point) -> bool:
    """Whether ``point`` is on the twist and in its subgroup of order r, where pairings mean something.

    The last answers are kept: every proof under a key asks for the key's three points again.
    """
    twisted = _g2(point)
    return bool(curve.is_on_curve(twisted, curve.b2) and curve.is_inf(curve.multiply(twisted, SCALAR_ORDER)))


@functools.cache
def g2_generator() -> G2Point:
    """The G2 generator of EIP-197."""
    x, y = curve.normalize(curve.G2)
    return (int(x.coeffs[0]), int(x.coeffs[1])), (int(y.coeffs[0]), int(y.coeffs[1]))


def sum_of_products(terms: Iterable[tuple[int, G1Point]]) -> Any:
    """The sum of scalar * point, in py_ecc's projective form (infinity is possible)."""
    total = curve.Z1
    for scalar, point in terms:
        total = curve.add(total, curve.multiply(projective(point), scalar % SCALAR_ORDER))
    return total


def projective(point: G1Point) -> Any:
    """py_ecc's form of a G1 point."""
    return FQ(point[0]), FQ(point[1]), FQ.one()


def negated(point: G1Point) -> G1Point:
    """-point."""
    return point[0], (BASE_ORDER - point[1]) % BASE_ORDER


def pairing_product_is_one(pairs: Iterable[tuple[Any, G2Point]]) -> bool:
    """Whether the product of e(left, right) is 1; one final exponentiation for all pairs."""
    product = FQ12.one()
    for left, right in pairs:
        product = product * pairing.pairing(_g2(right), left, final_exponentiate=False)
    return bool(pairing.final_exponentiate(product) == FQ12.one())


def _g2(point: G2Point) -> Any:
    return FQ2(point[0]), FQ2(point[1]), FQ2.one()
