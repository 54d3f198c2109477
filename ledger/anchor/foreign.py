"""The signed bytes of transactions that others sent: a node gives the fields, and the hash says if they are right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import rlp
from eth_utils import keccak
from hexbytes import HexBytes
from web3 import Web3
from web3.exceptions import TransactionNotFound

from ledger.errors import ChainUnavailable

_CALL: Final = ("gas", "to", "value", "input")
_SIGNED: Final[Mapping[int, tuple[str, ...]]] = {
    0: ("nonce", "gasPrice", *_CALL),
    1: ("chainId", "nonce", "gasPrice", *_CALL, "accessList"),
    2: ("chainId", "nonce", "maxPriorityFeePerGas", "maxFeePerGas", *_CALL, "accessList"),
    4: ("chainId", "nonce", "maxPriorityFeePerGas", "maxFeePerGas", *_CALL, "accessList", "authorizationList"),
}
"""What is signed of each type that a bundle's reader takes, in order; the signature follows."""

_FIRST_V_OF_A_CHAIN: Final = 35
_RETRY_AFTER_S: Final = 5


def read_signed_bytes(w3: Web3, tx_hash: str) -> bytes | None:
    """The bytes of transaction ``tx_hash`` (``0x`` and 64 hex digits); None where no bundle carries it.

    That is a blob transaction, or one that names no chain (before EIP-155) and is good on any. Raises ChainUnavailable
    where the node does not know the transaction, or gives fields that do not hash to it.
    """
    try:
        fields = w3.eth.get_transaction(HexBytes(tx_hash))
    except TransactionNotFound:
        raise _unusable(tx_hash, "does not give the transaction") from None
    if fields.get("type", 0) not in _SIGNED:
        return None
    try:
        raw = signed_bytes(fields)
    except (KeyError, TypeError, ValueError):
        raw = b""
    if "0x" + keccak(raw).hex() != tx_hash:
        raise _unusable(tx_hash, "gives another transaction than")
    return None if not fields.get("type", 0) and fields["v"] < _FIRST_V_OF_A_CHAIN else raw


def signed_bytes(fields: Mapping[str, Any]) -> bytes:
    """A transaction as it was signed, from the fields that ``eth_getTransactionByHash`` names.

    Raises KeyError, TypeError or ValueError for fields that are missing or not of their kind.
    """
    kind = int(fields.get("type", 0))
    items = [_item(name, fields[name]) for name in _SIGNED[kind]]
    signature = [_number(fields[name]) for name in ("v", "r", "s")]
    return (bytes([kind]) if kind else b"") + bytes(rlp.encode([*items, *signature]))


def _item(name: str, value: Any) -> Any:
    match name:
        case "to":
            return b"" if value is None else HexBytes(value)
        case "input":
            return HexBytes(value)
        case "accessList":
            return [[HexBytes(each["address"]), [HexBytes(key) for key in each["storageKeys"]]] for each in value]
        case "authorizationList":
            return [
                [
                    _number(each["chainId"]),
                    HexBytes(each["address"]),
                    *(_number(each[name]) for name in ("nonce", "yParity", "r", "s")),
                ]
                for each in value
            ]
    return _number(value)


def _number(value: Any) -> int:
    """A number as web3 gives it: as one, or, where it formats none, in hex or as bytes."""
    return value if isinstance(value, int) else int.from_bytes(HexBytes(value), "big")


def _unusable(tx_hash: str, said: str) -> ChainUnavailable:
    return ChainUnavailable(
        f"the node {said} {tx_hash}, which its logs name; check the node",
        tx_hash=tx_hash,
        retry_after_s=_RETRY_AFTER_S,
    )
