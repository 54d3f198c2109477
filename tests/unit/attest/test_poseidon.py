"""Poseidon's refusals, its sparse form against the plain definition, and the sponge."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.attest.crypto.poseidon import poseidon, sponge, tag
from ledger.attest.crypto.poseidon_parameters import (
    FULL_ROUNDS,
    PARTIAL_ROUNDS,
    multiply,
    round_constants_and_matrix,
)
from ledger.domain.attested import SCALAR_ORDER
from ledger.errors import AttestationValueInvalid

elements = st.integers(0, SCALAR_ORDER - 1)


def plain_poseidon(inputs: list[int]) -> int:
    """The permutation as the paper writes it: dense matrix, all constants, every round."""
    partial = PARTIAL_ROUNDS[len(inputs) - 1]
    constants, mix = round_constants_and_matrix(len(inputs) + 1, partial)
    state: tuple[int, ...] = (0, *inputs)
    for number, vector in enumerate(constants):
        added = [s + c for s, c in zip(state, vector, strict=True)]
        full = not FULL_ROUNDS // 2 <= number < FULL_ROUNDS // 2 + partial
        boxed = [pow(s, 5, SCALAR_ORDER) if full or i == 0 else s for i, s in enumerate(added)]
        state = multiply(mix, boxed)
    return state[0]


@settings(max_examples=15, deadline=None)
@given(st.lists(elements, min_size=1, max_size=6))
def test_sparse_rounds_compute_the_plain_definition(inputs: list[int]) -> None:
    assert poseidon(inputs) == plain_poseidon(inputs)


@pytest.mark.parametrize("arity", [0, 17])
def test_another_arity_is_refused(arity: int) -> None:
    with pytest.raises(AttestationValueInvalid, match="1 to 16"):
        poseidon([1] * arity)


@pytest.mark.parametrize("value", [-1, SCALAR_ORDER, SCALAR_ORDER + 1, True, 1.0, "1", None], ids=repr)
def test_what_is_no_canonical_element_is_refused_not_reduced(value: object) -> None:
    with pytest.raises(AttestationValueInvalid, match="input 1"):
        poseidon([1, value])  # type: ignore[list-item]


def test_sponge_chains_blocks_of_fifteen_and_pads_with_zeros() -> None:
    values = list(range(1, 19))
    first = poseidon([tag("terms"), *values[:15]])
    assert sponge(tag("terms"), values) == poseidon([first, 16, 17, 18, *[0] * 12])


def test_sponge_separates_uses_by_tag() -> None:
    assert sponge(tag("block"), [1]) != sponge(tag("telemetry"), [1])


def test_sponge_of_nothing_is_refused() -> None:
    with pytest.raises(AttestationValueInvalid):
        sponge(tag("block"), [])


@pytest.mark.parametrize("position", [0, 15, 27])
def test_sponge_refuses_what_poseidon_refuses(position: int) -> None:
    values = [0] * 28
    values[position] = SCALAR_ORDER
    with pytest.raises(AttestationValueInvalid):
        sponge(tag("block"), values)
