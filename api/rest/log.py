"""The log itself: its events as anyone can hash them again, its signed checkpoints, and the chain beneath."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import MediaType

from api.parameters import Limit, Since, TreeSize
from api.rest.reading import Asked, reads
from api.rest.values import Decimal, Digest, Seq
from ledger.app.queries import ChainStatus
from ledger.domain.events import StoredEvent
from ledger.merkle.hasher import leaf_hash


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A leaf with all it takes to check it.

    `leaf_hash` = SHA-256(0x00, RFC 8785 of `header`); the header's `payload_commitment` =
    SHA-256("sla-ledger/payload/v1" and a line feed, `salt`, RFC 8785 of `payload`).
    """

    seq: Seq
    header: dict[str, Any]
    payload: Annotated[dict[str, Any] | None, msgspec.Meta(description="Null where it was erased")]
    salt: Annotated[Digest | None, msgspec.Meta(description="Null where the payload was erased")]
    leaf_hash: Digest


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Events in log order. `next_since` asks for those that follow, now or later; `log_size` is the end for now."""

    items: list[Event]
    next_since: int
    log_size: int


class ChainTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """A stored transaction. Block and hash are null until it was seen in one."""

    ordinal: int
    purpose: str
    tx_hash: str
    block_number: int | None
    block_hash: str | None
    replayed: Annotated[
        bool, msgspec.Meta(description="Embedded chain: whether it stands exactly as it stood before; else true")
    ]
    reason: Annotated[str | None, msgspec.Meta(description="Why it does not")]


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """The chain that statements are anchored on.

    The embedded one lives in memory and was rebuilt from stored transactions at the start. Of a node's chain the
    newest hundred stored transactions are shown.
    """

    kind: Annotated[str, msgspec.Meta(description="embedded, or rpc: the chain of a node")]
    chain_id: Annotated[Decimal | None, msgspec.Meta(description="Null where the node was not reached yet")]
    registry: str | None
    error: Annotated[str | None, msgspec.Meta(description="Why the node was not reached")]
    total: Annotated[int, msgspec.Meta(description="Transactions stored for this chain")]
    replayed: Annotated[int, msgspec.Meta(description="Transactions that stand as they stood before")]
    not_replayed: Annotated[int, msgspec.Meta(description="Transactions that do not; each says why")]
    transactions: list[ChainTransaction]


@reads("/v1/events", summary="Events of the log", tag="log")
def list_events(queries: Asked, since: Since = 0, limit: Limit = 50) -> EventPage:
    """Events from a log position on, with salts and payloads, so that a reader can rebuild the whole tree."""
    found = queries.events(since, limit=limit)
    items = [_event(event) for event in found.events]
    return EventPage(items=items, next_since=found.events[-1].place + 1 if items else since, log_size=found.log_size)


@reads(
    "/v1/checkpoints/latest",
    summary="Newest checkpoint",
    tag="log",
    problems=(400, 404, 503),
    media_type=MediaType.TEXT,
)
def latest_checkpoint(queries: Asked) -> str:
    """The newest checkpoint: a C2SP tlog-checkpoint in a signed note."""
    return queries.checkpoint(None)


@reads(
    "/v1/checkpoints/{size:int}",
    summary="Checkpoint of a size",
    tag="log",
    problems=(400, 404, 503),
    media_type=MediaType.TEXT,
)
def get_checkpoint(queries: Asked, size: TreeSize) -> str:
    """The signed checkpoint of exactly this many leaves."""
    return queries.checkpoint(size)


@reads("/v1/chain", summary="The chain of the anchors", tag="chain", problems=(400,))
def get_chain(queries: Asked) -> Chain:
    """The chain's stored transactions; of the embedded one also which could not be replayed, with the reasons."""
    return _chain(queries.chain())


def _event(event: StoredEvent) -> Event:
    return Event(
        seq=event.place,
        header=event.header,
        payload=None if event.erased else dict(event.committed_payload),
        salt=None if event.erased else event.salt.hex(),
        leaf_hash=leaf_hash(event.entry).hex(),
    )


def _chain(status: ChainStatus) -> Chain:
    transactions = [
        ChainTransaction(**transaction, replayed=transaction["reason"] is None)
        for transaction in status["transactions"]
    ]
    replayed = sum(transaction.replayed for transaction in transactions)
    return Chain(
        kind=status["kind"],
        chain_id=None if status["chain_id"] is None else str(status["chain_id"]),
        registry=status["registry"],
        error=status["error"],
        total=status["total"],
        replayed=replayed,
        not_replayed=len(transactions) - replayed,
        transactions=transactions,
    )
