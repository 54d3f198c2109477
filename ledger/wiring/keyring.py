"""The secrets of a data directory: one file each, readable by its owner alone."""

from __future__ import annotations

from pathlib import Path

from ledger.app.ports import Randomness
from ledger.attest.signing import SEED_BYTES, SigningKey, load_key, save_secret
from ledger.errors import KeyFileUnusable


class Keyring:
    """32-byte secrets by name in a folder. ``Keyring`` never shows or logs what it holds."""

    def __init__(self, folder: Path, randomness: Randomness) -> None:
        self._folder = folder
        self._randomness = randomness

    def make(self, name: str) -> None:
        """Make the secret called ``name`` unless it is there. Two makers at once agree on one of theirs."""
        path = self._folder / f"{name}.key"
        if path.exists():
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            save_secret(path, self._randomness.bytes(SEED_BYTES))
        except KeyFileUnusable:
            if not path.exists():
                raise

    def names(self, prefix: str) -> list[str]:
        """The secrets called ``prefix``, or ``prefix`` with a hyphen and more."""
        found = (path.stem for path in self._folder.glob(f"{prefix}*.key"))
        return sorted(name for name in found if name == prefix or name.startswith(f"{prefix}-"))

    def secret(self, name: str) -> bytes:
        """The secret called ``name``; raises ``KeyFileUnusable`` where its file is missing or open to others.

        A missing key is never replaced: what it signed would belong to nobody, and what comes would be another's.
        """
        return load_key(self._folder / f"{name}.key").seed()

    def signing_key(self, name: str) -> SigningKey:
        """The Ed25519 key of a secret."""
        return SigningKey(self.secret(name))
