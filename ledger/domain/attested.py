"""Numbers that every part of an attestation shares (docs/attestation-format.md, docs/adr/0002).

Use cases, prover, chain and verifier do not import each other; what they must agree on stands here.
"""

from __future__ import annotations

from typing import Final

SCALAR_ORDER: Final = 21888242871839275222246405745257275088548364400416034343698204186575808495617
"""r: order of the BN254 groups, modulus of circuit signals and of Poseidon (EIP-196)."""

BASE_ORDER: Final = 21888242871839275222246405745257275088696311157297823662689037894645226208583
"""q: modulus of BN254 point coordinates (EIP-196)."""

OBJECTIVES: Final = 4
TIERS: Final = 4
"""Slots of a circuit: objectives, and tiers of each."""

WINDOWS: Final = 750
"""Windows of the largest circuit (compliance_750x4): a month of hours, also one on whose last day clocks go back."""

COUNT_BITS: Final = 28
"""Bits of one count in the word of a window."""

INCIDENTS: Final = 64
"""Words of incidents that the circuit of incident credits (incidents_64) takes; the last may stand for several."""

PRICE_BITS: Final = 64
"""Bits of an impact rule's coefficient and price, both in billionths."""

BLOCK_WINDOWS: Final = 25
"""Windows that are sealed together."""

SIGNAL_COUNT: Final = 6
PROOF_BYTES: Final = 256
"""Eight coordinates of 32 bytes in EVM order."""

EMBEDDED_CHAIN_ID: Final = 131277322940537
"""The chain id that eth-tester gives to py-evm."""

TEST_CHAIN_IDS: Final = frozenset({EMBEDDED_CHAIN_ID, 31337})
"""The embedded chain and local development nodes: the only ones where forgeable keys may stand."""
