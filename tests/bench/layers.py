"""Measure the layers: ``python -m tests.bench.layers [NAME ...]`` prints a table and writes var/bench/layers.json."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from statistics import median

from tests.bench.layers_graphql import graphql_access_ratio
from tests.bench.layers_latency import latency
from tests.bench.layers_rest import rest_ratio
from tests.bench.main import ROOT, Goal, main, run_child

RESULT = ROOT / "var/bench/layers.json"
ROUNDS = 3
RECORDS = 500_000
ROWS_A_BODY = 50_000

GOALS = {
    "event_to_credit_ms_p50": Goal("ms", "<=", 2000),
    "event_to_anchor_s_p50": Goal("s", "<=", 8),
    "rest_ratio": Goal("x", ">=", 0.4),
    "graphql_access_ratio": Goal("x", "<=", 1.3),
    "ingest_records_per_s": Goal("/s", ">=", 50_000),
}


def ingest_records_per_s() -> dict[str, float]:
    """Request logs to committed windows: bodies of 50,000 rows by POST, one after the other, then the judging."""
    command = [sys.executable, "-m", "tests.bench.ingest_run", str(RECORDS), str(ROWS_A_BODY)]
    runs = [json.loads(run_child(command).output) for _ in range(ROUNDS)]
    for run in runs:
        parts = f"recorded in {run['record_s']:.2f} s, judged in {run['judge_s']:.2f} s"
        # On a busy machine the clock says more of its other work than of this.
        print(f"  {parts}; {run['cpu_s']:.2f} s of processor time, of the client, too", file=sys.stderr)
    return {"ingest_records_per_s": median(run["records_per_s"] for run in runs)}


MEASUREMENTS: dict[str, Callable[[], dict[str, float]]] = {
    "latency": latency,
    "rest_ratio": rest_ratio,
    "graphql_access_ratio": graphql_access_ratio,
    "ingest_records_per_s": ingest_records_per_s,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], MEASUREMENTS, GOALS, RESULT))
