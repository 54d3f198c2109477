"""The 1,650 real request records of eleven services give the counts that were published with them."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.ingest.agreement_yaml import load_agreement
from ledger.ingest.request_log import RequestLog, open_request_log

ROOT = Path(__file__).resolve().parents[2]
SERVICES = (
    "anyscale_70b anyscale_7b bedrock_13b bedrock_70b fireworks_7b groq_70b lepton_13b perplexity_70b replicate_13b "
    "replicate_7b together_70b"
).split()


@pytest.fixture(scope="module")
def expected(sla_fixtures: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((sla_fixtures / "requests/expected.json").read_text())
    return found


def evaluated(agreement: Agreement, path: Path) -> Evaluator:
    evaluator = Evaluator(agreement, period_named(agreement, "2023-12-19/P1D"))
    with open_request_log(path) as stream:
        evaluator.add_all(RequestLog(stream, path.name))
    return evaluator


def totals(evaluator: Evaluator) -> list[tuple[int, int]]:
    cells = [window.cells for window in evaluator.windows()]
    return [(sum(c[i].good for c in cells), sum(c[i].valid for c in cells)) for i in range(3)]


def test_every_service_of_the_folder_is_tested(expected: dict[str, Any]) -> None:
    assert sorted(expected) == SERVICES


@pytest.mark.parametrize("service", SERVICES)
def test_settle_gives_the_expected_counts(service: str, expected: dict[str, Any], sla_fixtures: Path) -> None:
    want = expected[service]
    log = sla_fixtures / f"requests/{service}.ndjson"
    command = [sys.executable, "-m", "ledger.cli.main", "settle", "--agreement", "examples/agreement.yaml"]
    command += ["--requests", str(log), "--service", service, "--json"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    found = json.loads(ran.stdout)
    assert [(o["id"], o["good"], o["valid"]) for o in found["objectives"]] == [
        ("availability", want["succeeded"], want["requests"]),
        ("ttft", want["ttft_within_800ms"], want["succeeded"]),
        ("response", want["e2e_within_3200ms"], want["succeeded"]),
    ]
    assert (found["requests"], found["accepted"], found["rejected"]) == (want["requests"], want["requests"], 0)
    assert found["period"] == "2023-12-19/P1D"


@pytest.mark.parametrize("service", SERVICES)
def test_the_clause_takes_rate_limited_requests_out(service: str, expected: dict[str, Any], sla_fixtures: Path) -> None:
    want = expected[service]
    agreement = load_agreement(ROOT / "examples/agreement-excluding-429.yaml").for_service(service)
    evaluator = evaluated(agreement, sla_fixtures / f"requests/{service}.ndjson")
    limited = want["errors_by_code"].get("429", 0)
    assert totals(evaluator)[0] == (want["succeeded"], want["requests"] - limited)
    assert evaluator.excluded_requests() == {"rate-limit": limited}


@pytest.mark.parametrize("service", SERVICES)
def test_a_threshold_at_a_published_quantile_is_met_and_a_nanosecond_less_is_not(
    service: str, sla_fixtures: Path
) -> None:
    """The nearest-rank P95 is the smallest threshold at which the objective is met."""
    path = sla_fixtures / f"requests/{service}.ndjson"
    published = json.loads((sla_fixtures / "requests/expected.json").read_text(), parse_float=Decimal)
    quantile_ns = math.ceil(published[service]["ttft_p95_nearest_rank_s"] * 10**9)
    document = json.loads(json.dumps(load_agreement(ROOT / "examples/agreement.yaml").for_service(service).document))
    for threshold_ns, met in ((quantile_ns, True), (quantile_ns - 1, False)):
        whole, fraction = divmod(threshold_ns, 10**6)
        document["objectives"][1]["threshold_ms"] = f"{whole}.{fraction:06}"
        good, valid = totals(evaluated(Agreement.from_document(document), path))[1]
        assert (good * 100 >= valid * 95) is met
