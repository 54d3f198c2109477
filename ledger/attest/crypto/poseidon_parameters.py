"""Poseidon parameters over BN254, worked out from their definition instead of copied as data.

Source: Grassi et al., "Poseidon: A New Hash Function for Zero-Knowledge Proof Systems", appendix E
(Grain LFSR) and appendix B (equivalent sparse rounds), with the instance circomlib uses: x^5,
8 full rounds, the partial rounds below, width t = arity + 1, Cauchy MDS matrix.

Deriving one width takes about 0.1 s and happens when that width is first used.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Final

from ledger.domain.attested import SCALAR_ORDER

FULL_ROUNDS: Final = 8
PARTIAL_ROUNDS: Final = (56, 57, 56, 60, 60, 63, 64, 63, 60, 66, 60, 65, 70, 60, 64, 68)
"""Partial rounds for arity 1..16."""

_ELEMENT_BITS: Final = 254
_GRAIN_STEP: Final = 18  # the highest tap is 62 of 80, so 18 new bits never depend on each other

Vector = tuple[int, ...]
Matrix = tuple[Vector, ...]


@dataclass(frozen=True, slots=True)
class SparseRound:
    """A partial round: add ``constant`` to the first element, raise it to x^5, then multiply by the
    matrix whose first row is ``row``, whose first column is ``row[0], *column``, else the identity."""

    constant: int
    row: Vector
    column: Vector


@dataclass(frozen=True, slots=True)
class Parameters:
    """One width in sparse form. ``opening`` and ``closing`` are the constants of the four full rounds
    on each side; ``mix`` is the MDS matrix; ``bridge`` replaces it in the last opening round."""

    opening: Matrix
    closing: Matrix
    mix: Matrix
    bridge: Matrix
    partial: tuple[SparseRound, ...]


@functools.cache
def parameters(arity: int) -> Parameters:
    """Parameters for ``arity`` inputs, 1..16."""
    width = arity + 1
    constants, mix = round_constants_and_matrix(width, PARTIAL_ROUNDS[arity - 1])
    half = FULL_ROUNDS // 2
    scalars, carried = _first_element_constants(constants[half:-half], mix)
    rows_and_columns, bridge = _sparse_factors(mix, len(scalars))
    closing = list(constants[-half:])
    closing[0] = tuple((a + b) % SCALAR_ORDER for a, b in zip(closing[0], carried, strict=True))
    return Parameters(
        opening=tuple(constants[:half]),
        closing=tuple(closing),
        mix=mix,
        bridge=bridge,
        partial=tuple(
            SparseRound(scalar, row, column) for scalar, (row, column) in zip(scalars, rows_and_columns, strict=True)
        ),
    )


def round_constants_and_matrix(width: int, partial_rounds: int) -> tuple[tuple[Vector, ...], Matrix]:
    """The dense definition: a constant vector per round, and the MDS matrix."""
    numbers = _grain_numbers(width, partial_rounds)
    rounds = FULL_ROUNDS + partial_rounds
    accepted = (n for n in numbers if n < SCALAR_ORDER)
    constants = tuple(tuple(next(accepted) for _ in range(width)) for _ in range(rounds))
    while True:
        seeds = [next(numbers) % SCALAR_ORDER for _ in range(2 * width)]
        if len(set(seeds)) == len(seeds):
            break
    xs, ys = seeds[:width], seeds[width:]
    return constants, tuple(tuple(pow(x + y, -1, SCALAR_ORDER) for y in ys) for x in xs)


def _grain_numbers(width: int, partial_rounds: int) -> Iterator[int]:
    """254-bit numbers of the self-shrinking Grain LFSR, most significant bit first."""
    header = f"{1:02b}{0:04b}{_ELEMENT_BITS:012b}{width:012b}{FULL_ROUNDS:010b}{partial_rounds:010b}" + "1" * 30
    state = int(header[::-1], 2)  # bit 0 is the oldest
    for _ in range(160):
        state = (state >> 1) | (_feedback(state) & 1) << 79
    pool: list[str] = []
    available = 0
    mask = (1 << _GRAIN_STEP) - 1
    while True:
        fresh = _feedback(state) & mask
        state = (state >> _GRAIN_STEP) | fresh << (80 - _GRAIN_STEP)
        kept = _SHRUNK[fresh & 63] + _SHRUNK[fresh >> 6 & 63] + _SHRUNK[fresh >> 12]
        pool.append(kept)
        available += len(kept)
        if available >= _ELEMENT_BITS:
            bits = "".join(pool)
            yield int(bits[:_ELEMENT_BITS], 2)
            pool = [bits[_ELEMENT_BITS:]]
            available -= _ELEMENT_BITS


def _feedback(state: int) -> int:
    return state >> 62 ^ state >> 51 ^ state >> 38 ^ state >> 23 ^ state >> 13 ^ state


def _shrink(six_bits: int) -> str:
    """Of each pair of bits, oldest first: the second where the first is 1, nothing where it is 0."""
    pairs = (six_bits >> shift & 3 for shift in (0, 2, 4))
    return "".join(str(pair >> 1) for pair in pairs if pair & 1)


_SHRUNK: Final = tuple(_shrink(six_bits) for six_bits in range(64))


def _first_element_constants(constants: Sequence[Vector], mix: Matrix) -> tuple[list[int], Vector]:
    """Constants that reach only the first element, and what is left for the next full round.

    A partial round's S-box leaves the other elements alone, so their constants may as well be added
    after it: multiplied by the matrix, they join the constants of the round that follows.
    """
    scalars: list[int] = []
    carried: Vector = (0,) * len(mix)
    for vector in constants:
        first, *rest = (a + b for a, b in zip(vector, carried, strict=True))
        scalars.append(first % SCALAR_ORDER)
        carried = multiply(mix, (0, *rest))
    return scalars, carried


def _sparse_factors(mix: Matrix, rounds: int) -> tuple[list[tuple[Vector, Vector]], Matrix]:
    """Rows and columns of the sparse matrices, in round order, and the bridge matrix.

    M = [[a, v], [w, X]] is S * D with D = [[1, 0], [0, X]] and S = [[a, v X^-1], [w, I]]. D does not
    touch the first element, so it commutes with the S-box and moves into the round before.
    """
    factors: list[tuple[Vector, Vector]] = []
    dense = mix
    for _ in range(rounds):
        lower = tuple(row[1:] for row in dense[1:])
        row = (dense[0][0], *_solve_left(lower, dense[0][1:]))
        factors.append((row, tuple(line[0] for line in dense[1:])))
        columns = tuple(zip(*mix[1:], strict=True))
        below = tuple(tuple(_dot(line, column) for column in columns) for line in lower)
        dense = (mix[0], *below)
    factors.reverse()
    return factors, dense


def _solve_left(matrix: Matrix, target: Vector) -> Vector:
    """x with x * matrix = target, by Gaussian elimination on the transpose."""
    rows = [[*column, goal] for column, goal in zip(zip(*matrix, strict=True), target, strict=True)]
    size = len(rows)
    for pivot in range(size):
        swap = next(i for i in range(pivot, size) if rows[i][pivot])
        rows[pivot], rows[swap] = rows[swap], rows[pivot]
        inverse = pow(rows[pivot][pivot], -1, SCALAR_ORDER)
        head = rows[pivot] = [value * inverse % SCALAR_ORDER for value in rows[pivot]]
        for below in range(pivot + 1, size):
            factor = rows[below][pivot]
            rows[below] = [(a - factor * b) % SCALAR_ORDER for a, b in zip(rows[below], head, strict=True)]
    solution = [0] * size
    for i in reversed(range(size)):
        known = sum(map(mul, rows[i][i + 1 : size], solution[i + 1 :]))
        solution[i] = (rows[i][size] - known) % SCALAR_ORDER
    return tuple(solution)


def _dot(left: Sequence[int], right: Sequence[int]) -> int:
    total: int = sum(map(mul, left, right))
    return total % SCALAR_ORDER


def multiply(matrix: Matrix, vector: Sequence[int]) -> Vector:
    """matrix * vector modulo r."""
    return tuple(_dot(row, vector) for row in matrix)
