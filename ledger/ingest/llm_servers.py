"""Names of the metrics that inference servers export, by engine, with the names that older versions used.

Two spellings of one metric in one scrape are one value, said twice. Where neither is there, nothing was measured:
that is not 0. Units are those the engines document; ``_perc`` of vLLM is a ratio from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from ledger.domain.rows.telemetry import EvidenceKind
from ledger.ingest.catalogue import ONE, Catalogue, Labels, Metric

_KV_CACHE_STEPS = ((Decimal("0.92"), 75),)
"""The share of KV cache from which a prefill breaker degrades (domain notes, section 2)."""
_BACKLOG_STEPS = ((Decimal(50), 70),)
"""More waiting requests than a breaker's request volume threshold (domain notes, section 2)."""


def _named(metric: Metric, *names: str) -> dict[str, Metric]:
    """The metric under its own name and those it had elsewhere."""
    return dict.fromkeys((metric.name, *names), metric)


VLLM: Mapping[str, Metric] = {
    **_named(
        Metric("vllm:kv_cache_usage_perc", ONE, tells=True, steps=_KV_CACHE_STEPS),
        "vllm:gpu_cache_usage_perc",
    ),
    **_named(Metric("vllm:num_requests_waiting", tells=True, steps=_BACKLOG_STEPS)),
    **_named(Metric("vllm:num_requests_running", tells=True)),
    **_named(Metric("vllm:cpu_cache_usage_perc", ONE)),
    **_named(Metric("vllm:prefix_cache_queries_total"), "vllm:gpu_prefix_cache_queries_total"),
    **_named(Metric("vllm:prefix_cache_hits_total"), "vllm:gpu_prefix_cache_hits_total"),
    **{
        name + part: Metric("vllm:inter_token_latency_seconds" + part)
        for name in ("vllm:time_per_output_token_seconds", "vllm:inter_token_latency_seconds")
        for part in ("_bucket", "_sum", "_count")
    },
}
SGLANG: Mapping[str, Metric] = {
    **_named(Metric("sglang:token_usage", ONE, tells=True, steps=_KV_CACHE_STEPS)),
    **_named(Metric("sglang:num_queue_reqs", tells=True, steps=_BACKLOG_STEPS)),
    **_named(Metric("sglang:num_running_reqs", tells=True)),
    **_named(Metric("sglang:cache_hit_rate", ONE)),
}
TGI: Mapping[str, Metric] = {
    **_named(Metric("tgi_queue_size", tells=True, steps=_BACKLOG_STEPS)),
    **_named(Metric("tgi_batch_current_size", tells=True)),
}
TRITON: Mapping[str, Metric] = {
    **_named(Metric("nv_inference_pending_request_count", tells=True, steps=_BACKLOG_STEPS)),
    **_named(Metric("nv_gpu_utilization", ONE)),
}


def _subject(labels: Labels) -> str:
    named = labels.get("model_name") or labels.get("model") or "the server"
    engine = labels.get("engine") or labels.get("tp_rank")
    return named + (f" engine {engine}" if engine else "")


def _catalogue(metrics: Mapping[str, Metric]) -> Catalogue:
    return Catalogue(kind=EvidenceKind.SERVER_METRIC, metrics=metrics, subject=_subject)


CATALOGUES: Mapping[str, Catalogue] = {
    "vllm": _catalogue(VLLM),
    "sglang": _catalogue(SGLANG),
    "tgi": _catalogue(TGI),
    "triton": _catalogue(TRITON),
}
