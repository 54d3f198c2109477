"""Recording on demand: a statement whose root alone was published is checked and recorded by the registry after all."""

from __future__ import annotations

from ledger.app.chain.turns import recorded_before
from ledger.app.ports.store import Database, Transaction
from ledger.app.settlement.attestations import anchored, proved
from ledger.app.settlement.statements import issued_event
from ledger.app.work.outbox import Stage
from ledger.domain.credits.restatement import carries_proof
from ledger.errors import Refused


def demand_recording(database: Database, statement_id: str) -> tuple[str, ...]:
    """Queue the recording of a statement, and of those before it that the registry takes first and does not have.

    Returns them in that order, nothing where all of it stands there. Asking again changes nothing. Raises ``NotFound``,
    and ``Refused`` where one of them is without a proof.
    """
    with database.begin() as tx:
        due = _due(tx, statement_id)
        for name in due:
            proof = proved(tx, name)
            if proof is None:
                raise _unproved(tx, name, statement_id)
            tx.outbox.add(proof.id, Stage.ANCHOR)
    return tuple(due)


def _due(tx: Transaction, statement_id: str) -> list[str]:
    # An unknown statement is said to be unknown, and one that can have no proof is not looked behind.
    if not carries_proof(issued_event(tx, statement_id).payload):
        raise _unproved(tx, statement_id, statement_id)
    due: list[str] = []
    name: str | None = statement_id
    while name is not None and anchored(tx, name) is None:
        due.insert(0, name)
        name = recorded_before(tx, name)
    return due


def _unproved(tx: Transaction, name: str, asked: str) -> Refused:
    will = carries_proof(issued_event(tx, name).payload)
    why = "is not proved yet; ask again once it is" if will else "has no proof, so there is nothing to record"
    what = f"{name} {why}" if name == asked else f"{name} is recorded before {asked}, and {why}"
    return Refused(what, statement_id=name)
