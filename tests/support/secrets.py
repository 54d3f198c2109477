"""The secrets of all parties, as an attacker who plays every role would hold them.

Those of the committed test bundles come from a public phrase: they protect nothing and are never used elsewhere.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from ledger.attest.crypto.signing import SigningKey, load_key

NAMES = ("issuer", "customer", "collector", "log", "issuer-evm", "customer-evm", "deployer-evm")


@dataclass(frozen=True)
class Secrets:
    """32 bytes for each of ``NAMES``."""

    by_name: dict[str, bytes]

    @classmethod
    def of_vectors(cls) -> Secrets:
        """Those behind tests/vectors/*bundle*.json."""
        return cls({name: vector_seed(name) for name in NAMES})

    @classmethod
    def of_data(cls, folder: Path) -> Secrets:
        """Those of a data directory that a demo wrote."""
        return cls({name: load_key(folder / "keys" / f"{name}.key").seed() for name in NAMES})

    def __getitem__(self, name: str) -> bytes:
        return self.by_name[name]

    def key(self, name: str) -> SigningKey:
        return SigningKey(self.by_name[name])


def vector_seed(name: str) -> bytes:
    """sha256("sla-ledger test vectors/" + name)."""
    return hashlib.sha256(f"sla-ledger test vectors/{name}".encode()).digest()
