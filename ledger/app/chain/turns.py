"""Whose turn it is: the registry takes the versions of a period, and the periods of an agreement, one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.app.agreements.registering import AGREEMENT_REGISTERED, timeline_of
from ledger.app.ports.store import Database, Transaction
from ledger.app.settlement.attestations import anchored
from ledger.app.settlement.statements import issued_event, proved_before
from ledger.app.work.outbox import Stage
from ledger.app.work.retrying import pause_s
from ledger.domain.credits.restatement import carries_proof
from ledger.domain.credits.settlement import attestability
from ledger.domain.record.naming import agreement_stream, statement_stream
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import Clock, format_instant_ns
from ledger.errors import AnchorRefused, NotYet

TURN_RETRY_S = 2.0
"""The shortest pause between two looks whether it is a period's turn."""


def wait_for_turn(database: Database, event_id: str, *, clock: Clock) -> None:
    """Raises ``NotYet`` where something before the statement that an event is about is recorded first.

    The registry takes the versions of a period, and the periods of an agreement, one after the other. Raises
    ``AnchorRefused`` behind a period whose newest statement has nothing to record (it was withheld, say): that may stay
    so for good, and says what an operator can do. The longer it waits, the rarer it looks.
    """
    with database.read() as tx:
        event = tx.events.by_id(event_id)
        statement = issued_event(tx, event.payload["statement_id"]).payload
        waits_for = _recorded_first(tx, statement, event_id)
    if waits_for is not None:
        raise NotYet(
            f"{waits_for} of this agreement is recorded before {statement['statement_id']}; it is not on chain yet",
            period=statement["period"],
            waits_for=waits_for,
            retry_after_s=pause_s(event.recorded_at_ns, clock.now_ns(), least_s=TURN_RETRY_S),
        )


def _recorded_first(tx: Transaction, statement: Mapping[str, Any], event_id: str) -> str | None:
    """The statement or period that the registry takes before a statement (its payload), where it is still to come."""
    earlier = proved_before(tx, statement)
    if earlier:
        replaced = str(earlier[-1].payload["statement_id"])
        return replaced if anchored(tx, replaced) is None else None
    timeline = timeline_of(tx, statement["sla_id"])
    terms, period = timeline.named(statement["period"])
    first_start_ns = _first_start_ns(tx, statement["sla_id"], statement["doc_sha256"])
    if first_start_ns is None or period.interval.start_ns <= first_start_ns or attestability(terms.agreement):
        return None
    found = timeline.before(period)
    # Under earlier terms that no circuit attests nothing was to be recorded.
    if found is None or attestability(found[0].agreement):
        return None
    before = found[1]
    versions = [event.payload for event in tx.events.stream(statement_stream(statement["sla_id"], before.first))]
    proving = [each["statement_id"] for each in versions if carries_proof(each)]
    if versions and not proving:
        raise _behind_a_gap(statement["statement_id"], versions[-1], event_id)
    return None if any(anchored(tx, name) is not None for name in proving) else f"the period {before}"


def _behind_a_gap(name: str, before: Mapping[str, Any], event_id: str) -> AnchorRefused:
    why = "; ".join(before["unattested_reasons"]) or f"it was {before['state']}"
    until = f" until {format_instant_ns(int(before['accepts_until_ns']))}" if "accepts_until_ns" in before else ""
    return AnchorRefused(
        f"the registry takes the periods of an agreement without a gap, and {before['statement_id']} before {name} has "
        f"no proof to record ({why}). Facts of it are taken{until}: once a version of it with a proof is recorded, "
        f"record this one by `sla-ledger outbox retry {event_id} {Stage.ANCHOR}`; without one, batch roots alone "
        "publish what follows",
        waits_for=before["statement_id"],
        statement_id=name,
        error=None,
    )


def recorded_before(tx: Transaction, statement_id: str) -> str | None:
    """The statement that the registry takes right before this one: of the version it replaces, or of the period before.

    None for the first of an agreement.
    """
    statement = issued_event(tx, statement_id).payload
    earlier = proved_before(tx, statement)
    if earlier:
        return str(earlier[-1].payload["statement_id"])
    timeline = timeline_of(tx, statement["sla_id"])
    found = timeline.before(timeline.named(statement["period"])[1])
    return None if found is None else next(iter(_proving(tx, statement["sla_id"], found[1])), None)


def _proving(tx: Transaction, sla_id: str, period: Period) -> list[str]:
    """The versions of a period's statement that carry a proof, or will."""
    versions = (event.payload for event in tx.events.stream(statement_stream(sla_id, period.first)))
    return [str(each["statement_id"]) for each in versions if carries_proof(each)]


def _first_start_ns(tx: Transaction, sla_id: str, doc_sha256: str) -> int | None:
    """Where the agreement's recorded periods begin; None where these terms are not registered on chain."""
    for event in tx.events.stream(agreement_stream(sla_id)):
        if event.type == AGREEMENT_REGISTERED and event.payload["doc_sha256"] == doc_sha256:
            registration = event.payload["registration"]
            return None if registration is None else int(registration["first_start_ns"])
    return None
