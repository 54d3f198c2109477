"""keccak256 and the part of the Solidity ABI that attestations use: static 32-byte words.

Keccak here is the one Ethereum uses (the padding before FIPS 202), so hashlib has no substitute.
"""

from __future__ import annotations

from Crypto.Hash import keccak

from ledger.attest.crypto.field import require_bytes, require_uint
from ledger.errors import AttestationValueInvalid


def keccak256(data: bytes) -> bytes:
    """keccak256, 32 bytes."""
    return keccak.new(digest_bits=256, data=data).digest()


def keccak_text(text: str) -> bytes:
    """keccak256 of an ASCII text: the domain constants of the formats."""
    return keccak256(text.encode("ascii"))


def uint_word(value: int, bits: int, name: str) -> bytes:
    """abi.encode of a ``uint<bits>``. Raises AttestationValueInvalid if it does not fit."""
    return require_uint(value, bits, name).to_bytes(32, "big")


def bytes32_word(value: bytes, name: str) -> bytes:
    """abi.encode of a ``bytes32``. Raises AttestationValueInvalid on another length."""
    return require_bytes(value, 32, name)


def address_word(address: str, name: str) -> bytes:
    """abi.encode of an ``address`` given in EIP-55 form.

    Raises AttestationValueInvalid unless it is exactly the checksummed form: one address has one text.
    """
    if type(address) is not str or not is_checksum_address(address):
        raise AttestationValueInvalid(
            f"{name} must be an address in EIP-55 form (0x and 40 hex digits with checksum case)",
            field=name,
            value=address,
        )
    return bytes(12) + bytes.fromhex(address[2:])


def is_checksum_address(address: str) -> bool:
    """Whether ``address`` is exactly in EIP-55 form."""
    if len(address) != 42 or not address.startswith("0x"):
        return False
    digits = address[2:].lower()
    if any(c not in "0123456789abcdef" for c in digits):
        return False
    return address == to_checksum_address(bytes.fromhex(digits))


def to_checksum_address(address: bytes) -> str:
    """The EIP-55 form of a 20-byte address."""
    digits = require_bytes(address, 20, "address").hex()
    pattern = keccak_text(digits).hex()
    return "0x" + "".join(
        digit.upper() if int(nibble, 16) >= 8 else digit for digit, nibble in zip(digits, pattern, strict=False)
    )
