"""Raw transactions read offline: agreement with eth-account, and spellings that are refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import rlp
from eth_account import Account
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.anchor.abi import contract_build
from ledger.attest.crypto.evm_tx import (
    Recording,
    SignedTransaction,
    decode_transaction,
    record_calldata,
    recorded_proofs,
    require_records,
)
from ledger.attest.crypto.pair import OneProof
from ledger.domain.attested import SCALAR_ORDER
from ledger.errors import AttestationValueInvalid, SlaLedgerError, TransactionInvalid
from tests.vectors import outsider_chain

ISSUER = Account.from_key(b"\x21" * 32)
CUSTOMER = Account.from_key(b"\x22" * 32)
STRANGER = Account.from_key(b"\x23" * 32)
REGISTRY = "0xe7c559c40B297d7f039767A2c3677E20B24F1385"
CHAIN = 131277322940537
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

RECORDING = Recording(
    sla_id=b"\x01" * 32,
    start_ns=1_700_000_000_000_000_000,
    end_ns=1_700_086_400_000_000_000,
    terms_version=1,
    statement_version=2,
    prev_ctx=2**247 + 3,
    prev_signals_hash=b"\x02" * 32,
    circuit_id=b"\x03" * 32,
    signals=(0x18AA, 5, 2**247, SCALAR_ORDER - 1, 7, 0),
    proof=bytes(range(256)),
)


def signed(account: Any = ISSUER, **changes: Any) -> bytes:
    fields = {
        "type": 2,
        "chainId": CHAIN,
        "nonce": 3,
        "gas": 500_000,
        "maxFeePerGas": 3 * 10**9,
        "maxPriorityFeePerGas": 10**9,
        "to": REGISTRY,
        "value": 0,
        "data": record_calldata(RECORDING),
    }
    fields.update(changes)
    return bytes(account.sign_transaction(fields).raw_transaction)


@cache
def honest() -> bytes:
    return signed()


def refused(raw: bytes) -> str:
    with pytest.raises(TransactionInvalid) as caught:
        decode_transaction(raw)
    return caught.value.message


# --- agreement with other implementations ------------------------------------------------------

access_lists = st.lists(
    st.tuples(st.binary(min_size=20, max_size=20), st.lists(st.binary(min_size=32, max_size=32), max_size=2)),
    max_size=2,
)


@settings(max_examples=40, deadline=None)
@given(
    key=st.integers(1, ORDER - 1),
    chain_id=st.integers(1, 2**63),
    nonce=st.integers(0, 2**64 - 2),
    to=st.one_of(st.none(), st.binary(min_size=20, max_size=20)),
    value=st.integers(0, 2**96),
    data=st.one_of(st.binary(max_size=80), st.integers(50, 300).map(bytes)),
    access=access_lists,
)
def test_what_eth_account_signs_is_read_back(
    key: int,
    chain_id: int,
    nonce: int,
    to: bytes | None,
    value: int,
    data: bytes,
    access: list[tuple[bytes, list[bytes]]],
) -> None:
    account = Account.from_key(key.to_bytes(32, "big"))
    access_list = [{"address": "0x" + a.hex(), "storageKeys": ["0x" + k.hex() for k in keys]} for a, keys in access]
    fields = {
        "type": 2,
        "chainId": chain_id,
        "nonce": nonce,
        "gas": 21_000,
        "maxFeePerGas": 7,
        "maxPriorityFeePerGas": 5,
        "value": value,
        "data": data,
        "accessList": access_list,
    }
    if to is not None:
        fields["to"] = to
    signature = account.sign_transaction(fields)
    tx = decode_transaction(bytes(signature.raw_transaction))
    assert tx.tx_hash == bytes(signature.hash)
    assert tx.sender == account.address
    assert (tx.chain_id, tx.nonce, tx.value_wei, tx.data) == (chain_id, nonce, value, data)
    assert (tx.gas_limit, tx.max_fee_per_gas_wei, tx.max_priority_fee_per_gas_wei) == (21_000, 7, 5)
    assert (None if tx.to is None else bytes.fromhex(tx.to[2:])) == to


def test_calldata_is_what_web3_encodes() -> None:
    from web3 import Web3

    contract = Web3().eth.contract(abi=contract_build("SlaAnchor").abi)
    r = RECORDING
    words = [int.from_bytes(r.proof[i : i + 32], "big") for i in range(0, 256, 32)]
    values = (
        r.sla_id,
        r.start_ns,
        r.end_ns,
        r.terms_version,
        r.statement_version,
        r.prev_ctx,
        r.prev_signals_hash,
        r.circuit_id,
        list(r.signals),
        words,
    )
    assert contract.encode_abi("verifyAndRecord", args=[values]) == "0x" + record_calldata(r).hex()


# --- one transaction, one spelling -------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(position=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_no_changed_byte_goes_unnoticed(position: int, flip: int) -> None:
    raw = bytearray(honest())
    raw[position % len(raw)] ^= flip
    try:
        tx = decode_transaction(bytes(raw))
        require_records(tx, RECORDING, chain_id=CHAIN, registry=REGISTRY, parties=(ISSUER.address, CUSTOMER.address))
    except SlaLedgerError:
        return
    raise AssertionError(f"byte {position % len(raw)} is not bound")


@settings(max_examples=200, deadline=None)
@given(raw=st.one_of(st.binary(max_size=200), st.binary(max_size=200).map(lambda b: b"\x02" + b)))
def test_arbitrary_bytes_are_refused_and_nothing_else(raw: bytes) -> None:
    refused(raw)


@given(cut=st.integers(0, 800))
def test_a_cut_transaction_is_refused(cut: int) -> None:
    refused(honest()[: cut % len(honest())])


def _fields() -> list[Any]:
    return list(rlp.decode(honest()[1:]))


def _encoded(fields: list[Any]) -> bytes:
    return b"\x02" + bytes(rlp.encode(fields))


def _changed(index: int, value: Any) -> bytes:
    fields = _fields()
    fields[index] = value
    return _encoded(fields)


def _high_s() -> bytes:
    fields = _fields()
    s = ORDER - int.from_bytes(fields[11], "big")
    fields[9] = b"\x01" if fields[9] == b"" else b""
    fields[11] = s.to_bytes(32, "big")
    return _encoded(fields)


def _longer_header() -> bytes:
    body = honest()[1:]
    assert body[0] == 0xF9
    return b"\x02\xfa\x00" + body[1:]


SPELLINGS: dict[str, tuple[bytes, str]] = {
    "bytes after the end": (honest() + b"\x00", "after its end"),
    "no type": (honest()[1:], "12 fields, not 9"),
    "an access list type": (b"\x01" + honest()[1:], "12 fields, not 11"),
    "a blob type": (b"\x03" + honest()[1:], "of no type"),
    "a delegating type": (b"\x04" + honest()[1:], "12 fields, not 13"),
    "a type of a text": (b"\x80", "of no type"),
    "nothing": (b"", "of no type"),
    "only the type": (b"\x02", "not an RLP list"),
    "a string": (b"\x02\x80", "not an RLP list"),
    "eleven fields": (_encoded(_fields()[:11]), "fields"),
    "thirteen fields": (_encoded([*_fields(), b""]), "fields"),
    "a length with leading zeros": (_longer_header(), "not minimal"),
    "leading zeros in an integer": (_changed(1, b"\x00\x03"), "leading zeros"),
    "a zero that is not empty": (_changed(6, b"\x00"), "leading zeros"),
    "an integer beyond a word": (_changed(6, b"\x01" * 33), "256 bits"),
    "a short recipient": (_changed(5, b"\x01" * 19), "20 bytes"),
    "a list as data": (_changed(7, [b"\x01"]), "list as its data"),
    "bytes as access list": (_changed(8, b"\x01"), "access list"),
    "a malformed entry": (_changed(8, [[b"\x01" * 20]]), "access list"),
    "a short storage key": (_changed(8, [[b"\x01" * 20, [b"\x01" * 31]]]), "access list"),
    "an entry of bytes": (_changed(8, [b"\x01" * 2]), "access list"),
    "lists without end": (_changed(8, [[[[[[]]]]]]), "too deeply"),
    "parity 2": (_changed(9, b"\x02"), "y parity"),
    "parity 27": (_changed(9, b"\x1b"), "y parity"),
    "r is zero": (_changed(10, b""), "out of range"),
    "r is the order": (_changed(10, ORDER.to_bytes(32, "big")), "out of range"),
    "s is zero": (_changed(11, b""), "out of range"),
    "high s": (_high_s(), "out of range"),
}


@pytest.mark.parametrize(("raw", "reason"), SPELLINGS.values(), ids=SPELLINGS.keys())
def test_another_spelling_is_refused(raw: bytes, reason: str) -> None:
    assert reason in refused(raw)


def test_a_single_byte_spelled_with_a_length_is_refused() -> None:
    body = honest()[1:]
    nonce = body.index(b"\x03", 3)
    spelled = body[:nonce] + b"\x81\x03" + body[nonce + 1 :]
    length = int.from_bytes(spelled[1:3], "big") + 1
    assert "single byte" in refused(b"\x02\xf9" + length.to_bytes(2, "big") + spelled[3:])


def test_an_r_that_is_on_no_curve_is_refused() -> None:
    messages = []
    for r in range(1, 12):
        try:
            decode_transaction(_changed(10, bytes([r])))
        except TransactionInvalid as error:
            messages.append(error.message)
    assert messages
    assert all("no key made" in message for message in messages)


# --- types that others may send -----------------------------------------------------------------

ACCESS = [{"address": STRANGER.address, "storageKeys": ["0x" + "07" * 32]}]


def of_type(kind: int, account: Any = CUSTOMER, **changes: Any) -> bytes:
    """The recording signed as that type by eth-account."""
    price = {"gasPrice": 10**10} if kind < 2 else {"maxFeePerGas": 10**10, "maxPriorityFeePerGas": 10**9}
    fields = {
        "chainId": CHAIN,
        "nonce": 3,
        "gas": 500_000,
        "to": REGISTRY,
        "value": 0,
        "data": record_calldata(RECORDING),
    }
    fields |= price
    if kind:
        fields |= {"type": kind, "accessList": ACCESS}
    if kind == 4:
        grant = {"chainId": CHAIN, "address": STRANGER.address, "nonce": 0}
        fields["authorizationList"] = [STRANGER.sign_authorization(grant)]
    return bytes(account.sign_transaction(fields | changes).raw_transaction)


TYPES = (0, 1, 2, 4)


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_is_read_and_records(kind: int) -> None:
    raw = of_type(kind)
    tx = decode_transaction(raw)
    assert (tx.type, tx.sender, tx.chain_id, tx.nonce) == (kind, CUSTOMER.address, CHAIN, 3)
    assert tx.max_fee_per_gas_wei == 10**10
    check(raw)
    assert outsider_chain.sent(raw) == (tx.sender, tx.to, tx.chain_id, tx.data)


@pytest.mark.parametrize("kind", TYPES)
def test_of_any_type_another_chain_recipient_signer_or_value_records_nothing_here(kind: int) -> None:
    for raw, reason in (
        (of_type(kind, chainId=1), "for chain 1, not"),
        (of_type(kind, to=STRANGER.address), "not to the registry"),
        (of_type(kind, STRANGER), "no party"),
        (of_type(kind, value=1), "carries value"),
    ):
        with pytest.raises(TransactionInvalid, match=reason):
            check(raw)


def _legacy(v: int) -> bytes:
    fields = list(rlp.decode(of_type(0)))
    fields[6] = rlp.sedes.big_endian_int.serialize(v)
    return bytes(rlp.encode(fields))


def test_a_legacy_transaction_that_names_no_chain_is_refused_since_it_is_good_on_any() -> None:
    unbound = of_type(0, chainId=None)
    assert rlp.decode(unbound)[6] in (b"\x1b", b"\x1c")
    assert "good on any" in refused(unbound)
    for v in (0, 1, 26, 27, 28, 34):
        assert "good on any" in refused(_legacy(v))


@pytest.mark.parametrize("v", [35, 36, 2 * CHAIN + 33, 2 * CHAIN + 37, 2 * CHAIN + 38, 37, 38])
def test_a_v_of_another_chain_is_of_another_signer_on_another_chain(v: int) -> None:
    """The chain is in what was signed, so with another v the key that comes out, if any, is nobody's."""
    with pytest.raises(TransactionInvalid, match=rf"for chain {(v - 35) // 2}, not|no key made"):
        check(_legacy(v))
    with pytest.raises(TransactionInvalid, match=r"who is no party|no key made"):
        check(_legacy(v), chain_id=(v - 35) // 2)


@settings(max_examples=150, deadline=None)
@given(kind=st.sampled_from([0, 1, 4]), position=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_no_changed_byte_of_another_type_goes_unnoticed(kind: int, position: int, flip: int) -> None:
    raw = bytearray(_of_type_once(kind))
    raw[position % len(raw)] ^= flip
    with pytest.raises(SlaLedgerError):
        check(bytes(raw))


_of_type_once = cache(of_type)


def _delegating(index: int, value: Any) -> bytes:
    fields = list(rlp.decode(of_type(4)[1:]))
    fields[index] = value
    return b"\x04" + bytes(rlp.encode(fields))


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (_delegating(9, b"\x01"), "list of authorizations"),
        (_delegating(9, [[b"\x01"]]), "list of authorizations"),
        (_delegating(9, [[b"", b"\x01" * 19, b"", b"", b"\x01", b"\x01"]]), "list of authorizations"),
        (_delegating(9, [[b"\0\1", b"\x01" * 20, b"", b"", b"\x01", b"\x01"]]), "leading zeros"),
        (_delegating(5, b""), "20 bytes"),
    ],
    ids=["bytes", "short", "address", "zeros", "deployment"],
)
def test_a_delegation_is_well_formed(raw: bytes, reason: str) -> None:
    assert reason in refused(raw)


