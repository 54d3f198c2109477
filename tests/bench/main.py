"""Measure the main job: ``python -m tests.bench.main [NAME ...]`` prints a table and writes var/bench/main.json.

A measurement is a function that returns values by name; ``MEASUREMENTS`` lists them with what they give, and
``GOALS`` says what each value must reach. Everything is measured from outside, in child processes of the command
a user runs; memory is the child's peak resident set.
"""

from __future__ import annotations

import json
import operator
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "var/bench/main.json"
RECORDS = 1_000_000
ROUNDS = 3
_COMPARE = {"<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True)
class Goal:
    """What a value must reach: ``value op goal``."""

    unit: str
    op: str
    goal: float


GOALS = {
    "settle_1m_s": Goal("s", "<=", 10),
    "settle_1m_mb": Goal("MB", "<=", 300),
    "demo_cold_s": Goal("s", "<=", 120),
    "demo_warm_s": Goal("s", "<=", 60),
    "verify_s": Goal("s", "<=", 5),
}


def settle_1m() -> dict[str, float]:
    """1,000,000 request records of one day through ``settle``; the median of three runs, the largest peak."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "requests.ndjson"
        write_requests(log, RECORDS)
        command = [sys.executable, "-m", "ledger.cli.main", "settle", "--json"]
        command += ["--agreement", str(ROOT / "examples/agreement.yaml"), "--requests", str(log)]
        runs = [run_child(command) for _ in range(ROUNDS)]
    for run in runs:
        if json.loads(run.output)["accepted"] != RECORDS:
            raise SystemExit("settle did not accept every record; the figure would mean nothing")
    return {"settle_1m_s": median(run.seconds for run in runs), "settle_1m_mb": max(run.peak_mb for run in runs)}


def main_job() -> dict[str, float]:
    """The main job on the sample without a proving key and with it, and the verification of what it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        keys = {"SLA_LEDGER_KEY_CACHE": f"{folder}/keys"}
        cli = [sys.executable, "-m", "ledger.cli.main"]
        cold = run_child([*cli, "demo", "--json", "--out", f"{folder}/cold"], env=keys)
        warm = [run_child([*cli, "demo", "--json", "--out", f"{folder}/{n}"], env=keys) for n in range(ROUNDS)]
        files = [f"{folder}/cold/bundle.json", "--trust", f"{folder}/cold/trust.json", "--accept-dev"]
        verified = [run_child([*cli, "verify", *files]) for _ in range(ROUNDS)]
    return {
        "demo_cold_s": cold.seconds,
        "demo_warm_s": median(run.seconds for run in warm),
        "verify_s": median(run.seconds for run in verified),
    }


MEASUREMENTS: dict[str, Callable[[], dict[str, float]]] = {
    "settle_1m": settle_1m,
    "main_job": main_job,
}


@dataclass(frozen=True)
class ChildRun:
    """What a child process took, wall clock and peak memory, and what it wrote to stdout."""

    seconds: float
    peak_mb: float
    output: bytes


def run_child(command: Sequence[str], *, env: dict[str, str] | None = None) -> ChildRun:
    """Run a command to its end; a failure ends the measurement."""
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, env=os.environ | (env or {}))
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
        return ChildRun(seconds, usage.ru_maxrss / 1024, output.read())


def write_requests(path: Path, count: int) -> None:
    """``count`` records of the example's service over 2023-06-14, as the fixtures write them; same bytes each time."""
    draw = random.Random(1)
    day_us = 86_400 * 10**6
    with path.open("w", encoding="ascii") as stream:
        for serial in range(count):
            second, us = divmod(serial * day_us // count, 10**6)
            failed = draw.random() < 0.002
            first_token_s, response_s = (0, 0) if failed else (draw.uniform(0.1, 0.82), draw.uniform(1, 3.22))
            stream.write(
                f'{{"request_id":"example-chat-{serial:07}","started_at":"2023-06-14T{second // 3600:02}:'
                f'{second // 60 % 60:02}:{second % 60:02}.{us:06}000Z","service":"example-chat",'
                f'"ttft_s":{first_token_s!r},"e2e_s":{response_s!r},"input_tokens":550,"output_tokens":151,'
                f'"error_code":{"429" if failed else "null"},"error_msg":""}}\n'
            )


def main(
    names: Sequence[str],
    measurements: Mapping[str, Callable[[], dict[str, float]]],
    goals: Mapping[str, Goal],
    to: Path,
) -> int:
    """Run the named measurements, or all, and write the records; 1 if a goal was missed."""
    unknown = set(names) - set(measurements)
    if unknown:
        raise SystemExit(f"no measurement {', '.join(sorted(unknown))}; there are {', '.join(measurements)}")
    values: dict[str, float] = {}
    for name in names or measurements:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        values |= measurements[name]()
    records = []
    for name, value in values.items():
        goal = goals[name]
        shown = round(value, 3)
        records.append({"name": name, "value": shown, "unit": goal.unit, "goal": goal.goal, "op": goal.op})
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(json.dumps(records, indent=1) + "\n")
    missed = 0
    print(f"{'name':<24}{'value':>12}  {'goal':<14}")
    for record in records:
        met = _COMPARE[str(record["op"])](record["value"], record["goal"])
        missed += not met
        verdict = "" if met else "  MISSED"
        print(f"{record['name']:<24}{record['value']:>12}  {record['op']} {record['goal']:g} {record['unit']}{verdict}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], MEASUREMENTS, GOALS, RESULT))
