"""A registration as the contract takes it, and the EIP-712 digest of it that the customer signs.

The digest is that of ``SlaAnchor.registrationDigest``; it is worked out here too so that a customer can
see what is signed without asking the chain (EIP-712, domain name "SlaAnchor", version "1").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils import keccak, to_canonical_address

from ledger.app.ports.evidence import Registration

_DOMAIN_MEMBERS: Final = (
    ("name", "string"),
    ("version", "string"),
    ("chainId", "uint256"),
    ("verifyingContract", "address"),
)
_MEMBERS: Final = (
    ("issuer", "address"),
    ("customer", "address"),
    ("nonce", "bytes32"),
    ("termsHash", "uint256"),
    ("termsVersion", "uint32"),
    ("effectiveFrom", "uint64"),
    ("firstStart", "uint64"),
    ("windowSeconds", "uint32"),
    ("circuitIds", "bytes32[]"),
)


def _type_hash(name: str, members: Sequence[tuple[str, str]]) -> bytes:
    return keccak(text=f"{name}({','.join(f'{kind} {member}' for member, kind in members)})")


_DOMAIN_TYPE: Final = _type_hash("EIP712Domain", _DOMAIN_MEMBERS)
_TYPE: Final = _type_hash("Registration", _MEMBERS)


def abi_value(registration: Registration) -> tuple[object, ...]:
    """The fields in the order of the Solidity struct."""
    return (
        registration.issuer,
        registration.customer,
        registration.nonce,
        registration.terms_hash,
        registration.terms_version,
        registration.effective_from_ns,
        registration.first_start_ns,
        registration.window_seconds,
        list(registration.circuit_ids),
    )


def sla_id(issuer: str, customer: str, nonce: bytes) -> bytes:
    """keccak256(abi.encode(issuer, customer, nonce)), 32 bytes."""
    return keccak(_address(issuer) + _address(customer) + _bytes32(nonce))


def registration_digest(registration: Registration, chain_id: int, registry: str) -> bytes:
    """The 32 bytes that the customer signs, bound to one chain and registry."""
    domain = keccak(_DOMAIN_TYPE + keccak(text="SlaAnchor") + keccak(text="1") + _uint(chain_id) + _address(registry))
    struct = keccak(
        _TYPE
        + _address(registration.issuer)
        + _address(registration.customer)
        + _bytes32(registration.nonce)
        + _uint(registration.terms_hash)
        + _uint(registration.terms_version)
        + _uint(registration.effective_from_ns)
        + _uint(registration.first_start_ns)
        + _uint(registration.window_seconds)
        + keccak(b"".join(_bytes32(circuit_id) for circuit_id in registration.circuit_ids))
    )
    return keccak(b"\x19\x01" + domain + struct)


def registration_typed_data(registration: Registration, chain_id: int, registry: str) -> dict[str, Any]:
    """The same as the document that wallets sign (``eth_signTypedData_v4``); they work the digest out themselves.

    Large numbers are decimal strings, which wallets read alike, so that no JSON parser rounds them.
    """
    return {
        "types": {
            "EIP712Domain": [{"name": name, "type": kind} for name, kind in _DOMAIN_MEMBERS],
            "Registration": [{"name": name, "type": kind} for name, kind in _MEMBERS],
        },
        "primaryType": "Registration",
        "domain": {"name": "SlaAnchor", "version": "1", "chainId": str(chain_id), "verifyingContract": registry},
        "message": {
            "issuer": registration.issuer,
            "customer": registration.customer,
            "nonce": "0x" + registration.nonce.hex(),
            "termsHash": str(registration.terms_hash),
            "termsVersion": registration.terms_version,
            "effectiveFrom": str(registration.effective_from_ns),
            "firstStart": str(registration.first_start_ns),
            "windowSeconds": registration.window_seconds,
            "circuitIds": ["0x" + circuit_id.hex() for circuit_id in registration.circuit_ids],
        },
    }


def sign_registration(registration: Registration, chain_id: int, registry: str, customer: LocalAccount) -> bytes:
    """The customer's signature, 65 bytes r, s, v."""
    digest = registration_digest(registration, chain_id, registry)
    return bytes(Account.unsafe_sign_hash(digest, customer.key).signature)


def _address(address: str) -> bytes:
    return bytes(12) + to_canonical_address(address)


def _bytes32(value: bytes) -> bytes:
    if len(value) != 32:
        raise ValueError("a bytes32 has exactly 32 bytes")
    return value


def _uint(value: int) -> bytes:
    return value.to_bytes(32, "big")
