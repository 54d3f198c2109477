"""Addresses that are worked out without the libraries of the chain are those that these libraries give."""

from __future__ import annotations

import pytest
from eth_account import Account
from hypothesis import example, given
from hypothesis import strategies as st

from ledger.anchor.addresses import account_address
from ledger.wiring.chain_identity import SECP256K1_ORDER


@given(st.integers(1, SECP256K1_ORDER - 1))
@example(1)
@example(SECP256K1_ORDER - 1)
def test_an_account_has_the_address_of_its_key(secret: int) -> None:
    key = secret.to_bytes(32, "big")
    assert account_address(key) == Account.from_key(key).address


@pytest.mark.parametrize("secret", [0, SECP256K1_ORDER, 2**256 - 1])
def test_what_is_no_key_has_none(secret: int) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # in the words of the library
        account_address(secret.to_bytes(32, "big"))
