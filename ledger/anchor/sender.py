"""Sending transactions: simulate, sign here, store the bytes, and only then send them.

No key ever leaves this process and no node holds one. What a contract would refuse is found by a call first
and is neither signed nor stored. Reference for the fields: EIP-1559, EIP-2718.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from eth_account.signers.local import LocalAccount
from eth_tester.exceptions import TransactionFailed
from eth_typing import ChecksumAddress
from eth_utils.exceptions import ValidationError
from hexbytes import HexBytes
from web3 import Web3
from web3.exceptions import TimeExhausted, TransactionNotFound, Web3Exception
from web3.types import TxParams, TxReceipt, Wei

from ledger.anchor.reverts import refusal
from ledger.anchor.transactions import StoredTransaction, TransactionStore
from ledger.errors import AnchorRefused, ChainUnavailable

_TIP_WEI = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Call:
    """What a transaction does. ``to`` is None for a deployment; ``purpose`` completes "refuses to ..."."""

    to: ChecksumAddress | None
    data: bytes
    gas_limit: int
    purpose: str


class Sender:
    """Sends calls to one chain, one after the other, through a store.

    ``pin_block_time`` is the embedded chain's; on a chain with its own clock it is None.
    """

    def __init__(
        self,
        w3: Web3,
        store: TransactionStore,
        *,
        pin_block_time: Callable[[int], int] | None = None,
        receipt_timeout_s: int = 120,
    ) -> None:
        self._w3 = w3
        self._store = store
        self._pin_block_time = pin_block_time
        self._receipt_timeout_s = receipt_timeout_s
        self.chain_id = w3.eth.chain_id

    def send(self, account: LocalAccount, call: Call, *, now_s: int) -> TxReceipt:
        """Send one call and wait for its receipt.

        ``now_s`` (Unix seconds) becomes the block's time on the embedded chain. Raises AnchorRefused with the
        contract's error, before anything is stored where a simulation shows it; ChainUnavailable if the chain
        does not answer: stored bytes are sent again by ``resend``, which also comes before every new call.
        """
        self.resend()
        pinned_s = self._pin_block_time(now_s) if self._pin_block_time is not None else None
        try:
            nonce = self._w3.eth.get_transaction_count(account.address, "pending")
            fields = self._fields(account.address, call, nonce)
            self._simulate(fields, call.purpose)
        except OSError as error:
            raise _unavailable(error, call.purpose) from error
        signed = account.sign_transaction(cast(dict[str, Any], {k: v for k, v in fields.items() if k != "from"}))
        transaction = StoredTransaction(
            ordinal=self._store.next_ordinal(self.chain_id),
            chain_id=self.chain_id,
            sender=account.address,
            nonce=nonce,
            purpose=call.purpose,
            tx_hash=bytes(signed.hash),
            raw=bytes(signed.raw_transaction),
            block_timestamp_s=pinned_s,
        )
        self._store.save(transaction)
        receipt = self._deliver(transaction)
        if receipt["status"] != 1:
            raise AnchorRefused(
                f"the chain included the transaction to {call.purpose}, but it failed; read its trace",
                purpose=call.purpose,
                error=None,
                tx_hash="0x" + transaction.tx_hash.hex(),
            )
        return receipt

    def resend(self) -> tuple[TxReceipt, ...]:
        """Send again, byte for byte and in order, what is stored but was not seen in a block."""
        receipts = []
        for transaction in self._store.not_included(self.chain_id):
            if self._pin_block_time is not None and transaction.block_timestamp_s is not None:
                self._pin_block_time(transaction.block_timestamp_s)
            receipts.append(self._deliver(transaction))
        return tuple(receipts)

    def _fields(self, sender: ChecksumAddress, call: Call, nonce: int) -> TxParams:
        base_fee = self._w3.eth.get_block("latest")["baseFeePerGas"]
        fields: dict[str, object] = {
            "type": 2,
            "chainId": self.chain_id,
            "from": sender,
            "nonce": nonce,
            "gas": call.gas_limit,
            "value": Wei(0),
            "data": call.data,
            # Twice the base fee lasts for six full blocks of the steepest rise.
            "maxFeePerGas": Wei(2 * base_fee + _TIP_WEI),
            "maxPriorityFeePerGas": Wei(_TIP_WEI),
        }
        if call.to is not None:
            fields["to"] = call.to
        return cast(TxParams, fields)

    def _simulate(self, fields: TxParams, purpose: str) -> None:
        try:
            self._w3.eth.call(fields, "pending")
        except (Web3Exception, TransactionFailed) as error:
            raise refusal(error, purpose) from error

    def _deliver(self, transaction: StoredTransaction) -> TxReceipt:
        """Send stored bytes unless the chain has them, and note the block they are in."""
        try:
            receipt = self._find(transaction)
            if receipt is None:
                self._w3.eth.send_raw_transaction(transaction.raw)
                receipt = self._w3.eth.wait_for_transaction_receipt(
                    HexBytes(transaction.tx_hash), timeout=self._receipt_timeout_s
                )
        except (OSError, TimeExhausted, ValidationError) as error:
            raise _unavailable(error, transaction.purpose, transaction.tx_hash) from error
        self._store.mark_included(transaction.tx_hash, receipt["blockNumber"], bytes(receipt["blockHash"]))
        return receipt

    def _find(self, transaction: StoredTransaction) -> TxReceipt | None:
        try:
            return self._w3.eth.get_transaction_receipt(HexBytes(transaction.tx_hash))
        except TransactionNotFound:
            return None


def _unavailable(error: Exception, purpose: str, tx_hash: bytes | None = None) -> ChainUnavailable:
    if tx_hash is None:
        return ChainUnavailable(f"the chain does not answer ({error}); could not {purpose}", purpose=purpose)
    return ChainUnavailable(
        f"the transaction to {purpose} was not included ({error}); it is stored and will be sent again",
        purpose=purpose,
        tx_hash="0x" + tx_hash.hex(),
    )
