"""What the use cases need from outside: storage, log, prover, chain, time and randomness.

Adapters implement these protocols; ``tests/conformance`` runs one suite over every storage adapter.
A ``Transaction`` is one database transaction: everything done through it commits or rolls back together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from ledger.app.ports.chain import ChainLooks, ChainTransactions
from ledger.app.ports.keys import ApiKeys
from ledger.app.ports.outbox import Outbox
from ledger.app.ports.views import Views
from ledger.domain.record.events import NewEvent, StoredEvent

WAIT_TIMEOUT_S = 10.0
"""How long readers wait for the sequencer: many times its period."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an appender gets back: where each event stands in its stream and in the log.

    ``seq`` is None where the log gives places in batches after the commit: ``Database.wait_sequenced`` waits.
    """

    event_id: str
    stream: str
    version: int
    seq: int | None

    @classmethod
    def of(cls, event: StoredEvent) -> Receipt:
        return cls(event.id, event.stream, event.version, event.seq)


class EventStore(Protocol):
    """Append-only streams. Versions count from 0 in each stream, ``seq`` from 0 over the whole log.

    Streams and ``by_id`` show an event as soon as it is stored, with ``seq`` None until it is sequenced; ``since``
    and ``at`` show what is in the log. A stream's events stand in the log in the order of their versions.
    """

    def append(
        self,
        stream: str,
        events: Sequence[NewEvent],
        *,
        expected_version: int | None,
        idempotency_key: str | None = None,
    ) -> tuple[Receipt, ...]:
        """Append events in order.

        ``expected_version`` is the version the first event must get (0: the stream must be new; None: any).
        The same ``idempotency_key`` with the same stream and payloads gives the first receipts again.
        Raises ``VersionConflict`` or ``IdempotencyConflict``, and then nothing is written.
        """
        ...

    def stream(self, stream: str, *, start: int = 0) -> Iterator[StoredEvent]:
        """The events of one stream from version ``start`` on, in order; empty where there is none."""
        ...

    def length(self, stream: str) -> int:
        """How many events one stream has: the next one's version."""
        ...

    def since(self, seq: int, *, limit: int = 1000) -> Sequence[StoredEvent]:
        """Up to ``limit`` events from ``seq`` on, in log order."""
        ...

    def at(self, seq: int) -> StoredEvent:
        """The event at ``seq``; raises ``NotFound``."""
        ...

    def by_id(self, event_id: str) -> StoredEvent:
        """The event with an id; raises ``NotFound``."""
        ...

    def forget_payload(self, event_id: str) -> None:
        """Delete salt and payload of an event of an erasable class.

        Its view rows go as soon as the record of the erasure is in the log: at once where an append puts it there.
        ``ledger.app.log.erasure`` records the erasure first, in the same transaction. Forgetting twice is a no-op.
        Raises ``NotFound`` or ``NotErasable``.
        """
        ...

    def places(self, event_ids: Sequence[str]) -> Mapping[str, int]:
        """``seq`` by event id, of those that are in the log."""
        ...


class TransparencyLog(Protocol):
    """The RFC 6962 tree over the events' entries."""

    def size(self) -> int: ...

    def hold(self) -> int:
        """The size, which stays as it is until the transaction ends: nobody gives events their place meanwhile."""
        ...

    def root(self, size: int) -> bytes:
        """Root of the first ``size`` leaves; raises ``NotFound`` past the end."""
        ...

    def tile(self, level: int, index: int, width: int) -> bytes:
        """The first ``width`` hashes of a tile; raises ``NotFound`` past the end."""
        ...

    def inclusion_proof(self, seq: int, size: int) -> tuple[bytes, ...]: ...

    def consistency_proof(self, old_size: int, new_size: int) -> tuple[bytes, ...]: ...

    def checkpoint(self, size: int | None = None) -> str | None:
        """The signed note for ``size``, or the newest one; None where none was signed."""
        ...

    def checkpoint_size(self) -> int | None:
        """Size of the newest signed checkpoint."""
        ...

    def save_checkpoint(self, size: int, root: bytes, note: str) -> None:
        """Keep a signed note; refuses one that contradicts the tree."""
        ...


class RawBatches(Protocol):
    """Raw fact batches by the SHA-256 of their bytes, kept until the claim deadline."""

    def put(self, data: bytes) -> str:
        """Store and return the lowercase hex digest; storing the same bytes again is a no-op."""
        ...

    def get(self, digest: str) -> bytes:
        """Raises ``NotFound``."""
        ...


class Followers(Protocol):
    """How far those who follow the log have come, each under its name."""

    def position(self, name: str) -> int:
        """The next ``seq`` to look at; 0 for a name nobody used yet."""
        ...

    def advance(self, name: str, *, before: int, now: int) -> None:
        """Go on from ``before`` to ``now``; raises ``VersionConflict`` where another process went on meanwhile."""
        ...


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """One try to deliver an event to a webhook endpoint; ``status`` is the answer's, None where there was none.

    It succeeded where ``error`` is None. ``attempt`` counts from 1 for each endpoint and event. ``retry_at_ns`` is when
    it is tried again; None: it is not.
    """

    endpoint_id: str
    event_id: str
    attempt: int
    at_ns: int
    duration_ms: int
    status: int | None
    error: str | None
    retry_at_ns: int | None


