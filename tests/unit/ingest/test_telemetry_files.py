"""Real files of exporters and proxies: what each comes to, as a table. The files stay in the fixture folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.app.facts.telemetry import RawTelemetry
from ledger.domain.rows.observation import BodyBook
from ledger.domain.rows.telemetry import Judged, Sample, condense, judge
from ledger.errors import TelemetryUnusable
from ledger.ingest.registry import read_telemetry

AT_NS = 1_700_000_000 * 10**9

# file, format -> verdicts, reasons, number of telling series
READ = {
    ("a_dcgm_exporter/a100_mig_nvidia_docs.prom", "dcgm"): ({"accepted": 19}, {}, 9),
    ("a_dcgm_exporter/l40s_driver595_upcloud.prom", "dcgm"): ({"accepted": 23}, {}, 6),
    ("a_dcgm_exporter/l4_driver580_kops_scrape1.prom", "dcgm"): ({"accepted": 23}, {}, 6),
    ("a_dcgm_exporter/l4_driver580_kops_scrape2.prom", "dcgm"): ({"accepted": 23}, {}, 6),
    # Pasted by hand with labels left out: those 18 lines cannot be read, the two whole ones can.
    ("a_dcgm_exporter/invalid_elided_labels_doc_paste.prom", "dcgm"): (
        {"accepted": 2, "rejected": 18},
        {"malformed": 18},
        0,
    ),
    # The old and the new name of the cache's usage are one value, said twice.
    ("c_llm_servers/vllm_v0_names_datadog.prom", "vllm"): ({"accepted": 64, "duplicate": 1}, {}, 3),
    ("c_llm_servers/vllm_v1_full_qwen25_kops.prom", "vllm"): ({"accepted": 357}, {}, 3),
    ("c_llm_servers/sglang_0.5.10_datadog.prom", "sglang"): ({"accepted": 32}, {}, 3),
    ("c_llm_servers/tgi_datadog.prom", "tgi"): ({"accepted": 161}, {}, 2),
    ("c_llm_servers/triton_full_datadog.prom", "triton"): ({"accepted": 150}, {}, 8),
    # A server's metrics at the address where a GPU exporter was expected.
    ("c_llm_servers/sglang_0.5.10_datadog.prom", "dcgm"): ({"rejected": 32}, {"field_missing": 32}, 0),
    ("d_circuit_breakers/envoy_stats_prometheus_full.prom", "envoy"): ({"accepted": 630}, {}, 10),
    ("d_circuit_breakers/istio_outlier_ejections.prom", "envoy"): ({"accepted": 1}, {}, 1),
    # Envoy's admin text and a Hystrix stream are no exposition: no line of them is a sample.
    ("d_circuit_breakers/envoy_clusters_admin_text.txt", "envoy"): ({"rejected": 16}, {"malformed": 16}, 0),
    ("d_circuit_breakers/hystrix-cinematch.stream", "envoy"): ({"rejected": 93}, {"malformed": 93}, 0),
    # A list of names, without a value.
    ("a_dcgm_exporter/dcgm_all_field_names.txt", "dcgm"): ({"rejected": 623}, {"malformed": 623}, 0),
    ("e_otlp/proto_examples_metrics.json", "otlp"): ({"accepted": 4}, {}, 0),
}
REFUSED = {
    ("a_dcgm_exporter/runtime_validation_590_dcgm_exporter_4.4.1.json", "dcgm"): "is JSON or HTML",
    ("a_dcgm_exporter/runtime_validation_590_dcgm_exporter_4.4.1.json", "otlp"): "resourceMetrics: is missing",
    ("e_otlp/proto_examples_logs.json", "otlp"): "resourceMetrics: is missing",
    ("e_otlp/proto_examples_metrics.json", "vllm"): "is JSON or HTML",
    ("d_circuit_breakers/hystrix-cinematch.stream", "breaker_json"): "is no JSON",
}
FOLDERS = ("a_dcgm_exporter", "c_llm_servers", "d_circuit_breakers", "e_otlp")


def batch(folder: Path, file: str, form: str) -> RawTelemetry:
    data = (folder / "telemetry" / file).read_bytes()
    media_type = "application/json" if form in ("otlp", "breaker_json") else "text/plain"
    return RawTelemetry(form, media_type, data, "test", "chat", AT_NS)


def judged(raw: RawTelemetry, before: list[Sample] | None = None) -> Judged:
    readings = [reading for group in read_telemetry(raw) for reading in group.readings]
    return judge(readings, BodyBook({}), before or [], "test")


@pytest.mark.parametrize(("file", "form"), READ)
def test_a_real_file_comes_to(file: str, form: str, sla_fixtures: Path) -> None:
    found = judged(batch(sla_fixtures, file, form))
    verdicts, reasons, telling = READ[file, form]
    assert ({str(key): count for key, count in found.verdicts.items()}, dict(found.reasons)) == (verdicts, reasons)
    assert len(condense(found.accepted)) == telling


@pytest.mark.parametrize(("file", "form"), REFUSED)
def test_a_real_file_is_refused_with_its_reason(file: str, form: str, sla_fixtures: Path) -> None:
    with pytest.raises(TelemetryUnusable, match=REFUSED[file, form]):
        read_telemetry(batch(sla_fixtures, file, form))


def test_every_file_of_these_folders_is_in_the_tables(sla_fixtures: Path) -> None:
    root = sla_fixtures / "telemetry"
    files = {str(path.relative_to(root)) for folder in FOLDERS for path in (root / folder).iterdir()}
    assert files == {file for file, _ in (*READ, *REFUSED)}


def test_a_bad_line_is_named(sla_fixtures: Path) -> None:
    found = judged(batch(sla_fixtures, "a_dcgm_exporter/invalid_elided_labels_doc_paste.prom", "dcgm"))
    assert found.refused[0].field == "line 3"
    assert found.refused[0].raw.startswith('DCGM_FI_DEV_MEM_CLOCK{gpu="0",...')


def test_a_slice_of_a_gpu_is_a_series_of_its_own(sla_fixtures: Path) -> None:
    found = judged(batch(sla_fixtures, "a_dcgm_exporter/a100_mig_nvidia_docs.prom", "dcgm"))
    points = {
        point.telling.subject: (str(point.high), point.severity)
        for point in condense(found.accepted)
        if point.metric == "DCGM_FI_PROF_DRAM_ACTIVE"
    }
    gpu = "GPU-34319582-d595-d1c7-d1d2-179bcfa61660"
    assert points == {gpu: ("0.690789", 10), f"{gpu} slice 13": ("0.800339", 40)}


def test_two_scrapes_of_one_target_go_on(sla_fixtures: Path) -> None:
    first = judged(batch(sla_fixtures, "a_dcgm_exporter/l4_driver580_kops_scrape1.prom", "dcgm"))
    raw = batch(sla_fixtures, "a_dcgm_exporter/l4_driver580_kops_scrape2.prom", "dcgm")
    later = RawTelemetry(raw.format, raw.media_type, raw.data, raw.source, raw.service, AT_NS + 15 * 10**9)
    second = judged(later, first.accepted)
    assert second.verdicts["accepted"] == 23  # type: ignore[index]
    assert second.resets == 0


def test_a_host_taken_out_is_told_before_all_else(sla_fixtures: Path) -> None:
    found = judged(batch(sla_fixtures, "d_circuit_breakers/istio_outlier_ejections.prom", "envoy"))
    (point,) = condense(found.accepted)
    assert point.telling.subject == "outbound|8000||httpbin.target.svc.cluster.local"
    assert point.severity == 90
