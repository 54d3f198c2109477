"""Transactions that a node leaves out of its blocks, because they offer too little."""

from __future__ import annotations

import threading
import time

from ledger.anchor.fees import GWEI, FeePolicy
from ledger.anchor.sender import Sender
from ledger.app.ports.chain import StoredTransaction
from ledger.app.ports.store import Database
from ledger.wiring.chain import RpcChain
from tests.support.anvil import Anvil

AFTER_BLOCKS = 3


class Patience(threading.local):
    """A sender's time, which passes only while it sleeps: on a slow machine it looks as often as on a fast one.

    While the node makes a block of every transaction, it passes so slowly that each is awaited.
    """

    def __init__(self, node: Anvil) -> None:
        self._node = node
        self.now_s = 0.0

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
        self.now_s += seconds / 100 if self._node.call("anvil_getAutomine") else seconds


def hurried(chain: RpcChain, database: Database, *, limit_gwei: int = 500) -> RpcChain:
    """The chain with a sender that waits for parts of a second and replaces after three blocks."""
    patience = Patience(Anvil(str(chain._settings.rpc_url)))
    chain.__dict__["_sender"] = Sender(
        chain._w3,
        database,
        fees=FeePolicy(limit_gwei * GWEI, AFTER_BLOCKS),
        receipt_timeout_s=0.45,
        send_again_s=0.1,
        sleep=patience.sleep,
        monotonic_s=lambda: patience.now_s,
    )
    return chain


def by_hand(node: Anvil) -> None:
    """No block from now on but those that are asked for, and no other change of the base fee."""
    node.call("evm_setAutomine", False)


def too_dear(node: Anvil, gwei: int = 100, blocks: int = AFTER_BLOCKS) -> None:
    """Blocks that leave out everything offering less than ``gwei``."""
    for _ in range(blocks):
        base_fee(node, gwei)
        node.mine()
    base_fee(node, gwei)


def base_fee(node: Anvil, gwei: int) -> None:
    """Of the next block."""
    node.call("anvil_setNextBlockBaseFeePerGas", hex(gwei * GWEI))


def attempts(database: Database, sender: str, nonce: int) -> list[StoredTransaction]:
    with database.read() as tx:
        return list(tx.chain.at_nonce(31337, sender, nonce))
