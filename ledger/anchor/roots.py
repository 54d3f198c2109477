"""The ``RootPublisher`` port over the batch side of a registry, as one account."""

from __future__ import annotations

from eth_typing import ChecksumAddress
from eth_utils import keccak
from web3 import Web3

from ledger.anchor.batches import BatchRegistry
from ledger.anchor.sender import Sender
from ledger.anchor.signers import Signer
from ledger.app.evidence import Anchored, Standing
from ledger.domain.instant import SECOND_NS, Clock
from ledger.merkle.checkpoint import Checkpoint


class RegistryRoots:
    """Publishes as ``issuer``. A batch has one transaction, whoever asks for it and however often."""

    def __init__(self, w3: Web3, sender: Sender, registry: ChecksumAddress, *, issuer: Signer, clock: Clock) -> None:
        self._w3 = w3
        self._chain_id = sender.chain_id
        self._batches = BatchRegistry(w3, sender, registry)
        self._issuer = issuer
        self._clock = clock

    @property
    def chain_id(self) -> int:
        return self._chain_id

    @property
    def registry(self) -> str:
        return self._batches.registry

    @property
    def issuer(self) -> str:
        return self._issuer.address

    def publish(self, checkpoint: Checkpoint, batch_root: bytes) -> Standing:
        # The call names root and checkpoint; another registry on the same chain holds other batches.
        effect = f"{self.registry}/batch/{keccak(self._batches.anchor_call(checkpoint, batch_root).data).hex()}"
        now_s = self._clock.now_ns() // SECOND_NS
        receipt = self._batches.anchor(self._issuer, checkpoint, batch_root, now_s=now_s, effect=effect)
        tx_hash, block_hash = (bytes(receipt[name]).hex() for name in ("transactionHash", "blockHash"))
        placed = Anchored(f"0x{tx_hash}", receipt["blockNumber"], f"0x{block_hash}")
        # A node behind a balancer may be behind the one that gave the receipt.
        return Standing(placed, max(self._w3.eth.block_number - placed.block_number + 1, 1))
