"""OTLP metrics over HTTP: an ``ExportMetricsServiceRequest`` as protobuf or JSON (OTLP 1.x, opentelemetry-proto).

Two traps of the JSON form: ids are hex where plain protobuf JSON reads base64, without an error; and 64-bit integers
come as numbers or as texts. A data point is one sample; a bad one costs itself, a document that is no request costs
all. Counters that say they are deltas (temporality 1) are not compared with what came before.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from google.protobuf import json_format  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from ledger.app.facts.telemetry import RawTelemetry
from ledger.domain.rows.telemetry import Doubt, EvidenceKind, Reading, Refusal, Sample, ServiceReadings
from ledger.ingest import dcgm, envoy, llm_servers
from ledger.ingest.catalogue import Catalogue, make_sample
from ledger.ingest.reading import MAX_INSTANT_NS, ReadingProblem, clean, require_shallow, unusable

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
SERVICE = "service.name"
MAX_ATTRIBUTES = 128

_NO_RECORDED_VALUE = 1
_CUMULATIVE = 2
_TEMPORALITIES = (1, _CUMULATIVE)
_UNKNOWN = Catalogue(kind=EvidenceKind.SERVER_METRIC, metrics={}, subject=lambda _labels: "the service")
_BY_NAME = {
    name: catalogue
    for catalogue in (dcgm.CATALOGUE, *llm_servers.CATALOGUES.values(), envoy.CATALOGUE)
    for name in catalogue.metrics
}
_FAILED_FIELD = re.compile(r"Failed to parse (\w+) field")


def read_otlp(raw: RawTelemetry) -> list[ServiceReadings]:
    """The data points of a request, by resource. Raises ``TelemetryUnusable``."""
    request = _from_json(raw.data) if raw.media_type == JSON else _from_protobuf(raw.data)
    groups = []
    for at, resource_metrics in enumerate(request.resource_metrics):
        attributes = _attributes(resource_metrics.resource.attributes)
        named = attributes.pop(SERVICE, None)
        service = named if raw.service is None else raw.service
        place = f"resourceMetrics[{at}].resource.attributes[{SERVICE}]" if raw.service is None else "service"
        group = ServiceReadings(service, place)
        for scope_at, scope in enumerate(resource_metrics.scope_metrics):
            for metric_at, metric in enumerate(scope.metrics):
                where = f"resourceMetrics[{at}].scopeMetrics[{scope_at}].metrics[{metric_at}]"
                group.readings += _read_metric(metric, attributes, where)
        groups.append(group)
    return groups


def otlp_answer(media_type: str, refused: int, message: str) -> bytes:
    """An ``ExportMetricsServiceResponse`` in the encoding of the request; ``refused`` 0: all was taken."""
    answer = ExportMetricsServiceResponse()
    if refused:
        answer.partial_success.rejected_data_points = refused
        answer.partial_success.error_message = message
    if media_type == JSON:
        text: str = json_format.MessageToJson(answer, indent=None)
        return text.encode()
    encoded: bytes = answer.SerializeToString()
    return encoded


def _from_protobuf(data: bytes) -> ExportMetricsServiceRequest:
    request = ExportMetricsServiceRequest()
    try:
        request.ParseFromString(data)
    except DecodeError as error:
        message = f"is no ExportMetricsServiceRequest: {clean(str(error))}"
        raise unusable("body", message) from None
    return request


def _from_json(data: bytes) -> ExportMetricsServiceRequest:
    require_shallow(data)
    try:
        document = json.loads(data)
    except ValueError as error:
        raise unusable("body", f"is no JSON: {clean(str(error))}") from None
    if not isinstance(document, dict):
        raise unusable("body", "must be a JSON object: an ExportMetricsServiceRequest")
    if document and not document.keys() & {"resourceMetrics", "resource_metrics"}:
        # Unknown members are to be ignored, so that logs would be taken for metrics without a word.
        raise unusable("resourceMetrics", "is missing: this is no request of metrics", Doubt.FIELD_MISSING)
    _ids_to_base64(document)
    request = ExportMetricsServiceRequest()
    try:
        json_format.ParseDict(document, request, ignore_unknown_fields=True)
    # The library leaves by other errors, too, where a value is of a type it does not expect.
    except (json_format.Error, ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        path = ".".join(_FAILED_FIELD.findall(str(error))) or "body"
        raise unusable(path, clean(str(error).rpartition(": ")[2] or "cannot be read")) from None
    return request


def _ids_to_base64(document: dict[str, Any]) -> None:
    """Rewrite the hex ids of a document in place as what the library reads."""
    todo: list[Any] = [document]
    while todo:
        value = todo.pop()
        if isinstance(value, list):
            todo += value
        if not isinstance(value, dict):
            continue
        for key, item in value.items():
            if key in ("traceId", "spanId", "trace_id", "span_id") and isinstance(item, str):
                try:
                    value[key] = base64.b64encode(binascii.unhexlify(item)).decode()
                except (binascii.Error, ValueError):
                    raise unusable(key, f"{clean(item, 40)!r} is not hex", Doubt.FIELD_INVALID) from None
            else:
                todo.append(item)


def _attributes(attributes: Any) -> dict[str, str]:
    """Attributes as texts; lists and maps in their JSON."""
    found: dict[str, str] = {}
    for attribute in list(attributes)[:MAX_ATTRIBUTES]:
        value, kind = attribute.value, attribute.value.WhichOneof("value")
        if kind in ("array_value", "kvlist_value", "bytes_value"):
            found[attribute.key] = str(value)
        elif kind is not None:
            found[attribute.key] = str(getattr(value, kind))
    return found


def _read_metric(metric: Metric, resource: dict[str, str], where: str) -> Iterator[Reading]:
    kind = metric.WhichOneof("data")
    if kind is None:
        yield ReadingProblem(Doubt.FIELD_MISSING, where, f"{clean(metric.name)!r} has no data").refusal
        return
    data = getattr(metric, kind)
    temporality = getattr(data, "aggregation_temporality", None)
    for at, point in enumerate(data.data_points):
        place = f"{where}.{kind}.dataPoints[{at}]"
        try:
            _check_point(metric, kind, temporality, point, place)
            yield _read_point(metric, kind, point, resource, place)
        except ReadingProblem as problem:
            yield problem.refusal


def _check_point(metric: Metric, kind: str, temporality: int | None, point: Any, place: str) -> None:
    if not metric.name:
        raise ReadingProblem(Doubt.FIELD_MISSING, f"{place}: metric name", "the metric has no name")
    if temporality is not None and temporality not in _TEMPORALITIES:
        raise ReadingProblem(
            Doubt.TEMPORALITY_UNKNOWN, f"{place}: aggregationTemporality", "must be delta or cumulative", temporality
        )
    if not 0 < point.time_unix_nano <= MAX_INSTANT_NS:
        message = "must be nanoseconds since 1970, not 0 and not after 2262"
        raise ReadingProblem(Doubt.TIME_INVALID, f"{place}.timeUnixNano", message, point.time_unix_nano)
    if kind == "histogram":
        _check_buckets(point, place)
    if kind == "exponential_histogram":
        counted = point.zero_count + sum(point.positive.bucket_counts) + sum(point.negative.bucket_counts)
        if counted != point.count:
            message = f"its buckets hold {counted} values and its count says {point.count}"
            raise ReadingProblem(Doubt.BUCKETS_INVALID, f"{place}.count", message, point.count)


def _check_buckets(point: Any, place: str) -> None:
    counts, bounds = list(point.bucket_counts), list(point.explicit_bounds)
    if not counts and not bounds:
        return
    if len(counts) != len(bounds) + 1:
        message = f"{len(counts)} counts for {len(bounds)} bounds; there must be one more than bounds"
        raise ReadingProblem(Doubt.BUCKETS_INVALID, f"{place}.bucketCounts", message, len(counts))
    if any(map(math.isnan, bounds)) or not all(low < high for low, high in pairwise(bounds)):
        raise ReadingProblem(Doubt.BUCKETS_INVALID, f"{place}.explicitBounds", "must rise", bounds[:5])
    if sum(counts) != point.count:
        message = f"its buckets hold {sum(counts)} values and its count says {point.count}"
        raise ReadingProblem(Doubt.BUCKETS_INVALID, f"{place}.count", message, point.count)


def _read_point(metric: Metric, kind: str, point: Any, resource: dict[str, str], place: str) -> Sample | Refusal:
    catalogue = _BY_NAME.get(metric.name, _UNKNOWN)
    labels = resource | _attributes(point.attributes)
    cumulative = kind != "gauge" and getattr(getattr(metric, kind), "aggregation_temporality", 2) == _CUMULATIVE
    cumulative = cumulative and (kind != "sum" or metric.sum.is_monotonic)
    start_ns = point.start_time_unix_nano or None
    if point.flags & _NO_RECORDED_VALUE:
        series = catalogue.series(labels, place)
        return Sample(catalogue.metric(metric.name).name, series, point.time_unix_nano, None, "ended", cumulative)
    if kind in ("gauge", "sum"):
        which = point.WhichOneof("value")
        if which is None:
            raise ReadingProblem(Doubt.FIELD_MISSING, f"{place}.asDouble", "neither asInt nor asDouble is there")
        value = getattr(point, which)
    else:
        value = int(point.count)
    sample = make_sample(
        catalogue,
        metric.name,
        labels,
        value,
        point.time_unix_nano,
        f"{place}: {clean(metric.name)}",
        cumulative=cumulative,
        start_ns=start_ns if cumulative else None,
    )
    # Two histograms of one count can differ in their buckets.
    if isinstance(sample, Sample) and kind not in ("gauge", "sum"):
        sample = sample._replace(body=point.SerializeToString(deterministic=True).hex())
    return sample
