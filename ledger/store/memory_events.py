"""Events and the rows of their log in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ledger.app.log.erasure import not_erasable
from ledger.app.ports.store import Randomness, Receipt
from ledger.domain.events import upcast
from ledger.domain.record.events import ERASABLE_CLASS, ErasedPayload, NewEvent, StoredEvent, payload_commitment
from ledger.domain.time.instant import Clock
from ledger.merkle.tile import TileId
from ledger.merkle.tree import grow
from ledger.store.appending import (
    AppendRequest,
    checked_payloads,
    draft,
    first_version,
    no_event,
    no_event_at,
    request_digest,
    requested,
    require_same_request,
)
from ledger.store.log import SignedCheckpoint
from ledger.store.memory_state import MemoryHandle
from ledger.store.memory_views import MemoryViewRows
from ledger.store.projections import apply, forget, types_beside


@dataclass(frozen=True, slots=True)
class MemoryEvents:
    """``ledger.app.ports.store.EventStore`` over the rows of one transaction."""

    handle: MemoryHandle
    tenant: str
    clock: Clock
    randomness: Randomness
    views: MemoryViewRows

    def append(
        self,
        stream: str,
        events: Sequence[NewEvent],
        *,
        expected_version: int | None,
        idempotency_key: str | None = None,
    ) -> tuple[Receipt, ...]:
        payloads = checked_payloads(stream, events, idempotency_key)
        state = self.handle.changing
        if idempotency_key is not None and (known := state.requests.get((self.tenant, idempotency_key))) is not None:
            first = state.streams[self.tenant, known.stream][known.first_version :][: known.events]
            again = requested(events, payloads, [event.salt for event in first])
            require_same_request(known, request_digest(stream, again))
            return tuple(Receipt.of(event) for event in first)
        before = state.streams.get((self.tenant, stream), ())
        version = first_version(stream, expected_version, len(before) - 1 if before else None)
        drafts = draft(
            events,
            payloads,
            tenant=self.tenant,
            stream=stream,
            version=version,
            now_ns=self.clock.now_ns(),
            randomness=self.randomness,
        )
        growth = grow(len(state.log), drafts.leaf_hashes, MemoryLogRows(self.handle).tiles)
        state.tiles |= {(tile.level, tile.index): data for tile, data in growth.tiles.items()}
        stored = tuple(drafts.stored(at, len(state.log) + at) for at in range(len(drafts)))
        state.log += stored
        state.streams[self.tenant, stream] = before + stored
        if idempotency_key is not None:
            digest = request_digest(stream, requested(events, payloads, drafts.salts))
            request = AppendRequest(idempotency_key, digest, stream, version, len(events))
            state.requests[self.tenant, idempotency_key] = request
        self.views.write(change for event in stored for change in apply(event))
        return tuple(Receipt.of(event) for event in stored)

    def stream(self, stream: str, *, start: int = 0) -> Iterator[StoredEvent]:
        return map(upcast.current, self.handle.state.streams.get((self.tenant, stream), ())[start:])

    def length(self, stream: str) -> int:
        return len(self.handle.state.streams.get((self.tenant, stream), ()))

    def since(self, seq: int, *, limit: int = 1000) -> Sequence[StoredEvent]:
        return [upcast.current(event) for event in self.handle.state.log[max(seq, 0) :][:limit]]

    def at(self, seq: int) -> StoredEvent:
        if not 0 <= seq < len(self.handle.state.log):
            raise no_event_at(seq)
        return upcast.current(self.handle.state.log[seq])

    def by_id(self, event_id: str) -> StoredEvent:
        for event in self.handle.state.log:
            if event.id == event_id:
                return upcast.current(event)
        raise no_event(event_id)

    def forget_payload(self, event_id: str) -> None:
        event = self.by_id(event_id)
        if event.payload_class != ERASABLE_CLASS:
            raise not_erasable(event)
        if event.erased:
            return
        state = self.handle.changing
        types = types_beside(event.type)
        same = [each for each in state.log[: event.place] if each.tenant == event.tenant and each.type in types]
        forget(event, map(upcast.current, reversed(same)), self.views)
        commitment = payload_commitment(event.committed_payload, event.salt)
        gone = replace(event, payload=ErasedPayload(event.id, commitment), salt=b"", original=None)
        state.log[event.place] = gone
        place = event.tenant, event.stream
        state.streams[place] = tuple(gone if each.id == event_id else each for each in state.streams[place])

    def places(self, event_ids: Sequence[str]) -> Mapping[str, int]:
        wanted = set(event_ids)
        return {event.id: event.place for event in self.handle.state.log if event.id in wanted}


@dataclass(frozen=True, slots=True)
class MemoryLogRows:
    """``ledger.store.log.LogRows`` over the rows of one transaction."""

    handle: MemoryHandle

    def size(self) -> int:
        return len(self.handle.state.log)

    def hold(self) -> None:
        """One transaction writes at a time."""

    def tiles(self, wanted: Sequence[TileId]) -> Mapping[TileId, bytes]:
        tiles = self.handle.state.tiles
        return {tile: tiles[tile.level, tile.index] for tile in wanted if (tile.level, tile.index) in tiles}

    def checkpoint(self, size: int | None) -> SignedCheckpoint | None:
        known = self.handle.state.checkpoints
        return known.get(max(known, default=0) if size is None else size)

    def add_checkpoint(self, checkpoint: SignedCheckpoint) -> None:
        self.handle.changing.checkpoints[checkpoint.size] = checkpoint
