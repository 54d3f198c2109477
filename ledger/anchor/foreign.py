"""The signed bytes of transactions that others sent: a node gives the fields, and the hash says if they are right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from eth_account.typed_transactions.typed_transaction import TypedTransaction
from eth_utils import keccak
from hexbytes import HexBytes
from web3 import Web3
from web3.exceptions import TransactionNotFound

from ledger.errors import ChainUnavailable

_EIP_1559: Final = 2
_RETRY_AFTER_S: Final = 5


def read_signed_bytes(w3: Web3, tx_hash: str) -> bytes | None:
    """The bytes of transaction ``tx_hash`` (``0x`` and 64 hex digits); None where it is not of type 2 (EIP-1559).

    A bundle's reader takes no other type. Raises ChainUnavailable where the node does not know the transaction, or
    gives fields that do not hash to it.
    """
    try:
        fields = w3.eth.get_transaction(HexBytes(tx_hash))
    except TransactionNotFound:
        raise _unusable(tx_hash, "does not give the transaction") from None
    if fields.get("type") != _EIP_1559:
        return None
    try:
        raw = signed_bytes(fields)
    except (KeyError, TypeError, ValueError):
        raw = b""
    if "0x" + keccak(raw).hex() != tx_hash:
        raise _unusable(tx_hash, "gives another transaction than")
    return raw


def signed_bytes(fields: Mapping[str, Any]) -> bytes:
    """An EIP-1559 transaction as it was signed, from the fields that ``eth_getTransactionByHash`` names.

    Raises KeyError, TypeError or ValueError for fields that are missing or not of their kind.
    """
    given: dict[str, Any] = {
        "type": _EIP_1559,
        **{name: fields[name] for name in ("chainId", "nonce", "maxPriorityFeePerGas", "maxFeePerGas", "gas")},
        "value": fields["value"],
        "data": HexBytes(fields["input"]),
        "accessList": [
            {"address": each["address"], "storageKeys": [HexBytes(key).to_0x_hex() for key in each["storageKeys"]]}
            for each in fields["accessList"]
        ],
        **{name: int.from_bytes(HexBytes(fields[name]), "big") for name in ("v", "r", "s")},
    }
    if fields["to"] is not None:
        given["to"] = fields["to"]
    return bytes(TypedTransaction.from_dict(given).encode())


def _unusable(tx_hash: str, said: str) -> ChainUnavailable:
    return ChainUnavailable(
        f"the node {said} {tx_hash}, which its logs name; check the node",
        tx_hash=tx_hash,
        retry_after_s=_RETRY_AFTER_S,
    )
