"""The log itself: its events as anyone can hash them again, its signed checkpoints, and the chain beneath."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import MediaType

from api.parameters import Limit, Since, TreeSize
from api.rest.routes import PUBLIC, Seen, reads
from api.rest.values import Decimal, Digest, Seq, Withheld
from ledger.app.access import Scope
from ledger.app.queries import ChainStatus
from ledger.app.visible import VisibleEvent
from ledger.merkle.hasher import leaf_hash


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A leaf with all it takes to check it.

    `leaf_hash` = SHA-256(0x00, RFC 8785 of `header`); the header's `payload_commitment` =
    SHA-256("sla-ledger/payload/v1" and a line feed, `salt`, RFC 8785 of `payload`).
    """

    seq: Seq
    header: dict[str, Any]
    payload: Annotated[dict[str, Any] | None, msgspec.Meta(description="Null where it was erased or is withheld")]
    salt: Annotated[Digest | None, msgspec.Meta(description="Null where the payload is")]
    leaf_hash: Digest
    withheld: Withheld


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


@reads("/v1/events", summary="Events of the log", tag="log", scopes=(Scope.READ_LOG,))
def list_events(seen: Seen, since: Since = 0, limit: Limit = 50) -> EventPage:
    """Events from a log position on: every header, so that a reader can rebuild the whole tree, and the payloads and
    salts of the own tenant."""
    found = seen.events(since, limit=limit)
    items = [_event(event) for event in found.events]
    return EventPage(
        items=items, next_since=found.events[-1].event.place + 1 if items else since, log_size=found.log_size
    )


@reads(
    "/v1/checkpoints/latest",
    summary="Newest checkpoint",
    tag="log",
    scopes=PUBLIC,
    problems=(400, 404, 503),
    media_type=MediaType.TEXT,
)
def latest_checkpoint(seen: Seen) -> str:
    """The newest checkpoint: a C2SP tlog-checkpoint in a signed note."""
    return seen.checkpoint(None)


@reads(
    "/v1/checkpoints/{size:int}",
    summary="Checkpoint of a size",
    tag="log",
    scopes=PUBLIC,
    problems=(400, 404, 503),
    media_type=MediaType.TEXT,
)
def get_checkpoint(seen: Seen, size: TreeSize) -> str:
    """The signed checkpoint of exactly this many leaves."""
    return seen.checkpoint(size)


@reads("/v1/chain", summary="The chain of the anchors", tag="chain", scopes=(Scope.READ_LOG,), problems=(400,))
def get_chain(seen: Seen) -> Chain:
    """The chain's stored transactions; of the embedded one also which could not be replayed, with the reasons."""
    return _chain(seen.chain())


def _event(found: VisibleEvent) -> Event:
    event, shown = found.event, found.shown and not found.event.erased
    return Event(
        seq=event.place,
        header=event.header,
        payload=dict(event.committed_payload) if shown else None,
        salt=event.salt.hex() if shown else None,
        leaf_hash=leaf_hash(event.entry).hex(),
        withheld=[] if found.shown else ["payload", "salt"],
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
