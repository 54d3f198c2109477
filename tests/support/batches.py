"""The batch side of a registry as its tests look at it: anybody publishes, and what stands there is read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from eth_typing import ChecksumAddress
from eth_utils import keccak, to_canonical_address
from web3 import Web3
from web3.types import EventData, TxReceipt

from ledger.anchor.abi import contract_build
from ledger.anchor.logs import read_logs
from ledger.anchor.roots import publishing_call
from ledger.anchor.sender import Sender
from ledger.anchor.signers import Signer
from ledger.merkle.checkpoint import Checkpoint


@dataclass(frozen=True, slots=True)
class AnchoredBatch:
    """A ``BatchAnchored`` event and where it stands. ``size`` and ``root`` are the checkpoint's."""

    issuer: str
    log_id: bytes
    batch_root: bytes
    node: bytes
    size: int
    root: bytes
    tx_hash: bytes
    log_index: int
    block_number: int
    block_hash: bytes


class BatchRegistry:
    """The batch side of one registry on one chain. Sending raises AnchorRefused and ChainUnavailable."""

    def __init__(self, w3: Web3, sender: Sender, registry: ChecksumAddress) -> None:
        self._w3 = w3
        self._sender = sender
        self.registry = registry
        self._contract = w3.eth.contract(address=registry, abi=contract_build("SlaAnchor").abi)

    def anchor(
        self,
        issuer: Signer,
        checkpoint: Checkpoint,
        batch_root: bytes,
        *,
        now_s: int,
        effect: str | None = None,
    ) -> TxReceipt:
        """Publish a batch in the name of ``issuer``: without an ``effect`` in a transaction of its own each time."""
        call = replace(publishing_call(self._contract, checkpoint, batch_root), effect=effect)
        return self._sender.send(issuer, call, now_s=now_s)

    def events_of(self, receipt: TxReceipt) -> tuple[AnchoredBatch, ...]:
        """The batches that a transaction published; none if they stood there before."""
        events = self._event().process_receipt(receipt)
        return tuple(_anchored(event) for event in events if event["address"] == self.registry)

    def anchored(self, issuer: str, *, from_block: int, to_block: int) -> tuple[AnchoredBatch, ...]:
        """What an issuer published in a range of blocks, both ends included."""
        event, padded = self._event(), "0x" + to_canonical_address(issuer).rjust(32, b"\0").hex()
        logs = read_logs(self._w3, self.registry, [event.topic, padded], from_block, to_block)
        return tuple(_anchored(event.process_log(log)) for log in logs)

    def is_root_anchored(self, issuer: str, leaf: bytes, checkpoint: Checkpoint, siblings: Sequence[bytes]) -> bool:
        """Whether ``issuer`` published a statement's leaf. Published, not verified."""
        path = (_abi(checkpoint), list(siblings))
        return bool(self._contract.functions.isRootAnchored(issuer, leaf, path).call())

    def is_entry_anchored(
        self,
        issuer: str,
        entry_hash: bytes,
        checkpoint: Checkpoint,
        batch_root: bytes,
        *,
        index: int,
        audit: Sequence[bytes],
    ) -> bool:
        """Whether an entry of the ledger is under a checkpoint that ``issuer`` published with a batch (RFC 6962)."""
        path = (_abi(checkpoint), batch_root, index, list(audit))
        return bool(self._contract.functions.isEntryAnchored(issuer, entry_hash, path).call())

    def anchored_at(self, issuer: str, node: bytes) -> int | None:
        """The block time, in Unix seconds, at which ``issuer`` published a node; None if it never did."""
        return int(self._contract.functions.anchoredAt(issuer, node).call()) or None

    def latest_size(self, issuer: str, origin: str) -> int:
        """Size of the largest checkpoint of a log that ``issuer`` published, 0 if there is none."""
        size, _ = self._contract.functions.latestCheckpoint(issuer, _log_id(origin)).call()
        return int(size)

    def _event(self) -> Any:
        return self._contract.events["BatchAnchored"]()


def _log_id(origin: str) -> bytes:
    return keccak(text=origin)


def _abi(checkpoint: Checkpoint) -> tuple[bytes, int, bytes]:
    return _log_id(checkpoint.origin), checkpoint.size, checkpoint.root


def _anchored(event: EventData) -> AnchoredBatch:
    args = event["args"]
    return AnchoredBatch(
        issuer=args["issuer"],
        log_id=bytes(args["logId"]),
        batch_root=bytes(args["batchRoot"]),
        node=bytes(args["node"]),
        size=args["size"],
        root=bytes(args["root"]),
        tx_hash=bytes(event["transactionHash"]),
        log_index=event["logIndex"],
        block_number=event["blockNumber"],
        block_hash=bytes(event["blockHash"]),
    )
