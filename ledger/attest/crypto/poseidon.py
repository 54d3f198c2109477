"""Poseidon over BN254 as circomlib computes it, and the sponge and tags of docs/attestation-format.md."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from operator import mul
from typing import Final

from ledger.attest.crypto.field import require_element
from ledger.attest.crypto.poseidon_parameters import multiply, parameters
from ledger.domain.attested import SCALAR_ORDER
from ledger.errors import AttestationValueInvalid

MAX_ARITY: Final = 16
SPONGE_RATE: Final = 15


def poseidon(inputs: Sequence[int]) -> int:
    """Poseidon of 1 to 16 canonical field elements; a month of windows needs about 66 of arity 16.

    Raises AttestationValueInvalid on another arity or a value outside [0, r): nothing is reduced,
    because two texts of one element must not share a hash.
    """
    if not 1 <= len(inputs) <= MAX_ARITY:
        raise AttestationValueInvalid(
            f"Poseidon takes 1 to {MAX_ARITY} inputs, not {len(inputs)}", field="inputs", arity=len(inputs)
        )
    for index, value in enumerate(inputs):
        require_element(value, f"Poseidon input {index}")
    rounds = parameters(len(inputs))
    state: tuple[int, ...] = (0, *inputs)
    for constants in rounds.opening[:-1]:
        state = multiply(rounds.mix, _full_sbox(state, constants))
    state = multiply(rounds.bridge, _full_sbox(state, rounds.opening[-1]))

    first, rest = state[0], state[1:]
    for sparse in rounds.partial:
        first = pow(first + sparse.constant, 5, SCALAR_ORDER)
        mixed = first * sparse.row[0] + sum(map(mul, sparse.row[1:], rest))
        rest = tuple([(r + first * c) % SCALAR_ORDER for r, c in zip(rest, sparse.column, strict=True)])
        first = mixed % SCALAR_ORDER

    state = (first, *rest)
    for constants in rounds.closing:
        state = multiply(rounds.mix, _full_sbox(state, constants))
    return state[0]


def _full_sbox(state: Sequence[int], constants: Sequence[int]) -> list[int]:
    return [pow(s + c, 5, SCALAR_ORDER) for s, c in zip(state, constants, strict=True)]


def sponge(domain: int, values: Sequence[int]) -> int:
    """H(domain; values): s := domain; per 15 values, zero-padded: s := Poseidon16(s, values).

    The caller fixes the number of values per domain; that is what makes the padding unambiguous.
    Raises AttestationValueInvalid on no values or a value outside [0, r).
    """
    if not values:
        raise AttestationValueInvalid("the sponge needs at least one value", field="values")
    state = domain
    for start in range(0, len(values), SPONGE_RATE):
        chunk = [*values[start : start + SPONGE_RATE]]
        state = poseidon([state, *chunk, *[0] * (SPONGE_RATE - len(chunk))])
    return state


@functools.cache
def tag(name: str) -> int:
    """TAG(name): the first 31 bytes of sha256("sla-ledger/v1/" + name), a field element by its size."""
    return int.from_bytes(hashlib.sha256(f"sla-ledger/v1/{name}".encode()).digest()[:31], "big")
