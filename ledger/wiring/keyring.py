"""The secrets of a data directory: one file each, readable by its owner alone."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ledger.app.ports.store import Randomness
from ledger.attest.crypto.signing import SEED_BYTES, SigningKey, load_key, save_secret
from ledger.errors import KeyFileUnusable
from ledger.wiring.needs import KeyGroup, folder_of, group_of, refuse


class Keyring:
    """32-byte secrets by name in a folder. ``Keyring`` never shows or logs what it holds.

    Of the secrets that belong to a group it opens those of ``groups`` alone.
    """

    def __init__(
        self, folder: Path, randomness: Randomness, groups: Collection[KeyGroup] = frozenset(KeyGroup)
    ) -> None:
        self._folder = folder
        self._randomness = randomness
        self._groups = groups

    def opens(self, group: KeyGroup) -> bool:
        """Whether this process is given the keys of a group."""
        return group in self._groups

    def make(self, name: str) -> None:
        """Make the secret called ``name`` unless it is there. Two makers at once agree on one of theirs."""
        path = self._path(name)
        if path.exists():
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            save_secret(path, self._randomness.bytes(SEED_BYTES))
        except KeyFileUnusable:
            if not path.exists():
                raise

    def names(self, group: KeyGroup) -> list[str]:
        """The secrets of a group that are there."""
        found = (path.stem for path in folder_of(self._folder, group).glob("*.key"))
        return sorted(name for name in found if group_of(name) is group)

    def secret(self, name: str) -> bytes:
        """The secret called ``name``; raises ``KeyFileUnusable`` where its file is missing or open to others, or where
        this process is not given it.

        A missing key is never replaced: what it signed would belong to nobody, and what comes would be another's.
        """
        return load_key(self._path(name)).seed()

    def signing_key(self, name: str) -> SigningKey:
        """The Ed25519 key of a secret."""
        return SigningKey(self.secret(name))

    def _path(self, name: str) -> Path:
        group = group_of(name)
        if group is not None and group not in self._groups:
            raise refuse(group)
        return folder_of(self._folder, group) / f"{name}.key"
