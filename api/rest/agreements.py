"""Agreements: what the parties signed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import msgspec

from api.parameters import CursorText, Limit, SlaId, decode_cursor, encode_cursor
from api.rest.routes import Seen, reads
from api.rest.values import Digest, Instant, Seq, Withheld, Word, instant
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


_State: TypeAlias = Annotated[
    str, msgspec.Meta(description="signed (not in force yet), active, amended (of a version), terminated or expired")
]
_InForce: TypeAlias = Annotated[
    Instant | None, msgspec.Meta(description="null for a version that a notice kept from coming into force")
]


class TermsVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version of the terms, in force between two instants."""

    terms_version: int
    doc_sha256: Digest
    state: _State
    in_force_from: _InForce
    in_force_until: _InForce
    registered_at: Instant
    on_chain: Annotated[bool, msgspec.Meta(description="Whether it was registered on chain, too")]
    seq: Seq


class Milestone(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of the agreement when; what is to come is among it."""

    at: Instant
    what: Annotated[str, msgspec.Meta(description="signed, active, amended, terminated or expired")]
    terms_version: int


class Termination(msgspec.Struct, frozen=True, kw_only=True):
    """The notice that ends the agreement."""

    effective: Annotated[str, msgspec.Meta(description="Local date at whose start it ends")]
    at: Instant
    signed_by: Annotated[list[str], msgspec.Meta(description="issuer, customer or both")]
    reason: str
    seq: Seq


class Lifecycle(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agreement stands now."""

    state: _State
    versions: list[TermsVersion]
    timeline: list[Milestone]
    termination: Termination | None


class AgreementDetail(msgspec.Struct, frozen=True):
    """An agreement with the document that was signed, and its life."""

    summary: AgreementSummary
    lifecycle: Lifecycle
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
    # Where it stands follows from the clock as well as from the log.
    "/v1/agreements/{sla_id:str}",
    summary="One agreement",
    tag="agreements",
    scopes=(Scope.READ_AGREEMENTS,),
    problems=(400, 404, 503),
)
def get_agreement(seen: Seen, sla_id: SlaId) -> AgreementDetail:
    """An agreement, the signed document of its newest terms, and all versions with the times they are in force."""
    row, life = seen.agreement(sla_id), seen.lifecycle(sla_id)
    withheld = row["withheld"]
    return AgreementDetail(
        _summary(row), _lifecycle(life), None if "document" in withheld else row["document"], withheld
    )


def _lifecycle(life: Row) -> Lifecycle:
    ended = life["termination"]
    return Lifecycle(
        state=life["state"],
        versions=[
            TermsVersion(
                terms_version=each["terms_version"],
                doc_sha256=each["doc_sha256"],
                state=each["state"],
                in_force_from=None if each["from_ns"] is None else instant(each["from_ns"]),
                in_force_until=None if each["until_ns"] is None else instant(each["until_ns"]),
                registered_at=instant(each["registered_at_ns"]),
                on_chain=each["on_chain"],
                seq=each["seq"],
            )
            for each in life["versions"]
        ],
        timeline=[
            Milestone(at=instant(each["at_ns"]), what=each["what"], terms_version=each["terms_version"])
            for each in life["timeline"]
        ],
        termination=None
        if ended is None
        else Termination(
            effective=ended["effective"],
            at=instant(ended["at_ns"]),
            signed_by=ended["signed_by"],
            reason=ended["reason"],
            seq=ended["seq"],
        ),
    )


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