class Deliveries(Protocol):
    """What became of webhook messages, and who wants them."""

    def listeners(self) -> Sequence[tuple[str, str, frozenset[str]]]:
        """(tenant, endpoint_id, message types) of every active endpoint, of all tenants."""
        ...

    def record(self, attempt: DeliveryAttempt) -> None: ...

    def last(self, endpoint_id: str, event_id: str) -> DeliveryAttempt | None:
        """The last attempt to tell this endpoint of this event."""
        ...

    def of_endpoint(self, endpoint_id: str, *, after: int | None, limit: int) -> Sequence[tuple[int, DeliveryAttempt]]:
        """(ordinal, attempt) of an endpoint, newest first, those before the ordinal ``after``."""
        ...


class Secrets(Protocol):
    """Secret values that proofs and openings need and that never enter the log (block and base salts)."""

    def put(self, name: str, value: bytes) -> None:
        """Store once; the same value again is a no-op, another value raises ``VersionConflict``."""
        ...

    def get(self, name: str) -> bytes:
        """Raises ``NotFound``."""
        ...


class Identities(Protocol):
    """Which request ids a source has already reported, each with the digest of its first body.

    Its batches are remembered here, too (``ledger.app.facts.earlier_batches``), and samples of telemetry: with
    ``telemetry`` as sla_id and the service as source.
    """

    def known(self, sla_id: str, source: str, ids: Sequence[bytes]) -> Mapping[bytes, frozenset[bytes]]:
        """Body digests seen for those of ``ids`` (16-byte digests) that were reported before."""
        ...

    def reserve(self, sla_id: str, source: str) -> None:
        """Keep others from judging rows or windows of this source until the transaction ends: two batches at a time
        would both take a request id for new."""
        ...

    def add(self, sla_id: str, source: str, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Remember (id digest, body digest) pairs; repeated pairs are no-ops."""
        ...


class Transaction(Protocol):
    """Everything one use case reads and writes in one database transaction."""

    @property
    def events(self) -> EventStore: ...
    @property
    def log(self) -> TransparencyLog: ...
    @property
    def batches(self) -> RawBatches: ...
    @property
    def identities(self) -> Identities: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def chain(self) -> ChainTransactions: ...
    @property
    def chain_looks(self) -> ChainLooks: ...
    @property
    def followers(self) -> Followers: ...
    @property
    def deliveries(self) -> Deliveries: ...
    @property
    def secrets(self) -> Secrets: ...
    @property
    def keys(self) -> ApiKeys: ...
    @property
    def views(self) -> Views: ...


class Database(Protocol):
    """Opens transactions. ``begin`` may write and commits on a clean exit; ``read`` never writes.

    Writers need not wait for each other: two may meet, and then one of them gets ``VersionConflict`` from its
    append or ``StorageUnavailable`` from its commit, and starts again.
    """

    def of_tenant(self, tenant: str) -> Database:
        """The same database as another tenant sees it: streams, batches, secrets and views are the tenant's, the log
        and the outbox are everybody's."""
        ...

    def begin(self) -> AbstractContextManager[Transaction]: ...

    def read(
        self, *, min_seq: int | None = None, timeout_s: float = WAIT_TIMEOUT_S
    ) -> AbstractContextManager[Transaction]:
        """One state of the database throughout, in which log and views reflect at least ``min_seq``.

        Raises ``NotSequencedYet`` where that does not come about in time.
        """
        ...

    def append(
        self,
        stream: str,
        events: Sequence[NewEvent],
        *,
        expected_version: int | None,
        idempotency_key: str | None = None,
    ) -> tuple[Receipt, ...]:
        """``EventStore.append`` as a transaction of its own: one round trip where the database is far away."""
        ...

    def wait_sequenced(self, event_ids: Sequence[str], *, timeout_s: float = WAIT_TIMEOUT_S) -> tuple[int, ...]:
        """``seq`` of each event once all have one; raises ``NotSequencedYet`` after the timeout."""
        ...

    def subscribe(
        self, from_seq: int, *, stopping: Callable[[], bool], page: int = 1000
    ) -> Iterator[Sequence[StoredEvent]]:
        """Pages of events from ``from_seq`` on, in log order, each event once.

        At the end of the log it waits for more, also where ``from_seq`` lies past the end, until ``stopping``.
        To go on after a restart, subscribe from the ``seq`` after the last event that was dealt with.
        """
        ...


class Randomness(Protocol):
    """Where salts, nonces and ids come from; passed in so that runs can be repeated by seed."""

    def bytes(self, count: int) -> bytes: ...
