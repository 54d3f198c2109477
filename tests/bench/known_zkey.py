"""A zkey whose secrets are known, written straight from a circuit's constraints: for measuring, worth nothing else.

A ceremony hides tau, alpha, beta, gamma and delta, and pays for it with powers of tau that take an hour to prepare.
A key that only has to be as dear to prove with as any other needs no ceremony: with the secrets at hand each of its
points is one known multiple of a generator. Whoever has the secrets can forge proofs, so they are drawn here and
forgotten, and the file names no contribution.

Source: Groth16 (eprint 2016/260, 3.2) and the file as snarkjs 0.7.6 writes and reads it ("zkey" version 1).
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from ledger.domain.attested import BASE_ORDER as Q
from ledger.domain.attested import SCALAR_ORDER as R
from tests.bench.fixed_base import inverted, multiples_g1, multiples_g2
from tests.circuits.compiled import Constraints

_TWO_ADICITY: Final = 28
_ROOT: Final = pow(5, (R - 1) >> _TWO_ADICITY, R)
"""Of unity, of order 2^28: 5 is the least number that is no square."""
_MONTGOMERY: Final = 1 << 256
_SIZE: Final = 32


@dataclass(frozen=True, slots=True)
class Secrets:
    """What a setup draws and nobody may keep."""

    tau: int
    alpha: int
    beta: int
    gamma: int
    delta: int

    @classmethod
    def drawn(cls) -> Secrets:
        return cls(*(2 + secrets.randbelow(R - 2) for _ in fields(cls)))


@dataclass(frozen=True, slots=True)
class _Scalars:
    """The key, each point as the multiple of its generator; ``coefficients`` are (side, constraint, wire, value)."""

    a: list[int]
    b: list[int]
    ic: list[int]
    c: list[int]
    h: list[int]
    coefficients: list[tuple[int, int, int, int]]


def write_zkey(path: Path, constraints: Constraints, known: Secrets) -> None:
    """Write the key of a circuit with ``known`` secrets. Raises ValueError for a circuit beyond the field."""
    scalars = _scalars(constraints, known)
    rows = (known.alpha, known.beta, known.delta)
    a, b, c, h, ic = (scalars.a, scalars.b, scalars.c, scalars.h, scalars.ic)
    in_g1 = iter(multiples_g1([*rows, *ic, *a, *b, *c, *h]))
    in_g2 = iter(multiples_g2([known.beta, known.gamma, known.delta, *b]))
    alpha_1, beta_1, delta_1 = (_g1(next(in_g1)) for _ in rows)
    beta_2, gamma_2, delta_2 = (_g2(next(in_g2)) for _ in range(3))
    sizes = struct.pack("<III", constraints.wires, constraints.public, len(h))
    field = struct.pack("<I", _SIZE)
    curve = field + Q.to_bytes(_SIZE, "little") + field + R.to_bytes(_SIZE, "little")
    sections = {
        1: struct.pack("<I", 1),
        2: curve + sizes + alpha_1 + beta_1 + beta_2 + gamma_2 + delta_1 + delta_2,
        3: _points(in_g1, len(ic), _g1),
        4: struct.pack("<I", len(scalars.coefficients)) + b"".join(map(_coefficient, scalars.coefficients)),
        5: _points(in_g1, len(a), _g1),
        6: _points(in_g1, len(b), _g1),
        7: _points(in_g2, len(b), _g2),
        8: _points(in_g1, len(c), _g1),
        9: _points(in_g1, len(h), _g1),
        # The hash of a circuit's first key, which only a ceremony is checked by, and no contribution.
        10: bytes(64) + struct.pack("<I", 0),
    }
    with path.open("wb") as file:
        file.write(struct.pack("<4sII", b"zkey", 1, len(sections)))
        for number, data in sections.items():
            file.write(struct.pack("<IQ", number, len(data)) + data)


def _scalars(constraints: Constraints, known: Secrets) -> _Scalars:
    count = len(constraints.triples) + constraints.public + 1
    power = (count - 1).bit_length()
    if power >= _TWO_ADICITY:
        raise ValueError(f"{count} constraints are more than the field has roots of unity for")
    at_tau = lagrange_at(known.tau, power)
    sides: list[list[int]] = [[0] * constraints.wires for _ in range(3)]
    coefficients = []
    for place, triple in enumerate(_with_public_rows(constraints)):
        for side, terms in enumerate(triple):
            for wire, value in terms:
                sides[side][wire] += value * at_tau[place]
                if side < 2:
                    coefficients.append((side, place, wire, value))
    a, b, c = ([value % R for value in side] for side in sides)
    mixed = [(known.beta * x + known.alpha * y + z) % R for x, y, z in zip(a, b, c, strict=True)]
    over_gamma, over_delta = pow(known.gamma, -1, R), pow(known.delta, -1, R)
    public = constraints.public + 1
    # snarkjs has the quotient by its values at the odd roots of twice the order, where the vanishing polynomial is
    # constant; so these points hold the vanishing polynomial, too.
    odd = lagrange_at(known.tau, power + 1)[1::2]
    return _Scalars(
        a,
        b,
        ic=[value * over_gamma % R for value in mixed[:public]],
        c=[value * over_delta % R for value in mixed[public:]],
        h=[value * over_delta % R for value in odd],
        coefficients=coefficients,
    )


def _with_public_rows(constraints: Constraints) -> Iterable[tuple[Any, Any, Any]]:
    """The constraints and one more for each public wire, without which a proof would bind no public signal."""
    yield from constraints.triples
    for wire in range(constraints.public + 1):
        yield ((wire, 1),), (), ()


def lagrange_at(point: int, power: int) -> list[int]:
    """Each Lagrange polynomial over the roots of unity of order 2^power, at ``point``, which is no such root."""
    order = 1 << power
    step = pow(_ROOT, 1 << (_TWO_ADICITY - power), R)
    roots = [1]
    for _ in range(order - 1):
        roots.append(roots[-1] * step % R)
    vanishing = (pow(point, order, R) - 1) * pow(order, -1, R) % R
    below = inverted([point - root for root in roots], R)
    return [root * vanishing % R * each % R for root, each in zip(roots, below, strict=True)]


def _points(source: Any, count: int, encode: Any) -> bytes:
    return b"".join(encode(next(source)) for _ in range(count))


def _g1(point: Any) -> bytes:
    return bytes(2 * _SIZE) if point is None else b"".join(map(_coordinate, point))


def _g2(point: Any) -> bytes:
    return bytes(4 * _SIZE) if point is None else b"".join(_g1(half) for half in point)


def _coordinate(value: int) -> bytes:
    return (value * _MONTGOMERY % Q).to_bytes(_SIZE, "little")


def _coefficient(entry: tuple[int, int, int, int]) -> bytes:
    side, place, wire, value = entry
    # Montgomery form twice over: the prover's product with a plain witness is in Montgomery form once.
    return struct.pack("<III", side, place, wire) + (value * _MONTGOMERY * _MONTGOMERY % R).to_bytes(_SIZE, "little")
