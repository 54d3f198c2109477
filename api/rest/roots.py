"""Batch roots: where a batch with a statement was published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import msgspec

from api.rest.values import Address, Decimal, Digest, Seq, Word
from ledger.app.paging import Row


class BatchRoot(msgspec.Struct, frozen=True, kw_only=True):
    """Where a batch with this statement was published: in the issuer's name, without a look at its proof."""

    chain_id: Decimal
    registry: Address
    issuer: Annotated[Address, msgspec.Meta(description="The account that published it")]
    origin: Annotated[str, msgspec.Meta(description="The log whose checkpoint was published with it")]
    size: Annotated[int, msgspec.Meta(description="Size of that checkpoint")]
    root: Annotated[Digest, msgspec.Meta(description="Root of that checkpoint")]
    batch_root: Annotated[
        Word, msgspec.Meta(description="Root over the statements' leaves; zeros where none of them has a proof")
    ]
    node: Annotated[Word, msgspec.Meta(description="What the registry holds: both, hashed together")]
    tx_hash: Word
    block_number: int
    block_hash: Word
    confirmations: Annotated[int, msgspec.Meta(description="Blocks that stood when it was logged, its own included")]
    seq: Seq


Roots: TypeAlias = Annotated[
    list[BatchRoot] | None,
    msgspec.Meta(description="The published batches that it is in, one of each chain at most"),
]


def roots_of(rows: Sequence[Row] | None) -> list[BatchRoot] | None:
    """None where the principal may not see them."""
    return None if rows is None else [msgspec.convert(row, BatchRoot) for row in rows]
