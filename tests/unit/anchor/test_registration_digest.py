"""The digest the customer signs, against eth-account's own EIP-712 encoder."""

from __future__ import annotations

import json

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_utils import keccak
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.anchor.registration import (
    abi_value,
    registration_digest,
    registration_typed_data,
    sign_registration,
    sla_id,
)
from ledger.app.ports.evidence import Registration

addresses = st.integers(1, 2**200).map(lambda n: Account.from_key(keccak(n.to_bytes(32, "big"))).address)
bytes32 = st.binary(min_size=32, max_size=32)
u32, u64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
registrations = st.builds(
    Registration,
    issuer=addresses,
    customer=addresses,
    nonce=bytes32,
    terms_hash=st.integers(0, 2**256 - 1),
    terms_version=u32,
    effective_from_ns=u64,
    first_start_ns=u64,
    window_seconds=u32,
    circuit_ids=st.lists(bytes32, max_size=4).map(tuple),
)

FIELDS = {
    "issuer": "address",
    "customer": "address",
    "nonce": "bytes32",
    "termsHash": "uint256",
    "termsVersion": "uint32",
    "effectiveFrom": "uint64",
    "firstStart": "uint64",
    "windowSeconds": "uint32",
    "circuitIds": "bytes32[]",
}


@settings(max_examples=25, deadline=None)
@given(registration=registrations, chain_id=u64, registry=addresses)
def test_the_digest_is_that_of_eip_712(registration: Registration, chain_id: int, registry: str) -> None:
    message = encode_typed_data(
        domain_data={
            "name": "SlaAnchor",
            "version": "1",
            "chainId": chain_id,
            "verifyingContract": registry,
        },
        message_types={"Registration": [{"name": n, "type": t} for n, t in FIELDS.items()]},
        message_data=dict(zip(FIELDS, abi_value(registration), strict=True)),
    )
    expected = keccak(b"\x19" + message.version + message.header + message.body)
    assert registration_digest(registration, chain_id, registry) == expected


def test_the_signature_recovers_to_the_customer() -> None:
    customer = Account.from_key(b"\x05" * 32)
    terms = Registration(customer.address, customer.address, bytes(32), 1, 1, 0, 0, 3600, ())
    signature = sign_registration(terms, 1, customer.address, customer)
    digest = registration_digest(terms, 1, customer.address)
    assert len(signature) == 65
    assert Account._recover_hash(digest, signature=signature) == customer.address


def test_the_order_of_the_parties_matters() -> None:
    a, b = (Account.from_key(bytes([i]) * 32).address for i in (1, 2))
    assert sla_id(a, b, bytes(32)) != sla_id(b, a, bytes(32))
    with pytest.raises(ValueError, match="32 bytes"):
        sla_id(a, b, bytes(31))


@settings(max_examples=25, deadline=None)
@given(terms=registrations, chain_id=st.integers(1, 2**63), registry=addresses)
def test_a_wallet_signs_the_same_by_the_typed_document(terms: Registration, chain_id: int, registry: str) -> None:
    """``eth_account`` reads the document as wallets do, after it went through JSON."""
    document = json.loads(json.dumps(registration_typed_data(terms, chain_id, registry)))
    signable = encode_typed_data(full_message=document)
    said = keccak(b"\x19" + signable.version + signable.header + signable.body)
    assert said == registration_digest(terms, chain_id, registry)
