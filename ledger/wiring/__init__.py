"""The composition root: the only place where adapters meet use cases."""

from ledger.wiring.services import Services, create_data, open_data

__all__ = ["Services", "create_data", "open_data"]
