"""What must be there in the end, each exactly once: counted by SQL over the events, and from the chain's logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psycopg

from ledger.domain.event_types import EVENT_TYPES
from ledger.wiring.services import Services


@dataclass(frozen=True)
class Expected:
    """``count`` events of one type, each about another thing: the member ``key`` names which."""

    what: str
    event_type: str
    key: str
    count: int


@dataclass(frozen=True)
class Found:
    """How many of a kind there are, and how many different ones."""

    what: str
    expected: int
    found: int
    distinct: int

    @property
    def lost(self) -> int:
        return max(0, self.expected - self.distinct)

    @property
    def duplicated(self) -> int:
        return max(0, self.found - min(self.distinct, self.expected))


def expected(periods: int, violations: int) -> Sequence[Expected]:
    """What ``periods`` closed periods with so many violations in all come to, of the types that this version has."""
    kinds = (
        Expected("closings", "period_closed", "sla_id", periods),
        Expected("violations", "violation_opened", "violation_id", violations),
        Expected("statements", "statement_issued", "statement_id", periods),
        Expected("credit lines", "credit_line_issued", "line_id", violations),
        Expected("proofs", "attestation_recorded", "statement_id", periods),
        Expected("anchors in the log", "anchor_recorded", "statement_id", periods),
        Expected("confirmed anchors", "anchor_confirmed", "statement_id", periods),
    )
    return [kind for kind in kinds if kind.event_type in EVENT_TYPES]


def count_events(database_url: str, kinds: Iterable[Expected]) -> list[Found]:
    """By SQL, over the events that are in the log."""
    question = """
        SELECT count(*), count(DISTINCT convert_from(payload, 'UTF8')::jsonb ->> %s)
        FROM event JOIN leaf ON leaf.event_id = event.id WHERE type = %s
    """
    with psycopg.connect(database_url) as connection:
        rows = [connection.execute(question, (kind.key, kind.event_type)).fetchone() or (0, 0) for kind in kinds]
    return [Found(kind.what, kind.count, row[0], row[1]) for kind, row in zip(kinds, rows, strict=True)]


def count_on_chain(services: Services, sla_ids: Iterable[str], statements: int) -> Found:
    """From the registry's logs: one record for each statement."""
    chain = services.chain.anchor._chain
    records: Counter[int] = Counter()
    for sla_id in sla_ids:
        found = chain.recorded(bytes.fromhex(sla_id[2:]), from_block=0, to_block=chain.latest_block())
        records.update(event.ctx for event in found)
    return Found("records on chain", statements, records.total(), len(records))


def count_unfinished(database_url: str) -> int:
    """Stages that are neither done nor known to be (pending and parked)."""
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT count(*) FROM outbox WHERE state <> 'done'").fetchone()
    return int(row[0]) if row else 0
