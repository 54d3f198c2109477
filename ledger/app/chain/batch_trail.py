"""What the stream of a target says of its batches, read from its end.

Of each batch it has that it was formed, and then that it was published; it may have that it was undone and published
again, and that it is final. The next one is formed where no batch is left to publish.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from ledger.app.ports.store import Transaction
from ledger.domain.events.batch_events import BATCH_FINALIZED, BATCH_FORMED, BATCH_PUBLISHED
from ledger.domain.record.events import StoredEvent

_PAGE: Final = 8
"""Events that are read at once: those of batches that were formed name up to a thousand leaves."""


def since_formed(tx: Transaction, stream: str, *, at: int | None = None, batches: int = 1) -> list[StoredEvent]:
    """The events from the newest ``batch_formed`` on that has the version ``at`` or an earlier one; by default any.

    When that was formed, every batch before it was published. With more ``batches`` from so many before on.
    """
    last = tx.events.length(stream) - 1 if at is None else at
    start = last + 1
    while start > 0:
        start = max(start - _PAGE, 0)
        found = list(tx.events.stream(stream, start=start))
        formed = [event.version for event in found if event.type == BATCH_FORMED and event.version <= last]
        if len(formed) >= batches or (formed and not start):
            return [event for event in found if event.version >= formed[-batches:][0]]
    return []


def to_publish(trail: Sequence[StoredEvent]) -> set[int]:
    """The numbers of the batches that are to be published after these events: formed or undone, and not since."""
    found = set[int]()
    for event in trail:
        if event.type == BATCH_PUBLISHED:
            found.discard(event.payload["number"])
        elif event.type != BATCH_FINALIZED:
            found.add(event.payload["number"])
    return found


def published_since(tx: Transaction, event: StoredEvent) -> bool:
    """Whether the batch of an event of its stream was published after it."""
    number = event.payload["number"]
    later = tx.events.stream(event.stream, start=event.version + 1)
    return any(each.type == BATCH_PUBLISHED and each.payload["number"] == number for each in later)


def standing(tx: Transaction, stream: str, *, chain_id: int, registry: str, limit: int) -> list[StoredEvent]:
    """The ``batch_published`` events, oldest first, of batches at a registry that are neither undone nor final.

    They are read from the newest on, about ``limit`` of them at most, up to one that is final: those before it are,
    too.
    """
    found, seen, final = list[StoredEvent](), set[int](), -1
    end = tx.events.length(stream)
    while end and len(found) < limit:
        start = max(end - _PAGE, 0)
        for event in reversed(list(islice(tx.events.stream(stream, start=start), end - start))):
            number = event.payload["number"]
            final = max(final, number) if event.type == BATCH_FINALIZED else final
            if event.type == BATCH_FORMED and number <= final:
                return found[::-1]
            if event.type == BATCH_FORMED or number in seen or number <= final:
                continue
            seen.add(number)
            if event.type == BATCH_PUBLISHED:
                if (event.payload["chain_id"], event.payload["registry"]) != (str(chain_id), registry):
                    return found[::-1]
                found.append(event)
        end = start
    return found[::-1]
