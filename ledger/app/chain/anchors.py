"""What a look at the chain says of confirmed anchors, as events of their statements."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Protocol

from ledger.app.ports.store import Database, Transaction
from ledger.app.settlement.statements import issued_event
from ledger.app.work.outbox import Stage
from ledger.domain.events.anchor_events import ANCHOR_FINALIZED, ANCHOR_UNDONE
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.domain.record.naming import attestation_stream
from ledger.domain.time.instant import Clock
from ledger.errors import VersionConflict


class Confirmed(Protocol):
    """A confirmed anchor of a statement, and the block that it was confirmed in."""

    @property
    def statement_id(self) -> str: ...
    @property
    def block_hash(self) -> str: ...


def finalize(database: Database, anchor: Confirmed, latest: int, clock: Clock) -> None:
    """Log that the block of an anchor is final, under ``latest`` as the newest block."""

    def final(placed: dict[str, Any]) -> NewEvent:
        payload = {**placed, "confirmations": max(latest - placed["block_number"] + 1, 1)}
        return NewEvent(ANCHOR_FINALIZED, payload, occurred_at_ns=clock.now_ns())

    try:
        with database.begin() as tx:
            stream, events = _stream(tx, anchor)
            if (placed := _confirmed_there(events, anchor)) is not None:
                tx.events.append(stream, [final(placed)], expected_version=len(events))
    except VersionConflict:
        # Somebody else has said something of it; the next look reads what.
        return


def undo(database: Database, undone: Collection[Confirmed], lost: Iterable[Confirmed], clock: Clock) -> tuple[str, ...]:
    """Log which anchors are undone, and queue their confirmation, which records them again; the ids of the statements.

    Those are ``undone`` and what else is ``lost`` of the same agreements, by period and version.
    """
    with database.read() as tx:
        issued = [(issued_event(tx, anchor.statement_id).payload, anchor) for anchor in lost]
    agreements = {statement["sla_id"] for statement, anchor in issued if anchor in undone}
    found = []
    for statement, anchor in sorted(issued, key=lambda each: (int(each[0]["start_ns"]), each[0]["statement_version"])):
        if statement["sla_id"] in agreements and _undo(database, anchor, clock):
            found.append(anchor.statement_id)
    return tuple(found)


def _undo(database: Database, anchor: Confirmed, clock: Clock) -> bool:
    try:
        with database.begin() as tx:
            stream, events = _stream(tx, anchor)
            placed = _confirmed_there(events, anchor)
            if placed is None:
                return False
            event = NewEvent(ANCHOR_UNDONE, placed, occurred_at_ns=clock.now_ns())
            (receipt,) = tx.events.append(stream, [event], expected_version=len(events))
            tx.outbox.add(receipt.event_id, Stage.CONFIRM)
    except VersionConflict:
        return False
    return True


def _stream(tx: Transaction, anchor: Confirmed) -> tuple[str, list[StoredEvent]]:
    stream = attestation_stream(anchor.statement_id)
    return stream, list(tx.events.stream(stream))


def _confirmed_there(events: list[StoredEvent], anchor: Confirmed) -> dict[str, Any] | None:
    """Where a statement is anchored, if the last that was said of it is that it was confirmed in this block."""
    last = events[-1] if events else None
    if last is None or last.type != "anchor_confirmed" or last.payload["block_hash"] != anchor.block_hash:
        return None
    names = ("statement_id", "sla_id", "chain_id", "tx_hash", "block_number", "block_hash")
    return {name: last.payload[name] for name in names}
