"""The whole storage in one process's memory, for tests of what stands on it.

Transactions are real: a writer works on a copy of the state that replaces the committed one at the end, so that
readers see one state throughout and a failed writer leaves nothing behind. The rules of the ports live in the
modules shared with SQL; here are only the rows.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ledger.app.ports.keys import ApiKey
from ledger.app.ports.store import Randomness, Transaction
from ledger.domain.events import upcast
from ledger.domain.time.instant import Clock
from ledger.store.api_keys import key_taken, no_key
from ledger.store.batches import no_batch
from ledger.store.following import Following
from ledger.store.log import StoredLog
from ledger.store.memory_chain import MemoryChain, MemoryChainLooks
from ledger.store.memory_events import MemoryEvents, MemoryLogRows
from ledger.store.memory_outbox import MemoryOutbox
from ledger.store.memory_state import MemoryHandle, MemoryState
from ledger.store.memory_views import MemoryViewRows
from ledger.store.memory_webhooks import MemoryDeliveries, MemoryFollowers
from ledger.store.projections import rebuild
from ledger.store.queries import StoredViews
from ledger.store.secrets import no_secret, other_secret


@dataclass(slots=True)
class _Committed:
    """The committed state, which the databases of all tenants share."""

    state: MemoryState = field(default_factory=MemoryState)
    one_writer: threading.Lock = field(default_factory=threading.Lock)


class MemoryDatabase(Following):
    """``ledger.app.ports.store.Database`` in memory; see the module."""

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
            count = rebuild(events, MemoryViewRows(MemoryHandle(state, writable=True), self._tenant))
            self._committed.state = state
        return count

    def close(self) -> None:
        """Nothing to close."""

    def _transaction(self, state: MemoryState, *, writable: bool) -> MemoryTransaction:
        handle, tenant = MemoryHandle(state, writable=writable), self._tenant
        views = MemoryViewRows(handle, tenant)
        return MemoryTransaction(
            events=MemoryEvents(handle, tenant, self._clock, self._randomness, views),
            log=StoredLog(MemoryLogRows(handle)),
            batches=_Batches(handle, tenant),
            identities=_Identities(handle, tenant),
            outbox=MemoryOutbox(handle),
            chain=MemoryChain(handle),
            chain_looks=MemoryChainLooks(handle),
            followers=MemoryFollowers(handle),
            deliveries=MemoryDeliveries(handle, tenant),
            secrets=_Secrets(handle, tenant),
            keys=_Keys(handle, tenant),
            views=StoredViews(views),
        )


@dataclass(frozen=True, slots=True)
class _Batches:
    handle: MemoryHandle
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
    handle: MemoryHandle
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
    handle: MemoryHandle
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
    handle: MemoryHandle
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
class MemoryTransaction:
    """``ledger.app.ports.store.Transaction`` in memory."""

    events: MemoryEvents
    log: StoredLog
    batches: _Batches
    identities: _Identities
    outbox: MemoryOutbox
    chain: MemoryChain
    chain_looks: MemoryChainLooks
    followers: MemoryFollowers
    deliveries: MemoryDeliveries
    secrets: _Secrets
    keys: _Keys
    views: StoredViews
