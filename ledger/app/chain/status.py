"""What is known of chains without asking a node: stored transactions, the last looks, and what others did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypedDict

from ledger.app.ports.chain import ChainLook, StateTally, TransactionState
from ledger.app.ports.store import Transaction
from ledger.domain.record.events import StoredEvent
from ledger.domain.record.naming import registry_stream
from ledger.domain.time.instant import SECOND_NS

STATES: Final[tuple[TransactionState, ...]] = ("submitted", "included", "safe", "finalized", "failed")
_ON_ITS_WAY: Final = frozenset({"submitted", "included", "safe"})
_OF_STANDING: Final[Mapping[str, TransactionState]] = {
    "recorded": "included",
    "confirmed": "included",
    "undone": "submitted",
    "final": "finalized",
}
"""What is known of the transaction of an anchor that another party sent."""


class ChainTransactionStatus(TypedDict):
    """One stored transaction; block and hash are None until it is in one.

    ``reason`` says why the embedded chain does not hold it as it stood before; None where it does, and on other chains.
    """

    ordinal: int
    purpose: str
    tx_hash: str
    state: TransactionState
    block_number: int | None
    block_hash: str | None
    reason: str | None


class ChainStatus(TypedDict):
    """The chain that statements are anchored on.

    ``kind`` is ``embedded``, in this process and rebuilt at its start, or ``rpc``, that of a node. ``chain_id`` is None
    where the node was not reached yet, and ``error`` then says why; ``registry`` is None before deployment. ``total``
    counts the stored transactions; ``transactions`` are all of an embedded chain's and the newest of another's, oldest
    first.
    """

    kind: str
    chain_id: int | None
    registry: str | None
    error: str | None
    total: int
    transactions: list[ChainTransactionStatus]


@dataclass(frozen=True, slots=True)
class ChainProgress:
    """How far the transactions of all chains have come by ``at_ns``, and the last look at every contract."""

    at_ns: int = 0
    tallies: Sequence[StateTally] = ()
    looks: Sequence[ChainLook] = ()

    def count(self, state: TransactionState) -> int:
        return sum(tally.count for tally in self.tallies if tally.state == state)

    @property
    def waiting_s(self) -> int:
        """Age of the oldest transaction that is neither finalized nor failed; 0 where there is none."""
        since = [each.oldest_s for each in self.tallies if each.state in _ON_ITS_WAY and each.oldest_s is not None]
        return max(self.at_ns // SECOND_NS - min(since), 0) if since else 0

    @property
    def unlooked_s(self) -> int:
        """Age of the oldest of the last looks; 0 where nothing is looked at."""
        return max((self.at_ns - look.looked_at_ns for look in self.looks), default=0) // SECOND_NS

    @property
    def failing(self) -> int:
        """Contracts whose last look failed."""
        return sum(look.error is not None for look in self.looks)

    @property
    def of_others(self) -> int:
        return sum(look.of_others for look in self.looks)


def read_progress(tx: Transaction, now_ns: int) -> ChainProgress:
    return ChainProgress(now_ns, tx.chain.tallies(), tx.chain_looks.all())


def events_of_others(tx: Transaction, limit: int) -> Sequence[StoredEvent]:
    """What others did at the registries that concerns the tenant, as it was logged, the newest first."""
    streams = (registry_stream(look.chain_id, look.contract) for look in tx.chain_looks.all())
    found = [event for stream in streams for event in _newest(tx, stream, limit)]
    return sorted(found, key=lambda event: (event.recorded_at_ns, event.version), reverse=True)[:limit]


def _newest(tx: Transaction, stream: str, limit: int) -> list[StoredEvent]:
    """The last ``limit`` events of a stream that are not erased, read from its end."""
    found: list[StoredEvent] = []
    end = tx.events.length(stream)
    while end and len(found) < limit:
        start = max(end - limit, 0)
        page = islice(tx.events.stream(stream, start=start), end - start)
        found = [event for event in page if not event.erased] + found
        end = start
    return found[-limit:]


def with_states(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows of statements whose anchors say how far their transactions have come."""
    states = tx.chain.states([row["anchor"]["tx_hash"] for row in rows if row["anchor"] is not None])
    return [row if row["anchor"] is None else {**row, "anchor": _with_state(row["anchor"], states)} for row in rows]


def _with_state(anchor: Mapping[str, Any], states: Mapping[str, TransactionState]) -> dict[str, Any]:
    return {**anchor, "state": states.get(anchor["tx_hash"], _OF_STANDING[anchor["standing"]])}
