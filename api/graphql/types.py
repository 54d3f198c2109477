"""The shapes of answers, made from view rows from which everything the principal may not see was taken before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar, cast

import strawberry
from strawberry.scalars import JSON

from api.graphql.access import metric, resolves, resource, scoped
from api.graphql.amounts import CreditDelta, Money, ObjectiveDelta, credit_delta_of, deltas_of, money_of
from api.graphql.context import RequestContext
from api.graphql.lifecycle import Lifecycle, lifecycle_of
from api.graphql.roots import ROOTS, BatchRoot, roots_of
from api.graphql.scalars import Count, Decimal, InstantNs, decimal
from api.rest.values import attainment_percent
from ledger.app.paging import Row
from ledger.domain.terms.indicators import REQUESTS, shown_score
from ledger.errors import AccessDenied

Info = strawberry.Info[RequestContext, None]
Node = TypeVar("Node")


@strawberry.type(description="An agreement in its newest terms.")
class Agreement:
    sla_id: strawberry.ID
    terms_version: int
    doc_sha256: str = strawberry.field(description="SHA-256 of the canonical unsigned document")
    service: str
    issuer: str = strawberry.field(description="Name of the provider")
    customer: str = strawberry.field(description="Name of the customer")
    effective_from: str = strawberry.field(description="First local date")
    effective_until: str = strawberry.field(description="Local date at whose start it ends")
    timezone: str
    period: str = strawberry.field(description="Length of a settlement period, ISO 8601")
    window: str = strawberry.field(description="Length of a window, ISO 8601")
    objectives: list[str] = strawberry.field(description="Ids of the objectives")
    document: JSON | None = scoped("agreement", "document", description="The signed document")
    seq: Count = strawberry.field(description="Log position of the last event that is reflected here")

    @resolves(strawberry.field(description="Where it stands now, its versions of terms and what becomes of it when"))
    def lifecycle(self, info: Info) -> Lifecycle | None:
        return lifecycle_of(info.context.seen_queries.lifecycle(self.sla_id))


@strawberry.type(description="How the period's equal windows were judged.")
class Windows:
    total: int
    observed: int
    excluded: int
    idle: int = strawberry.field(description="Observed windows whose counts are all zero")


@strawberry.type(description="The verdict on one objective. Its counts need the scope of what it measures.")
class ObjectiveResult:
    id: strawberry.ID
    state: str = strawberry.field(
        description="met, breached, no_data, insufficient_data (too few or undecided) or withheld"
    )
    unit: str = strawberry.field(
        description="What is counted: requests, minutes, slices, billionths of an interval ..."
    )
    good: Count | None = metric(description="How many of the valid ones are within the objective")
    valid: Count | None = metric(description="How many count")
    undecided: Count | None = metric(description="How many of the valid ones may be good or bad: the data cannot say")
    attainment_percent: Decimal | None = metric(
        description="good / valid, four decimals, rounded down; null where valid is 0"
    )
    score: Decimal | None = metric(
        description="context_fidelity: facts kept / all from 0 to 1, rounded down; null for the others"
    )
    target_percent: Decimal | None = scoped(
        "objective_result", "target", description="Share of valid requests that must be good"
    )


@strawberry.type(description="A Groth16 proof; the bundle of its statement holds what verifies it.")
class Proof:
    circuit: str
    circuit_id: str
    verification_key: str = strawberry.field(description="SHA-256 of the verification key's document")
    signals: list[Decimal] = strawberry.field(description="The six public signals")
    proof_hash: str
    proof: str = strawberry.field(description="256 bytes in hex, EVM order")
    dev_key: bool = strawberry.field(description="True: whoever made the key can forge proofs")


@strawberry.type(description="The proof of a statement; where its terms pay for incidents, the first of two.")
class Attestation(Proof):
    chain_id: Decimal
    registry: str
    previous_ctx: Decimal = strawberry.field(description="ctx of the version it replaces; 0 for the first")
    incident_proof: Proof | None = strawberry.field(description="The second proof, of the credit; or null")
    seq: Count


@strawberry.type(description="Where the registry contract verified and recorded a statement.")
class Anchor:
    chain_id: Decimal
    registry: str
    tx_hash: str
    block_number: Count
    block_hash: str
    leaf: str
    state: str = strawberry.field(
        description="How far its transaction has come: submitted, included, safe, finalized or failed"
    )
    confirmed: bool = strawberry.field(
        description="Whether enough blocks stood on it; undone again by a deep reorganisation"
    )
    confirmations: Count = strawberry.field(description="Blocks that stood when it was confirmed; 0 before")
    not_replayed: str | None = strawberry.field(
        description="Why the embedded chain does not hold it as recorded; or null"
    )
    seq: Count


@strawberry.type(description="The settlement of one period under one agreement.")
class Statement:
    id: strawberry.ID
    sla_id: strawberry.ID
    period: str = strawberry.field(description="First local date and length, such as 2023-12-19/P1D")
    start: InstantNs
    end: InstantNs = strawberry.field(description="The first instant after the period")
    terms_version: int
    statement_version: int
    doc_sha256: str
    state: str = strawberry.field(description="settled, or withheld: too few windows were observed")
    standing: str = strawberry.field(description="draft (late facts may still restate it), final or restated")
    restated_by: strawberry.ID | None = strawberry.field(description="The version that replaced it")
    accepts_until: InstantNs = strawberry.field(description="Late facts about the period are taken until then")
    restates: strawberry.ID | None = strawberry.field(description="The statement it replaces")
    reason: str | None = strawberry.field(description="Why it replaces that")
    objective_deltas: list[ObjectiveDelta] | None = scoped(
        "statement", "objective_deltas", description="By how much it differs from what it replaces"
    )
    credit_delta: CreditDelta | None = scoped(
        "statement", "credit_delta", description="By how much its credit differs from that of what it replaces"
    )
    windows: Windows
    objectives: list[ObjectiveResult]
    credit: Money | None = scoped(
        "statement",
        "credit",
        description="As settled; null where it is withheld. /v1/credit-lines tells what is owed now",
    )
    trace: JSON | None = scoped("statement", "trace", description="The steps from the counts to the credit")
    seal_key: Decimal | None = strawberry.field(description="Field element; null where nothing is sealed")
    telemetry_root: Decimal | None = strawberry.field(description="Field element; likewise")
    attestable: bool = strawberry.field(description="Whether a circuit can prove statements of these terms")
    unattested_reasons: list[str] | None = scoped(
        "statement",
        "unattested_reasons",
        description="Why no circuit can prove it, in sentences that name what of the terms is beyond them",
    )
    attestation: Attestation | None = scoped("statement", "attestation")
    anchor: Anchor | None = scoped("statement", "anchor")
    roots: list[BatchRoot] | None = scoped("statement", "roots", description=ROOTS)
    seq: Count = strawberry.field(description="Log position of the last event that is reflected here")

    @resolves(resource("agreements", description="The agreement in its newest terms"))
    def agreement(self, info: Info) -> Agreement | None:
        return agreement_of(info.context.agreement(self.sla_id), info.context)


@strawberry.type(
    description="The credit of one statement; it may be zero. Lines that were taken back since do not "
    "change it: what is owed now is the sum of the credit lines (REST: /v1/credit-lines)."
)
class Credit:
    statement_id: strawberry.ID
    sla_id: strawberry.ID
    period: str
    credit: Money
    status: str = strawberry.field(description="Always issued; its credit lines say what became of it")
    proof_hash: str | None = strawberry.field(description="The proof it follows by; null while there is none")
    seq: Count


@strawberry.type(description="Where a page stands in its list.")
class PageInfo:
    has_next_page: bool
    has_previous_page: bool = strawberry.field(description="Whether the page was asked for by a cursor")
    start_cursor: str | None
    end_cursor: str | None


@strawberry.type(description="One item of a page.")
class Edge(Generic[Node]):
    cursor: str = strawberry.field(description="Continues the list after this item; opaque")
    node: Node


@strawberry.type(description="A page of a list.")
class Connection(Generic[Node]):
    edges: list[Edge[Node]]
    page_info: PageInfo


def agreement_of(row: Row, context: RequestContext) -> Agreement:
    seen = context.seen("agreement", row)
    document: Mapping[str, Any] = row["document"]
    return Agreement(
        sla_id=strawberry.ID(row["sla_id"]),
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
        objectives=[found["id"] for found in document["objectives"]],
        document=seen["document"],
        seq=row["seq"],
    )


def statement_of(row: Row, context: RequestContext) -> Statement:
    seen = context.seen("statement", row)
    anchor, attestation, credit = seen["anchor"], seen["attestation"], seen["credit"]
    return Statement(
        id=strawberry.ID(row["id"]),
        sla_id=strawberry.ID(row["sla_id"]),
        period=row["period"],
        start=InstantNs(row["start_ns"]),
        end=InstantNs(row["end_ns"]),
        terms_version=row["terms_version"],
        statement_version=row["statement_version"],
        doc_sha256=row["doc_sha256"],
        state=row["state"],
        standing=row["standing"],
        restated_by=None if row["restated_by"] is None else strawberry.ID(row["restated_by"]),
        accepts_until=InstantNs(row["accepts_until_ns"]),
        restates=None if row["restates"] is None else strawberry.ID(row["restates"]["statement_id"]),
        reason=row["reason"],
        objective_deltas=None if seen["objective_deltas"] is None else deltas_of(seen["objective_deltas"]),
        credit_delta=None if seen["credit_delta"] is None else credit_delta_of(seen["credit_delta"]),
        windows=Windows(total=row["windows"], observed=row["observed"], excluded=row["excluded"], idle=row["idle"]),
        objectives=_objectives(row, context),
        credit=None if credit is None else money_of(credit),
        trace=seen["trace"],
        seal_key=decimal(row["seal_key"]),
        telemetry_root=decimal(row["telemetry_root"]),
        attestable=row["attestable"],
        unattested_reasons=seen["unattested_reasons"],
        attestation=None if attestation is None else _attestation(attestation),
        anchor=None if anchor is None else _anchor(anchor, context),
        roots=roots_of(seen["roots"]),
        seq=row["seq"],
    )


def credit_of(row: Row, context: RequestContext) -> Credit:
    seen = context.seen("credit", row)
    return Credit(
        statement_id=strawberry.ID(row["statement_id"]),
        sla_id=strawberry.ID(row["sla_id"]),
        period=row["period"],
        credit=money_of(seen),
        status=row["status"],
        proof_hash=row["proof_ref"],
        seq=row["seq"],
    )


def _objectives(row: Row, context: RequestContext) -> list[ObjectiveResult]:
    withheld = context.withheld_metrics(row)
    return [_objective(result, withheld.get(result["id"]), context) for result in row["objectives"]]


def _objective(row: Row, denied: AccessDenied | None, context: RequestContext) -> ObjectiveResult:
    seen = context.seen("objective_result", row)
    good, valid = row["good"], row["valid"]
    # A field whose value is an error reads null and reports it, and costs nothing where there is none.
    refusal = cast(Any, denied)
    return ObjectiveResult(
        id=strawberry.ID(row["id"]),
        state=row["state"],
        unit=row.get("unit", REQUESTS),
        good=refusal or good,
        valid=refusal or valid,
        undecided=refusal or row.get("undecided", 0),
        attainment_percent=refusal or decimal(attainment_percent(good, valid)),
        score=refusal or decimal(shown_score(row.get("unit", REQUESTS), good, valid)),
        target_percent=seen["target"],
    )


def _attestation(row: Mapping[str, Any]) -> Attestation:
    second = row.get("incident_proof")
    return Attestation(
        chain_id=row["chain_id"],
        registry=row["registry"],
        previous_ctx=row["previous_ctx"],
        **{name: row[name] for name in _PROOF},
        incident_proof=None if second is None else Proof(**{name: second[name] for name in _PROOF}),
        seq=row["seq"],
    )


_PROOF = ("circuit", "circuit_id", "verification_key", "signals", "proof_hash", "proof", "dev_key")


def _anchor(row: Mapping[str, Any], context: RequestContext) -> Anchor:
    return Anchor(
        chain_id=row["chain_id"],
        registry=row["registry"],
        tx_hash=row["tx_hash"],
        block_number=row["block_number"],
        block_hash=row["block_hash"],
        leaf=row["leaf"],
        state=row["state"],
        confirmed=row["confirmed"],
        confirmations=row["confirmations"],
        not_replayed=context.not_replayed.get(row["tx_hash"]),
        seq=row["seq"],
    )
