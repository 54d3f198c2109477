"""Facts and telemetry come in: request logs, OTLP metrics, events of circuit breakers.

Each body is one batch: kept as it came, recorded once however often it is sent, and never lost for one bad row. Where
nothing in it can be used it is refused and nothing is written.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from litestar import Response
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from api.parameters import RequiredSlaId
from api.receiving import AnyRequest, Intake
from api.rest.routes import receives
from api.rest.values import Digest
from ledger.app.access import Principal, Scope
from ledger.app.facts.handing_in import MAX_SHOWN, HandedIn, hand_in
from ledger.app.facts.telemetry import RawTelemetry, RecordedTelemetry, record_telemetry
from ledger.domain.time.instant import parse_instant_ns
from ledger.domain.time.interval import Interval
from ledger.errors import InstantInvalid, IntervalInvalid, QueryInvalid
from ledger.ingest import breaker, cloudevents, otlp
from ledger.ingest.facts import read_facts
from ledger.ingest.registry import read_telemetry

NDJSON = ("application/x-ndjson", "application/ndjson", "application/jsonl")
_SCOPES = (Scope.WRITE_OBSERVATIONS,)

Takes: TypeAlias = NamedDependency[Intake]
Asker: TypeAlias = NamedDependency[Principal]
From: TypeAlias = Annotated[
    str | None, QueryParameter(name="from", description="The log is complete from here on: RFC 3339 with a zone")
]
To: TypeAlias = Annotated[str | None, QueryParameter(name="to", description="The log is complete up to here")]
Service: TypeAlias = Annotated[
    str | None,
    QueryParameter(min_length=1, max_length=120, description="All of it is about this service, whatever it says"),
]
Source: TypeAlias = Annotated[
    str, QueryParameter(pattern="^[A-Za-z0-9._:/@-]{1,100}$", description="Who sends: a collector, one name for each")
]


class RowCounts(msgspec.Struct, frozen=True):
    """Rows by verdict; the four add up to the rows of the body."""

    accepted: int
    duplicate: int
    conflict: int
    rejected: int


class RejectedRow(msgspec.Struct, frozen=True):
    """A row that cannot be used, and why."""

    line: int
    reason: str
    field: str
    message: str


class ObservationReceipt(msgspec.Struct, frozen=True):
    """What became of a request log; the first answer's counts where the same body came before."""

    digest: Digest
    event_id: str
    rows: RowCounts
    rejected_reasons: dict[str, int]
    rejected: Annotated[
        list[RejectedRow], msgspec.Meta(description=f"The first {MAX_SHOWN} that cannot be read or used")
    ]
    complete_until: Annotated[
        str | None,
        msgspec.Meta(
            description="Up to when it counts as declared complete: before `to` where that has not come; null where "
            "nothing is declared"
        ),
    ]
    judged_anew: Annotated[
        list[str],
        msgspec.Meta(
            description="Closed periods of which it says something new: where that gives other figures, the next "
            "version of their statement follows"
        ),
    ]


class RefusedSample(msgspec.Struct, frozen=True):
    """A sample that was quarantined or rejected, and why."""

    field: str
    reason: str
    raw: Annotated[str, msgspec.Meta(description="The value as it came")]
    message: str


class TelemetryReceipt(msgspec.Struct, frozen=True):
    """What became of a batch of events: samples by verdict, and the transitions that were recorded."""

    digest: Digest
    event_ids: list[str]
    samples: dict[str, int]
    reasons: dict[str, int]
    transitions: int
    refused: list[RefusedSample]


@receives(
    "/v1/observations",
    summary="Record a log of facts",
    tag="ingest",
    scopes=_SCOPES,
    problems=(400, 404, 408, 409, 413, 415, 503),
)
async def post_observations(
    request: AnyRequest,
    intake: Takes,
    principal: Asker,
    sla_id: RequiredSlaId,
    from_: From = None,
    to: To = None,
) -> ObservationReceipt:
    """Rows as NDJSON (docs/ingest.md): requests, samples of what a request log does not show, heartbeats, outages,
    readings of counters or of histograms. With `from` and `to` the log is declared complete between them: a window in
    it without rows is then idle instead of missing. Heartbeats say themselves what they cover.

    What says something new of a closed period is taken until the deadline of its claims, and refused after it (409)."""
    span = _span(from_, to)

    def work(_media_type: str, data: bytes) -> ObservationReceipt:
        handed_in = hand_in(
            intake.database.of_tenant(principal.tenant),
            sla_id,
            data,
            attestor=intake.attestor,
            clock=intake.clock,
            read_rows=lambda raw: read_facts(raw, "body"),
            declared_complete=span,
        )
        return _observation_receipt(handed_in)

    return await intake.take(request, NDJSON, intake.settings.max_observation_bytes, work)


