"""A promise of another format as an objective of an agreement.

What is counted follows from the kind of metric, by three rules that a person must confirm, because what a query means
is known to its author alone:

* good (or bad) of total: requests, good where they succeeded (``availability``). Where the query takes a histogram's
  bucket of a latency in seconds or milliseconds: requests answered within its bound (``response_latency``, or
  ``first_token_latency`` where the metric's name says so).
* a ratio that is a metric itself: samples whose value is the share of success, each with the same weight.
* a threshold: samples whose value is within the bound.

Samples name the indicator as their evaluator, so that those of two indicators are told apart.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from ledger.ingest.slo_model import Metric, MetricKind, Note, NoteKind, Promise
from ledger.ingest.slo_values import plain

SHOWN = 300
_BUCKET = re.compile(r"(\w*(?:latency|duration|time|ttft)\w*?)_(seconds|milliseconds|ms)_bucket\b", re.ASCII)
_BOUND = re.compile(r"""\ble\s*=\s*["'](\d{1,9}(?:\.\d{1,9})?)["']""", re.ASCII)
_FIRST_TOKEN = re.compile(r"ttft|first_?token", re.IGNORECASE)


def objective_document(promise: Promise, objective_id: str) -> tuple[dict[str, Any], list[Note]]:
    """The objective, and what is to be known about it."""
    notes: list[Note] = []
    objective: dict[str, Any] = {"id": objective_id, **_method(promise), **_indicator(promise.metric, notes)}
    objective["target"] = promise.target
    return objective, notes


def _method(promise: Promise) -> dict[str, Any]:
    slices = promise.slices
    if slices is None:
        return {"method": "total_ratio"}
    length = window_text(slices.seconds)
    if slices.target is None:
        return {"method": "interval_mean-v1", "interval": length}
    return {"method": "attainment-v1", "slice": {"window": length, "target": slices.target}}


def window_text(seconds: int) -> str:
    """``PT5M`` for 300: the largest unit that fits."""
    for unit, size in (("H", 3600), ("M", 60)):
        if seconds % size == 0:
            return f"PT{seconds // size}{unit}"
    return f"PT{seconds}S"


def _indicator(metric: Metric, notes: list[Note]) -> dict[str, Any]:
    queries = "; ".join(f"{part}: {' '.join(query.split())}" for part, query in metric.queries.items())

    def confirm(message: str) -> None:
        shown = queries if len(queries) <= SHOWN else f"{queries[:SHOWN]}..."
        notes.append(Note(NoteKind.CONFIRM, metric.place, shown, message))

    if metric.kind is MetricKind.RATIO:
        latency = _latency(metric)
        if latency is not None:
            indicator, threshold_ms = latency
            confirm(f"counted as {indicator}: succeeded requests answered within {threshold_ms} ms are good")
            return {"indicator": indicator, "threshold_ms": threshold_ms}
        confirm("counted as availability: all requests of the service are valid, those without an error code are good")
        return {"indicator": "availability"}
    if metric.kind is MetricKind.RAW:
        turned = "; the query gives the share of failures, so send 1 minus its value" if metric.failures else ""
        confirm(
            f"taken as samples of metric_value by {metric.name}, each the share of success from 0 to 1 with the same "
            f"weight{turned}. Where good and total can be counted, count them: a mean of ratios is not a ratio"
        )
        return {"indicator": "metric_value", "measure": {"score_of": "1"}, "evaluator": metric.name}
    kind, bound = metric.within or ("at_least", "0")
    confirm(
        f"taken as samples of metric_value by {metric.name}, good {kind.replace('_', ' ')} {bound} in the query's own "
        "unit. Where it is a latency of requests, name response_latency and threshold_ms instead, and requests are "
        "counted"
    )
    return {"indicator": "metric_value", "measure": {kind: bound}, "evaluator": metric.name}


def _latency(metric: Metric) -> tuple[str, str] | None:
    """The indicator and its bound in ms where a query takes a bucket of one latency histogram."""
    text = metric.queries.get("good") or metric.queries.get("bad") or ""
    names, bounds = set(_BUCKET.findall(text)), set(_BOUND.findall(text))
    if len(names) != 1 or len(bounds) != 1:
        return None
    ((name, unit),), (bound,) = names, bounds
    milliseconds = Decimal(bound) * (1000 if unit == "seconds" else 1)
    return (
        "first_token_latency" if _FIRST_TOKEN.search(name) else "response_latency",
        plain(milliseconds),
    )
