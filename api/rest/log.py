"""The log itself: its events as anyone can hash them again, its signed checkpoints, and the chain beneath."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import MediaType

from api.parameters import Limit, Since, TreeSize
from api.rest.routes import PUBLIC, Seen, reads
from api.rest.values import Decimal, Digest, Instant, Seq, Withheld, instant
from ledger.app.access import Scope
from ledger.app.chain.status import STATES, ChainProgress, ChainStatus
from ledger.app.ports.chain import ChainLook
from ledger.app.reading.visible import VisibleEvent
from ledger.domain.record.events import StoredEvent
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


_STATE = "submitted, included, safe, finalized or failed (it reverted, or another has its nonce)"


class ChainTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """A stored transaction. Block and hash are null until it was seen in one."""

    ordinal: int
    purpose: str
    tx_hash: str
    state: Annotated[str, msgspec.Meta(description=_STATE)]
    block_number: int | None
    block_hash: str | None
    replayed: Annotated[
        bool, msgspec.Meta(description="Embedded chain: whether it stands exactly as it stood before; else true")
    ]
    reason: Annotated[str | None, msgspec.Meta(description="Why it does not")]


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What the watcher found when it last looked at a contract's chain."""

    chain_id: Decimal
    contract: str
    looked_at: Instant
    error: Annotated[str | None, msgspec.Meta(description="Why the look failed, or a part of it; or null")]
    latest: Annotated[int | None, msgspec.Meta(description="Number of the newest block")]
    safe: Annotated[int | None, msgspec.Meta(description="Of the newest safe block; null where the node names none")]
    finalized: Annotated[int | None, msgspec.Meta(description="Of the newest final block; null likewise")]
    next_block: Annotated[int, msgspec.Meta(description="The first block whose logs are read by the next look")]
    unread_from: Annotated[int | None, msgspec.Meta(description="First block whose logs no node gave; null: none")]
    unread_to: Annotated[int | None, msgspec.Meta(description="Last block whose logs no node gave")]
    of_others: Annotated[int, msgspec.Meta(description="Events of others that were logged; see /v1/chain/events")]


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
    states: Annotated[
        dict[str, int], msgspec.Meta(description="How many transactions are in which state, of all chains")
    ]
    unfinalized_seconds: Annotated[
        int, msgspec.Meta(description="Age of the oldest transaction that is neither finalized nor failed; 0: none is")
    ]
    looks: Annotated[list[Look], msgspec.Meta(description="The last look of the watcher at every contract")]


class RegistryEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that another party's transaction did at a registry and that concerns this ledger, as it was logged."""

    chain_id: Decimal
    registry: str
    name: Annotated[str, msgspec.Meta(description="The contract's event, such as StatementRecorded")]
    concerns: Annotated[
        str, msgspec.Meta(description="statement, registration: of one agreement; registry: all who use it")
    ]
    sla_id: Annotated[str | None, msgspec.Meta(description="The agreement; null where it concerns all")]
    arguments: Annotated[dict[str, str], msgspec.Meta(description="Numbers as digits, bytes as 0x and hex digits")]
    tx_hash: str
    block_number: int
    block_hash: str
    log_index: int
    seen: Instant
    seq: Annotated[int | None, msgspec.Meta(description="Its place in the log; null until it has one")]


class RegistryEvents(msgspec.Struct, frozen=True, kw_only=True):
    """The newest first."""

    items: list[RegistryEvent]


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


@reads("/v1/chain", summary="The chain of the anchors", tag="chain", scopes=(Scope.READ_LOG,), problems=(400, 503))
def get_chain(seen: Seen) -> Chain:
    """The chain's stored transactions and how far each has come; of the embedded one also which could not be replayed,
    with the reasons."""
    return _chain(seen.chain(), seen.chain_progress())


@reads(
    "/v1/chain/events",
    summary="What others did at the registry",
    tag="chain",
    scopes=(Scope.READ_LOG,),
    problems=(400, 503),
)
def list_registry_events(seen: Seen, limit: Limit = 50) -> RegistryEvents:
    """What another party's transactions did at the registry and concerns this ledger: a statement that the customer
    recorded first, terms that somebody else registered, a verifier that was retired, a pause. Each is logged once."""
    return RegistryEvents(items=[_registry_event(event) for event in seen.events_of_others(limit=limit)])


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


def _registry_event(event: StoredEvent) -> RegistryEvent:
    return RegistryEvent(**event.payload, seen=instant(event.recorded_at_ns), seq=event.seq)


def _look(look: ChainLook) -> Look:
    first, last = look.unread or (None, None)
    return Look(
        chain_id=str(look.chain_id),
        contract=look.contract,
        looked_at=instant(look.looked_at_ns),
        error=look.error,
        latest=look.latest,
        safe=look.safe,
        finalized=look.finalized,
        next_block=look.next_block,
        unread_from=first,
        unread_to=last,
        of_others=look.of_others,
    )


def _chain(status: ChainStatus, progress: ChainProgress) -> Chain:
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
        states={state: progress.count(state) for state in STATES},
        unfinalized_seconds=progress.waiting_s,
        looks=[_look(look) for look in progress.looks],
    )
