"""Indicators: what can be promised, in which unit it is counted, and what is good.

Request indicators are counted in the request log. Sample indicators come as samples
(``ledger.domain.facts.samples``), each with counts of its own, or with a value that the objective's ``measure``
judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ledger.domain.money import format_floored


@dataclass(frozen=True, slots=True)
class Indicator:
    """``unit`` is what one count is; ``good`` says which ones are good; ``value_unit`` is that of a sample's value.

    ``named_by`` is the member that an objective must have, since another one would find something else: the
    ``evaluator`` that judges, with its version, or the ``tokenizer`` that counts.
    """

    name: str
    unit: str
    good: str
    value_unit: str | None = None
    named_by: str | None = None


REQUESTS = "requests"
"""The unit of a result that says none."""

_REQUESTS = (
    Indicator("availability", REQUESTS, "the request succeeded"),
    Indicator("error_rate", REQUESTS, "the request did not fail"),
    Indicator("first_token_latency", REQUESTS, "the first token came within the threshold"),
    Indicator("response_latency", REQUESTS, "the whole answer came within the threshold"),
)
_JUDGED, _TOKENS = "evaluator", "tokenizer"
_SAMPLES = (
    Indicator(
        "token_rate", "streams", "the stream was as fast as promised, its first token included", "tokens/s", _TOKENS
    ),
    Indicator("service_token_rate", "intervals", "the service was as fast as promised", "tokens/s", _TOKENS),
    Indicator("fact_consistency", "answers", "the answer agrees with the facts", named_by=_JUDGED),
    Indicator("hallucination", "answers", "every claim of the answer has a source", named_by=_JUDGED),
    Indicator("controlled_refusal", "questions", "what must be refused was refused", named_by=_JUDGED),
    Indicator("context_fidelity", "facts", "the fact was kept through the context", named_by=_JUDGED),
    Indicator("logical_consistency", "thousandths of a score", "the judge's score", "score", _JUDGED),
    Indicator("recovery_time", "incidents", "service was back in time", "s"),
    Indicator("gpu_memory_leak", "hours", "memory grew no faster than promised", "% per hour"),
    Indicator("kv_pollution", "requests", "no other request's keys and values were seen"),
    Indicator("oom_avoidance", "requests", "the long context did not run out of memory"),
    Indicator("checksum_failure", "loads", "the weights' checksum was right"),
    Indicator("deployment_up", "deployment minutes", "the deployment was up"),
    Indicator("metric_value", "samples", "the value is within the objective's bound", "as its source has it"),
)

INDICATORS: Mapping[str, Indicator] = {indicator.name: indicator for indicator in (*_REQUESTS, *_SAMPLES)}
REQUEST_INDICATORS = tuple(indicator.name for indicator in _REQUESTS)
SAMPLE_INDICATORS = tuple(indicator.name for indicator in _SAMPLES)
LATENCIES = ("first_token_latency", "response_latency")


def shown_score(unit: str, good: int, valid: int) -> str | None:
    """What context fidelity is also printed as: facts kept / all as a score from 0 to 1, six decimals, rounded down, so
    that it is 1 only where nothing was lost. None for counts of another unit, and where there are none."""
    return format_floored(good, valid) if unit == INDICATORS["context_fidelity"].unit and valid else None
