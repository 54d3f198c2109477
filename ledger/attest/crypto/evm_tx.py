"""Reading a raw transaction offline: who signed it, and whether it records exactly this statement.

A bundle carries the raw transaction of its anchor. Without a node this shows that a party signed the recording
of these values at this registry on this chain; it does not show that the transaction was included (that is
asked of the chain). Decoding is strict, so that one transaction has one spelling: minimal RLP, exactly the fields of
its type, low s (EIP-2). Types: 0 (legacy) where it names its chain (EIP-155), 1 (EIP-2930), 2 (EIP-1559), which this
ledger sends, and 4 (EIP-7702). A blob transaction (EIP-4844) is not read: its bytes are not all that was signed for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from py_ecc.secp256k1.secp256k1 import ecdsa_raw_recover

from ledger.attest.crypto.field import require_uint
from ledger.attest.crypto.keccak import bytes32_word, keccak256, keccak_text, to_checksum_address, uint_word
from ledger.attest.crypto.pair import OneProof
from ledger.attest.crypto.rlp import RlpItem, as_bytes, as_list, as_uint, decode_list, encode_uint, invalid, list_of
from ledger.domain.attested import SIGNAL_COUNT

RECORD_SIGNATURE: Final = (
    "verifyAndRecord((bytes32,uint64,uint64,uint32,uint32,uint256,bytes32,bytes32,uint256[6],uint256[8]))"
)

PUBLISH_SIGNATURE: Final = "anchorBatch((bytes32,uint64,bytes32),bytes32)"
RECORD_PAIR_SIGNATURE: Final = (
    f"verifyAndRecordWithIncidents({RECORD_SIGNATURE.removeprefix('verifyAndRecord(').removesuffix(')')},"
    "(bytes32,uint256[6],uint256[8]))"
)

_SIGNATURE: Final = ("y parity", "r", "s")
_CALL: Final = ("gas limit", "to", "value", "data")
_FIELDS: Final = {
    0: ("nonce", "gas price", *_CALL, "v", "r", "s"),
    1: ("chain id", "nonce", "gas price", *_CALL, "access list", *_SIGNATURE),
    2: ("chain id", "nonce", "max priority fee", "max fee", *_CALL, "access list", *_SIGNATURE),
    4: ("chain id", "nonce", "max priority fee", "max fee", *_CALL, "access list", "authorizations", *_SIGNATURE),
}
_FIRST_LIST_BYTE: Final = 0xC0
_FIRST_V_OF_A_CHAIN: Final = 35
_MAX_RAW_BYTES: Final = 131_072
_SECP256K1_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

_ARGUMENTS: Final = (
    "sla_id",
    "start",
    "end",
    "terms version",
    "statement version",
    "prev_ctx",
    "prev_signals_hash",
    "circuit_id",
)

_PROOF_WORDS: Final = 8


@dataclass(frozen=True, slots=True)
class SignedTransaction:
    """A transaction with its recovered sender. Addresses in EIP-55 form; ``to`` None deploys.

    Types 0 and 1 offer one gas price, which is both fees.
    """

    type: int
    tx_hash: bytes
    sender: str
    chain_id: int
    nonce: int
    gas_limit: int
    max_fee_per_gas_wei: int
    max_priority_fee_per_gas_wei: int
    to: str | None
    value_wei: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Recording:
    """The arguments of ``SlaAnchor.verifyAndRecord``, or with ``incidents`` of ``verifyAndRecordWithIncidents``; ids
    and hashes have 32 bytes."""

    sla_id: bytes
    start_ns: int
    end_ns: int
    terms_version: int
    statement_version: int
    prev_ctx: int
    prev_signals_hash: bytes
    circuit_id: bytes
    signals: tuple[int, ...]
    proof: bytes
    incidents: OneProof | None = None


@dataclass(frozen=True, slots=True)
class Publication:
    """The arguments of ``SlaAnchor.anchorBatch``: the checkpoint's log, size and root, and the batch root."""

    log_id: bytes
    size: int
    root: bytes
    batch_root: bytes


