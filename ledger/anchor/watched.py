"""The registry on the chain of a node, as a watcher asks for it (``ledger.app.ports.chain.WatchedChain``).

It has a connection of its own: a watcher works beside those who send. What a node answers that is no answer is an
error, and nothing of it is noted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from eth_typing import ChecksumAddress
from web3 import Web3
from web3.exceptions import BlockNotFound, Web3Exception

from ledger.anchor.sender import Sender
from ledger.anchor.sending_errors import RETRY_AFTER_S
from ledger.anchor.states import read_heights
from ledger.anchor.watcher import Watcher
from ledger.app.ports.chain import Among, Heights, Seen
from ledger.app.ports.evidence import Anchored, Standing
from ledger.errors import ChainUnavailable


class WatchedRegistry:
    """``w3`` and ``sender`` are of one chain, of which the registry needs ``confirmations``."""

    def __init__(self, w3: Web3, sender: Sender, registry: ChecksumAddress, confirmations: int) -> None:
        self._w3 = w3
        self._sender = sender
        self._registry = registry
        self.chain_id = sender.chain_id
        self.contract: str = registry
        self.confirmations = confirmations

    def heights(self) -> Heights:
        with _asking():
            if (found := self._w3.eth.chain_id) != self.chain_id:
                raise ChainUnavailable(
                    f"the node was on chain {self.chain_id} and is on chain {found} now; check SLA_LEDGER_CHAIN_RPC",
                    chain_id=self.chain_id,
                    found=found,
                    retry_after_s=RETRY_AFTER_S,
                )
            heights = read_heights(self._w3)
        if any(named is not None and named > heights.latest for named in (heights.safe, heights.finalized)):
            raise _no_answer(f"a block past its newest, {heights.latest}, as safe or finalized")
        return heights

    def block_hash(self, number: int) -> str | None:
        with _asking():
            try:
                block = self._w3.eth.get_block(number)
            except BlockNotFound:
                return None
            if block["number"] != number:
                raise _no_answer(f"block {block['number']}, asked for {number}")
            return "0x" + bytes(block["hash"]).hex()

    def held(self, tx_hash: str) -> bool:
        with _asking():
            return self._sender.standing(tx_hash) is not None

    def standing(self, tx_hash: str) -> Standing | None:
        with _asking():
            receipt = self._sender.standing(tx_hash)
            if receipt is None or receipt["status"] != 1:
                return None
            names = ("0x" + bytes(receipt[name]).hex() for name in ("transactionHash", "blockHash"))
            placed = Anchored(next(names), receipt["blockNumber"], next(names))
            return Standing(placed, max(self._w3.eth.block_number - placed.block_number + 1, 1))

    def resend(self, *, signed_before_s: int) -> None:
        with _asking():
            self._sender.resend(signed_before_s=signed_before_s)

    def events(self, first: int, last: int, *, own: Among, known: Among) -> Sequence[Seen]:
        with _asking():
            return Watcher(self._w3, self._registry, own=own, known=known).events(first, last)


@contextmanager
def _asking() -> Iterator[None]:
    """Turn what a node gives instead of an answer into ChainUnavailable."""
    try:
        yield
    except (Web3Exception, OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise _no_answer(f"what is no answer ({type(error).__name__})") from error


def _no_answer(what: str) -> ChainUnavailable:
    return ChainUnavailable(f"the node gives {what}; check the node", retry_after_s=RETRY_AFTER_S)
