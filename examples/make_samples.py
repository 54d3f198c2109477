"""Write examples/samples.ndjson: what was measured of the service example-chat on 2023-06-14, hour by hour.

    python examples/make_samples.py > examples/samples.ndjson

Nothing is drawn by chance, so that every figure of examples/agreement-llm-quality.yaml can be worked out by hand.
From 09:00 to 12:00 the service is overloaded, as in examples/requests.ndjson, and its answers are worse. One row is a
repeat.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

OVERLOADED_HOURS = range(9, 12)
HALLUCINATING_HOURS = (9, 10)
LAX_HOURS = (10, 11, 20)
TOKENIZER = "cl100k_base"
INCIDENTS_S = {9: "1200", 11: "2100"}


def samples() -> Iterator[dict[str, Any]]:
    """The day's samples in order of time."""
    for hour in range(24):
        for minute in range(4, 60, 5):
            rate = 1100 if hour in OVERLOADED_HOURS else 1500
            yield _sample(
                "service_token_rate",
                hour,
                f"{hour:02}:{minute:02}:59",
                f"-{minute:02}",
                value=rate,
                tokenizer=TOKENIZER,
            )
        yield from _of_hour(hour)


def _of_hour(hour: int) -> Iterator[dict[str, Any]]:
    overloaded, at = hour in OVERLOADED_HOURS, f"{hour:02}:59:59"
    slow = 5 if overloaded else 0
    for stream in range(10):
        yield _sample("token_rate", hour, at, f"-{stream}", value=79.9 if stream < slow else 80.0, tokenizer=TOKENIZER)
    judged = {"evaluator": "factbench 2.1"}
    yield _sample("fact_consistency", hour, at, good=940 if overloaded else 985, total=1000, **judged)
    yield _sample("hallucination", hour, at, good=930 if hour in HALLUCINATING_HOURS else 970, total=1000, **judged)
    refused = 90 if hour in LAX_HOURS else 95
    yield _sample("controlled_refusal", hour, at, good=refused, total=100, evaluator="refusal-set 3")
    yield _sample("context_fidelity", hour, at, good=196, bad=4, evaluator="cf4k 1")
    yield _sample("logical_consistency", hour, at, value="3.5" if overloaded else "4.3", evaluator="judge-l 7")
    if hour in INCIDENTS_S:
        yield _sample("recovery_time", hour, at, value=INCIDENTS_S[hour])
    yield _sample("gpu_memory_leak", hour, at, value="0.0011" if hour == 10 else "0.0004", resource="gpu-0")
    polluted = int(hour == 10)
    yield _sample("kv_pollution", hour, at, good=1_000_000 - polluted, bad=polluted)
    yield _sample("oom_avoidance", hour, at, good=495, bad=5, resource="4K")
    yield _sample("checksum_failure", hour, at, good=50, bad=0)


def _sample(indicator: str, hour: int, clock: str, suffix: str = "", **said: Any) -> dict[str, Any]:
    sample_id = f"{indicator}-{hour:02}{suffix}"
    at = f"2023-06-14T{clock}Z"
    return {"sample_id": sample_id, "at": at, "service": "example-chat", "indicator": indicator, **said}


def main() -> None:
    """Write the samples to stdout."""
    rows = list(samples())
    for row in [*rows, rows[100]]:
        sys.stdout.write(json.dumps(row, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
