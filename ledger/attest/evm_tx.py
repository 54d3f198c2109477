"""Reading a raw EIP-1559 transaction offline: who signed it, and whether it records exactly this statement.

A bundle carries the raw transaction of its anchor. Without a node this shows that a party signed the recording
of these values at this registry on this chain; it does not show that the transaction was included (that is
asked of the chain). Decoding is strict, so that one transaction has one spelling: minimal RLP (Ethereum yellow
paper, appendix B), exactly the fields of EIP-1559, low s (EIP-2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from py_ecc.secp256k1.secp256k1 import ecdsa_raw_recover

from ledger.attest.field import require_bytes, require_element, require_uint
from ledger.attest.keccak import bytes32_word, keccak256, keccak_text, to_checksum_address, uint_word
from ledger.domain.attested import PROOF_BYTES, SIGNAL_COUNT
from ledger.errors import AttestationValueInvalid, TransactionInvalid

RECORD_SIGNATURE: Final = (
    "verifyAndRecord((bytes32,uint64,uint64,uint32,uint32,uint256,bytes32,bytes32,uint256[6],uint256[8]))"
)

_TYPE_1559: Final = b"\x02"
_FIELD_COUNT: Final = 12
_UNSIGNED_FIELD_COUNT: Final = 9
_MAX_RAW_BYTES: Final = 131_072
_MAX_DEPTH: Final = 4
_SECP256K1_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

_INTEGER_FIELDS: Final = ("chain id", "nonce", "max priority fee", "max fee", "gas limit")
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

RlpItem: TypeAlias = "bytes | list[RlpItem]"


@dataclass(frozen=True, slots=True)
class SignedTransaction:
    """An EIP-1559 transaction with its recovered sender. Addresses in EIP-55 form; ``to`` None deploys."""

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
    """The arguments of ``SlaAnchor.verifyAndRecord``: ids and hashes 32 bytes, six signals, proof 256 bytes."""

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


def decode_transaction(raw: bytes) -> SignedTransaction:
    """The transaction in ``raw`` (0x02 and the RLP of its fields).

    Raises TransactionInvalid for another type, a non-canonical encoding, a field out of range or a signature
    that no key made.
    """
    if not raw.startswith(_TYPE_1559):
        raise _invalid("is not of type 2 (EIP-1559)")
    if len(raw) > _MAX_RAW_BYTES:
        raise _invalid(f"is longer than {_MAX_RAW_BYTES} bytes")
    body = raw[1:]
    fields, unsigned_end = _decode_fields(body)
    chain_id, nonce, tip, fee, gas = (_uint(fields[i], name) for i, name in enumerate(_INTEGER_FIELDS))
    to, value, data = _bytes(fields[5], "to"), _uint(fields[6], "value"), _bytes(fields[7], "data")
    if len(to) not in (0, 20):
        raise _invalid("has a recipient that is not 20 bytes")
    _require_access_list(fields[8])
    start = _payload_start(body)
    unsigned = _TYPE_1559 + _list_header(unsigned_end - start) + body[start:unsigned_end]
    parity, r, s = (_uint(fields[9 + i], name) for i, name in enumerate(("y parity", "r", "s")))
    return SignedTransaction(
        tx_hash=keccak256(raw),
        sender=_recover(keccak256(unsigned), parity, r, s),
        chain_id=chain_id,
        nonce=nonce,
        gas_limit=gas,
        max_fee_per_gas_wei=fee,
        max_priority_fee_per_gas_wei=tip,
        to=to_checksum_address(to) if to else None,
        value_wei=value,
        data=data,
    )


def record_calldata(recording: Recording) -> bytes:
    """The calldata of ``verifyAndRecord``: selector and 22 static words (Solidity ABI).

    Raises AttestationValueInvalid for a value that does not fit its type.
    """
    if len(recording.signals) != SIGNAL_COUNT:
        raise AttestationValueInvalid(f"a statement has {SIGNAL_COUNT} signals", field="signals")
    words = [
        bytes32_word(recording.sla_id, "sla_id"),
        uint_word(recording.start_ns, 64, "start_ns"),
        uint_word(recording.end_ns, 64, "end_ns"),
        uint_word(recording.terms_version, 32, "terms_version"),
        uint_word(recording.statement_version, 32, "statement_version"),
        uint_word(recording.prev_ctx, 256, "prev_ctx"),
        bytes32_word(recording.prev_signals_hash, "prev_signals_hash"),
        bytes32_word(recording.circuit_id, "circuit_id"),
        *(uint_word(require_element(s, f"signals[{i}]"), 256, "signal") for i, s in enumerate(recording.signals)),
        require_bytes(recording.proof, PROOF_BYTES, "proof"),
    ]
    return keccak_text(RECORD_SIGNATURE)[:4] + b"".join(words)


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
    require_uint(chain_id, 64, "chain_id")
    if transaction.chain_id != chain_id:
        raise _invalid(f"is for chain {transaction.chain_id}, not {chain_id}")
    if transaction.to != registry:
        raise _invalid(f"goes to {transaction.to}, not to the registry {registry}")
    if transaction.sender not in parties:
        raise _invalid(f"is signed by {transaction.sender}, who is no party of the agreement")
    if transaction.value_wei != 0:
        raise _invalid("carries value, which the registry does not take")
    expected = record_calldata(recording)
    if transaction.data == expected:
        return
    if transaction.data[:4] != expected[:4] or len(transaction.data) != len(expected):
        raise _invalid("does not call verifyAndRecord")
    position = next(i for i in range(4, len(expected)) if transaction.data[i] != expected[i])
    raise _invalid(f"records another {_argument_at((position - 4) // 32)}")


def _argument_at(word: int) -> str:
    if word < len(_ARGUMENTS):
        return _ARGUMENTS[word]
    signal = word - len(_ARGUMENTS)
    return f"signal {signal}" if signal < SIGNAL_COUNT else "proof"


def _recover(digest: bytes, parity: int, r: int, s: int) -> str:
    if parity > 1:
        raise _invalid("has a y parity other than 0 or 1")
    if not 0 < r < _SECP256K1_ORDER or not 0 < s <= _SECP256K1_ORDER // 2:
        raise _invalid("has a signature out of range (s must be low)")
    try:
        x, y = ecdsa_raw_recover(digest, (27 + parity, r, s))
    except ValueError:
        raise _invalid("has a signature that no key made") from None
    if x == 0 and y == 0:
        raise _invalid("has a signature that no key made")
    public_key = int(x).to_bytes(32, "big") + int(y).to_bytes(32, "big")
    return to_checksum_address(keccak256(public_key)[12:])


# --- RLP ---------------------------------------------------------------------------------------


def _decode_fields(body: bytes) -> tuple[list[RlpItem], int]:
    """The twelve fields, and where the nine that are signed end."""
    start, end = _payload_start(body), len(body)
    fields: list[RlpItem] = []
    unsigned_end = position = start
    while position < end:
        item, position = _decode_item(body, position, end, 1)
        fields.append(item)
        if len(fields) == _UNSIGNED_FIELD_COUNT:
            unsigned_end = position
    if len(fields) != _FIELD_COUNT:
        raise _invalid(f"has {len(fields)} fields, not {_FIELD_COUNT}")
    return fields, unsigned_end


def _payload_start(body: bytes) -> int:
    """Where the outermost list's content begins; the list must fill ``body`` exactly."""
    if not body or body[0] < 0xC0:
        raise _invalid("is not an RLP list")
    start, end = _span(body, 0, len(body))
    if end != len(body):
        raise _invalid("has bytes after its end")
    return start


