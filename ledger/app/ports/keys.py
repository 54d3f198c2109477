"""The port of the keys that are presented to the API; see ``ledger.app.ports.store``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is kept: ``secret_digest`` is the SHA-256 of the secret, which is kept nowhere.

    ``role`` names a set of scopes (``ledger.app.access.Role``). ``sla_ids`` are the agreements it is limited to; none:
    all of the tenant's.
    """

    key_id: str
    tenant: str
    role: str
    label: str
    sla_ids: tuple[str, ...]
    secret_digest: bytes
    created_at_ns: int
    expires_at_ns: int | None
    revoked_at_ns: int | None


class ApiKeys(Protocol):
    """Keys that are presented to the API. Nothing of a key ever changes but that it is revoked."""

    def add(self, key: ApiKey) -> None:
        """Keep a key of this tenant, whatever tenant it names. Raises ``VersionConflict`` for an id that is taken."""
        ...

    def find(self, key_id: str) -> ApiKey | None:
        """The key with an id, of whichever tenant: who presents it is not known before."""
        ...

    def all(self) -> Sequence[ApiKey]:
        """The tenant's keys in the order in which they were made, revoked ones among them."""
        ...

    def revoke(self, key_id: str, now_ns: int) -> ApiKey:
        """Revoke a key of this tenant for good; the first instant stays. Raises ``NotFound``."""
        ...
