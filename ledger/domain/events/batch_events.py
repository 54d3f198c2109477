"""Events about batch roots: what is put under one root for a chain, and where that root was published.

A batch is bound to the ledger it comes from by a signed checkpoint. It holds the leaves of the statements that were
proved in a range of the log; a statement without a proof in that range has no leaf and is covered by the checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ledger.domain.record.event_values import CHAIN_ID, EVENT_ID, SHA256
from ledger.domain.schema import Integer, ListOf, Shape, Text
from ledger.domain.terms.agreement_schema import BYTES32, EVM_ADDRESS

BATCH_FORMED: Final = "batch_formed"
BATCH_PUBLISHED: Final = "batch_published"
BATCH_UNDONE: Final = "batch_undone"
"""A published batch is not where it was published any more: a deep reorganisation dropped or moved it."""
BATCH_FINALIZED: Final = "batch_finalized"
"""The block of a published batch is final by the chain's own word; it is not looked at any more."""

HOME: Final = "home"
"""The target of batches for the chain that statements are recorded on."""

MAX_LEAVES: Final = 1000
"""Statements of one batch: what comes beyond waits for the next one."""

TARGET = Text(r"home|0|[1-9]\d{0,77}", "home, or the id of a further chain", 78)

_BATCH: Mapping[str, Shape] = {
    "target": TARGET,
    "number": Integer(),
    # Entries of the log [from_seq, until_seq): every target has its own batches, one after the other without a gap.
    "from_seq": Integer(),
    "until_seq": Integer(1),
    "origin": Text(max_length=120, what="the log's origin"),
    "size": Integer(1),
    "root": SHA256,
    "batch_root": BYTES32,
    "node": BYTES32,
}

_PUBLISHED: Mapping[str, Shape] = {
    **_BATCH,
    # The event that formed it.
    "batch_event": EVENT_ID,
    "chain_id": CHAIN_ID,
    "registry": EVM_ADDRESS,
    "issuer": EVM_ADDRESS,
    "tx_hash": BYTES32,
    "block_number": Integer(),
    "block_hash": BYTES32,
}

BATCH_PAYLOADS: Mapping[str, Mapping[str, Shape]] = {
    BATCH_FORMED: {**_BATCH, "leaves": ListOf(BYTES32, 0, MAX_LEAVES)},
    BATCH_PUBLISHED: {**_PUBLISHED, "confirmations": Integer(1)},
    # Where it had been published.
    BATCH_UNDONE: _PUBLISHED,
    BATCH_FINALIZED: {**_PUBLISHED, "confirmations": Integer(1)},
}
