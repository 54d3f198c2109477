"""The chains that are for tests only."""

from __future__ import annotations

from typing import Final

EMBEDDED_CHAIN_ID: Final = 131277322940537
"""The chain id that eth-tester gives to py-evm."""

TEST_CHAIN_IDS: Final = frozenset({EMBEDDED_CHAIN_ID, 31337})
"""The embedded chain and local development nodes: the only ones where forgeable keys may stand."""
