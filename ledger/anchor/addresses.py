"""Addresses on an EVM chain that follow from others, worked out without the libraries that talk to one."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ec import SECP256K1, derive_private_key
from eth_typing import ChecksumAddress
from eth_utils import keccak, to_canonical_address, to_checksum_address


def account_address(secret: bytes) -> ChecksumAddress:
    """Of a key of secp256k1: keccak256(x | y)[12:] of its public point. Raises ``ValueError`` for none."""
    point = derive_private_key(int.from_bytes(secret, "big"), SECP256K1()).public_key().public_numbers()
    return to_checksum_address(keccak(point.x.to_bytes(32, "big") + point.y.to_bytes(32, "big"))[12:])


def registry_address(deployer: str) -> ChecksumAddress:
    """Where a deployer's first transaction puts the registry: keccak256(rlp([deployer, 0]))[12:]."""
    return to_checksum_address(keccak(b"\xd6\x94" + to_canonical_address(deployer) + b"\x80")[12:])
