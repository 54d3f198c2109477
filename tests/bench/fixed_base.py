"""Many multiples of one point of BN254 at once, in pure Python: what a key with known secrets is made of.

A table holds ``d * 2^(8 i) * G`` for each byte ``d`` of a scalar, so a multiple is a sum of at most 32 table points.
All sums advance together, one byte at a time, and share one inversion for each step: about 0.1 ms for a point of G1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from py_ecc.optimized_bn128 import G1, G2, multiply, normalize

from ledger.attest.crypto.bn254 import G1Point, G2Point
from ledger.domain.attested import BASE_ORDER as Q
from ledger.domain.attested import SCALAR_ORDER as R

BYTES: Final = 32
Pairs = list[tuple[Any, Any]]
"""Points (affine) to be added, no two of a pair with one x."""


def multiples_g1(scalars: Sequence[int]) -> list[G1Point | None]:
    """``scalar * G1`` for each, None for infinity. Raises ValueError where a sum meets its own x, by chance 2^-240."""
    return _multiples(scalars, _generator_rows(G1, lambda point: tuple(map(int, normalize(point)))), _add_g1)


def multiples_g2(scalars: Sequence[int]) -> list[G2Point | None]:
    """The same with the generator of G2."""
    return _multiples(scalars, _generator_rows(G2, _affine_g2), _add_g2)


def _affine_g2(point: Any) -> Any:
    return tuple(tuple(int(each) for each in coordinate.coeffs) for coordinate in normalize(point))


def _generator_rows(generator: Any, affine: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    """``2^(8 i) * G`` and its double for each byte ``i``."""
    bases = [multiply(generator, 1 << (8 * i)) for i in range(BYTES)]
    return [(affine(base), affine(multiply(base, 2))) for base in bases]


def _multiples(scalars: Sequence[int], rows: list[tuple[Any, Any]], add: Callable[[Pairs], list[Any]]) -> list[Any]:
    bases = [base for base, _ in rows]
    table = [[None] * BYTES, bases, [double for _, double in rows]]
    for _ in range(3, 256):
        table.append(add(list(zip(table[-1], bases, strict=True))))
    digits = [(scalar % R).to_bytes(BYTES, "little") for scalar in scalars]
    sums: list[Any] = [None] * len(digits)
    for i in range(BYTES):
        column = [table[each[i]][i] for each in digits]
        both = [at for at, point in enumerate(column) if point is not None and sums[at] is not None]
        added = add([(sums[at], column[at]) for at in both])
        sums = [column[at] if held is None else held for at, held in enumerate(sums)]
        for at, point in zip(both, added, strict=True):
            sums[at] = point
    return sums


def _add_g1(pairs: Pairs) -> list[G1Point]:
    inverses = inverted([b[0] - a[0] for a, b in pairs], Q)
    sums = []
    for ((x, y), (u, v)), inverse in zip(pairs, inverses, strict=True):
        slope = (v - y) * inverse % Q
        third = (slope * slope - x - u) % Q
        sums.append((third, (slope * (x - third) - y) % Q))
    return sums


def _add_g2(pairs: Pairs) -> list[G2Point]:
    runs = [((b[0][0] - a[0][0]) % Q, (b[0][1] - a[0][1]) % Q) for a, b in pairs]
    # 1 / (r + s i) is (r - s i) / (r^2 + s^2).
    inverses = inverted([r * r + s * s for r, s in runs], Q)
    sums = []
    for ((x, y), (u, v)), (r, s), inverse in zip(pairs, runs, inverses, strict=True):
        rise, climb = v[0] - y[0], v[1] - y[1]
        m = (rise * r + climb * s) * inverse % Q
        n = (climb * r - rise * s) * inverse % Q
        third = (((m + n) * (m - n) - x[0] - u[0]) % Q, (2 * m * n - x[1] - u[1]) % Q)
        back, side = x[0] - third[0], x[1] - third[1]
        sums.append((third, ((m * back - n * side - y[0]) % Q, (m * side + n * back - y[1]) % Q)))
    return sums


def inverted(values: Sequence[int], modulus: int) -> list[int]:
    """The inverse of each, for the price of one and three products a value. Raises ValueError if one has none."""
    products, product = [], 1
    for value in values:
        products.append(product)
        product = product * value % modulus
    rest = pow(product, -1, modulus)
    inverses = [0] * len(values)
    for at in range(len(values) - 1, -1, -1):
        inverses[at] = rest * products[at] % modulus
        rest = rest * values[at] % modulus
    return inverses
