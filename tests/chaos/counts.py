"""What must be there in the end, each exactly once: counted by SQL over the events, and from the chain's logs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from tests.support.anvil import Anvil, recorded_logs


@dataclass(frozen=True)
class Expected:
    """``count`` events of one type, each about another thing: the member ``key`` names which."""

    what: str
    event_type: str
    key: str
    count: int


@dataclass(frozen=True)
class Found:
    """How many of a kind there are, and how many different ones of those that are expected."""

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
    """What ``periods`` closed periods with so many violations in all come to."""
    return (
        Expected("batches of facts", "observations_recorded", "digest", periods),
        Expected("closings", "period_closed", "sla_id", periods),
        Expected("violations opened", "violation_opened", "violation_id", violations),
        Expected("violations closed", "violation_closed", "violation_id", violations),
        Expected("statements", "statement_issued", "statement_id", periods),
        Expected("credit lines", "credit_line_issued", "line_id", violations),
        Expected("their violations", "credit_line_issued", "violation_id", violations),
        Expected("proofs", "attestation_recorded", "statement_id", periods),
        Expected("anchors in the log", "anchor_recorded", "statement_id", periods),
        Expected("confirmed anchors", "anchor_confirmed", "statement_id", periods),
    )


def count_events(database_url: str, kinds: Iterable[Expected]) -> list[Found]:
    """By SQL, over the events that are in the log."""
    question = """
        SELECT count(*), count(DISTINCT convert_from(payload, 'UTF8')::jsonb ->> %s)
        FROM event JOIN leaf ON leaf.event_id = event.id WHERE type = %s
    """
    with psycopg.connect(database_url) as connection:
        rows = [connection.execute(question, (kind.key, kind.event_type)).fetchone() or (0, 0) for kind in kinds]
    return [Found(kind.what, kind.count, row[0], row[1]) for kind, row in zip(kinds, rows, strict=True)]


def count_on_chain(node: Anvil, sla_ids: Collection[str]) -> Found:
    """From the logs that the node has, of whatever contract: one statement of each agreement, and of no other."""
    return count_logs(recorded_logs(node), sla_ids)


def count_logs(logs: Sequence[Mapping[str, Any]], sla_ids: Collection[str]) -> Found:
    """``StatementRecorded`` logs, whose first topic after the event's own is the agreement."""
    agreements = {log["topics"][1] for log in logs} & set(sla_ids)
    return Found("records on chain", len(sla_ids), len(logs), len(agreements))


def count_unfinished(database_url: str) -> int:
    """Stages that are not done: due, held or parked."""
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT count(*) FROM outbox WHERE state <> 'done'").fetchone()
    return int(row[0]) if row else 0


def last_line(found: Iterable[Found], unfinished: int) -> tuple[str, int]:
    """The line that says what came of a run, and its exit code."""
    rows = list(found)
    lost, duplicated = sum(row.lost for row in rows), sum(row.duplicated for row in rows)
    line = f"lost={lost} duplicated={duplicated} unfinished={unfinished}"
    return line, 1 if lost or duplicated or unfinished else 0
