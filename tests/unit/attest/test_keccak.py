"""keccak256 and ABI words, against published vectors and eth_abi."""

from __future__ import annotations

import pytest
from eth_abi import encode
from eth_utils import to_checksum_address as reference_checksum
from hypothesis import given
from hypothesis import strategies as st

from ledger.attest.crypto.keccak import (
    address_word,
    bytes32_word,
    is_checksum_address,
    keccak256,
    keccak_text,
    to_checksum_address,
    uint_word,
)
from ledger.errors import AttestationValueInvalid

EIP55 = (  # the examples of EIP-55
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0xde709f2102306220921060314715629080e2fb77",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
)


def test_keccak_is_the_one_before_fips_202() -> None:
    assert keccak256(b"").hex() == "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    assert keccak_text("abc").hex() == "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"


@given(
    st.integers(0, 2**64 - 1), st.integers(0, 2**256 - 1), st.binary(min_size=32, max_size=32), st.sampled_from(EIP55)
)
def test_words_are_what_eth_abi_encodes(small: int, large: int, data: bytes, address: str) -> None:
    ours = uint_word(small, 64, "a") + uint_word(large, 256, "b") + bytes32_word(data, "c")
    ours += address_word(address, "d")
    assert ours == encode(["uint64", "uint256", "bytes32", "address"], [small, large, data, address])


@given(st.binary(min_size=20, max_size=20))
def test_checksum_form_is_eth_utils(address: bytes) -> None:
    ours = to_checksum_address(address)
    assert ours == reference_checksum(address)
    assert is_checksum_address(ours)


@pytest.mark.parametrize("address", EIP55)
def test_published_addresses_are_in_checksum_form(address: str) -> None:
    assert is_checksum_address(address)


@pytest.mark.parametrize(
    "address",
    [
        EIP55[2].lower(),
        EIP55[2].upper(),
        EIP55[2][2:],
        EIP55[2] + "0",
        EIP55[2][:-1],
        "0x" + "g" * 40,
        EIP55[2].swapcase(),
        "",
    ],
)
def test_another_text_of_an_address_is_refused(address: str) -> None:
    with pytest.raises(AttestationValueInvalid, match="issuer"):
        address_word(address, "issuer")


@pytest.mark.parametrize(("value", "bits"), [(-1, 64), (2**64, 64), (2**32, 32), (True, 32), (1.0, 32)])
def test_a_number_that_does_not_fit_its_type_is_refused(value: int, bits: int) -> None:
    with pytest.raises(AttestationValueInvalid, match="size"):
        uint_word(value, bits, "size")


@pytest.mark.parametrize("data", [b"", bytes(31), bytes(33), "0" * 32])
def test_bytes32_has_32_bytes(data: bytes) -> None:
    with pytest.raises(AttestationValueInvalid, match="digest"):
        bytes32_word(data, "digest")