def decode_transaction(raw: bytes) -> SignedTransaction:
    """The transaction in ``raw``: the byte of its type, which type 0 has not, and the RLP of its fields.

    Raises TransactionInvalid for another type, a non-canonical encoding, a field out of range, a signature that no key
    made or one that is good on any chain.
    """
    if len(raw) > _MAX_RAW_BYTES:
        raise invalid(f"is longer than {_MAX_RAW_BYTES} bytes")
    kind = 0 if raw[:1] >= bytes([_FIRST_LIST_BYTE]) else next(iter(raw), -1)
    if kind not in _FIELDS:
        raise invalid("is of no type that is read here: 0, 1, 2 or 4")
    prefix = bytes([kind]) if kind else b""
    items, places = decode_list(raw[len(prefix) :])
    if len(items) != len(_FIELDS[kind]):
        raise invalid(f"has {len(items)} fields, not {len(_FIELDS[kind])}")
    fields = dict(zip(_FIELDS[kind], items, strict=True))
    _require_lists(fields)
    body = raw[len(prefix) + places[0] : len(prefix) + places[-4]]
    chain_id, parity = _chain_and_parity(fields)
    if not kind:
        # What EIP-155 signs in place of v, r and s.
        body += encode_uint(chain_id) + encode_uint(0) + encode_uint(0)
    price = fields.get("gas price", b"")
    to = as_bytes(fields["to"], "to")
    if len(to) not in (0, 20) or (kind == 4 and not to):
        raise invalid("has a recipient that is not 20 bytes")
    return SignedTransaction(
        type=kind,
        tx_hash=keccak256(raw),
        sender=_recover(keccak256(prefix + list_of(body)), parity, *(as_uint(fields[name], name) for name in "rs")),
        chain_id=chain_id,
        nonce=as_uint(fields["nonce"], "nonce"),
        gas_limit=as_uint(fields["gas limit"], "gas limit"),
        max_fee_per_gas_wei=as_uint(fields.get("max fee", price), "max fee"),
        max_priority_fee_per_gas_wei=as_uint(fields.get("max priority fee", price), "max priority fee"),
        to=to_checksum_address(to) if to else None,
        value_wei=as_uint(fields["value"], "value"),
        data=as_bytes(fields["data"], "data"),
    )


def record_calldata(recording: Recording) -> bytes:
    """The calldata: selector and 22 static words (Solidity ABI), of two proofs 37.

    Raises AttestationValueInvalid for a value that does not fit its type.
    """
    words = [
        bytes32_word(recording.sla_id, "sla_id"),
        uint_word(recording.start_ns, 64, "start_ns"),
        uint_word(recording.end_ns, 64, "end_ns"),
        uint_word(recording.terms_version, 32, "terms_version"),
        uint_word(recording.statement_version, 32, "statement_version"),
        uint_word(recording.prev_ctx, 256, "prev_ctx"),
        bytes32_word(recording.prev_signals_hash, "prev_signals_hash"),
        *_proof_words(OneProof(recording.circuit_id, recording.signals, recording.proof)),
    ]
    if recording.incidents is None:
        return keccak_text(RECORD_SIGNATURE)[:4] + b"".join(words)
    return keccak_text(RECORD_PAIR_SIGNATURE)[:4] + b"".join([*words, *_proof_words(recording.incidents)])


def recorded_proofs(transaction: SignedTransaction) -> tuple[bytes, ...]:
    """The proofs of 256 bytes that a transaction hands to the registry, one or two; none where it records nothing, or
    says more than a recording does."""
    words_before = {RECORD_SIGNATURE: (14,), RECORD_PAIR_SIGNATURE: (14, 29)}
    for signature, before in words_before.items():
        data = transaction.data
        if data[:4] == keccak_text(signature)[:4] and len(data) == 4 + 32 * before[-1] + 256:
            return tuple(data[4 + 32 * at : 4 + 32 * at + 256] for at in before)
    return ()


def _proof_words(proof: OneProof) -> list[bytes]:
    signals = [uint_word(signal, 256, "signal") for signal in proof.signals]
    return [bytes32_word(proof.circuit_id, "circuit_id"), *signals, proof.proof]


def require_records(
    transaction: SignedTransaction,
    recording: Recording,
    *,
    chain_id: int,
    registry: str,
    parties: tuple[str, ...],
) -> None:
    """Check that a transaction records exactly this, at this registry, signed by one of the parties.

    Addresses in EIP-55 form. Raises TransactionInvalid naming the first thing that differs.
    """
    _require_sent(transaction, chain_id, registry)
    if transaction.sender not in parties:
        raise invalid(f"is signed by {transaction.sender}, who is no party of the agreement")
    expected = record_calldata(recording)
    if transaction.data == expected:
        return
    if transaction.data[:4] != expected[:4] or len(transaction.data) != len(expected):
        called = "verifyAndRecord" if recording.incidents is None else "verifyAndRecordWithIncidents"
        raise invalid(f"does not call {called}")
    position = next(i for i in range(4, len(expected)) if transaction.data[i] != expected[i])
    raise invalid(f"records another {_argument_at((position - 4) // 32)}")


