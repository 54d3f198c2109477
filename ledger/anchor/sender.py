"""Sending transactions: simulate, sign here, store the bytes, and only then send them.

No key ever leaves this process and no node holds one. What a contract would refuse is found by a call first
and is neither signed nor stored. Any number of processes may send with one key: under a lock of the database, what is
signed is stored only while its nonce is the next one and its effect is not stored, and only what is stored is ever
sent. A process may die at any point: whoever sends next with that key sends what it left, and whoever wants the same
effect goes on with its transaction. What misses many blocks is signed again with the same nonce and higher fees, and
stored beside the first: a chain can hold only one of them, and each is looked for.
Reference for the fields: EIP-1559, EIP-2718.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from eth_tester.exceptions import TransactionFailed
from eth_typing import ChecksumAddress
from eth_utils import to_checksum_address
from eth_utils.exceptions import ValidationError
from hexbytes import HexBytes
from web3 import Web3
from web3.exceptions import BlockNotFound, ContractLogicError, TransactionNotFound, Web3Exception, Web3RPCError
from web3.types import TxParams, TxReceipt, Wei

from ledger.anchor.fees import FeePolicy, Fees, fields_of
from ledger.anchor.reverts import refusal
from ledger.anchor.sending_errors import RETRY_AFTER_S, nonce_always_taken, not_included, superseded_error, talking
from ledger.anchor.signers import Signer
from ledger.app.ports.chain import StoredTransaction, TransactionState
from ledger.app.ports.store import Database
from ledger.errors import AnchorRefused, ChainUnavailable, NotFound

_FEES: Final = FeePolicy()
_POLL_S: Final = 0.1
_SLOWEST_POLL_S: Final = 1.0
SEND_AGAIN_S: Final = 3.0
_SIGNINGS: Final = 20
"""How often one call is signed where other processes store theirs first; each time one of them has got on."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a transaction does. ``to`` is None for a deployment; ``purpose`` completes "refuses to ...".

    ``effect`` names what the chain holds afterwards, such as ``record/<ctx>``: of one effect one transaction is sent.
    Without one, the same call may be sent again and again.
    """

    to: ChecksumAddress | None
    data: bytes
    gas_limit: int
    purpose: str
    effect: str | None = None


class Sender:
    """Sends calls to one chain through the transactions stored in ``database``.

    ``pin_block_time`` is the embedded chain's; on a chain with its own clock it is None.
    """

    def __init__(
        self,
        w3: Web3,
        database: Database,
        *,
        pin_block_time: Callable[[int], int] | None = None,
        fees: FeePolicy = _FEES,
        receipt_timeout_s: float = 60,
        send_again_s: float = SEND_AGAIN_S,
        sleep: Callable[[float], None] = time.sleep,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._w3 = w3
        self._database = database
        self._pin_block_time = pin_block_time
        self._fees = fees
        self._receipt_timeout_s = receipt_timeout_s
        self._send_again_s = send_again_s
        self._sleep = sleep
        self._monotonic_s = monotonic_s
        # Setting the embedded chain's next block time and filling that block are two steps.
        self._alone: AbstractContextManager[Any] = nullcontext() if pin_block_time is None else threading.RLock()
        # Nothing on the embedded chain is ever undone.
        self._once_included: TransactionState = "included" if pin_block_time is None else "finalized"
        self.chain_id = w3.eth.chain_id

    def send(self, account: Signer, call: Call, *, now_s: int) -> TxReceipt:
        """Send one call and wait for its receipt; of an effect that is stored already, that transaction's receipt.

        ``now_s`` (Unix seconds) becomes the block's time on the embedded chain. Raises AnchorRefused with the
        contract's error, before anything is stored where a simulation shows it; ChainUnavailable if the chain does
        not answer or does not include the transaction in time: its bytes are stored and sent again.
        """
        with self._alone:
            transaction = self.stored(call.effect)
            receipt = None if transaction is None else self._deliver(account, transaction)
            if transaction is None or receipt is None or receipt["status"] != 1:
                transaction = self._signed(account, call, now_s)
                receipt = self._deliver(account, transaction)
        if receipt["status"] != 1:
            raise AnchorRefused(
                f"the chain included the transaction to {call.purpose}, but it failed; read its trace",
                purpose=call.purpose,
                error=None,
                tx_hash=transaction.tx_hash,
            )
        return receipt

    def stored(self, effect: str | None) -> StoredTransaction | None:
        """The transaction that was signed for an effect and did not fail, if there is one."""
        if effect is None:
            return None
        with self._database.read() as tx:
            return tx.chain.of_effect(self.chain_id, effect)

    def resend(self, *, signed_before_s: int | None = None) -> tuple[TxReceipt, ...]:
        """Take up what processes that died have left: send again, byte for byte and in order, what is in no block.

        Notes the blocks of what was included meanwhile, and waits for nothing. Returns the receipts that were found.
        With ``signed_before_s`` (Unix seconds) later ones are left to those who are at them.
        """
        found = []
        with self._alone:
            with self._database.read() as tx:
                waiting = tx.chain.not_included(self.chain_id)
            for transaction in waiting:
                if signed_before_s is not None and (transaction.signed_at_s or 0) >= signed_before_s:
                    continue
                with talking(transaction.purpose, sender=transaction.sender, tx_hash=transaction.tx_hash):
                    if self.standing(transaction.tx_hash) is None:
                        # Whoever needs its effect signs anew where its nonce is gone.
                        with suppress(ChainUnavailable):
                            self._send_from(transaction.sender, until=transaction)
                    receipt = self.standing(transaction.tx_hash)
                found += [] if receipt is None else [receipt]
        return tuple(found)

    def standing(self, tx_hash: str) -> TxReceipt | None:
        """As ``receipt``, of whichever attempt at the nonce of a stored transaction the chain holds.

        Its block is noted with it; a reorganisation may have moved it, or put another attempt in its place. One that is
        not stored here, such as the customer's who was faster, is looked for and nothing noted.
        """
        with self._database.read() as tx:
            try:
                named = tx.chain.by_hash(tx_hash)
            except NotFound:
                return self.receipt(tx_hash)
            attempts = tx.chain.at_nonce(named.chain_id, named.sender, named.nonce)
        for known in reversed(attempts):
            receipt = self.receipt(known.tx_hash)
            if receipt is None:
                continue
            number, block_hash = receipt["blockNumber"], "0x" + bytes(receipt["blockHash"]).hex()
            failed = receipt["status"] != 1
            if (known.block_number, known.block_hash, known.failed) != (number, block_hash, failed):
                with self._database.begin() as tx:
                    state = "failed" if failed else self._once_included
                    tx.chain.included(known.tx_hash, block_number=number, block_hash=block_hash, state=state)
            return receipt
        return None

    def receipt(self, tx_hash: str) -> TxReceipt | None:
        """The receipt of a transaction in the node's canonical chain; None where no block of it holds it."""
        try:
            receipt = self._w3.eth.get_transaction_receipt(HexBytes(tx_hash))
            block = self._w3.eth.get_block(receipt["blockNumber"])
        except (TransactionNotFound, BlockNotFound):
            return None
        if bytes(receipt["transactionHash"]) != bytes.fromhex(tx_hash[2:]):
            raise ChainUnavailable(
                f"asked for the receipt of {tx_hash}, the node gives another one; check the node",
                tx_hash=tx_hash,
                retry_after_s=RETRY_AFTER_S,
            )
        # A node that is just changing branches may still give a receipt from the one it leaves.
        return receipt if bytes(block["hash"]) == bytes(receipt["blockHash"]) else None

    def _signed(self, account: Signer, call: Call, now_s: int) -> StoredTransaction:
        """Simulate the call, and sign and store it with the next nonce unless another process did so meanwhile.

        Processes that sign at the same time sign for the same nonce. The first to store has it, the others sign again.
        """
        with talking(call.purpose, sender=account.address):
            self._require_same_chain()
            self._send_from(account.address)
            pinned_s = self._pin_block_time(now_s) if self._pin_block_time is not None else None
            latest = self._w3.eth.get_block("latest")
            fields = self._fields(account.address, call, self._fees.first(latest["baseFeePerGas"]))
            try:
                self._simulate(fields, call.purpose)
            except AnchorRefused:
                # Another process may have brought it about since this one looked.
                if (known := self.stored(call.effect)) is not None:
                    return known
                raise
            sent = self._w3.eth.get_transaction_count(account.address)
        for _ in range(_SIGNINGS):
            with self._database.read() as tx:
                known = None if call.effect is None else tx.chain.of_effect(self.chain_id, call.effect)
                # The key may have been used elsewhere, or the database may be an older copy.
                nonce = max(tx.chain.next_place(self.chain_id, account.address)[1], sent)
            if known is not None:
                return known
            unsigned = {k: v for k, v in {**fields, "nonce": nonce}.items() if k != "from"}
            # Outside of every transaction: a signer elsewhere may take seconds, and SQLite has one writer at a time.
            signed = account.sign_transaction(cast(dict[str, Any], unsigned))
            tx_hash = "0x" + bytes(signed.hash).hex()
            transaction = StoredTransaction(
                ordinal=0,
                chain_id=self.chain_id,
                sender=account.address,
                nonce=nonce,
                purpose=call.purpose,
                effect=call.effect or tx_hash,
                tx_hash=tx_hash,
                raw=bytes(signed.raw_transaction),
                block_timestamp_s=pinned_s,
                signed_at_block=latest["number"],
                signed_at_s=now_s,
            )
            if (stored := self._store(transaction, sent, known=call.effect is not None)) is not None:
                return stored
        raise nonce_always_taken(call.purpose, account.address)

    def _store(self, transaction: StoredTransaction, sent: int, *, known: bool) -> StoredTransaction | None:
        """Store what was signed, if its nonce is still the next one; None if not, and then it is never sent.

        With ``known`` another transaction for the same effect, which was stored meanwhile, is returned in its place.
        """
        place = transaction.chain_id, transaction.sender
        with self._database.begin() as tx:
            tx.chain.reserve(transaction.chain_id)
            other = tx.chain.of_effect(transaction.chain_id, transaction.effect) if known else None
            if other is not None:
                return other
            ordinal, nonce = tx.chain.next_place(*place)
            if max(nonce, sent) != transaction.nonce:
                return None
            placed = replace(transaction, ordinal=ordinal)
            tx.chain.add(placed)
        return placed

    def _fields(self, sender: ChecksumAddress, call: Call, fees: Fees) -> TxParams:
        fields: dict[str, object] = {
            "type": 2,
            "chainId": self.chain_id,
            "from": sender,
            "gas": call.gas_limit,
            "value": Wei(0),
            "data": call.data,
            "maxFeePerGas": Wei(fees.most),
            "maxPriorityFeePerGas": Wei(fees.tip),
        }
        if call.to is not None:
            fields["to"] = call.to
        return cast(TxParams, fields)

    def _simulate(self, fields: TxParams, purpose: str) -> None:
        try:
            self._w3.eth.call(fields, "pending")
        except (ContractLogicError, TransactionFailed) as error:
            raise refusal(error, purpose) from error
        except Web3RPCError:
            raise
        except Web3Exception as error:
            raise refusal(error, purpose) from error

    def _deliver(self, account: Signer, transaction: StoredTransaction) -> TxReceipt:
        """The receipt of a stored transaction, which is sent, and sent again, until the chain has it."""
        tx_hash, purpose = transaction.tx_hash, transaction.purpose
        deadline_s, send_at_s, pause_s = self._monotonic_s() + self._receipt_timeout_s, 0.0, _POLL_S
        refused: Exception | None = None
        sent = False
        with talking(purpose, tx_hash=tx_hash, sender=transaction.sender):
            while (receipt := self.standing(tx_hash)) is None:
                if self._monotonic_s() >= deadline_s:
                    raise not_included(purpose, tx_hash, refused)
                if self._monotonic_s() >= send_at_s:
                    # The same bytes first: a node may have lost them.
                    if sent and transaction.sender == account.address:
                        self._replace_stuck(account)
                    refused, sent = self._send_from(transaction.sender, until=transaction), True
                    send_at_s = self._monotonic_s() + self._send_again_s
                    continue
                self._sleep(pause_s)
                pause_s = min(2 * pause_s, _SLOWEST_POLL_S)
        return receipt

    def _replace_stuck(self, account: Signer) -> None:
        """Offer more for the first transaction of an account that is in no block, if it missed too many of them.

        Those after it wait for it, whatever they offer. The new attempt is stored; sending it is the next step.
        """
        if self._pin_block_time is not None:
            return
        latest = self._w3.eth.get_block("latest")
        place = self.chain_id, account.address, self._w3.eth.get_transaction_count(account.address)
        with self._database.read() as tx:
            attempts = tx.chain.at_nonce(*place)
        # One that a reorganisation dropped is behind since its block.
        since = max((each.block_number or each.signed_at_block or 0 for each in attempts), default=latest["number"])
        if latest["number"] - since < self._fees.replace_after_blocks:
            return
        before = fields_of(attempts[-1].raw)
        offered = Fees(before["maxFeePerGas"], before["maxPriorityFeePerGas"])
        fees = self._fees.raised(offered, latest["baseFeePerGas"])
        signed = account.sign_transaction({**before, "maxFeePerGas": fees.most, "maxPriorityFeePerGas": fees.tip})
        with self._database.begin() as tx:
            tx.chain.reserve(self.chain_id)
            # Another process may have offered more meanwhile; what was signed here is then never sent.
            if tx.chain.at_nonce(*place)[-1].tx_hash != attempts[-1].tx_hash:
                return
            tx.chain.add(
                replace(
                    attempts[-1],
                    ordinal=tx.chain.next_place(self.chain_id, account.address)[0],
                    attempt=attempts[-1].attempt + 1,
                    tx_hash="0x" + bytes(signed.hash).hex(),
                    raw=bytes(signed.raw_transaction),
                    signed_at_block=latest["number"],
                    block_number=None,
                    block_hash=None,
                    state="submitted",
                )
            )

    def _send_from(self, sender: str, *, until: StoredTransaction | None = None) -> Exception | None:
        """Send what is stored of a sender and the node does not have, in the order of nonces.

        So no nonce is ever missing below one that is waited for, whatever died or was dropped by a reorganisation.
        Returns what the node said against ``until``; what it says against others is for those who wait for them.
        """
        address = to_checksum_address(sender)
        if until is not None and until.nonce < self._w3.eth.get_transaction_count(address):
            return self._passed_by(until)
        # Up to the first nonce that is missing the node has everything, in blocks or in its pool. Which of several
        # attempts at a nonce it has, it does not say.
        included, first_missing = (self._w3.eth.get_transaction_count(address, at) for at in ("latest", "pending"))
        with self._database.read() as tx:
            stored = tx.chain.from_nonce(self.chain_id, sender, included)
        said = None
        for transaction in stored:
            if until is not None and transaction.nonce > until.nonce:
                break
            if transaction.nonce < first_missing and not transaction.attempt:
                continue
            if self._pin_block_time is not None and transaction.block_timestamp_s is not None:
                self._pin_block_time(transaction.block_timestamp_s)
            try:
                self._w3.eth.send_raw_transaction(transaction.raw)
            # The node may have it already; whether it has is seen from its receipt.
            except (Web3Exception, ValidationError) as error:
                said = error if until is not None and transaction.tx_hash == until.tx_hash else said
        return said

    def _passed_by(self, transaction: StoredTransaction) -> Exception | None:
        """The chain is past this nonce: either the receipt comes late, or another transaction has the nonce."""
        self._sleep(_POLL_S)
        if self.standing(transaction.tx_hash) is not None:
            return None
        with self._database.read() as tx:
            attempts = tx.chain.at_nonce(self.chain_id, transaction.sender, transaction.nonce)
        if any(self._knows(attempt.tx_hash) for attempt in attempts):
            return None
        self._require_same_chain()
        with self._database.begin() as tx:
            tx.chain.superseded(transaction.tx_hash)
        raise superseded_error(transaction)

    def _require_same_chain(self) -> None:
        """What another chain says of nonces would be noted as this one's. Raises ChainUnavailable."""
        found = self._w3.eth.chain_id
        if found != self.chain_id:
            raise ChainUnavailable(
                f"the node was on chain {self.chain_id} and is on chain {found} now; check SLA_LEDGER_CHAIN_RPC, and "
                "start again if another chain is meant",
                chain_id=self.chain_id,
                found=found,
                retry_after_s=RETRY_AFTER_S,
            )

    def _knows(self, tx_hash: str) -> bool:
        """Whether the node has a transaction, in a block or in its pool."""
        try:
            self._w3.eth.get_transaction(HexBytes(tx_hash))
        except TransactionNotFound:
            return False
        return True
