"""Statements, and what shows that they hold (bundle, inclusion)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from litestar import MediaType, Response
from litestar.params import QueryParameter

from api.parameters import (
    CursorText,
    FromInstant,
    Limit,
    OptionalTreeSize,
    SlaFilter,
    StatementId,
    ToInstant,
    decode_cursor,
    encode_cursor,
    listing_of,
    starts_between,
)
from api.rest.restatement import CreditDelta, ObjectiveDelta, Restated, credit_delta
from api.rest.roots import Roots, roots_of
from api.rest.routes import Seen, reads
from api.rest.values import (
    Address,
    Count,
    Decimal,
    Digest,
    Instant,
    Money,
    Seq,
    Withheld,
    Word,
    attainment_percent,
    instant,
    money,
)
from ledger.app.access import BUNDLE_SCOPES, Scope
from ledger.app.paging import Row
from ledger.domain.terms.indicators import shown_score
from ledger.merkle.hasher import leaf_hash

Versions: TypeAlias = Annotated[
    Literal["newest", "all"], QueryParameter(description="`all`: also the versions that another one replaced")
]

_RESULT_MEMBERS = {"target": ("target_percent",), "good": ("good", "attainment_percent", "score")}
"""What a member of a row is called here, and what follows from it."""


class ObjectiveResult(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one objective: good and valid are exact, the percentage is for display."""

    id: str
    state: Annotated[
        str, msgspec.Meta(description="met, breached, no_data, insufficient_data (too few or undecided) or withheld")
    ]
    unit: Annotated[
        str, msgspec.Meta(description="What is counted: requests, minutes, slices, billionths of an interval ...")
    ]
    good: Annotated[Count | None, msgspec.Meta(description="How many of the valid ones are within the objective")]
    valid: Annotated[Count | None, msgspec.Meta(description="How many count")]
    undecided: Annotated[
        Count | None, msgspec.Meta(description="How many of the valid ones may be good or bad: the data cannot say")
    ]
    target_percent: Annotated[str | None, msgspec.Meta(description="Share of valid requests that must be good")]
    attainment_percent: Annotated[
        str | None, msgspec.Meta(description="good / valid, four decimals, rounded down; null where valid is 0")
    ]
    score: Annotated[
        str | None,
        msgspec.Meta(description="context_fidelity: facts kept / all from 0 to 1, rounded down; null for the others"),
    ]
    withheld: Withheld


class Windows(msgspec.Struct, frozen=True):
    """How the period's equal windows were judged. Missing ones are total - observed - excluded."""

    total: int
    observed: int
    excluded: int
    idle: Annotated[int, msgspec.Meta(description="Observed windows whose counts are all zero")]


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """A Groth16 proof; the bundle holds what verifies it."""

    circuit: str
    circuit_id: Digest
    verification_key: Annotated[Digest, msgspec.Meta(description="SHA-256 of the verification key's document")]
    signals: Annotated[list[Decimal], msgspec.Meta(description="The six public signals")]
    proof_hash: Word
    proof: Annotated[str, msgspec.Meta(description="256 bytes in lowercase hex, EVM order")]
    dev_key: Annotated[bool, msgspec.Meta(description="True: whoever made the key, the issuer, can forge proofs")]


class Attestation(Proof, frozen=True, kw_only=True):
    """The proof of the statement; where its terms pay for incidents, the first of two, of the tiers alone."""

    chain_id: Annotated[Decimal, msgspec.Meta(description="The chain whose registry the proof is made for")]
    registry: Address
    previous_ctx: Annotated[Decimal, msgspec.Meta(description="ctx of the version it replaces; 0 for the first")]
    incident_proof: Annotated[
        Proof | None, msgspec.Meta(description="The second proof, which alone is of the credit; null where one is due")
    ] = None
    seq: Seq