def require_publishes(
    transaction: SignedTransaction, publication: Publication, *, chain_id: int, registry: str, issuer: str
) -> None:
    """Check that a transaction publishes exactly this batch, at this registry, in the name of ``issuer``.

    Addresses in EIP-55 form. Raises TransactionInvalid naming the first thing that differs.
    """
    _require_sent(transaction, chain_id, registry)
    if transaction.sender != issuer:
        raise invalid(f"is signed by {transaction.sender}, not by the issuer {issuer}")
    words = {
        "log": bytes32_word(publication.log_id, "log_id"),
        "size of the checkpoint": uint_word(publication.size, 64, "size"),
        "root of the checkpoint": bytes32_word(publication.root, "root"),
        "batch root": bytes32_word(publication.batch_root, "batch_root"),
    }
    data = transaction.data
    if data[:4] != keccak_text(PUBLISH_SIGNATURE)[:4] or len(data) != 4 + 32 * len(words):
        raise invalid("does not call anchorBatch")
    for place, (name, word) in enumerate(words.items()):
        if data[4 + 32 * place : 36 + 32 * place] != word:
            raise invalid(f"publishes another {name}")


def _require_sent(transaction: SignedTransaction, chain_id: int, registry: str) -> None:
    require_uint(chain_id, 64, "chain_id")
    if transaction.chain_id != chain_id:
        raise invalid(f"is for chain {transaction.chain_id}, not {chain_id}")
    if transaction.to != registry:
        raise invalid(f"goes to {transaction.to}, not to the registry {registry}")
    if transaction.value_wei != 0:
        raise invalid("carries value, which the registry does not take")


def _argument_at(word: int) -> str:
    if word < len(_ARGUMENTS):
        return _ARGUMENTS[word]
    signal = word - len(_ARGUMENTS)
    if signal < SIGNAL_COUNT + _PROOF_WORDS:
        return f"signal {signal}" if signal < SIGNAL_COUNT else "proof"
    credit = signal - SIGNAL_COUNT - _PROOF_WORDS - 1
    if credit < 0:
        return "circuit_id of the incident credit"
    return f"signal {credit} of the incident credit" if credit < SIGNAL_COUNT else "proof of the incident credit"


def _chain_and_parity(fields: Mapping[str, RlpItem]) -> tuple[int, int]:
    """The chain that a transaction is for, and which of two keys signed it. A v of 27 or 28 would name no chain."""
    if "v" not in fields:
        return as_uint(fields["chain id"], "chain id"), as_uint(fields["y parity"], "y parity")
    v = as_uint(fields["v"], "v")
    if v < _FIRST_V_OF_A_CHAIN:
        raise invalid("names no chain in its v (it is not signed by EIP-155), so it is good on any")
    return divmod(v - _FIRST_V_OF_A_CHAIN, 2)


def _recover(digest: bytes, parity: int, r: int, s: int) -> str:
    if parity > 1:
        raise invalid("has a y parity other than 0 or 1")
    if not 0 < r < _SECP256K1_ORDER or not 0 < s <= _SECP256K1_ORDER // 2:
        raise invalid("has a signature out of range (s must be low)")
    try:
        x, y = ecdsa_raw_recover(digest, (27 + parity, r, s))
    except ValueError:
        raise invalid("has a signature that no key made") from None
    if x == 0 and y == 0:
        raise invalid("has a signature that no key made")
    public_key = int(x).to_bytes(32, "big") + int(y).to_bytes(32, "big")
    return to_checksum_address(keccak256(public_key)[12:])


def _require_lists(fields: Mapping[str, RlpItem]) -> None:
    """A list of [address, [storage keys]] (EIP-2930) and one of signed delegations (EIP-7702), where there are any."""
    for entry in as_list(fields.get("access list", []), "access list"):
        address, keys = as_list(entry, "access list", 2)
        if len(as_bytes(address, "access list")) != 20:
            raise invalid("has a malformed access list")
        if any(len(as_bytes(key, "access list")) != 32 for key in as_list(keys, "access list")):
            raise invalid("has a malformed access list")
    for entry in as_list(fields.get("authorizations", []), "list of authorizations"):
        chain_id, address, *numbers = as_list(entry, "list of authorizations", 6)
        if len(as_bytes(address, "authorization")) != 20:
            raise invalid("has a malformed list of authorizations")
        for number in (chain_id, *numbers):
            as_uint(number, "authorization")
