"""Facts come in by HTTP: each body once, each sample with a verdict, and what is bad is refused by name."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cloudevents.core.bindings.http import to_binary, to_structured
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from litestar.testing import TestClient
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from api.app import create_app
from api.desks import Desks
from api.edge import Edge
from api.receiving import BODIES, Intake, Outcomes
from ledger.app.billing.credit_changes import CreditDesk
from ledger.app.bundles.tlog import PublicLog
from ledger.app.facts.telemetry import find_evidence
from ledger.app.log.log_keys import LogIdentity
from ledger.app.periods.closing import Cause, close_period
from ledger.app.reading.queries import Queries
from ledger.app.reading.readiness import Health, SchemaState
from ledger.app.webhooks.desk import WebhookDesk
from ledger.attest.crypto.signing import NoteKey, SigningKey, verify
from ledger.domain.time.instant import DAY_NS, HOUR_NS, SECOND_NS, format_instant_ns, parse_instant_ns
from ledger.domain.time.interval import Interval
from ledger.settings import IngestSettings
from tests.unit.app.conftest import Desk, log, make_desk, row

Client = TestClient[Any]
AT_NS = 1_686_736_800 * 10**9
"""2023-06-14T10:00:00Z"""
FACTS = {
    "id": "facts",
    "method": "total_ratio",
    "indicator": "fact_consistency",
    "target": "98.2",
    "evaluator": "factbench 2.1",
    "minimum_valid": 1000,
}
OPENED = {
    "circuitBreakerName": "chat-upstream",
    "type": "STATE_TRANSITION",
    "creationTime": "2023-06-14T12:00:00.5+02:00[Europe/Berlin]",
    "stateTransition": "CLOSED_TO_OPEN",
    "service": "example-chat",
}


@dataclass
class Post:
    """A ledger of one agreement and a client of its API."""

    desk: Desk
    sla_id: str
    client: Client
    outcomes: Outcomes

    def __call__(self, path: str, body: bytes, kind: str, **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(path, content=body, headers={"content-type": kind, **named})

    def metrics(self, *metrics: dict[str, Any], service: str = "example-chat", **headers: str) -> Any:
        resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
        body = {"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"metrics": list(metrics)}]}]}
        return self("/v1/metrics", json.dumps(body).encode(), "application/json", **headers)

    def events(self, *documents: dict[str, Any], **changes: Any) -> Any:
        envelope = {"specversion": "1.0", "source": "/gateway", "type": "breaker.transition"}
        events = [envelope | {"id": str(n), "data": each} | changes for n, each in enumerate(documents)]
        return self("/v1/breaker-events", json.dumps(events).encode(), "application/cloudevents-batch+json")

    def types(self) -> list[str]:
        with self.desk.database.read() as tx:
            return [event.type for event in tx.events.since(0)]

    def payloads(self, kind: str) -> list[Any]:
        with self.desk.database.read() as tx:
            return [event.payload for event in tx.events.since(0) if event.type == kind]


def app_over(desk: Desk, settings: IngestSettings, outcomes: Outcomes) -> Edge:
    database = desk.database
    chain: Any = {"chain_id": 1, "registry": None, "total": 0, "transactions": []}
    key = NoteKey("log.example/test", SigningKey(bytes(32)))
    desks = Desks(
        queries=Queries(database, bundles=None, chain_status=lambda: chain),  # type: ignore[arg-type]
        public_log=PublicLog(database, LogIdentity(key.key, verify)),
        credit_desk=CreditDesk(database, desk.clock),
        webhooks=WebhookDesk(database, desk.clock, desk.randomness),
        intake=Intake(database, desk.attestor, desk.clock, settings, outcomes),
    )
    health = Health(database, schema_state=lambda: SchemaState("1", "1"), chain_status=lambda: chain)
    return create_app(desks, health=health)


@pytest.fixture
def post() -> Iterator[Post]:
    source = {"name": "gateway", "coverage": "heartbeat"}
    desk = make_desk(objectives=[*make_desk().agreement.document["objectives"], FACTS], source=source)
    sla_id = desk.register().sla_id
    settings = IngestSettings(max_observation_bytes=2_000_000, max_telemetry_bytes=1_000_000, body_timeout_s=5)
    outcomes = Outcomes()
    with TestClient(app_over(desk, settings, outcomes), base_url="http://127.0.0.1") as client:
        yield Post(desk, sla_id, client, outcomes)


def gauge(name: str, value: Any, at_ns: int = AT_NS, **attributes: str) -> dict[str, Any]:
    points = [{"asDouble": value, "timeUnixNano": str(at_ns), "attributes": attribute_list(attributes)}]
    return {"name": name, "gauge": {"dataPoints": points}}


def counter(name: str, value: int, at_ns: int, start_ns: int = 1) -> dict[str, Any]:
    point = {"asInt": str(value), "timeUnixNano": at_ns, "startTimeUnixNano": start_ns}
    return {"name": name, "sum": {"aggregationTemporality": 2, "isMonotonic": True, "dataPoints": [point]}}


def point_of(text: bytes) -> bytes:
    """A request of one data point that is written out."""
    before = b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":['
    return before + text + b"]}}]}]}]}"


def attribute_list(attributes: dict[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]


def problem(answer: Any, status: int, code: str) -> Any:
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.json()
    assert (answer.status_code, document["code"]) == (status, code), document
    return document


# --- request logs ----------------------------------------------------------------------------


def test_a_sample_log_comes_in_by_the_same_route(post: Post) -> None:
    sample = {"sample_id": "s-1", "at": "2023-06-14T10:00:00Z", "service": "example-chat", "good": 11, "total": 10}
    rows = [
        {**sample, "indicator": "fact_consistency", "evaluator": "factbench 2.1"},
        {**sample, "indicator": "fact_consistency", "evaluator": "factbench 2.1", "sample_id": "s-2", "good": 9},
        {**sample, "indicator": "hallucination", "sample_id": "s-3"},
    ]
    answer = post(f"/v1/observations?sla_id={post.sla_id}", log(*rows), "application/x-ndjson")
    found = answer.json()
    assert answer.status_code == 200, found
    assert found["rejected_reasons"] == {"implausible": 1, "not_promised": 1}
    assert [each["format"] for each in post.payloads("observations_recorded")] == ["samples"]

    asked = post.client.get(f"/v1/agreements/{post.sla_id}/data-quality").json()
    (fault,) = asked["items"]
    assert (asked["open"], fault["state"], fault["sample_id"], fault["line"]) == (1, "open", "s-1", 1)
    assert (fault["value"], fault["digest"]) == ("good 11, bad -1, undecided 0", found["digest"])
    post(f"/v1/observations?sla_id={post.sla_id}", log({**rows[0], "total": 12}), "application/x-ndjson")
    answered = post.client.get(f"/v1/agreements/{post.sla_id}/data-quality?limit=1").json()
    assert (answered["open"], answered["items"][0]["state"]) == (0, "resolved")
    problem(
        post(f"/v1/observations?sla_id={post.sla_id}", log(rows[2]), "application/x-ndjson"),
        400,
        "request_log_unusable",
    )


def test_a_declaration_ahead_of_its_time_is_answered_with_what_counts_of_it(post: Post) -> None:
    desk = post.desk
    day = desk.period.interval
    span = f"from={format_instant_ns(day.start_ns)}&to={format_instant_ns(day.end_ns)}"
    path, kind = f"/v1/observations?sla_id={post.sla_id}", "application/x-ndjson"
    desk.clock.now = day.start_ns + 15 * HOUR_NS
    said = post(f"{path}&{span}", log(row("a")), kind).json()["complete_until"]
    assert 60 * SECOND_NS <= parse_instant_ns(said) - (day.start_ns + 15 * HOUR_NS) < 70 * SECOND_NS
    desk.clock.now = day.end_ns
    assert post(f"{path}&{span}", log(row("a")), kind).json()["complete_until"] == format_instant_ns(day.end_ns)
    assert post(path, log(row("b")), kind).json()["complete_until"] is None
    desk.clock.now = day.start_ns - HOUR_NS
    assert problem(post(f"{path}&{span}", log(row("c")), kind), 400, "request_log_unusable")["data"]["field"] == "from"


def test_a_log_of_a_closed_period_says_what_follows_until_the_deadline(post: Post) -> None:
    path, kind, desk = f"/v1/observations?sla_id={post.sla_id}", "application/x-ndjson", post.desk
    assert post(path, log(row("early")), kind).json()["judged_anew"] == []
    desk.clock.now = desk.period.interval.end_ns
    registered = desk.register()
    with desk.database.begin() as tx:
        close_period(tx, registered, desk.period, cause=Cause.REQUEST, now_ns=desk.clock.now_ns())
    for _ in range(2):
        assert post(path, log(row("late")), kind).json()["judged_anew"] == [str(desk.period)]
    desk.clock.now = desk.period.interval.end_ns + 31 * DAY_NS
    found = problem(post(path, log(row("later")), kind), 409, "claim_deadline_passed")
    assert found["data"]["period"] == str(desk.period)
    assert found["data"]["deadline"] == "2023-07-15T00:00:00Z"


def test_heartbeats_come_in_by_the_same_route_and_say_themselves_what_they_cover(post: Post) -> None:
    beat = {"heartbeat_id": "h-1", "at": "2023-06-14T10:00:00Z", "service": "example-chat", "covers_s": 60}
    rows = [beat, {**beat, "heartbeat_id": "h-2", "covers_s": 3601}, {**beat, "heartbeat_id": "h-3", "covers_s": 1.5}]
    path = f"/v1/observations?sla_id={post.sla_id}"
    refused = problem(
        post(f"{path}&from=2023-06-14T09:00:00Z&to=2023-06-14T10:00:00Z", log(beat), "application/x-ndjson"),
        400,
        "request_log_unusable",
    )
    assert "without a span" in refused["detail"]
    found = post(path, log(*rows), "application/x-ndjson").json()
    assert found["rows"] == {"accepted": 1, "duplicate": 0, "conflict": 0, "rejected": 2}
    assert [(each["line"], each["field"], each["reason"]) for each in found["rejected"]] == [
        (2, "covers_s", "heartbeat_too_long"),
        (3, "covers_s", "field_invalid"),
    ]
    assert [each["format"] for each in post.payloads("observations_recorded")] == ["heartbeats"]


def test_a_log_is_recorded_once(post: Post) -> None:
    body = log(row("a"), row("a"), row("b", service="other"), row("c", started_at="2023-06-14T10:00:00"))
    path = f"/v1/observations?sla_id={post.sla_id}&from=2023-06-14T00:00:00Z&to=2023-06-15T00:00:00Z"
    first = post(path, body, "application/x-ndjson")
    again = post(path, gzip.compress(body), "application/x-ndjson; charset=utf-8", content_encoding="gzip")
    assert first.status_code == again.status_code == 200
    assert first.headers["cache-control"] == "no-store"
    found = first.json()
    assert found["rows"] == {"accepted": 1, "duplicate": 1, "conflict": 0, "rejected": 2}
    assert found["rejected_reasons"] == {"other_service": 1, "time_invalid": 1}
    assert [(each["line"], each["field"]) for each in found["rejected"]] == [(4, "started_at")]
    assert again.json()["event_id"] == found["event_id"]
    (payload,) = post.payloads("observations_recorded")
    assert payload["declared_complete"] == {"from_ns": "1686700800000000000", "to_ns": "1686787200000000000"}
    assert post.outcomes.counts() == {("/v1/observations", "recorded"): 2}


@pytest.mark.parametrize(
    ("rows", "field"),
    [
        ([row("a", started_at="2023-06-14T10:00:00")], "started_at"),
        ([row("a", service="unknown")], "service"),
        ([row("a", started_at="2001-06-14T10:00:00Z")], "started_at"),
        ([{"request_id": "a"}], "service"),
    ],
)
def test_a_log_without_one_usable_row_is_refused(post: Post, rows: list[dict[str, Any]], field: str) -> None:
    answer = post(f"/v1/observations?sla_id={post.sla_id}", log(*rows), "application/x-ndjson")
    assert problem(answer, 400, "request_log_unusable")["data"]["field"] == field
    assert post.types() == ["agreement_registered"]
    assert post.outcomes.counts() == {("/v1/observations", "request_log_unusable"): 1}


def test_what_is_asked_must_make_sense(post: Post) -> None:
    path, body = "/v1/observations?sla_id=", log(row("a"))
    unknown = post(path + "0x" + "00" * 32, body, "application/x-ndjson")
    assert problem(unknown, 404, "not_found")["data"]["sla_id"] == "0x" + "00" * 32
    path += post.sla_id
    for query, field in (
        ("&from=2023-06-14T00:00:00Z", "to"),
        ("&from=2023-06-14T00:00:00&to=2023-06-15T00:00:00Z", "from"),
        ("&from=2023-06-15T00:00:00Z&to=2023-06-14T00:00:00Z", "to"),
    ):
        answer = post(path + query, body, "application/x-ndjson")
        assert problem(answer, 400, "query_invalid")["data"]["parameter"] == field
    problem(post(path + "&form=x", body, "application/x-ndjson"), 400, "query_invalid")
    assert post.types() == ["agreement_registered"]


# --- what no route takes ---------------------------------------------------------------------

ROUTES = [
    ("/v1/observations?sla_id=SLA", "application/x-ndjson"),
    ("/v1/metrics", "application/x-protobuf"),
    ("/v1/metrics", "application/json"),
    ("/v1/breaker-events", "application/cloudevents+json"),
]


@pytest.mark.parametrize(("path", "kind"), ROUTES)
def test_bodies_are_bounded_before_they_are_read(post: Post, path: str, kind: str) -> None:
    path = path.replace("SLA", post.sla_id)
    bomb = gzip.compress(bytes(50_000_000))
    for body, headers in (
        (b"x" * 2_000_001, {}),
        (bomb, {"content_encoding": "gzip"}),
        (b"{}", {"content_length": "100000000"}),
        (b"{}", {"content_length": "-1"}),
    ):
        assert problem(post(path, body, kind, **headers), 413, "body_too_large")["data"]["field"] == "body"
    chunks = (b"x" * 500_000 for _ in range(5))
    answer = post.client.post(path, content=chunks, headers={"content-type": kind})
    problem(answer, 413, "body_too_large")
    problem(post(path, b"{}", "text/csv"), 415, "media_type_unsupported")
    problem(post(path, b"{}", kind, content_encoding="br"), 415, "media_type_unsupported")
    problem(post(path, b"", kind), 400, "query_invalid")
    for data in (b"\x1f\x8b\x08\x00garbage", bomb[:40], b"plain"):
        problem(post(path, data, kind, content_encoding="gzip"), 400, "telemetry_unusable")
    assert post.types() == ["agreement_registered"]
    # Two were refused by what they say of their length, before it was known whose they are.
    assert sum(post.outcomes.counts().values()) == 9
    metrics = post.client.get("/metrics").text
    route = path.partition("?")[0]
    assert f'sla_ledger_ingest_bodies_total{{outcome="body_too_large",route="{route}"}} 3.0' in metrics
    assert 'sla_ledger_http_requests_total{method="POST",route="",status="413"} 2.0' in metrics


# --- OTLP ------------------------------------------------------------------------------------


def test_metrics_become_evidence(post: Post) -> None:
    gpu = "GPU-c2f76b33"
    answer = post.metrics(
        gauge("DCGM_FI_PROF_DRAM_ACTIVE", 0.91, UUID=gpu),
        gauge("DCGM_FI_PROF_DRAM_ACTIVE", 0.5, AT_NS + 10**9, UUID=gpu),
        gauge("vllm:num_requests_waiting", 7, model_name="m"),
        gauge("my.own", 1),
    )
    assert (answer.status_code, answer.json()) == (200, {})
    with post.desk.database.read() as tx:
        found = find_evidence(tx, "example-chat", Interval(AT_NS, AT_NS + 10**9))
        assert find_evidence(tx, "example-chat", Interval(AT_NS + 2 * 10**9, AT_NS + 3 * 10**9)) == ()
        assert find_evidence(tx, "other", Interval(AT_NS, AT_NS + 10**9)) == ()
    assert [(each.kind, each.summary) for each in found] == [
        ("gpu_sample", f"{gpu}: DCGM_FI_PROF_DRAM_ACTIVE 0.5 to 0.91, last 0.5 (2 samples)"),
        ("server_metric", "m: vllm:num_requests_waiting 7.0 (1 samples)"),
    ]


def test_what_cannot_be_used_is_the_partial_success(post: Post) -> None:
    good, bad = gauge("a", 1), gauge("DCGM_FI_PROF_DRAM_ACTIVE", 69, UUID="GPU-1")
    answer = post.metrics(good, bad).json()["partialSuccess"]
    assert answer["rejectedDataPoints"] == "1"
    assert "DCGM_FI_PROF_DRAM_ACTIVE is more than 1" in answer["errorMessage"]
    (payload,) = post.payloads("telemetry_recorded")
    assert payload["reasons"] == {"unit_error": 1}
    assert payload["refused"][0]["raw"] == "69.0"


def test_protobuf_is_answered_in_protobuf(post: Post) -> None:
    request = ExportMetricsServiceRequest()
    resource = request.resource_metrics.add()
    attribute = resource.resource.attributes.add(key="service.name")
    attribute.value.string_value = "example-chat"
    points = resource.scope_metrics.add().metrics.add(name="a").gauge.data_points
    points.add(as_int=3, time_unix_nano=AT_NS)
    points.add(as_int=3)
    body = request.SerializeToString()
    answer = post("/v1/metrics", gzip.compress(body), "application/x-protobuf", content_encoding="gzip")
    assert answer.headers["content-type"] == "application/x-protobuf"
    read = ExportMetricsServiceResponse.FromString(answer.content)
    assert read.partial_success.rejected_data_points == 1
    assert "timeUnixNano" in read.partial_success.error_message
    assert post("/v1/metrics", body, "application/x-protobuf").content == answer.content
    assert len(post.payloads("telemetry_recorded")) == 1


@pytest.mark.parametrize(
    ("metric", "field"),
    [
        (gauge("a", "NaN"), "a"),
        (gauge("a", 1, 0), "timeUnixNano"),
        ({"name": "a", "gauge": {"dataPoints": [{"timeUnixNano": "5"}]}}, "asDouble"),
        ({"name": "a"}, "metrics[0]"),
        (counter("a", 1, AT_NS) | {"sum": {"dataPoints": [{"asInt": 1, "timeUnixNano": 5}]}}, "aggregationTemporality"),
    ],
)
def test_a_request_without_one_usable_point_is_refused(post: Post, metric: dict[str, Any], field: str) -> None:
    found = problem(post.metrics(metric), 400, "telemetry_unusable")
    assert field in found["data"]["field"]
    assert post.types() == ["agreement_registered"]


@pytest.mark.parametrize(
    ("counts", "bounds", "field"),
    [(["1", 1], [1], ""), (["1"], [1], "bucketCounts"), ([1, 1, 0], [2, 1], "explicitBounds"), ([2, 1], [1], "count")],
)
def test_buckets_must_add_up(post: Post, counts: list[Any], bounds: list[int], field: str) -> None:
    point = {"count": "2", "sum": 2, "bucketCounts": counts, "explicitBounds": bounds, "timeUnixNano": str(AT_NS)}
    answer = post.metrics({"name": "h", "histogram": {"aggregationTemporality": 2, "dataPoints": [point]}})
    if field:
        assert field in problem(answer, 400, "telemetry_unusable")["data"]["field"]
    else:
        assert answer.json() == {}


def test_a_counter_goes_back_only_with_a_newer_start(post: Post) -> None:
    post.metrics(counter("requests", 10, AT_NS, start_ns=5))
    found = problem(post.metrics(counter("requests", 4, AT_NS + 1, start_ns=5)), 400, "telemetry_unusable")
    assert found["data"]["reason"] == "counter_went_back"
    assert "requests" in found["data"]["field"]
    assert post.metrics(counter("requests", 4, AT_NS + 2, start_ns=7)).json() == {}
    assert [payload["resets"] for payload in post.payloads("telemetry_recorded")] == [0, 1]


@pytest.mark.parametrize("body", [b"\x0a\xff\xff", b"\x08", b"not protobuf at all"])
def test_malformed_protobuf_is_refused(post: Post, body: bytes) -> None:
    problem(post("/v1/metrics", body, "application/x-protobuf"), 400, "telemetry_unusable")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"[]", "body"),
        (b'{"resourceMetrics": {"resource": 3}}', "resourceMetrics"),
        (b'{"resourceLogs": []}', "resourceMetrics"),
        (b"[" * 100_000, "body"),
        (point_of(b'{"timeUnixNano":"x"}'), "timeUnixNano"),
        (point_of(b'{"exemplars":[{"traceId":"XY"}]}'), "traceId"),
    ],
)
def test_json_that_is_no_request_names_the_field(post: Post, body: bytes, field: str) -> None:
    found = problem(post("/v1/metrics", body, "application/json"), 400, "telemetry_unusable")
    assert field in found["data"]["field"]


def test_ids_in_json_are_hex(post: Post) -> None:
    metric = gauge("a", 1)
    metric["gauge"]["dataPoints"][0]["exemplars"] = [
        {"traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "EEE19B7EC3C1B174", "asDouble": 1}
    ]
    assert post.metrics(metric).json() == {}


def test_an_unknown_service_is_named(post: Post) -> None:
    found = problem(post.metrics(gauge("a", 1), service="nobody's"), 400, "service_unknown")
    assert found["data"]["field"] == "resourceMetrics[0].resource.attributes[service.name]"
    assert "nobody's" in found["detail"]
    assert post.types() == ["agreement_registered"]


# --- breakers --------------------------------------------------------------------------------


def test_a_transition_is_recorded_in_every_mode(post: Post) -> None:
    def event(name: str) -> CloudEvent:
        attributes = {
            "id": name,
            "source": "/gateway",
            "type": "io.resilience4j",
            "datacontenttype": "application/json",
        }
        return CloudEvent(attributes=attributes, data=OPENED)

    for message in (to_structured(event("1"), JSONFormat()), to_binary(event("2"), JSONFormat())):
        answer = post.client.post("/v1/breaker-events", content=message.body, headers=message.headers)
        assert answer.json()["transitions"] == 1, answer.text
    assert post.events(OPENED, OPENED).json()["samples"]["accepted"] == 1
    plain = json.dumps({"circuitBreakerEvents": [OPENED]}).encode()
    assert post("/v1/breaker-events", plain, "application/json").json()["transitions"] == 1
    recorded = post.payloads("breaker_event_recorded")
    assert len(recorded) == 4
    assert {each["at_ns"] for each in recorded} == {str(AT_NS + 5 * 10**8)}
    with post.desk.database.read() as tx:
        (found,) = find_evidence(tx, "example-chat", Interval(AT_NS, AT_NS + 10**9))
    assert found.kind == "breaker_event"
    assert found.summary == "breaker chat-upstream went from closed to open at 2023-06-14T10:00:00.500000000Z"


def test_the_same_event_counts_once(post: Post) -> None:
    first = post.events(OPENED).json()
    assert post.events(OPENED).json() == first
    # The same source and id with other words in another batch.
    other = post.events(
        OPENED | {"stateTransition": "CLOSED_TO_HALF_OPEN"}, OPENED | {"creationTime": "2024-01-01T00:00:00Z"}
    )
    assert other.json()["samples"] == {"accepted": 1, "duplicate": 0, "conflict": 1, "quarantined": 0, "rejected": 0}
    assert len(post.payloads("breaker_event_recorded")) == 2


@pytest.mark.parametrize(
    ("event", "state"),
    [
        ({"action": "EJECT", "enforced": True}, "ejected"),
        ({"action": "EJECT", "enforced": False}, None),
        ({"action": "EJECT"}, None),
        ({"action": "UNEJECT"}, "unejected"),
    ],
)
def test_only_an_enforced_ejection_counts(post: Post, event: dict[str, Any], state: str | None) -> None:
    event |= {
        "type": "CONSECUTIVE_5XX",
        "cluster_name": "outbound|8000||chat",
        "upstream_url": "10.0.0.7:80",
        "timestamp": "2023-06-14T10:00:00Z",
        "service": "example-chat",
    }
    answer = post.events(event).json()
    assert answer["samples"]["accepted"] == 1
    assert [each["to_state"] for each in post.payloads("breaker_event_recorded")] == ([state] if state else [])


@pytest.mark.parametrize(
    ("rate", "stored"), [(-1, None), ("NaN", None), ("-1.0%", None), (50.5, "50.5"), ("62.5%", "62.5"), (None, None)]
)
def test_an_unknown_failure_rate_is_no_number(post: Post, rate: Any, stored: str | None) -> None:
    assert post.events(OPENED | {"failureRate": rate}).status_code == 200
    (recorded,) = post.payloads("breaker_event_recorded")
    assert recorded["failure_rate"] == stored


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"creationTime": "2023-06-14T12:00:00"}, "creationTime"),
        ({"creationTime": 5}, "creationTime"),
        ({"stateTransition": "OPEN"}, "stateTransition"),
        ({"type": "DANCE"}, "type"),
        ({"circuitBreakerName": ""}, "circuitBreakerName"),
        ({"failureRate": 101}, "failureRate"),
        ({"failureRate": True}, "failureRate"),
    ],
)
def test_a_bad_event_names_the_field(post: Post, changes: dict[str, Any], field: str) -> None:
    found = problem(post.events(OPENED | changes), 400, "telemetry_unusable")
    assert found["data"]["field"] == f"[0].data.{field}"
    assert post.types() == ["agreement_registered"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"specversion": "0.3"}, "specversion"),
        ({"specversion": None}, "specversion"),
        ({"id": ""}, "id"),
        ({"source": 3}, "source"),
        ({"time": "2023-06-14 10:00"}, "time"),
        ({"time": "2023-06-14T10:00:00"}, "time"),
        ({"data": [1]}, "data"),
    ],
)
def test_a_bad_envelope_names_the_attribute(post: Post, changes: dict[str, Any], field: str) -> None:
    found = problem(post.events(OPENED, **{"service": "example-chat", **changes}), 400, "telemetry_unusable")
    assert found["data"]["field"] == f"[0].{field}"


def test_one_bad_event_costs_itself(post: Post) -> None:
    answer = post.events(OPENED, OPENED | {"creationTime": "yesterday"}).json()
    assert answer["samples"] == {"accepted": 1, "duplicate": 0, "conflict": 0, "quarantined": 0, "rejected": 1}
    assert answer["refused"][0]["field"] == "[1].data.creationTime"


@pytest.mark.parametrize(
    "body", [b"{", b'{"a": NaN}', b"\xff", b"[" * 50_000, b'{"a": 1e999999999999999999999}', b"[]"]
)
def test_what_is_no_json_is_refused(post: Post, body: bytes) -> None:
    for kind in ("application/json", "application/cloudevents+json"):
        assert post("/v1/breaker-events", body, kind).status_code == 400
    assert post.types() == ["agreement_registered"]


def test_an_event_of_an_unknown_service_is_refused(post: Post) -> None:
    found = problem(post.events(OPENED | {"service": "who"}), 400, "service_unknown")
    assert found["data"]["field"] == "[0].service"
    named = post(
        "/v1/breaker-events?service=example-chat", json.dumps(OPENED | {"service": "who"}).encode(), "application/json"
    )
    assert named.json()["transitions"] == 1


def test_each_route_takes_its_own_method(post: Post) -> None:
    assert problem(post.client.get("/v1/metrics"), 405, "method_not_allowed")
    assert problem(post.client.post("/v1/statements", content=b"{}"), 405, "method_not_allowed")
    assert post.client.delete("/v1/metrics").headers["allow"] == "POST"


# --- documentation ---------------------------------------------------------------------------

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/ingest.md"


def test_the_documented_requests_are_taken(post: Post) -> None:
    examples = re.findall(r"```http\nPOST (\S+)\nContent-Type: (\S+)\n\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert len(examples) == 5
    for path, kind, body in examples:
        answer = post(path.replace("{sla_id}", post.sla_id), body.encode(), kind)
        assert answer.status_code == 200, answer.text
        assert 'rejected": 1' not in answer.text
    assert sorted(post.types())[1:] == [
        "breaker_event_recorded",
        "observations_recorded",
        "observations_recorded",
        "observations_recorded",
        "telemetry_recorded",
        "telemetry_recorded",
    ]


def http_scope(path: str) -> dict[str, Any]:
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "headers": headers}
    scope |= {"query_string": b"", "root_path": "", "http_version": "1.1", "scheme": "http", "client": ("a", 1)}
    return scope | {"server": ("127.0.0.1", 80), "asgi": {"version": "3.0"}, "state": {}}


@pytest.mark.parametrize("path", ["/v1/metrics", "/graphql"])
def test_a_body_that_drips_is_given_up(post: Post, path: str) -> None:
    async def answer() -> tuple[int, bytes]:
        sent: list[Any] = []

        async def receive() -> Any:
            if not sent:
                await asyncio.sleep(0.01)
            return {"type": "http.request", "body": b"x", "more_body": True}

        async def send(message: Any) -> None:
            sent.append(message)

        await app(http_scope(path), receive, send)
        return sent[0]["status"], sent[1]["body"]

    app = app_over(post.desk, IngestSettings(body_timeout_s=0.05), post.outcomes)
    status, body = asyncio.run(answer())
    assert status == 408
    assert json.loads(body)["code"] == "body_too_slow"


def test_of_a_body_beyond_those_in_flight_nothing_is_read(post: Post) -> None:
    """Many uploads at once, none of which ends: only so many are begun, and the others when those are done."""
    begun: set[int] = set()

    async def upload(number: int, full: asyncio.Event, go_on: asyncio.Event) -> int:
        statuses: list[int] = []

        async def receive() -> Any:
            begun.add(number)
            if len(begun) == BODIES:
                full.set()
            await go_on.wait()
            return {"type": "http.request", "body": b"no metrics", "more_body": False}

        async def send(message: Any) -> None:
            statuses.append(message.get("status", 0))

        await app(http_scope("/v1/metrics"), receive, send)
        return statuses[0]

    async def all_at_once() -> list[int]:
        full, go_on = asyncio.Event(), asyncio.Event()
        uploads = asyncio.gather(*(upload(number, full, go_on) for number in range(3 * BODIES)))
        await full.wait()
        # Time enough for all the others to begin, if they may.
        await asyncio.sleep(0.1)
        assert len(begun) == BODIES
        go_on.set()
        return await uploads

    app = app_over(post.desk, IngestSettings(), post.outcomes)
    assert asyncio.run(all_at_once()) == [400] * 3 * BODIES
    assert len(begun) == 3 * BODIES