class Anchor(msgspec.Struct, frozen=True, kw_only=True):
    """Where the registry contract verified and recorded the statement."""

    chain_id: Decimal
    registry: Address
    tx_hash: Word
    block_number: int
    block_hash: Word
    leaf: Word
    state: Annotated[
        str,
        msgspec.Meta(
            description="How far its transaction has come: submitted (again, after a reorganisation), included, safe, "
            "finalized or failed"
        ),
    ]
    confirmed: Annotated[
        bool,
        msgspec.Meta(description="Whether enough blocks stood on it; undone again by a deep reorganisation"),
    ]
    confirmations: Annotated[
        int, msgspec.Meta(description="Blocks that stood when it was confirmed, its own included; 0 before")
    ]
    not_replayed: Annotated[
        str | None,
        msgspec.Meta(description="Why the embedded chain, rebuilt at the start, does not hold it as recorded; or null"),
    ]
    seq: Seq


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """The settlement of one period under one agreement."""

    id: str
    sla_id: Word
    period: Annotated[str, msgspec.Meta(description="First local date and length, such as 2023-12-19/P1D")]
    start: Instant
    end: Annotated[Instant, msgspec.Meta(description="The first instant after the period")]
    terms_version: int
    statement_version: int
    doc_sha256: Digest
    state: Annotated[str, msgspec.Meta(description="settled, or withheld: too few windows were observed")]
    standing: Annotated[
        str, msgspec.Meta(description="draft: late facts may still restate it; final; or restated by another version")
    ]
    restated_by: Annotated[str | None, msgspec.Meta(description="The version that replaced it")]
    accepts_until: Annotated[Instant, msgspec.Meta(description="Late facts about the period are taken until then")]
    restates: Annotated[Restated | None, msgspec.Meta(description="What it replaces; null in a first version")]
    reason: Annotated[str | None, msgspec.Meta(description="Why it replaces that")]
    objective_deltas: Annotated[
        list[ObjectiveDelta] | None, msgspec.Meta(description="By how much it differs from what it replaces")
    ]
    credit_delta: CreditDelta | None
    windows: Windows
    objectives: list[ObjectiveResult]
    credit: Annotated[
        Money | None,
        msgspec.Meta(description="As settled, see `/v1/credit-lines` for what is owed now; null if withheld"),
    ]
    attestable: Annotated[bool, msgspec.Meta(description="Whether a circuit can prove statements of these terms")]
    unattested_reasons: Annotated[
        list[str] | None,
        msgspec.Meta(
            description="Why no circuit can prove it, in sentences that name what of the terms is beyond them"
        ),
    ]
    seal_key: Annotated[str | None, msgspec.Meta(description="Field element as a decimal string")]
    telemetry_root: Annotated[str | None, msgspec.Meta(description="Field element as a decimal string")]
    attestation: Attestation | None
    anchor: Anchor | None
    roots: Roots
    seq: Annotated[int, msgspec.Meta(ge=0, description="Log position of the last event that is reflected here")]
    withheld: Withheld


class StatementPage(msgspec.Struct, frozen=True):
    """Statements by start of their period; ``next_cursor`` is null on the last page."""

    items: list[Statement]
    next_cursor: str | None


class StatementDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A statement with the steps that lead to its credit."""

    statement: Statement
    trace: Annotated[dict[str, Any] | None, msgspec.Meta(description="The steps from the counts to the credit")]
    issued_seq: Annotated[int, msgspec.Meta(ge=0, description="Log position of the event that issued it")]
    recorded: Annotated[Instant, msgspec.Meta(description="When the log took that event, by the writer's clock")]
    withheld: Withheld


class InclusionProof(msgspec.Struct, frozen=True, kw_only=True):
    """That the event which issued a statement is a leaf of the log (RFC 6962, 2.1.1)."""

    seq: Seq
    size: Annotated[int, msgspec.Meta(description="Leaves of the tree that the path leads to")]
    entry: Annotated[dict[str, Any], msgspec.Meta(description="The header whose RFC 8785 bytes are the leaf input")]
    leaf_hash: Digest
    path: Annotated[list[Digest], msgspec.Meta(description="Audit path, from the leaf upwards")]
    root: Digest
    checkpoint: Annotated[str | None, msgspec.Meta(description="Signed note of exactly this size, if there is one")]


@reads(
    "/v1/statements",
    of_the_log=True,
    summary="List statements",
    tag="statements",
    scopes=(Scope.READ_AGREEMENTS,),
    problems=(400, 404, 503),
)
def list_statements(
    seen: Seen,
    sla_id: SlaFilter = None,
    versions: Versions = "newest",
    from_: FromInstant = None,
    to: ToInstant = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> StatementPage:
    """Statements of one agreement or of all, by the start of their period: the newest version of each, or all."""
    starts = starts_between(from_, to)
    listing = listing_of(f"statements/{sla_id or ''}/{versions}", starts)
    after = decode_cursor(cursor, listing)
    page = seen.statements(sla_id, after=after, limit=limit, newest=versions == "newest", starts=starts)
    lost = seen.not_replayed()
    return StatementPage([_statement(row, lost) for row in page.rows], encode_cursor(listing, page.last_id))


@reads(
    "/v1/statements/{statement_id:str}",
    of_the_log=True,
    summary="One statement",
    tag="statements",
    scopes=(Scope.READ_AGREEMENTS,),
    problems=(400, 404, 503),
)
def get_statement(seen: Seen, statement_id: StatementId) -> StatementDetail:
    """A statement with the trace of its credit."""
    issued = seen.statement(statement_id)
    return StatementDetail(
        statement=_statement(issued.row, seen.not_replayed()),
        trace=issued.row["trace"],
        issued_seq=issued.event.place,
        recorded=instant(issued.event.recorded_at_ns),
        withheld=_members(issued.row["withheld"], StatementDetail),
    )


@reads(
    "/v1/statements/{statement_id:str}/inclusion",
    summary="Inclusion proof",
    tag="log",
    scopes=(Scope.READ_PROOFS,),
    problems=(400, 404, 503),
)
def get_inclusion(seen: Seen, statement_id: StatementId, size: OptionalTreeSize = None) -> InclusionProof:
    """The audit path from the statement's event to the root of a tree, the newest signed one by default."""
    found = seen.inclusion(statement_id, size)
    return InclusionProof(
        seq=found.event.place,
        size=found.size,
        entry=found.event.header,
        leaf_hash=leaf_hash(found.event.entry).hex(),
        path=[node.hex() for node in found.path],
        root=found.root.hex(),
        checkpoint=found.checkpoint,
    )


