"""The secrets of a data directory: one file each, made on first use, readable by its owner alone."""

from __future__ import annotations

from pathlib import Path

from ledger.app.ports import Randomness
from ledger.attest.signing import SEED_BYTES, SigningKey, load_key, save_secret


class Keyring:
    """32-byte secrets by name in a folder. ``Keyring`` never shows or logs what it holds."""

    def __init__(self, folder: Path, randomness: Randomness) -> None:
        self._folder = folder
        self._randomness = randomness

    def secret(self, name: str) -> bytes:
        """The secret called ``name``; raises ``KeyFileUnusable`` where its file is open to others."""
        path = self._folder / f"{name}.key"
        if not path.exists():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            save_secret(path, self._randomness.bytes(SEED_BYTES))
        return load_key(path).seed()

    def signing_key(self, name: str) -> SigningKey:
        """The Ed25519 key of a secret."""
        return SigningKey(self.secret(name))
