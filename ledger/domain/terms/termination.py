"""A notice that ends an agreement: a document of its own, signed by the party that terminates or by both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.schema import Object, OneOf, Text, convert, fail
from ledger.domain.terms.agreement_schema import API_VERSION, BYTES32, DATE, ED25519_SIGNATURE
from ledger.domain.time.calendar import parse_date

SIGNING_PREFIX = b"sla-ledger/termination/v1\n"

NOTICE = Object(
    {
        "apiVersion": OneOf((API_VERSION,)),
        "kind": OneOf(("Termination",)),
        "sla_id": BYTES32,
        "doc_sha256": Text(r"[0-9a-f]{64}", "a SHA-256 digest of 64 lowercase hex digits", 64),
        "effective": DATE,
        "reason": Text(max_length=500, what="why the agreement ends", visible=True),
        "signatures": Object({}, {"issuer": ED25519_SIGNATURE, "customer": ED25519_SIGNATURE}),
    },
    title="sla-ledger Termination v1",
)


@dataclass(frozen=True, slots=True)
class Notice:
    """What ends an agreement at the start of the local date ``effective``. ``doc_sha256`` names its newest terms, so
    that a notice never ends terms that its signer had not seen."""

    document: Mapping[str, Any]
    sla_id: str
    doc_sha256: str
    effective: date
    reason: str

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Notice:
        """Raises ``DocumentInvalid`` with the path of the first wrong field."""
        NOTICE.check(document, "")
        if not document["signatures"]:
            raise fail("signatures", "nobody signed the notice; issuer, customer or both must")
        effective = convert("effective", document["effective"], parse_date)
        return cls(document, document["sla_id"], document["doc_sha256"], effective, document["reason"])

    @property
    def signing_message(self) -> bytes:
        """The bytes that a party signs with Ed25519: the document without its signatures."""
        return notice_message({key: value for key, value in self.document.items() if key != "signatures"})

    @property
    def signed_by(self) -> tuple[str, ...]:
        """``issuer``, ``customer`` or both."""
        return tuple(party for party in ("issuer", "customer") if party in self.document["signatures"])


def unsigned_notice(sla_id: str, doc_sha256: str, effective: str, reason: str) -> dict[str, Any]:
    """The document of a notice before anybody signed it."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Termination",
        "sla_id": sla_id,
        "doc_sha256": doc_sha256,
        "effective": effective,
        "reason": reason,
    }


def notice_message(unsigned: Mapping[str, Any]) -> bytes:
    """The bytes that a party signs of an unsigned notice."""
    return SIGNING_PREFIX + canonical_bytes(unsigned)
