"""The bytes of somebody else's transaction come out of the fields that a node names, whatever was signed."""

from __future__ import annotations

from typing import Any

from eth_account import Account
from eth_utils import to_checksum_address
from hexbytes import HexBytes
from hypothesis import given
from hypothesis import strategies as st

from ledger.anchor.foreign import signed_bytes
from ledger.attest.crypto.evm_tx import decode_transaction

ADDRESSES = st.binary(min_size=20, max_size=20).map(to_checksum_address)
WORDS = st.binary(min_size=32, max_size=32)
ENTRIES = st.fixed_dictionaries(
    {"address": ADDRESSES, "storageKeys": st.lists(WORDS.map(lambda word: "0x" + word.hex()), max_size=2)}
)
WEI = st.integers(0, 2**96)
OTHER = Account.from_key(b"\x23" * 32)


@st.composite
def unsigned(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from([0, 1, 2, 4]))
    fields: dict[str, Any] = {
        "chainId": draw(st.integers(1, 2**53)),
        "nonce": draw(st.integers(0, 2**32)),
        "gas": draw(st.integers(21_000, 2**40)),
        "value": draw(WEI),
        "data": draw(st.binary(max_size=100)),
    }
    fees = ("gasPrice",) if kind < 2 else ("maxPriorityFeePerGas", "maxFeePerGas")
    fields |= {name: draw(WEI) for name in fees}
    if kind:
        fields |= {"type": kind, "accessList": draw(st.lists(ENTRIES, max_size=2))}
    if kind == 4:
        grant = {"chainId": fields["chainId"], "address": draw(ADDRESSES), "nonce": draw(st.integers(0, 9))}
        fields["authorizationList"] = [OTHER.sign_authorization(grant)]
    to = draw(ADDRESSES if kind == 4 else st.none() | ADDRESSES)
    return fields if to is None else {**fields, "to": to}


@given(unsigned(), st.binary(min_size=31, max_size=31))
def test_fields_as_a_node_names_them_are_the_bytes_that_were_signed(fields: dict[str, Any], key: bytes) -> None:
    signed = Account.from_key(b"\x01" + key).sign_transaction(fields)
    raw = bytes(signed.raw_transaction)
    grants = [
        {"chainId": hex(each.chain_id), "address": "0x" + bytes(each.address).hex(), "nonce": hex(each.nonce)}
        | {"yParity": hex(each.y_parity), "r": hex(each.r), "s": hex(each.s)}
        for each in fields.get("authorizationList", [])
    ]
    answer = {
        **{name: value for name, value in fields.items() if name != "data"},
        "to": fields.get("to"),
        "input": HexBytes(fields["data"]),
        "authorizationList": grants,
        "v": signed.v,
        "r": HexBytes(signed.r),
        "s": HexBytes(signed.s),
    }
    assert signed_bytes(answer) == raw
    assert decode_transaction(raw).tx_hash == bytes(signed.hash)
