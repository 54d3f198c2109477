"""The watermark of an agreement's source, from the declarations and heartbeats that were handed in."""

from __future__ import annotations

from ledger.app.ports.store import Transaction
from ledger.domain.facts.watermark import Declared
from ledger.domain.record.naming import observations_stream
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.log_kinds import HEARTBEATS, REQUESTS


def declared_by(tx: Transaction, sla_id: str, source: str) -> Declared:
    """What the source of an agreement has declared so far; of heartbeats those that were accepted count."""
    found = Declared()
    for event in tx.events.stream(observations_stream(sla_id, source)):
        payload = event.payload
        kind = payload.get("format", REQUESTS)
        span = payload["span" if kind == HEARTBEATS else "declared_complete"]
        if span is not None:
            found.take(kind, int(span["to_ns"]), event.occurred_at_ns)
    return found


def watermark_ns(tx: Transaction, sla_id: str, agreement: Agreement) -> int | None:
    """Up to where the source has declared its facts complete; None where it never did."""
    return declared_by(tx, sla_id, agreement.source).watermark_ns(agreement)
