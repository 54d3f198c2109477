"""Collector signatures: what is signed verifies, and nothing malformed does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.attest.crypto import babyjub
from ledger.attest.crypto.babyjub import BASE, IDENTITY, SUBGROUP_ORDER, Point, Signature
from ledger.domain.attested import SCALAR_ORDER
from ledger.errors import AttestationValueInvalid

SEED = bytes(range(32))
KEY = babyjub.public_key(SEED)
MESSAGE = 123456789
SIGNATURE = babyjub.sign(SEED, MESSAGE)

ORDER_TWO: Point = (0, SCALAR_ORDER - 1)
"""(0, -1), on the curve and of order 2."""


def added(left: Point, right: Point) -> Point:
    return babyjub._affine(babyjub._add((*left, 1), (*right, 1)))


@settings(max_examples=10, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.integers(0, SCALAR_ORDER - 1))
def test_what_is_signed_verifies_for_its_message_only(seed: bytes, message: int) -> None:
    key, signature = babyjub.public_key(seed), babyjub.sign(seed, message)
    assert babyjub.verify(key, message, signature)
    assert not babyjub.verify(key, (message + 1) % SCALAR_ORDER, signature)


def test_signing_twice_gives_the_same() -> None:
    assert babyjub.sign(SEED, MESSAGE) == SIGNATURE


def test_the_base_point_has_the_subgroups_order() -> None:
    assert babyjub._multiply(SUBGROUP_ORDER, BASE) == IDENTITY
    assert babyjub.is_public_key(BASE)


SIGNATURES: dict[str, Signature] = {
    "s_plus_order": Signature(SIGNATURE.r8, SIGNATURE.s + SUBGROUP_ORDER),
    "s_negative": Signature(SIGNATURE.r8, SIGNATURE.s - SUBGROUP_ORDER),
    "s_other": Signature(SIGNATURE.r8, SIGNATURE.s ^ 1),
    "s_bool": Signature(SIGNATURE.r8, True),
    "r8_off_curve": Signature((SIGNATURE.r8[0], SIGNATURE.r8[1] ^ 1), SIGNATURE.s),
    "r8_plus_r": Signature((SIGNATURE.r8[0] + SCALAR_ORDER, SIGNATURE.r8[1]), SIGNATURE.s),
    "r8_outside_subgroup": Signature(added(SIGNATURE.r8, ORDER_TWO), SIGNATURE.s),
    "r8_no_pair": Signature((1, 2, 3), SIGNATURE.s),  # type: ignore[arg-type]
    "r8_identity": Signature(IDENTITY, SIGNATURE.s),
    "zero": Signature(IDENTITY, 0),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_another_signature_is_none(name: str) -> None:
    assert not babyjub.verify(KEY, MESSAGE, SIGNATURES[name])


KEYS: dict[str, Point] = {
    "another": babyjub.public_key(bytes(32)),
    "identity": IDENTITY,
    "order_two": ORDER_TWO,
    "outside_subgroup": added(KEY, ORDER_TWO),
    "off_curve": (KEY[0], KEY[1] ^ 1),
    "plus_r": (KEY[0] + SCALAR_ORDER, KEY[1]),
    "negated": (SCALAR_ORDER - KEY[0], KEY[1]),
}


@pytest.mark.parametrize("name", KEYS)
def test_another_key_does_not_verify(name: str) -> None:
    assert not babyjub.verify(KEYS[name], MESSAGE, SIGNATURE)


@pytest.mark.parametrize("name", sorted(set(KEYS) - {"another", "negated"}))
def test_what_is_no_key_is_refused_by_name(name: str) -> None:
    with pytest.raises(AttestationValueInvalid, match="collector"):
        babyjub.require_public_key(KEYS[name], "collector")


def test_an_identity_key_would_accept_any_message_so_it_is_refused() -> None:
    """With A = identity the equation is S * B8 == R8, whatever the message."""
    nonce = 5
    forged = Signature(babyjub._multiply(nonce, BASE), nonce)
    assert not babyjub.verify(IDENTITY, MESSAGE, forged)


@pytest.mark.parametrize("message", [-1, SCALAR_ORDER, True, MESSAGE + SCALAR_ORDER])
def test_a_message_is_a_canonical_element(message: int) -> None:
    assert not babyjub.verify(KEY, message, SIGNATURE)
    with pytest.raises(AttestationValueInvalid):
        babyjub.sign(SEED, message)


@pytest.mark.parametrize("seed", [b"", bytes(31), bytes(33)])
def test_a_seed_has_32_bytes(seed: bytes) -> None:
    with pytest.raises(AttestationValueInvalid, match="seed"):
        babyjub.public_key(seed)
