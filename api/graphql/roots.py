"""Batch roots: where a batch with a statement was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import strawberry

from api.graphql.scalars import Count

ROOTS = "The published batches that it is in, one of each chain at most"


@strawberry.type(description="A batch with a statement, published in the issuer's name: its proof was not looked at.")
class BatchRoot:
    chain_id: str
    registry: str
    issuer: str
    origin: str
    size: Count
    root: str
    batch_root: str
    node: str
    tx_hash: str
    block_number: int
    block_hash: str
    confirmations: int
    seq: Count


def roots_of(rows: Sequence[Mapping[str, Any]] | None) -> list[BatchRoot] | None:
    """None where the principal may not see them."""
    if rows is None:
        return None
    return [BatchRoot(**{name: row[name] for name in BatchRoot.__annotations__}) for row in rows]
