"""Measure settling: ``python -m tests.bench.settle [NAME ...]`` prints a table and writes var/bench/settle.json.

What is timed is settlement and violations of a month: the whole of what a statement says, without reading windows from
a store and writing the statement to it. Feeds are timed from the batches that are handed in to the judged windows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from tests.bench.main import ROOT, ChildRun, Goal, main, run_child

RESULT = ROOT / "var/bench/settle.json"

GOALS = {
    "month_5min_ms": Goal("ms", "<=", 50),
    "interval_mean_ms": Goal("ms", "<=", 50),
    "agreements_1000_s": Goal("s", "<=", 60),
    "agreements_1000_mb": Goal("MB", "<=", 500),
    "growth_16x": Goal("x", "<=", 20),
    "feed_growth_16x": Goal("x", "<=", 20),
}


def month() -> dict[str, float]:
    """A month of 5-minute windows with four objectives."""
    return {"month_5min_ms": _month("month")}


def interval_mean() -> dict[str, float]:
    """The same where all four are means of 5-minute intervals."""
    return {"interval_mean_ms": _month("interval_mean")}


def agreements() -> dict[str, float]:
    """A month of each of 1,000 agreements: the time of the whole process, start and windows included."""
    run, found = _run("agreements")
    print(f"  settling alone: {found['settling_s']:.2f} s", file=sys.stderr)
    return {"agreements_1000_s": run.seconds, "agreements_1000_mb": run.peak_mb}


def growth() -> dict[str, float]:
    """The time at 16 times the windows, over the time at once."""
    _, found = _run("growth")
    print(f"  {found['small_ms']:.1f} ms and {found['large_ms']:.1f} ms", file=sys.stderr)
    return {"growth_16x": found["large_ms"] / found["small_ms"]}


def feeds() -> dict[str, float]:
    """The time of handing in and judging feeds in 16 times the batches, over the time at once."""
    _, found = _run("feeds")
    print(f"  {found['small_ms']:.0f} ms and {found['large_ms']:.0f} ms", file=sys.stderr)
    return {"feed_growth_16x": found["large_ms"] / found["small_ms"]}


def _month(part: str) -> float:
    _, found = _run(part)
    print(f"  from columns: {found['columns_ms']:.2f} ms", file=sys.stderr)
    return found["objects_ms"]


def _run(part: str) -> tuple[ChildRun, dict[str, float]]:
    run = run_child([sys.executable, "-m", "tests.bench.settle_run", part])
    return run, json.loads(run.output)


MEASUREMENTS: dict[str, Callable[[], dict[str, float]]] = {
    "month": month,
    "interval_mean": interval_mean,
    "agreements": agreements,
    "growth": growth,
    "feeds": feeds,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], MEASUREMENTS, GOALS, RESULT))
