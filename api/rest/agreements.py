"""Agreements: what the parties signed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from api.parameters import CursorText, Limit, SlaId, decode_cursor, encode_cursor
from api.rest.routes import Seen, reads
from api.rest.values import Digest, Seq, Withheld, Word
from ledger.app.access import Scope
from ledger.app.paging import Row

_LISTING = "agreements"


class AgreementSummary(msgspec.Struct, frozen=True, kw_only=True):
    """An agreement in its newest terms."""

    sla_id: Word
    terms_version: Annotated[int, msgspec.Meta(ge=1, description="Version of the terms, counted from 1")]
    doc_sha256: Annotated[Digest, msgspec.Meta(description="SHA-256 of the canonical unsigned document")]
    service: str
    issuer: Annotated[str, msgspec.Meta(description="Name of the provider")]
    customer: Annotated[str, msgspec.Meta(description="Name of the customer")]
    effective_from: Annotated[str, msgspec.Meta(description="First local date")]
    effective_until: Annotated[str, msgspec.Meta(description="Local date at whose start it ends")]
    timezone: Annotated[str, msgspec.Meta(description="IANA time zone of the dates")]
    period: Annotated[str, msgspec.Meta(description="Length of a settlement period, ISO 8601, such as P1D")]
    window: Annotated[str, msgspec.Meta(description="Length of a window, ISO 8601, such as PT1H")]
    objectives: Annotated[list[str], msgspec.Meta(description="Ids of the objectives")]
    seq: Seq


class AgreementPage(msgspec.Struct, frozen=True):
    """Agreements by sla_id; ``next_cursor`` is null on the last page."""

    items: list[AgreementSummary]
    next_cursor: str | None


class AgreementDetail(msgspec.Struct, frozen=True):
    """An agreement with the document that was signed."""

    summary: AgreementSummary
    document: Annotated[
        dict[str, Any] | None,
        msgspec.Meta(description="The signed document; without `signatures` it is what doc_sha256 hashes (RFC 8785)"),
    ]
    withheld: Withheld


@reads("/v1/agreements", of_the_log=True, summary="List agreements", tag="agreements", scopes=(Scope.READ_AGREEMENTS,))
def list_agreements(seen: Seen, limit: Limit = 50, cursor: CursorText = None) -> AgreementPage:
    """All agreements in their newest terms, by `sla_id`."""
    page = seen.agreements(after=decode_cursor(cursor, _LISTING), limit=limit)
    return AgreementPage([_summary(row) for row in page.rows], encode_cursor(_LISTING, page.last_id))


@reads(
    "/v1/agreements/{sla_id:str}",
    of_the_log=True,
    summary="One agreement",
    tag="agreements",
    scopes=(Scope.READ_AGREEMENTS,),
    problems=(400, 404, 503),
)
def get_agreement(seen: Seen, sla_id: SlaId) -> AgreementDetail:
    """An agreement and its signed document."""
    row = seen.agreement(sla_id)
    withheld = row["withheld"]
    return AgreementDetail(_summary(row), None if "document" in withheld else row["document"], withheld)


def _summary(row: Row) -> AgreementSummary:
    document: Mapping[str, Any] = row["document"]
    return AgreementSummary(
        sla_id=row["sla_id"],
        terms_version=row["terms_version"],
        doc_sha256=row["doc_sha256"],
        service=document["service"]["name"],
        issuer=document["parties"]["issuer"]["name"],
        customer=document["parties"]["customer"]["name"],
        effective_from=document["effective"]["from"],
        effective_until=document["effective"]["until"],
        timezone=document["timezone"],
        period=document["period"],
        window=document["window"],
        objectives=[objective["id"] for objective in document["objectives"]],
        seq=row["seq"],
    )
