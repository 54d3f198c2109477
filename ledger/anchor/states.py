"""How high a chain is: its newest block, and the newest ones that its node calls safe and finalized.

Nodes of proof-of-stake chains name both; of a node that does not know these names, there are none.
Reference: execution-apis, block tags.
"""

from __future__ import annotations

from typing import Literal

from web3 import Web3
from web3.exceptions import BlockNotFound, Web3RPCError

from ledger.app.ports.chain import Heights
from ledger.errors import ChainUnavailable


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