@receives("/v1/metrics", summary="Record OTLP metrics", tag="ingest", scopes=_SCOPES)
async def post_metrics(
    request: AnyRequest,
    intake: Takes,
    principal: Asker,
    service: Service = None,
    source: Source = "otlp",
) -> Response[bytes]:
    """An OTLP `ExportMetricsServiceRequest`, protobuf or JSON, gzip or not. The answer is the protocol's; what could
    not be used is its `partialSuccess`. The service is the resource's `service.name`."""

    def work(media_type: str, data: bytes) -> Response[bytes]:
        raw = RawTelemetry("otlp", media_type, data, source, service)
        recorded = _record(intake, principal, raw)
        message = "; ".join(f"{each['field']}: {each['message']}" for each in recorded.refused[:3])
        answer = otlp.otlp_answer(media_type, recorded.unusable, message)
        return Response(answer, media_type=media_type, headers={"sla-batch-digest": recorded.digest})

    media_types = (otlp.PROTOBUF, otlp.JSON)
    return await intake.take(request, media_types, intake.settings.max_telemetry_bytes, work)


@receives("/v1/breaker-events", summary="Record events of circuit breakers", tag="ingest", scopes=_SCOPES)
async def post_breaker_events(
    request: AnyRequest,
    intake: Takes,
    principal: Asker,
    service: Service = None,
    source: Source = "breakers",
) -> TelemetryReceipt:
    """CloudEvents 1.0 (structured, binary or batch) or plain JSON: events of resilience4j or Envoy's outlier detection,
    or of this product's own shape (docs/ingest.md)."""
    headers = {name.lower(): value for name, value in request.headers.items()}

    def work(media_type: str, data: bytes) -> TelemetryReceipt:
        raw = RawTelemetry("cloudevents", media_type, data, source, service)
        if media_type == breaker.JSON and cloudevents.is_binary(headers):
            data = cloudevents.structured(headers, data)
            raw = RawTelemetry("cloudevents", cloudevents.STRUCTURED, data, source, service)
        elif media_type == breaker.JSON:
            raw = RawTelemetry("breaker_json", media_type, data, source, service)
        return _telemetry_receipt(_record(intake, principal, raw))

    media_types = (cloudevents.STRUCTURED, cloudevents.BATCH, breaker.JSON)
    return await intake.take(request, media_types, intake.settings.max_telemetry_bytes, work)


HANDLERS = (post_observations, post_metrics, post_breaker_events)


def _record(intake: Intake, principal: Principal, raw: RawTelemetry) -> RecordedTelemetry:
    # Read before the transaction, which keeps others from writing.
    groups = read_telemetry(raw)
    return intake.write(
        principal,
        lambda tx: record_telemetry(tx, raw, groups, read=read_telemetry, now_ns=intake.clock.now_ns()),
    )


def _span(from_: str | None, to: str | None) -> Interval | None:
    if from_ is None and to is None:
        return None
    ends = []
    for name, text in (("from", from_), ("to", to)):
        if text is None:
            raise QueryInvalid(f"{name} is missing: a complete log has both ends", parameter=name, field=name)
        try:
            ends.append(parse_instant_ns(text))
        except InstantInvalid as error:
            raise QueryInvalid(f"{name}: {error.message}", parameter=name, field=name) from None
    try:
        return Interval(*ends)
    except IntervalInvalid as error:
        raise QueryInvalid(f"to: {error.message}", parameter="to", field="to") from None


def _observation_receipt(handed_in: HandedIn) -> ObservationReceipt:
    batch, counts = handed_in.batch, handed_in.batch.counts
    return ObservationReceipt(
        batch.digest,
        batch.receipt.event_id,
        RowCounts(counts.accepted, counts.duplicates, counts.conflicts, counts.rejected_total),
        {str(reason): count for reason, count in counts.rejected.items()},
        [RejectedRow(row.line, str(row.reason), row.field, row.message) for row in handed_in.rejections],
        batch.complete_until,
        list(batch.judged_anew),
    )


def _telemetry_receipt(recorded: RecordedTelemetry) -> TelemetryReceipt:
    return TelemetryReceipt(
        recorded.digest,
        [receipt.event_id for receipt in recorded.receipts],
        dict(recorded.verdicts),
        dict(recorded.reasons),
        recorded.transitions,
        [RefusedSample(**each) for each in recorded.refused],
    )
