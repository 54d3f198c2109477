"""Storage adapters: the event log with its Merkle tree, and everything that commits together with it.

``database`` opens SQLite, ``memory`` keeps all in process for tests; both implement ``ledger.app.ports.store``.
"""
