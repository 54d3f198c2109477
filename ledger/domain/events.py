"""Events: the facts and judgements the ledger stores, their header and their log entry.

The log leaf commits to the header, and the header to the payload through a salt, so that a payload can be
erased without breaking the tree (docs/attestation-format.md, "Ledger entry").
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.domain.canonical import canonical_bytes

PAYLOAD_PREFIX = b"sla-ledger/payload/v1\n"
SALT_BYTES = 32


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to append: ``type`` and ``schema`` name its payload's shape; ``payload_class`` its retention."""

    type: str
    payload: Mapping[str, Any]
    occurred_at_ns: int
    schema: int = 1
    payload_class: str = "standard"


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event in the log. ``seq`` is its leaf index, ``version`` its place in its stream, both from 0."""

    seq: int
    id: str
    tenant: str
    stream: str
    version: int
    type: str
    schema: int
    payload_class: str
    occurred_at_ns: int
    recorded_at_ns: int
    payload: Mapping[str, Any]
    salt: bytes

    @property
    def header(self) -> dict[str, Any]:
        """The header that the log entry is made of."""
        return {
            "class": self.payload_class,
            "id": self.id,
            "occurred_at_ns": str(self.occurred_at_ns),
            "payload_commitment": payload_commitment(self.payload, self.salt).hex(),
            "recorded_at_ns": str(self.recorded_at_ns),
            "schema": self.schema,
            "stream": self.stream,
            "tenant": self.tenant,
            "type": self.type,
            "version": self.version,
        }

    @property
    def entry(self) -> bytes:
        """The RFC 6962 leaf input: RFC 8785 bytes of the header."""
        return canonical_bytes(self.header)


def payload_commitment(payload: Mapping[str, Any], salt: bytes) -> bytes:
    """SHA-256 over prefix, 32-byte salt and canonical payload; hides the payload once the salt is erased."""
    return hashlib.sha256(PAYLOAD_PREFIX + salt + canonical_bytes(payload)).digest()