# --- what it records ---------------------------------------------------------------------------

PARTIES = (ISSUER.address, CUSTOMER.address)


def check(raw: bytes, recording: Recording = RECORDING, **changes: Any) -> None:
    context: dict[str, Any] = {"chain_id": CHAIN, "registry": REGISTRY, "parties": PARTIES}
    require_records(decode_transaction(raw), recording, **{**context, **changes})


def test_issuer_and_customer_may_record() -> None:
    check(honest())
    check(signed(CUSTOMER))


@pytest.mark.parametrize(
    ("raw", "changes", "reason"),
    [
        (signed(STRANGER), {}, "no party"),
        (signed(chainId=1), {}, "for chain 1"),
        (signed(to=STRANGER.address), {}, "not to the registry"),
        (signed(value=1), {}, "carries value"),
        (signed(data=b""), {}, "does not call verifyAndRecord"),
        (signed(data=b"\x00" * 708), {}, "does not call verifyAndRecord"),
        (signed(data=record_calldata(RECORDING) + b"\x00"), {}, "does not call verifyAndRecord"),
        (honest(), {"registry": STRANGER.address}, "not to the registry"),
        (honest(), {"parties": ()}, "no party"),
    ],
    ids=["stranger", "chain", "recipient", "value", "empty", "selector", "longer", "registry", "nobody"],
)
def test_a_transaction_that_records_nothing_here(raw: bytes, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(TransactionInvalid, match=reason):
        check(raw, **changes)


def test_a_deployment_records_nothing() -> None:
    fields = _fields()
    fields[5] = b""
    deployed: SignedTransaction = decode_transaction(_encoded(fields))
    assert deployed.to is None


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"sla_id": b"\x09" * 32}, "sla_id"),
        ({"start_ns": 1}, "start"),
        ({"end_ns": 1}, "end"),
        ({"terms_version": 2}, "terms version"),
        ({"statement_version": 1}, "statement version"),
        ({"prev_ctx": 0}, "prev_ctx"),
        ({"prev_signals_hash": bytes(32)}, "prev_signals_hash"),
        ({"circuit_id": bytes(32)}, "circuit_id"),
        ({"signals": (0x18AA, 6, *RECORDING.signals[2:])}, "signal 1"),
        ({"signals": (*RECORDING.signals[:5], 1)}, "signal 5"),
        ({"proof": bytes(256)}, "proof"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_values_are_named(other: dict[str, Any], named: str) -> None:
    with pytest.raises(TransactionInvalid, match=f"records another {named}$"):
        check(honest(), replace(RECORDING, **other))


@pytest.mark.parametrize(
    "wrong",
    [
        {"signals": RECORDING.signals[:5]},
        {"signals": (*RECORDING.signals, 0)},
        {"signals": (SCALAR_ORDER, *RECORDING.signals[1:])},
        {"proof": bytes(255)},
        {"sla_id": bytes(31)},
        {"start_ns": 2**64},
        {"start_ns": -1},
        {"terms_version": 2**32},
        {"prev_ctx": 2**256},
    ],
    ids=str,
)
def test_values_that_fit_no_word_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(AttestationValueInvalid):
        record_calldata(replace(RECORDING, **wrong))


def test_the_proofs_of_a_recording_are_read_from_its_calldata_and_from_no_other() -> None:
    second = OneProof(b"\x04" * 32, RECORDING.signals, bytes(range(255, -1, -1)))
    pair = record_calldata(replace(RECORDING, incidents=second))
    calls = {record_calldata(RECORDING): (RECORDING.proof,), pair: (RECORDING.proof, second.proof)}
    for data, proofs in calls.items():
        assert recorded_proofs(decode_transaction(signed(data=data))) == proofs
        for other in (data + b"\0", data[:-1], b"\0" + data[1:], b""):
            assert recorded_proofs(decode_transaction(signed(data=other))) == ()
