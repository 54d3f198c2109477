"""The HTTP face of the ledger: transports over the use cases of ``ledger.app``, and no logic of its own."""
