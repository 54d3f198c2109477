"""Batch roots at the registry: published in the sender's name, bound to a checkpoint of its ledger.

Published is all it means: the registry looks at no proof here.
"""

from __future__ import annotations

from typing import Final

from eth_typing import ChecksumAddress
from eth_utils import keccak
from web3 import Web3
from web3.contract import Contract

from ledger.anchor.abi import contract_build
from ledger.anchor.sender import Call, Sender
from ledger.anchor.signers import Signer
from ledger.app.ports.evidence import Anchored, Standing
from ledger.domain.time.instant import SECOND_NS, Clock
from ledger.merkle.checkpoint import Checkpoint

_ANCHOR_GAS: Final = 120_000


class RegistryRoots:
    """The ``RootPublisher`` port as ``issuer``. A batch has one transaction, whoever asks for it and however often."""

    def __init__(self, w3: Web3, sender: Sender, registry: ChecksumAddress, *, issuer: Signer, clock: Clock) -> None:
        self._w3 = w3
        self._sender = sender
        self._contract = w3.eth.contract(address=registry, abi=contract_build("SlaAnchor").abi)
        self._issuer = issuer
        self._clock = clock

    @property
    def chain_id(self) -> int:
        return self._sender.chain_id

    @property
    def registry(self) -> str:
        return self._contract.address

    @property
    def issuer(self) -> str:
        return self._issuer.address

    def publish(self, checkpoint: Checkpoint, batch_root: bytes) -> Standing:
        call = publishing_call(self._contract, checkpoint, batch_root)
        receipt = self._sender.send(self._issuer, call, now_s=self._clock.now_ns() // SECOND_NS)
        tx_hash, block_hash = (bytes(receipt[name]).hex() for name in ("transactionHash", "blockHash"))
        placed = Anchored(f"0x{tx_hash}", receipt["blockNumber"], f"0x{block_hash}")
        # A node behind a balancer may be behind the one that gave the receipt.
        return Standing(placed, max(self._w3.eth.block_number - placed.block_number + 1, 1))


def publishing_call(contract: Contract, checkpoint: Checkpoint, batch_root: bytes) -> Call:
    """The call that publishes a batch; its data name the batch, and the same data elsewhere are another effect."""
    state = keccak(text=checkpoint.origin), checkpoint.size, checkpoint.root
    data = bytes.fromhex(contract.encode_abi("anchorBatch", args=[state, batch_root])[2:])
    effect = f"{contract.address}/batch/{keccak(data).hex()}"
    return Call(contract.address, data, _ANCHOR_GAS, "anchor the batch", effect)
