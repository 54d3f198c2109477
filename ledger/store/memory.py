"""The whole storage in one process's memory, for tests of what stands on it.

Transactions are real: a writer works on a copy of the state that replaces the committed one at the end, so that
readers see one state throughout and a failed writer leaves nothing behind. The rules of the ports live in the
modules shared with SQL; here are only the rows.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ledger.app.erasure import not_erasable
from ledger.app.keys_port import ApiKey
from ledger.app.ports import DeliveryAttempt, Randomness, Receipt, StoredTransaction, Transaction
from ledger.domain import upcast
from ledger.domain.events import ERASABLE_CLASS, ErasedPayload, NewEvent, StoredEvent, payload_commitment
from ledger.domain.instant import Clock
from ledger.errors import ReadOnlyTransaction
from ledger.merkle.tile import TileId
from ledger.merkle.tree import grow
from ledger.store.api_keys import key_taken, no_key
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
from ledger.store.batches import no_batch
from ledger.store.following import Following
from ledger.store.log import SignedCheckpoint, StoredLog
from ledger.store.memory_chain import MemoryChain
from ledger.store.memory_outbox import Job, MemoryOutbox
from ledger.store.memory_webhooks import MemoryDeliveries, MemoryFollowers
from ledger.store.projections import RowChange, apply, forget, rebuild, types_beside
from ledger.store.queries import StoredViews, telling_order
from ledger.store.secrets import no_secret, other_secret
from ledger.store.view_rows import ViewRow


@dataclass(slots=True)
class _State:
    """Everything stored. Values are immutable or replaced whole, so that a copy of the containers is a copy."""

    log: list[StoredEvent] = field(default_factory=list)
    streams: dict[tuple[str, str], tuple[StoredEvent, ...]] = field(default_factory=dict)
    requests: dict[tuple[str, str], AppendRequest] = field(default_factory=dict)
    tiles: dict[tuple[int, int], bytes] = field(default_factory=dict)
    checkpoints: dict[int, SignedCheckpoint] = field(default_factory=dict)
    batches: dict[tuple[str, str], bytes] = field(default_factory=dict)
    identities: dict[tuple[str, str, str, bytes], frozenset[bytes]] = field(default_factory=dict)
    jobs: dict[tuple[str, str], Job] = field(default_factory=dict)
    chain: dict[str, StoredTransaction] = field(default_factory=dict)
    followers: dict[str, int] = field(default_factory=dict)
    attempts: list[tuple[str, DeliveryAttempt]] = field(default_factory=list)
    secrets: dict[tuple[str, str], bytes] = field(default_factory=dict)
    keys: dict[str, ApiKey] = field(default_factory=dict)
    views: dict[tuple[str, ...], RowChange] = field(default_factory=dict)

    def copy(self) -> _State:
        return _State(
            log=list(self.log),
            streams=dict(self.streams),
            requests=dict(self.requests),
            tiles=dict(self.tiles),
            checkpoints=dict(self.checkpoints),
            batches=dict(self.batches),
            identities=dict(self.identities),
            jobs={key: replace(job) for key, job in self.jobs.items()},
            chain=dict(self.chain),
            followers=dict(self.followers),
            attempts=list(self.attempts),
            secrets=dict(self.secrets),
            keys=dict(self.keys),
            views=dict(self.views),
        )


@dataclass(slots=True)
class _Committed:
    """The committed state, which the databases of all tenants share."""

    state: _State = field(default_factory=_State)
    one_writer: threading.Lock = field(default_factory=threading.Lock)


class MemoryDatabase(Following):
    """``ledger.app.ports.Database`` in memory; see the module."""

    def __init__(self, clock: Clock, randomness: Randomness, tenant: str = "default") -> None:
        self._clock = clock
        self._randomness = randomness
        self._tenant = tenant
        self._committed = _Committed()

    def of_tenant(self, tenant: str) -> MemoryDatabase:
        """The same database, seen as this tenant."""
        other = MemoryDatabase(self._clock, self._randomness, tenant)
        other._committed = self._committed
        return other

    @contextmanager
    def begin(self) -> Iterator[Transaction]:
        with self._committed.one_writer:
            state = self._committed.state.copy()
            yield self._transaction(state, writable=True)
            self._committed.state = state

    @contextmanager
    def _snapshot(self) -> Iterator[Transaction]:
        yield self._transaction(self._committed.state, writable=False)

    def rebuild_views(self) -> int:
        """Make every view anew from the events; the number of events read."""
        with self._committed.one_writer:
            state = self._committed.state.copy()
            events = map(upcast.current, state.log)
            count = rebuild(events, _ViewRows(_Handle(state, writable=True), self._tenant))
            self._committed.state = state
        return count

    def close(self) -> None:
        """Nothing to close."""

    def _transaction(self, state: _State, *, writable: bool) -> MemoryTransaction:
        handle, tenant = _Handle(state, writable=writable), self._tenant
        views = _ViewRows(handle, tenant)
        return MemoryTransaction(
            events=_Events(handle, tenant, self._clock, self._randomness, views),
            log=StoredLog(_LogRows(handle)),
            batches=_Batches(handle, tenant),
            identities=_Identities(handle, tenant),
            outbox=MemoryOutbox(handle),
            chain=MemoryChain(handle),
            followers=MemoryFollowers(handle),
            deliveries=MemoryDeliveries(handle, tenant),
            secrets=_Secrets(handle, tenant),
            keys=_Keys(handle, tenant),
            views=StoredViews(views),
        )


@dataclass(frozen=True, slots=True)
class _Handle:
    """The state a transaction works on; ``changing`` is the way to it for everything that writes."""

    state: _State
    writable: bool

    @property
    def changing(self) -> _State:
        if not self.writable:
            raise ReadOnlyTransaction("this transaction only reads; begin one that writes")
        return self.state


@dataclass(frozen=True, slots=True)
class _Events:
    handle: _Handle
    tenant: str
    clock: Clock
    randomness: Randomness
    views: _ViewRows

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
        growth = grow(len(state.log), drafts.leaf_hashes, _LogRows(self.handle).tiles)
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

    def stream(self, stream: str) -> Iterator[StoredEvent]:
        return map(upcast.current, self.handle.state.streams.get((self.tenant, stream), ()))

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
class _LogRows:
    handle: _Handle

    def size(self) -> int:
        return len(self.handle.state.log)

    def tiles(self, wanted: Sequence[TileId]) -> Mapping[TileId, bytes]:
        tiles = self.handle.state.tiles
        return {tile: tiles[tile.level, tile.index] for tile in wanted if (tile.level, tile.index) in tiles}

    def checkpoint(self, size: int | None) -> SignedCheckpoint | None:
        known = self.handle.state.checkpoints
        return known.get(max(known, default=0) if size is None else size)

    def add_checkpoint(self, checkpoint: SignedCheckpoint) -> None:
        self.handle.changing.checkpoints[checkpoint.size] = checkpoint


@dataclass(frozen=True, slots=True)
class _Batches:
    handle: _Handle
    tenant: str

    def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self.handle.changing.batches[self.tenant, digest] = bytes(data)
        return digest

    def get(self, digest: str) -> bytes:
        data = self.handle.state.batches.get((self.tenant, digest))
        if data is None:
            raise no_batch(digest)
        return data


@dataclass(frozen=True, slots=True)
class _Identities:
    handle: _Handle
    tenant: str

    def known(self, sla_id: str, source: str, ids: Sequence[bytes]) -> Mapping[bytes, frozenset[bytes]]:
        rows = self.handle.state.identities
        found = ((each, rows.get((self.tenant, sla_id, source, each))) for each in ids)
        return {each: bodies for each, bodies in found if bodies is not None}

    def reserve(self, sla_id: str, source: str) -> None:
        """Nothing to do: transactions that write come one after the other."""

    def add(self, sla_id: str, source: str, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        rows = self.handle.changing.identities
        for each, body in pairs:
            key = (self.tenant, sla_id, source, each)
            rows[key] = rows.get(key, frozenset()) | {body}


@dataclass(frozen=True, slots=True)
class _Secrets:
    handle: _Handle
    tenant: str

    def put(self, name: str, value: bytes) -> None:
        if self.handle.changing.secrets.setdefault((self.tenant, name), value) != value:
            raise other_secret(name)

    def get(self, name: str) -> bytes:
        value = self.handle.state.secrets.get((self.tenant, name))
        if value is None:
            raise no_secret(name)
        return value


@dataclass(frozen=True, slots=True)
class _Keys:
    handle: _Handle
    tenant: str

    def add(self, key: ApiKey) -> None:
        rows = self.handle.changing.keys
        if key.key_id in rows:
            raise key_taken(key.key_id)
        rows[key.key_id] = replace(key, tenant=self.tenant)

    def find(self, key_id: str) -> ApiKey | None:
        return self.handle.state.keys.get(key_id)

    def all(self) -> Sequence[ApiKey]:
        own = (key for key in self.handle.state.keys.values() if key.tenant == self.tenant)
        return sorted(own, key=lambda key: (key.created_at_ns, key.key_id))

    def revoke(self, key_id: str, now_ns: int) -> ApiKey:
        key = self.handle.state.keys.get(key_id)
        if key is None or key.tenant != self.tenant:
            raise no_key(key_id)
        if key.revoked_at_ns is None:
            key = replace(key, revoked_at_ns=now_ns)
            self.handle.changing.keys[key_id] = key
        return key


@dataclass(frozen=True, slots=True)
class _ViewRows:
    """View rows under (view, tenant, key): written by projections, read by queries."""

    handle: _Handle
    tenant: str

    def clear(self) -> None:
        self.handle.changing.views.clear()

    def write(self, changes: Iterable[RowChange]) -> None:
        rows = self.handle.changing.views
        for change in changes:
            rows[self._place(change)] = change

    def remove(self, change: RowChange) -> bool:
        rows, place = self.handle.changing.views, self._place(change)
        if place not in rows or rows[place].seq != change.seq:
            return False
        del rows[place]
        return True

    def _place(self, change: RowChange) -> tuple[str, ...]:
        return change.view, change.tenant, *(str(part) for part in change.key.values())

    def rows(self, view: str, **equal: Any) -> Sequence[ViewRow]:
        found = (change for key, change in self.handle.state.views.items() if key[:2] == (view, self.tenant))
        rows = (ViewRow({**change.key, **change.columns}, change.body, change.seq) for change in found)
        return [row for row in rows if all(row.columns[name] == value for name, value in equal.items())]

    def rows_among(self, view: str, name: str, values: Collection[str]) -> Sequence[ViewRow]:
        return [row for row in self.rows(view) if row.columns[name] in values]

    def page(
        self,
        view: str,
        order: tuple[str, ...],
        *,
        after: tuple[Any, ...] | None,
        before: Any = None,
        limit: int,
        **equal: Any,
    ) -> Sequence[ViewRow]:
        def place(row: ViewRow) -> tuple[Any, ...]:
            return tuple(row.columns[name] for name in order)

        def fits(row: ViewRow) -> bool:
            asked = ((row.columns[name], value) for name, value in equal.items())
            return all(found in value if isinstance(value, frozenset) else found == value for found, value in asked)

        rows = (row for row in self.rows(view) if fits(row) and (after is None or place(row) > after))
        return sorted((row for row in rows if before is None or place(row)[0] < before), key=place)[:limit]

    def tenants(self, view: str) -> Sequence[str]:
        return sorted({tenant for name, tenant, *_ in self.handle.state.views if name == view})

    def telling(self, view: str, service: str, start_ns: int, end_ns: int, limit: int) -> Sequence[ViewRow]:
        best: dict[str, ViewRow] = {}
        for row in sorted(self.rows(view, service=service), key=telling_order):
            if row.columns["from_ns"] < end_ns and row.columns["to_ns"] > start_ns:
                best.setdefault(row.columns["series"], row)
        return list(best.values())[:limit]


@dataclass(frozen=True, slots=True)
class MemoryTransaction:
    """``ledger.app.ports.Transaction`` in memory."""

    events: _Events
    log: StoredLog
    batches: _Batches
    identities: _Identities
    outbox: MemoryOutbox
    chain: MemoryChain
    followers: MemoryFollowers
    deliveries: MemoryDeliveries
    secrets: _Secrets
    keys: _Keys
    views: StoredViews