@reads(
    "/v1/bundles/{statement_id:str}",
    summary="The bundle of a statement",
    tag="statements",
    scopes=BUNDLE_SCOPES,
    problems=(400, 404, 503),
    shape=dict[str, Any],
)
def get_bundle(seen: Seen, statement_id: StatementId) -> Response[bytes]:
    """The exact bytes that `sla-ledger verify` reads, whoever holds them.

    They change when the statement is anchored, or a batch root over it is published (the issuer signs anew), so ask
    again with `If-None-Match`.
    """
    return Response(seen.bundle(statement_id), media_type=MediaType.JSON)


def _statement(row: Row, not_replayed: Mapping[str, str]) -> Statement:
    credit, attestation, anchor = row["credit"], row["attestation"], row["anchor"]
    return Statement(
        id=row["id"],
        sla_id=row["sla_id"],
        period=row["period"],
        start=instant(row["start_ns"]),
        end=instant(row["end_ns"]),
        terms_version=row["terms_version"],
        statement_version=row["statement_version"],
        doc_sha256=row["doc_sha256"],
        state=row["state"],
        standing=row["standing"],
        restated_by=row["restated_by"],
        accepts_until=instant(row["accepts_until_ns"]),
        restates=None if row["restates"] is None else msgspec.convert(row["restates"], Restated),
        reason=row["reason"],
        objective_deltas=msgspec.convert(row["objective_deltas"], list[ObjectiveDelta] | None),
        credit_delta=credit_delta(row["credit_delta"]),
        windows=Windows(row["windows"], row["observed"], row["excluded"], row["idle"]),
        objectives=[_objective(result) for result in row["objectives"]],
        credit=None if credit is None else money(credit["currency"], credit["minor_units"]),
        attestable=row["attestable"],
        unattested_reasons=row["unattested_reasons"],
        seal_key=row["seal_key"],
        telemetry_root=row["telemetry_root"],
        attestation=None if attestation is None else msgspec.convert(attestation, Attestation),
        anchor=None if anchor is None else _anchor(anchor, not_replayed),
        roots=roots_of(row["roots"]),
        seq=row["seq"],
        withheld=_members(row["withheld"], Statement),
    )


def _members(withheld: Sequence[str], shape: type[msgspec.Struct]) -> list[str]:
    """Those of the row's members that are withheld which an answer of this shape has."""
    return [name for name in withheld if name in shape.__struct_fields__]


def _anchor(row: Row, not_replayed: Mapping[str, str]) -> Anchor:
    return msgspec.convert({**row, "not_replayed": not_replayed.get(row["tx_hash"])}, Anchor)


def _objective(result: Row) -> ObjectiveResult:
    good, valid = result["good"], result["valid"]
    return ObjectiveResult(
        id=result["id"],
        state=result["state"],
        unit=result["unit"],
        good=good,
        valid=valid,
        undecided=result["undecided"],
        target_percent=result["target"],
        attainment_percent=None if good is None else attainment_percent(good, valid),
        score=None if good is None else shown_score(result["unit"], good, valid),
        withheld=[name for each in result["withheld"] for name in _RESULT_MEMBERS.get(each, (each,))],
    )
