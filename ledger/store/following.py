"""Reading a log that grows meanwhile: waiting for a position, and following from one on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from ledger.app.ports.store import WAIT_TIMEOUT_S, Receipt, Transaction
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.errors import NotSequencedYet

_POLL_S = 0.01
_IDLE_POLL_S = 0.05


class _Opens(Protocol):
    def begin(self) -> AbstractContextManager[Transaction]: ...

    def _snapshot(self) -> AbstractContextManager[Transaction]: ...


class Following:
    """The part of ``ledger.app.ports.store.Database`` that every adapter has in common.

    It asks again and again instead of being notified: PostgreSQL's NOTIFY takes a lock over the whole cluster at
    each commit.
    """

    @contextmanager
    def read(self: _Opens, *, min_seq: int | None = None, timeout_s: float = WAIT_TIMEOUT_S) -> Iterator[Transaction]:
        deadline = time.monotonic() + timeout_s
        while True:
            with self._snapshot() as tx:
                size = 0 if min_seq is None else tx.log.size()
                if min_seq is None or size > min_seq:
                    yield tx
                    return
            if time.monotonic() >= deadline:
                raise NotSequencedYet(
                    f"the log has {size} events and did not reach seq {min_seq} within {timeout_s:g} s; "
                    "check that a sequencer runs, and ask again",
                    min_seq=min_seq,
                    log_size=size,
                )
            time.sleep(_POLL_S)

    def append(
        self: _Opens,
        stream: str,
        events: Sequence[NewEvent],
        *,
        expected_version: int | None,
        idempotency_key: str | None = None,
    ) -> tuple[Receipt, ...]:
        with self.begin() as tx:
            return tx.events.append(stream, events, expected_version=expected_version, idempotency_key=idempotency_key)

    def wait_sequenced(self: _Opens, event_ids: Sequence[str], *, timeout_s: float = WAIT_TIMEOUT_S) -> tuple[int, ...]:
        deadline = time.monotonic() + timeout_s
        while True:
            with self._snapshot() as tx:
                places = tx.events.places(event_ids)
            waiting = [each for each in event_ids if each not in places]
            if not waiting:
                return tuple(places[each] for each in event_ids)
            if time.monotonic() >= deadline:
                raise NotSequencedYet(
                    f"{len(waiting)} of {len(event_ids)} events had no place in the log after {timeout_s:g} s; "
                    "check that a sequencer runs, and ask again",
                    event_ids=waiting[:10],
                )
            time.sleep(_POLL_S)

    def subscribe(
        self: _Opens, from_seq: int, *, stopping: Callable[[], bool], page: int = 1000
    ) -> Iterator[Sequence[StoredEvent]]:
        following = from_seq
        while not stopping():
            with self._snapshot() as tx:
                events = tx.events.since(following, limit=page)
            if events:
                following = events[-1].place + 1
                yield events
            else:
                time.sleep(_IDLE_POLL_S)