def _decode_item(data: bytes, position: int, limit: int, depth: int) -> tuple[RlpItem, int]:
    if depth > _MAX_DEPTH:
        raise _invalid("nests lists too deeply")
    prefix = data[position]
    start, end = _span(data, position, limit)
    if prefix < 0xC0:
        return data[start:end], end
    items: list[RlpItem] = []
    while start < end:
        item, start = _decode_item(data, start, end, depth + 1)
        items.append(item)
    return items, end


def _span(data: bytes, position: int, limit: int) -> tuple[int, int]:
    """Where the content of the item at ``position`` starts and ends, inside ``limit``; its length is minimal."""
    prefix = data[position]
    if prefix < 0x80:
        return position, position + 1
    base = 0x80 if prefix < 0xC0 else 0xC0
    if prefix <= base + 55:
        start, length = position + 1, prefix - base
    else:
        start = position + 1 + prefix - base - 55
        size = data[position + 1 : start]
        length = int.from_bytes(size, "big")
        if start > limit or size[0] == 0 or length <= 55:
            raise _invalid("has an RLP length that is not minimal or cut off")
    if start + length > limit:
        raise _invalid("is cut off")
    if base == 0x80 and length == 1 and data[start] < 0x80:
        raise _invalid("spells a single byte with a length")
    return start, start + length


def _list_header(length: int) -> bytes:
    if length <= 55:
        return bytes([0xC0 + length])
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([0xF7 + len(size)]) + size


def _bytes(item: RlpItem, name: str) -> bytes:
    if not isinstance(item, bytes):
        raise _invalid(f"has a list as its {name}")
    return item


def _uint(item: RlpItem, name: str) -> int:
    value = _bytes(item, name)
    if len(value) > 32 or value[:1] == b"\x00":
        raise _invalid(f"has a {name} with leading zeros or more than 256 bits")
    return int.from_bytes(value, "big")


def _require_access_list(item: RlpItem) -> None:
    """A list of [address, [storage keys]] (EIP-2930)."""
    if not isinstance(item, list):
        raise _invalid("has no list as its access list")
    for entry in item:
        address, keys = entry if isinstance(entry, list) and len(entry) == 2 else (b"", b"")
        if not isinstance(address, bytes) or len(address) != 20 or not isinstance(keys, list):
            raise _invalid("has a malformed access list")
        if any(not isinstance(key, bytes) or len(key) != 32 for key in keys):
            raise _invalid("has a malformed access list")


def _invalid(what: str) -> TransactionInvalid:
    return TransactionInvalid(f"the raw transaction {what}")
