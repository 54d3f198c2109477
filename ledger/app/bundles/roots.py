"""The transactions and batch roots of a bundle: where a statement stands on chains."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ledger.app.chain.anchoring import recording_of
from ledger.app.ports.evidence import Attestor
from ledger.app.ports.store import Transaction
from ledger.domain.record.events import StoredEvent
from ledger.errors import NotFound


def bundle_roots(
    tx: Transaction, statement: StoredEvent, proof: StoredEvent | None, attestor: Attestor
) -> list[dict[str, Any]]:
    """The published batches that cover a statement, one of each chain at most, each with the way to it.

    ``proof`` is the event of its proof, if it has one.
    """
    found = []
    for root in tx.views.statement(statement.payload["statement_id"])["roots"]:
        placed = placed_members(tx, root)
        if placed is None:
            continue
        inclusion = tx.log.inclusion_proof(statement.place, root["size"])
        found.append(
            {
                **{name: root[name] for name in ("chain_id", "registry", "issuer", "size", "root", "batch_root")},
                "inclusion": [node.hex() for node in inclusion],
                "siblings": None if proof is None else _siblings(tx, proof, root, attestor),
                **placed,
            }
        )
    return found


def placed_members(tx: Transaction, placed: Mapping[str, Any]) -> dict[str, Any] | None:
    """A transaction as a bundle shows it; ``placed`` says where it stands.

    None where another party's transaction is of a type that no reader takes: nobody could check it.
    """
    raw = _signed_bytes(tx, placed)
    if raw is None:
        return None
    return {
        "raw_transaction": raw.hex(),
        **{name: placed[name] for name in ("tx_hash", "block_number", "block_hash")},
    }


def _siblings(tx: Transaction, proof: StoredEvent, root: Mapping[str, Any], attestor: Attestor) -> list[str]:
    leaves = [bytes.fromhex(leaf[2:]) for leaf in tx.events.by_id(root["batch_event"]).payload["leaves"]]
    return ["0x" + node.hex() for node in attestor.batch_path(leaves, attestor.leaf(recording_of(tx, proof.payload)))]


def _signed_bytes(tx: Transaction, placed: Mapping[str, Any]) -> bytes | None:
    if "raw_transaction" in placed:
        return tx.batches.get(placed["raw_transaction"])
    with suppress(NotFound):
        return tx.chain.by_hash(placed["tx_hash"]).raw
    return None
