"""A customer's signature counts here exactly where the registry would take it."""

from __future__ import annotations

from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st

from ledger.app.commands import as_the_registry_takes_it
from ledger.wiring.chain_identity import recovered_signer

CUSTOMER = Account.from_key(b"\x31" * 32)
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def signed(digest: bytes) -> bytes:
    return bytes(Account.unsafe_sign_hash(digest, CUSTOMER.key).signature)


@given(st.binary(min_size=32, max_size=32))
def test_a_wallet_may_write_v_as_0_or_1(digest: bytes) -> None:
    signature = signed(digest)
    short = signature[:-1] + bytes([signature[-1] - 27])
    assert recovered_signer(digest, short) is None, "the registry would refuse it"
    assert as_the_registry_takes_it(short) == as_the_registry_takes_it(signature) == signature
    assert recovered_signer(digest, signature) == CUSTOMER.address


@given(st.binary(min_size=32, max_size=32))
def test_the_other_spelling_of_a_signature_is_nobodys(digest: bytes) -> None:
    signature = signed(digest)
    high = (ORDER - int.from_bytes(signature[32:64], "big")).to_bytes(32, "big")
    other = signature[:32] + high + bytes([55 - signature[64]])
    assert Account._recover_hash(digest, signature=other) == CUSTOMER.address
    assert recovered_signer(digest, other) is None


@given(st.binary(max_size=70))
def test_what_is_no_signature_is_nobodys_and_left_as_it_is(data: bytes) -> None:
    assert recovered_signer(bytes(32), data) != CUSTOMER.address
    if len(data) != 65:
        assert recovered_signer(bytes(32), data) is None
        assert as_the_registry_takes_it(data) == data
    assert as_the_registry_takes_it(None) is None
