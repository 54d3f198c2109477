"""Everything that storage in memory holds, and the hand that a transaction has on it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ledger.app.ports.chain import StoredTransaction
from ledger.app.ports.keys import ApiKey
from ledger.app.ports.store import DeliveryAttempt
from ledger.domain.record.events import StoredEvent
from ledger.errors import ReadOnlyTransaction
from ledger.store.appending import (
    AppendRequest,
)
from ledger.store.log import SignedCheckpoint
from ledger.store.memory_chain import HeldLook
from ledger.store.memory_outbox import Job
from ledger.store.projections import RowChange


@dataclass(slots=True)
class MemoryState:
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
    chain_looks: dict[tuple[int, str], HeldLook] = field(default_factory=dict)
    followers: dict[str, int] = field(default_factory=dict)
    attempts: list[tuple[str, DeliveryAttempt]] = field(default_factory=list)
    secrets: dict[tuple[str, str], bytes] = field(default_factory=dict)
    keys: dict[str, ApiKey] = field(default_factory=dict)
    views: dict[tuple[str, ...], RowChange] = field(default_factory=dict)

    def copy(self) -> MemoryState:
        """What a writer may change without the committed state seeing it."""
        return MemoryState(
            log=list(self.log),
            streams=dict(self.streams),
            requests=dict(self.requests),
            tiles=dict(self.tiles),
            checkpoints=dict(self.checkpoints),
            batches=dict(self.batches),
            identities=dict(self.identities),
            jobs={key: replace(job) for key, job in self.jobs.items()},
            chain=dict(self.chain),
            chain_looks=dict(self.chain_looks),
            followers=dict(self.followers),
            attempts=list(self.attempts),
            secrets=dict(self.secrets),
            keys=dict(self.keys),
            views=dict(self.views),
        )


@dataclass(frozen=True, slots=True)
class MemoryHandle:
    """The state a transaction works on; ``changing`` is the way to it for everything that writes."""

    state: MemoryState
    writable: bool

    @property
    def changing(self) -> MemoryState:
        if not self.writable:
            raise ReadOnlyTransaction("this transaction only reads; begin one that writes")
        return self.state
