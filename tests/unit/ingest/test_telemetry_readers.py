"""Readers of telemetry: the traps of the field one by one, and that no bytes make them fail in another way."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from ledger.app.facts.telemetry import RawTelemetry
from ledger.domain.rows.observation import BodyBook
from ledger.domain.rows.telemetry import (
    HOUR_NS,
    MAX_POINTS,
    Doubt,
    EvidenceKind,
    Judged,
    Refusal,
    Sample,
    Telling,
    condense,
    judge,
)
from ledger.errors import BadInput, BodyTooLarge, TelemetryUnusable
from ledger.ingest.packed import unpack
from ledger.ingest.reading import ReadingProblem, instant_ns, read_json
from ledger.ingest.registry import FORMATS, read_telemetry

AT_NS = 1_700_000_000 * 10**9
STALE = b"\x02\x00\x00\x00\x00\x00\xf0\x7f"


def scraped(text: str, form: str = "dcgm", media_type: str = "text/plain", at_ns: int = AT_NS) -> RawTelemetry:
    return RawTelemetry(form, media_type, text.encode(), "test", "chat", at_ns)


def readings(raw: RawTelemetry) -> list[Any]:
    return [reading for group in read_telemetry(raw) for reading in group.readings]


def only(text: str, form: str = "dcgm", media_type: str = "text/plain") -> Any:
    (reading,) = readings(scraped(text, form, media_type))
    return reading


def judged(*batches: RawTelemetry) -> list[Judged]:
    """One after the other, each beside the one before."""
    found: list[Judged] = []
    before: list[Sample] = []
    book = BodyBook({})
    for raw in batches:
        read = readings(raw)
        found.append(judge(read, book, before, "test"))
        before = [reading for reading in read if isinstance(reading, Sample)]
    return found


def otlp(*points: dict[str, Any], name: str = "a", **data: Any) -> RawTelemetry:
    body: dict[str, Any] = {"aggregationTemporality": 2, "isMonotonic": True, "dataPoints": list(points), **data}
    metrics = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": name, "sum": body}]}]}]}
    return RawTelemetry("otlp", "application/json", json.dumps(metrics).encode(), "test", "chat")


# --- values ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "value", "reason"),
    [
        *(("DCGM_FI_DEV_FB_USED", str(9223372036854775792 + n), Doubt.NO_VALUE) for n in range(4)),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "9.223372036854775794e+18", Doubt.NO_VALUE),
        ("DCGM_FI_PROF_DRAM_ACTIVE", "140737488355328.000000", Doubt.NO_VALUE),
        ("DCGM_FI_DEV_GPU_TEMP", "2147483632", Doubt.NO_VALUE),
        ("DCGM_FI_DEV_GPU_UTIL", "808334905", Doubt.UNIT_ERROR),
        ("DCGM_FI_DEV_ENC_UTIL", "101", Doubt.UNIT_ERROR),
        ("DCGM_FI_PROF_DRAM_ACTIVE", "69.0", Doubt.UNIT_ERROR),
        ("DCGM_FI_PROF_DRAM_ACTIVE", "-0.1", Doubt.OUT_OF_RANGE),
        ("DCGM_FI_PROF_DRAM_ACTIVE", "NaN", Doubt.NOT_A_NUMBER),
        ("DCGM_FI_PROF_DRAM_ACTIVE", "+Inf", Doubt.OUT_OF_RANGE),
        ("DCGM_FI_DEV_GPU_TEMP", "[N/A]", Doubt.NOT_SUPPORTED),
        ("DCGM_FI_DEV_GPU_TEMP", "[Not Supported]", Doubt.NOT_SUPPORTED),
        ("DCGM_FI_DEV_GPU_TEMP", "[Requested functionality has been deprecated]", Doubt.NOT_SUPPORTED),
        ("DCGM_FI_DEV_GPU_TEMP", "-", Doubt.NOT_SUPPORTED),
        ("DCGM_FI_DEV_GPU_TEMP", "[GPU requires reset]", Doubt.DEVICE_FAULT),
        ("DCGM_FI_DEV_GPU_TEMP", "ERR!", Doubt.DEVICE_FAULT),
    ],
)
def test_a_value_that_cannot_be_is_set_aside_as_it_came(metric: str, value: str, reason: Doubt) -> None:
    found = only(f'{metric}{{UUID="GPU-1"}} {value}')
    assert isinstance(found, Refusal)
    assert (found.verdict, found.reason) == ("quarantined", reason)
    assert found.raw


@pytest.mark.parametrize("value", ["0", "1", "0.82", "1.0"])
def test_a_ratio_is_from_0_to_1(value: str) -> None:
    found = only(f'DCGM_FI_PROF_DRAM_ACTIVE{{UUID="GPU-1"}} {value}')
    assert found.value == Decimal(value)


def test_pod_and_host_are_no_part_of_a_gpu() -> None:
    text = 'DCGM_FI_DEV_GPU_TEMP{UUID="GPU-1",pod="%s",Hostname="%s"} 31\n'
    (found,) = judged(scraped(text % ("a", "x") + text % ("b", "y")))
    assert found.verdicts == {"accepted": 1, "duplicate": 1}


def test_two_values_for_one_series_and_instant_are_a_conflict() -> None:
    text = 'vllm:kv_cache_usage_perc{model_name="m"} 0.5\nvllm:gpu_cache_usage_perc{model_name="m"} 0.6\n'
    (found,) = judged(scraped(text, "vllm"))
    assert found.verdicts == {"accepted": 1, "conflict": 1}


def test_an_exemplar_in_text_is_refused_and_costs_its_line() -> None:
    found = readings(scraped('a 1 # {trace="x"} 2\nb{c="# {no exemplar}"} 3\n', "vllm"))
    assert [each.reason for each in found if isinstance(each, Refusal)] == [Doubt.EXEMPLAR_IN_TEXT]
    assert [each.metric for each in found if isinstance(each, Sample)] == ["b"]


def test_openmetrics_has_exemplars_and_an_end() -> None:
    text = '# TYPE a counter\na_total 1 # {trace_id="x"} 0.5\n# EOF\n'
    assert only(text, "vllm", "application/openmetrics-text").value == 1
    with pytest.raises(TelemetryUnusable, match="cut off"):
        readings(scraped(text[:20], "vllm", "application/openmetrics-text"))


def test_a_bad_line_of_openmetrics_costs_itself() -> None:
    text = '# TYPE a counter\na_total 1 # {x="y"} 1\nb{ 2\nc 3 1700000000.5\n# EOF\n'
    found = readings(scraped(text, "vllm", "application/openmetrics-text"))
    assert [each.field for each in found if isinstance(each, Refusal)] == ["line 3"]
    assert {each.metric: each.at_ns for each in found if isinstance(each, Sample)} == {
        "a_total": AT_NS,
        "c": AT_NS + 5 * 10**8,
    }


@pytest.mark.parametrize("text", ['{"a": 1}', "<html></html>", "", "# only a comment\n", "[]"])
def test_what_is_no_exposition_is_refused(text: str) -> None:
    with pytest.raises(TelemetryUnusable):
        readings(scraped(text))
    with pytest.raises(TelemetryUnusable):
        readings(RawTelemetry("dcgm", "text/plain", b"\xff\xfe", "test", "chat", AT_NS))


# --- counters --------------------------------------------------------------------------------


def counted(value: int, at_s: int, created_s: int | None = None) -> RawTelemetry:
    created = f"# TYPE a_created gauge\na_created {created_s}\n" if created_s else ""
    return scraped(f"# TYPE a_total counter\na_total {value}\n{created}", "vllm", at_ns=AT_NS + at_s * 10**9)


def test_a_lower_counter_with_a_newer_start_was_reset() -> None:
    found = judged(counted(10, 0, 1_600_000_000), counted(3, 15, 1_700_000_010), counted(4, 30, 1_700_000_010))
    assert [each.resets for each in found] == [0, 1, 0]
    assert [each.verdicts["accepted"] for each in found] == [1, 1, 1]  # type: ignore[index]


def test_a_lower_counter_without_a_newer_start_is_set_aside() -> None:
    # Two workers answer behind one address.
    found = judged(*(counted(value, 15 * at, 1_600_000_000) for at, value in enumerate((10, 3, 11, 4))))
    assert [list(each.reasons) for each in found] == [[], ["counter_went_back"], [], ["counter_went_back"]]
    assert found[1].refused[0].field == "a_total"


def test_the_start_of_the_process_is_that_of_its_counters() -> None:
    text = "# TYPE a counter\na {} \nprocess_start_time_seconds {}\n"
    first = scraped(text.format(10, 1_600_000_000), "vllm")
    second = scraped(text.format(2, 1_700_000_000), "vllm", at_ns=AT_NS + 1)
    assert [each.resets for each in judged(first, second)] == [0, 1]


def test_a_stale_marker_ends_a_series() -> None:
    request = ExportMetricsServiceRequest()
    points = request.resource_metrics.add().scope_metrics.add().metrics.add(name="a").sum
    points.aggregation_temporality, points.is_monotonic = 2, True
    points.data_points.add(as_int=10, time_unix_nano=AT_NS, start_time_unix_nano=5)
    points.data_points.add(flags=1, time_unix_nano=AT_NS + 1)
    points.data_points.add(as_int=1, time_unix_nano=AT_NS + 2, start_time_unix_nano=5)
    raw = RawTelemetry("otlp", "application/x-protobuf", request.SerializeToString(), "test", "chat")
    (found,) = judged(raw)
    assert found.verdicts == {"accepted": 3}


def test_prometheus_own_marker_is_known_by_its_bits() -> None:
    import struct

    from ledger.ingest.catalogue import is_stale_marker

    assert is_stale_marker(struct.unpack("<d", STALE)[0])
    assert not is_stale_marker(float("nan"))


def test_deltas_may_fall() -> None:
    points = [{"asInt": 10 - n, "timeUnixNano": AT_NS + n} for n in range(3)]
    (found,) = judged(otlp(*points, aggregationTemporality=1))
    assert found.verdicts == {"accepted": 3}


@pytest.mark.parametrize("value", [3, "3", 9007199254740993, "9007199254740993", "-5"])
def test_integers_come_as_numbers_or_texts(value: Any) -> None:
    (found,) = judged(otlp({"asInt": value, "timeUnixNano": str(AT_NS)}))
    assert found.accepted[0].value == Decimal(int(value))


def test_an_xid_is_an_event_only_when_it_changes() -> None:
    text = 'DCGM_FI_DEV_XID_ERRORS{{UUID="GPU-1"}} {}'
    found = judged(*(scraped(text.format(code), at_ns=AT_NS + at) for at, code in enumerate((0, 31, 31, 79))))
    told = [[(str(point.last), point.severity) for point in condense(each.accepted)] for each in found]
    assert told == [[("0", 10)], [("31", 95)], [], [("79", 95)]]


# --- points ----------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3 * HOUR_NS), st.integers(-5, 200)), max_size=60))
def test_points_lose_no_extreme_and_span_at_most_an_hour(drawn: list[tuple[int, int, int]]) -> None:
    telling = Telling(EvidenceKind.GPU_SAMPLE, "gpu", ((Decimal(100), 80),))
    samples = [
        Sample(f"m{name}", (), at_ns, Decimal(value), str(value), telling=telling) for name, at_ns, value in drawn
    ]
    points = condense(samples)
    assert len(points) <= MAX_POINTS
    assert sum(point.samples for point in points) == len(samples)
    for point in points:
        of_point = [
            sample
            for sample in samples
            if sample.metric == point.metric and point.from_ns <= sample.at_ns < point.to_ns
        ]
        assert point.to_ns - point.from_ns <= HOUR_NS
        assert point.low == min(sample.value for sample in of_point if sample.value is not None)
        assert point.high == max(sample.value for sample in of_point if sample.value is not None)
        assert point.severity == (80 if point.high > 100 else 10)


@given(st.permutations(range(8)), st.integers(0, 2**32))
def test_verdicts_do_not_depend_on_how_samples_are_cut(order: list[int], seed: int) -> None:
    draw = random.Random(seed)
    samples = [Sample("m", (), draw.randrange(4), Decimal(n), str(draw.randrange(2))) for n in range(8)]
    whole = judge(samples, BodyBook({}), [], "s").verdicts
    book = BodyBook({})
    parts = [judge([samples[at]], book, [], "s").verdicts for at in order]
    assert whole == sum(parts[1:], parts[0])


# --- JSON, times, gzip -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("2023-06-14T12:00:00+05:30[Asia/Kolkata]", True),
        ("2023-06-14T12:00:00.123456789Z", True),
        ("2023-06-14T12:00:00", False),
        ("2023-06-14T12:00:00[Asia/Kolkata]", False),
        ("2023-06-14T12:00:00Z[" + "a" * 500, False),
        (None, False),
        (1686736800, False),
    ],
)
def test_a_time_has_a_zone(text: Any, good: bool) -> None:
    if good:
        assert instant_ns(text, "time") > 0
        return
    with pytest.raises(ReadingProblem) as raised:
        instant_ns(text, "time")
    assert raised.value.refusal.field == "time"


def test_nanoseconds_are_not_cut() -> None:
    assert instant_ns("2023-06-14T12:00:00.123456789+02:00[Europe/Berlin]", "time") % 10**9 == 123456789


@pytest.mark.parametrize("data", [b"[" * 10**6, b'{"a":' * 10**5, b"NaN", b"[Infinity]", b"1e999999999999999999999"])
def test_hostile_json_is_refused(data: bytes) -> None:
    with pytest.raises(TelemetryUnusable):
        read_json(data)


@given(st.binary(max_size=2000), st.integers(0, 3))
def test_gzip_gives_back_what_went_in(data: bytes, members: int) -> None:
    assert unpack(gzip.compress(data) * members, "gzip", 10**6) == data * members
    assert unpack(data, "identity", 10) == data


@given(st.binary(max_size=300))
def test_any_bytes_as_gzip_are_read_or_refused(data: bytes) -> None:
    for body in (data, gzip.compress(b"x" * 100)[: len(data)], gzip.compress(b"x") + data):
        with contextlib.suppress(BadInput):
            unpack(body, "gzip", 10**6)


def test_a_bomb_is_refused_by_size_and_by_ratio() -> None:
    bomb = gzip.compress(bytes(5_000_000))
    with pytest.raises(BodyTooLarge) as raised:
        unpack(bomb, "gzip", 2_000_000)
    assert raised.value.data["limit"] <= 2_000_000
    with pytest.raises(BodyTooLarge):
        unpack(bomb, "gzip", 10**9)
    assert len(unpack(gzip.compress(bytes(900_000)), "gzip", 10**9)) == 900_000


# --- anything at all -------------------------------------------------------------------------

RESILIENCE4J = {"circuitBreakerName": "b", "type": "STATE_TRANSITION", "stateTransition": "OPEN_TO_CLOSED"}
HISTOGRAM = {"count": "2", "bucketCounts": ["1", "1"], "explicitBounds": [1], "timeUnixNano": "1"}
RESOURCE = {"attributes": [{"key": "service.name", "value": {"stringValue": "x"}}]}
METRICS = [{"name": "a", "histogram": {"aggregationTemporality": 2, "dataPoints": [HISTOGRAM]}}]
EVENT = {"specversion": "1.0", "id": "1", "source": "s", "type": "t", "data": {"breaker": "b"}}
SEEDS: dict[str, list[Any]] = {
    "text/plain": [
        b'# TYPE a counter\na_total{b="c",d="e\\"f"} 1 1700000000000\nDCGM_FI_DEV_GPU_TEMP{UUID="G"} [N/A]\n',
        b'process_start_time_seconds NaN\na_created 1e300\na -Inf\na{le="+Inf"} 3 # {x="y"} 2\n',
    ],
    "application/openmetrics-text": [b'# TYPE a histogram\na_bucket{le="1"} 1 # {t="u"} 0.5 1.5\na_count 1\n# EOF\n'],
    "application/json": [
        RESILIENCE4J,
        {"resourceMetrics": [{"resource": RESOURCE, "scopeMetrics": [{"metrics": METRICS}]}]},
    ],
    "application/cloudevents+json": [EVENT],
    "application/cloudevents-batch+json": [[EVENT | {"id": 1, "time": "x", "data": {"cluster_name": "c"}}, None]],
}


def refuses_or_reads(raw: RawTelemetry) -> None:
    try:
        groups = read_telemetry(raw)
    except BadInput as error:
        groups = []
        field = error.data["field"]
        if not field:
            pytest.fail("a refusal without a field")
    for group in groups:
        found = judge(group.readings, BodyBook({}), [], "s")
        condense(found.accepted)
        assert sum(found.verdicts.values()) == len(group.readings)


@pytest.mark.parametrize("form", FORMATS)
@given(data=st.binary(max_size=400))
@settings(max_examples=60)
def test_any_bytes_are_read_or_refused(form: str, data: bytes) -> None:
    for media_type in FORMATS[form].media_types:
        refuses_or_reads(RawTelemetry(form, media_type, data, "s", None, AT_NS))


@pytest.mark.parametrize("form", FORMATS)
def test_damaged_batches_are_read_or_refused(form: str) -> None:
    draw = random.Random(form)
    for media_type in FORMATS[form].media_types:
        seeds = SEEDS.get(media_type, [protobuf_seed()])
        for _ in range(300):
            seed = draw.choice(seeds)
            body = bytearray(seed if isinstance(seed, bytes) else json.dumps(seed).encode())
            for _ in range(draw.randint(1, 6)):
                at = draw.randrange(len(body))
                damage = draw.choice([b"", b"\x00", b'"', b"{", b"9" * 40, bytes([draw.randrange(256)])])
                body[at : at + draw.randint(0, 3)] = damage
                body = body or bytearray(b"x")
            refuses_or_reads(RawTelemetry(form, media_type, bytes(body), "s", None, AT_NS))


MEMBERS = (
    "resourceMetrics resource scopeMetrics metrics name gauge sum dataPoints asInt attributes key value timeUnixNano "
    "flags traceId exemplars specversion data circuitBreakerEvents circuitBreakerName type cluster_name breaker at id "
    "source service"
).split()
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(MEMBERS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(json_values)
def test_any_json_is_read_or_refused(value: Any) -> None:
    data = json.dumps(value).encode()
    for form, media_type in (
        ("otlp", "application/json"),
        ("breaker_json", "application/json"),
        ("cloudevents", "application/cloudevents+json"),
        ("cloudevents", "application/cloudevents-batch+json"),
    ):
        refuses_or_reads(RawTelemetry(form, media_type, data, "s", None, AT_NS))


def protobuf_seed() -> bytes:
    request = ExportMetricsServiceRequest()
    resource = request.resource_metrics.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "chat"
    metric = resource.scope_metrics.add().metrics.add(name="h")
    point = metric.histogram.data_points.add(count=2, bucket_counts=[1, 1], explicit_bounds=[1.0], time_unix_nano=AT_NS)
    point.exemplars.add(trace_id=b"x" * 16)
    metric.histogram.aggregation_temporality = 2
    return bytes(request.SerializeToString())
