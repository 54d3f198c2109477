"""Words, blocks and roots of sealed telemetry."""

from __future__ import annotations

from hashlib import sha256

import pytest
from eth_abi import encode
from hypothesis import given
from hypothesis import strategies as st

from ledger.attest.commitments.telemetry import WindowCounts, block_hash, block_hashes, seal_key, telemetry_root
from ledger.attest.crypto.keccak import keccak256, keccak_text
from ledger.attest.crypto.poseidon import poseidon, tag
from ledger.domain.attested import SCALAR_ORDER
from ledger.errors import AttestationValueInvalid

HIGHEST = 2**28 - 1
SLA, DOC = sha256(b"sla").digest(), sha256(b"doc").digest()
counts = st.lists(st.tuples(st.integers(0, HIGHEST), st.integers(0, HIGHEST)), max_size=4)


def window(pairs: list[tuple[int, int]], observed: bool = True, excluded: bool = False) -> WindowCounts:
    return WindowCounts(tuple(g for g, _ in pairs), tuple(b for _, b in pairs), observed, excluded)


def test_word_has_every_count_and_bit_in_its_place() -> None:
    word = WindowCounts((1, 2, 3, 4), (5, 6, 7, 8), observed=True, excluded=False).word()
    bits = [(1, 0), (5, 28), (2, 56), (6, 84), (3, 112), (7, 140), (4, 168), (8, 196), (1, 224)]
    assert word == sum(value << shift for value, shift in bits)
    assert WindowCounts(observed=False, excluded=True).word() == 1 << 225
    assert WindowCounts(observed=False).word() == 0


@given(counts, st.booleans(), st.booleans())
def test_a_word_can_be_read_back(pairs: list[tuple[int, int]], observed: bool, excluded: bool) -> None:
    one = window(pairs, observed, excluded)
    word = one.word()
    assert word < SCALAR_ORDER
    assert tuple((word >> 56 * m & HIGHEST, word >> 56 * m + 28 & HIGHEST) for m in range(4)) == one.pairs()
    assert (word >> 224 & 1, word >> 225) == (observed, excluded)


@pytest.mark.parametrize(
    ("good", "bad"),
    [((HIGHEST + 1,), (0,)), ((0,), (-1,)), ((True,), (0,)), ((1,), ()), ((0,) * 5, (0,) * 5)],
)
def test_counts_outside_28_bits_or_four_objectives_are_refused(good: tuple[int, ...], bad: tuple[int, ...]) -> None:
    with pytest.raises(AttestationValueInvalid):
        WindowCounts(good, bad)


def test_seal_key_is_248_bits_of_its_abi_encoding() -> None:
    types = ["bytes32", "bytes32", "bytes32", "uint64", "uint64", "uint32"]
    encoded = encode(types, [keccak_text("sla-ledger/seal/v1"), SLA, DOC, 10, 20, 3600])
    assert seal_key(SLA, DOC, 10, 20, 3600) == int.from_bytes(keccak256(encoded)[:31], "big")


@pytest.mark.parametrize(
    "arguments",
    [(SLA, DOC, 20, 20, 1), (SLA, DOC, 0, 2**64, 1), (SLA, DOC, 0, 1, 2**32), (SLA[:31], DOC, 0, 1, 1)],
)
def test_a_seal_outside_its_types_is_refused(arguments: tuple[bytes, bytes, int, int, int]) -> None:
    with pytest.raises(AttestationValueInvalid):
        seal_key(*arguments)


def test_block_is_key_index_25_words_salt() -> None:
    words = list(range(100, 125))
    first = poseidon([tag("block"), 9, 3, *words[:13]])
    assert block_hash(9, 3, words, 77) == poseidon([first, *words[13:], 77, 0, 0])


def test_a_short_block_is_filled_with_zero_words() -> None:
    assert block_hash(9, 0, [5], 77) == block_hash(9, 0, [5, *[0] * 24], 77)


def test_root_names_the_number_of_windows_so_trailing_empty_ones_count() -> None:
    hashes = block_hashes(9, [window([(5, 0)])], [77])
    assert hashes == block_hashes(9, [window([(5, 0)]), WindowCounts(observed=False)], [77])
    assert telemetry_root(9, 1, hashes) != telemetry_root(9, 2, hashes)
    assert telemetry_root(9, 1, hashes) == poseidon([tag("telemetry"), 9, 1, hashes[0], *[0] * 12])


def test_windows_fill_one_block_after_the_other() -> None:
    windows = [window([(n, 0)]) for n in range(30)]
    words = [one.word() for one in windows]
    expected = (block_hash(9, 0, words[:25], 1), block_hash(9, 1, words[25:], 2), block_hash(9, 2, [], 3))
    assert block_hashes(9, windows, [1, 2, 3]) == expected


def test_more_than_fits_is_refused() -> None:
    with pytest.raises(AttestationValueInvalid):
        block_hash(9, 0, [0] * 26, 1)
    with pytest.raises(AttestationValueInvalid):
        block_hashes(9, [WindowCounts()] * 26, [1])
    for count in (0, 26):
        with pytest.raises(AttestationValueInvalid):
            telemetry_root(9, count, [1])


@pytest.mark.parametrize("salt", [-1, SCALAR_ORDER])
def test_a_salt_is_a_canonical_element(salt: int) -> None:
    with pytest.raises(AttestationValueInvalid):
        block_hash(9, 0, [], salt)
