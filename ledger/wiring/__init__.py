"""The composition root: the only place where adapters meet use cases.

What is named here is imported when it is first used: maintenance commands need neither chain nor prover.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ledger.wiring.services import Services, create_data, open_data

__all__ = ["Services", "create_data", "open_data"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ledger.wiring import services

    return getattr(services, name)
