"""Erasing a payload: the log says that it is gone, and why; the tree and everything signed stay as they are."""

from __future__ import annotations

from ledger.app.ports.store import Receipt, Transaction
from ledger.domain.events.event_types import PAYLOAD_ERASED
from ledger.domain.record.events import ERASABLE_CLASS, NewEvent, StoredEvent
from ledger.domain.record.naming import erasure_stream
from ledger.errors import NotErasable


def erase_payload(tx: Transaction, event_id: str, *, reason: str, requested_by: str | None, now_ns: int) -> Receipt:
    """Record the erasure of one event's payload and forget it, both or neither; the receipt of the record.

    Erasing again changes nothing and gives the first receipt. ``reason`` stays in the log for good, so it must not
    repeat what is erased. Raises ``NotFound``, ``NotErasable`` for a payload class that is kept for good, or
    ``NotSequencedYet``.
    """
    event = tx.events.by_id(event_id)
    if event.payload_class != ERASABLE_CLASS:
        raise not_erasable(event)
    stream = erasure_stream(event_id)
    for record in tx.events.stream(stream):
        return Receipt(record.id, record.stream, record.version, record.seq)
    payload = {"event_id": event_id, "seq": event.place, "reason": reason, "requested_by": requested_by}
    (receipt,) = tx.events.append(
        stream, [NewEvent(PAYLOAD_ERASED, payload, occurred_at_ns=now_ns)], expected_version=0
    )
    tx.events.forget_payload(event_id)
    return receipt


def not_erasable(event: StoredEvent) -> NotErasable:
    """The error for an event whose payload is kept for good."""
    return NotErasable(
        f"event {event.id} has the payload class {event.payload_class!r}, which is kept for good; "
        f"only payloads appended as {ERASABLE_CLASS!r} can be erased",
        event_id=event.id,
        payload_class=event.payload_class,
    )
