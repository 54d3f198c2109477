"""How far a transaction has come on its chain: submitted, included, safe, finalized.

Nodes of proof-of-stake chains name the newest block that is safe and the newest that is finalized. Where a node does
not know these names, a transaction that has the confirmations asked for counts as finalized, and none as safe.
Reference: execution-apis, block tags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from web3 import Web3
from web3.exceptions import BlockNotFound, Web3RPCError

from ledger.app.chain_port import TransactionState
from ledger.errors import ChainUnavailable


@dataclass(frozen=True, slots=True)
class Heights:
    """Numbers of the newest blocks of a chain; ``safe`` and ``finalized`` None where the node does not name them."""

    latest: int
    safe: int | None
    finalized: int | None

    def state(self, block_number: int | None, confirmations: int) -> TransactionState:
        """Of a transaction in this block of the canonical chain, or in none."""
        if block_number is None:
            return "submitted"
        if self.finalized is None:
            return "finalized" if self.latest - block_number + 1 >= confirmations else "included"
        if block_number <= self.finalized:
            return "finalized"
        return "safe" if self.safe is not None and block_number <= self.safe else "included"


def read_heights(w3: Web3) -> Heights:
    """Raises ChainUnavailable where the node does not answer."""
    return Heights(w3.eth.block_number, _named(w3, "safe"), _named(w3, "finalized"))


def _named(w3: Web3, tag: Literal["safe", "finalized"]) -> int | None:
    try:
        return w3.eth.get_block(tag)["number"]
    except (BlockNotFound, Web3RPCError):
        return None
    except ChainUnavailable as error:
        if not error.data.get("answered"):
            raise
        return None
