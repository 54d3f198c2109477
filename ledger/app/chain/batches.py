"""Published batches on one chain, until they are final: which of them a deep reorganisation undid.

An undone batch is published again by the stage that published it: the same bytes, where they can still be included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ledger.app.chain.batch_trail import standing
from ledger.app.chain.blocks import Look
from ledger.app.ports.chain import WatchedChain
from ledger.app.ports.store import Database, Transaction
from ledger.app.work.outbox import Stage
from ledger.domain.events.batch_events import BATCH_FINALIZED, BATCH_FORMED, BATCH_PAYLOADS, BATCH_UNDONE, HOME
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.domain.record.naming import batches_stream
from ledger.domain.time.instant import Clock
from ledger.errors import VersionConflict

MAX_BATCHES: Final = 500
"""Batches of a target that one look follows, the newest of them."""

_Place: TypeAlias = tuple[str, int]
"""Stream and version of the event that says where a batch was published."""


class BatchWatch:
    """Follows the batches at one registry. ``missing`` are those that the last look did not find where they were
    published, and ``left`` says whether any was not final."""

    def __init__(self, database: Database, chain: WatchedChain, clock: Clock, notify: Callable[[str], None]) -> None:
        self._database = database
        self._clock = clock
        self._notify = notify
        self._at: dict[str, Any] = {"chain_id": chain.chain_id, "registry": chain.contract, "limit": MAX_BATCHES}
        self._targets = HOME, str(chain.chain_id)
        self.missing: frozenset[_Place] = frozenset()
        self.left = True

    def check(self, now: Look) -> None:
        """Log which batches are final, and have those published again that a deep reorganisation undid.

        The second look in a row that misses one says so, and of all that it misses of that target.
        """
        missing, left = set[_Place](), False
        for target in self._targets:
            stream = batches_stream(target)
            with self._database.read() as tx:
                published = standing(tx, stream, **self._at)
            left = left or bool(published)
            lost = [event for event in published if now.lost(*_placed(event))]
            places = {(stream, event.version) for event in lost}
            if places & self.missing:
                self._undo(target, lost)
            elif lost:
                missing |= places
            else:
                self._finalize(stream, published, now)
        self.missing, self.left = frozenset(missing), left

    def _undo(self, target: str, lost: Sequence[StoredEvent]) -> None:
        """All at once and in their order, which is the one in which the registry takes them."""
        stage = Stage.PUBLISH if target == HOME else Stage.PUBLISH_FURTHER

        def undone(tx: Transaction) -> list[NewEvent]:
            return [self._event(BATCH_UNDONE, event.payload) for event in lost if _newest_word(tx, event)]

        for number in self._say(batches_stream(target), undone, then=stage):
            self._notify(f"a deep reorganisation undid batch {number} for {target}; it is published again")

    def _finalize(self, stream: str, published: Sequence[StoredEvent], now: Look) -> None:
        def final(tx: Transaction) -> list[NewEvent]:
            return [
                self._event(BATCH_FINALIZED, {**event.payload, "confirmations": now.heights.latest - number + 1})
                for event in published
                if (number := event.payload["block_number"]) <= now.final and _newest_word(tx, event)
            ]

        self._say(stream, final)

    def _event(self, kind: str, published: Mapping[str, Any]) -> NewEvent:
        payload = {name: value for name, value in published.items() if name in BATCH_PAYLOADS[kind]}
        return NewEvent(kind, payload, occurred_at_ns=self._clock.now_ns())

    def _say(
        self, stream: str, events_of: Callable[[Transaction], list[NewEvent]], *, then: Stage | None = None
    ) -> list[int]:
        """Append to a target's stream, and queue what follows; the numbers of the batches that it was about."""
        try:
            with self._database.begin() as tx:
                # Before the look: what others say between the two is a conflict then, and is not missed.
                version = tx.events.length(stream)
                events = events_of(tx)
                receipts = tx.events.append(stream, events, expected_version=version) if events else ()
                if then is not None:
                    for receipt in receipts:
                        tx.outbox.add(receipt.event_id, then)
        except VersionConflict:
            # Somebody else has said something of them; the next look reads what.
            return []
        return [int(event.payload["number"]) for event in events]


def _placed(published: StoredEvent) -> tuple[str, int, str]:
    payload = published.payload
    return payload["tx_hash"], payload["block_number"], payload["block_hash"]


def _newest_word(tx: Transaction, published: StoredEvent) -> bool:
    """Whether nothing was said of a batch since it was published."""
    later = tx.events.stream(published.stream, start=published.version + 1)
    number = published.payload["number"]
    return not any(each.payload["number"] == number and each.type != BATCH_FORMED for each in later)
