"""What one look at a chain is made with, and what it says of a block."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.app.ports.chain import Heights, WatchedChain
from ledger.domain.attested import TEST_CHAIN_IDS


class Blocks:
    """Which blocks stand in the canonical chain: each is asked for once in a look."""

    def __init__(self, chain: WatchedChain) -> None:
        self._chain = chain
        self._hashes: dict[int, str | None] = {}

    def hold(self, number: int, block_hash: str) -> bool:
        if number not in self._hashes:
            self._hashes[number] = self._chain.block_hash(number)
        return self._hashes[number] == block_hash


@dataclass(frozen=True, slots=True)
class Look:
    """What a look is made with. ``final`` is the newest block that this look and the one before call final."""

    chain: WatchedChain
    heights: Heights
    final: int
    blocks: Blocks

    def lost(self, tx_hash: str, block_number: int, block_hash: str) -> bool:
        """Whether a transaction is not where it was confirmed, as far as this look tells.

        A node whose newest block is below is taken for one that is behind, but for local ones, which are started anew.
        """
        if self.blocks.hold(block_number, block_hash):
            return False
        if block_number > self.heights.latest and self.chain.chain_id not in TEST_CHAIN_IDS:
            return False
        standing = self.chain.standing(tx_hash)
        return standing is None or standing.placed.block_hash != block_hash
