"""What must be there in the end, each exactly once: counted by SQL over the events, and from the chain's logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from ledger.domain.credits.restatement import carries_proof
from ledger.domain.record.events import StoredEvent
from tests.support.anvil import Anvil, recorded_logs


@dataclass(frozen=True)
class Expected:
    """``count`` events of one type, each about another thing: the members of ``key`` name which."""

    what: str
    event_type: str
    key: tuple[str, ...]
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


_AS_UNDISTURBED = (
    ("versions of terms", "agreement_registered", ("doc_sha256",)),
    ("batches of facts", "observations_recorded", ("sla_id", "digest")),
    ("closings", "period_closed", ("sla_id",)),
    ("exclusions", "exclusion_recorded", ("sla_id",)),
    ("changes of closed periods", "period_facts_changed", ("sla_id",)),
    ("violations opened", "violation_opened", ("violation_id", "revision")),
    ("violations closed", "violation_closed", ("violation_id", "revision")),
    ("violations withdrawn", "violation_withdrawn", ("violation_id", "revision")),
    ("statements", "statement_issued", ("statement_id",)),
    ("claims", "claim_filed", ("claim_id",)),
    ("credit lines", "credit_line_issued", ("line_id",)),
    ("their violations", "credit_line_issued", ("statement_id", "violation_id")),
)
_OF_EACH_PROOF = (
    ("proofs", "attestation_recorded"),
    ("anchors in the log", "anchor_recorded"),
    ("confirmed anchors", "anchor_confirmed"),
)


def expected(undisturbed: Iterable[StoredEvent]) -> Sequence[Expected]:
    """What there must be: what a ledger has that nobody disturbed, and a proof and an anchor of each statement."""
    events = list(undisturbed)
    found = []
    for what, kind, key in _AS_UNDISTURBED:
        things = [tuple(event.payload[member] for member in key) for event in events if event.type == kind]
        if len(set(things)) < len(things):
            raise AssertionError(f"{what}: something happens twice to what nobody disturbs")
        found.append(Expected(what, kind, key, len(things)))
    proved = sum(event.type == "statement_issued" and carries_proof(event.payload) for event in events)
    return [*found, *(Expected(what, kind, ("statement_id",), proved) for what, kind in _OF_EACH_PROOF)]


def count_events(database_url: str, kinds: Iterable[Expected]) -> list[Found]:
    """By SQL, over the events that are in the log."""
    question = """
        SELECT count(*), count(DISTINCT (
            SELECT string_agg(coalesce(convert_from(payload, 'UTF8')::jsonb ->> member, ''), ' ' ORDER BY place)
            FROM unnest(%s::text[]) WITH ORDINALITY AS key (member, place)
        ))
        FROM event JOIN leaf ON leaf.event_id = event.id WHERE type = %s
    """
    with psycopg.connect(database_url) as connection:
        rows = [connection.execute(question, (list(kind.key), kind.event_type)).fetchone() or (0, 0) for kind in kinds]
    return [Found(kind.what, kind.count, row[0], row[1]) for kind, row in zip(kinds, rows, strict=True)]


def count_told(told: Mapping[str, bytes], undisturbed: Mapping[str, bytes]) -> Found:
    """Of how many periods is said, to the byte, what is said of them where nobody disturbs."""
    same = sum(told.get(name) == expected for name, expected in undisturbed.items())
    return Found("periods told alike", len(undisturbed), len(told), same)


def count_on_chain(node: Anvil, statements: Mapping[str, int]) -> Found:
    """From the logs that the node has, of whatever contract: so many statements of each agreement, and no other."""
    return count_logs(recorded_logs(node), statements)


def count_logs(logs: Sequence[Mapping[str, Any]], statements: Mapping[str, int]) -> Found:
    """``StatementRecorded`` logs, whose first topic after the event's own is the agreement, the next the context: of
    which period and version it is."""
    contexts = {sla_id: {log["topics"][2] for log in logs if log["topics"][1] == sla_id} for sla_id in statements}
    fitting = sum(min(len(contexts[sla_id]), count) for sla_id, count in statements.items())
    return Found("records on chain", sum(statements.values()), len(logs), fitting)


def find_unfinished(database_url: str) -> list[str]:
    """Stages that are not done (due, held or parked), each with its event and the error that it met."""
    question = """
        SELECT stage || ' of ' || type || ' in ' || stream || ': ' || state || ', ' || coalesce(error, 'no error')
        FROM outbox JOIN event ON event.id = outbox.event_id WHERE state <> 'done' ORDER BY ordinal
    """
    with psycopg.connect(database_url) as connection:
        return [str(row[0]) for row in connection.execute(question)]


def last_line(found: Iterable[Found], unfinished: int) -> tuple[str, int]:
    """The line that says what came of a run, and its exit code."""
    rows = list(found)
    lost, duplicated = sum(row.lost for row in rows), sum(row.duplicated for row in rows)
    line = f"lost={lost} duplicated={duplicated} unfinished={unfinished}"
    return line, 1 if lost or duplicated or unfinished else 0
