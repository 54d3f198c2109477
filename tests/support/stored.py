"""A database in memory with the transactions of a chain in it."""

from __future__ import annotations

from ledger.app.ports.chain import StoredTransaction
from ledger.store.memory import MemoryDatabase
from tests.conformance.samples import SeededRandomness, StepClock


def memory_database(*transactions: StoredTransaction) -> MemoryDatabase:
    database = MemoryDatabase(StepClock(), SeededRandomness(1))
    with database.begin() as tx:
        for transaction in transactions:
            tx.chain.add(transaction)
    return database


def stored_on(database: MemoryDatabase, chain_id: int) -> list[StoredTransaction]:
    """Everything stored for a chain, in order."""
    with database.read() as tx:
        return list(tx.chain.of_chain(chain_id))
