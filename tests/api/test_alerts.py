"""The example's alert rules: promtool takes them, they fire on what they are for, and they name series that exist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from litestar.testing import TestClient
from prometheus_client.parser import text_string_to_metric_families

from tests.api.filled import Ledger

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "examples/alerts.yml"
SECONDS = 'sla_ledger_outbox_{}_seconds{{stage="prove",instance="a"}}'
WORKED = 'sla_ledger_outbox_worked{stage="prove",instance="a"}'
BUDGET = 'sla_ledger_error_budget_remaining_ratio{tenant="default",agreement="1f",objective="ttft",instance="a"}'

CASES: dict[str, dict[str, str]] = {
    "SlaLedgerDown": {'sla_ledger_ready{instance="a"}': "0x20"},
    "SlaLedgerWorkNotHandedOut": {SECONDS.format("untried"): "0x20", WORKED: "0x20"},
    "SlaLedgerWorkNotTaken": {SECONDS.format("untold"): "0x20", WORKED: "0x20"},
    "SlaLedgerWorkParked": {'sla_ledger_outbox_stages{state="parked",instance="a"}': "0x5 1x14"},
    "SlaLedgerLogNotSigned": {'sla_ledger_log_unsigned_seconds{instance="a"}': "0+60x20"},
    "SlaLedgerLogShrank": {'sla_ledger_log_leaves{instance="a"}': "1000x14 900x5"},
    "SlaLedgerChainLost": {'sla_ledger_chain_failures{instance="a"}': "1x20"},
    "SlaLedgerAnchorsNotFinal": {'sla_ledger_chain_unfinalized_seconds{instance="a"}': "7300+60x20"},
    "SlaLedgerChainNotWatched": {'sla_ledger_chain_looks_failing{instance="a"}': "1x20"},
    "SlaLedgerOthersAtTheRegistry": {'sla_ledger_chain_events_of_others{instance="a"}': "2x5 3x14"},
    "SlaLedgerErrorBudgetLow": {BUDGET: "0.4x5 0.05x14"},
    "SlaLedgerErrors": {'sla_ledger_http_requests_total{route="/v1/log",status="503",instance="a"}': "0+60x20"},
    "SlaLedgerSlow": {
        'sla_ledger_http_request_duration_seconds_bucket{le="1.0",instance="a"}': "0+9x20",
        'sla_ledger_http_request_duration_seconds_bucket{le="2.5",instance="a"}': "0+10x20",
        'sla_ledger_http_request_duration_seconds_bucket{le="+Inf",instance="a"}': "0+10x20",
    },
}
QUIET = {
    'sla_ledger_ready{instance="a"}': "1x20",
    'up{job="sla-ledger",instance="a"}': "1x20",
    # A queue behind work at hand.
    SECONDS.format("untold"): "100+60x20",
    SECONDS.format("untried"): "100+60x20",
    WORKED: "1x20",
    'sla_ledger_outbox_stages{state="parked",instance="a"}': "0x20",
    'sla_ledger_log_unsigned_seconds{instance="a"}': "0 6 0 6 0x16",
    'sla_ledger_log_leaves{instance="a"}': "1000+5x20",
    'sla_ledger_chain_failures{instance="a"}': "0x20",
    # A chain that is final after a quarter of an hour.
    'sla_ledger_chain_unfinalized_seconds{instance="a"}': "0+60x15 0x4",
    'sla_ledger_chain_unlooked_seconds{instance="a"}': "15x20",
    'sla_ledger_chain_looks_failing{instance="a"}': "0 1 0x18",
    'sla_ledger_chain_events_of_others{instance="a"}': "2x20",
    BUDGET: "0.9 0.8 0.5 0.4x16",
    'sla_ledger_http_requests_total{route="/v1/log",status="200",instance="a"}': "0+600x20",
    'sla_ledger_http_requests_total{route="/v1/log",status="404",instance="a"}': "0+600x20",
}


def rules() -> dict[str, dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None and not os.environ.get("CI"):
        pytest.skip("promtool is not on this machine")
    assert found is not None, "CI needs promtool: install the package prometheus"
    return found


def firing(promtool: str, folder: Path, series: dict[str, str]) -> set[str]:
    """The alerts that fire at some minute of the series."""
    fired = set()
    for name in rules():
        test = {
            "rule_files": [str(RULES)],
            "evaluation_interval": "1m",
            "tests": [
                {
                    "interval": "1m",
                    "input_series": [{"series": each, "values": values} for each, values in series.items()],
                    # No alert is expected, so that promtool fails where one fires.
                    "alert_rule_test": [
                        {"eval_time": f"{m}m", "alertname": name, "exp_alerts": []} for m in (6, 16, 19)
                    ],
                }
            ],
        }
        path = folder / "test.yml"
        path.write_text(yaml.safe_dump(test))
        done = subprocess.run(
            [promtool, "test", "rules", path], capture_output=True, text=True, check=False, timeout=60
        )
        if done.returncode:
            assert "got:" in done.stdout + done.stderr, done.stdout + done.stderr
            fired.add(name)
    return fired


def test_promtool_takes_the_rules(promtool: str) -> None:
    done = subprocess.run([promtool, "check", "rules", RULES], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert f"{len(CASES)} rules found" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_fires_on_what_it_is_for_and_nothing_else(promtool: str, tmp_path: Path, name: str) -> None:
    assert firing(promtool, tmp_path, QUIET | CASES[name]) == {name}


@pytest.mark.slow
def test_is_quiet_where_all_is_well(promtool: str, tmp_path: Path) -> None:
    assert firing(promtool, tmp_path, QUIET) == set()


def test_every_rule_has_a_case_a_severity_and_says_what_to_do() -> None:
    found = rules()
    assert found.keys() == CASES.keys()
    assert all(rule["labels"]["severity"] in ("page", "ticket") for rule in found.values())
    assert all(rule["annotations"].keys() == {"summary", "action"} for rule in found.values())


def test_the_series_exist_and_the_page_explains_each(client: TestClient[Any], ledger: Ledger) -> None:
    sla_id = ledger.agreement(1)
    ledger.window(sla_id)
    ledger.statement(sla_id)
    client.get("/v1/log")
    families = list(text_string_to_metric_families(client.get("/metrics").text))
    served = {sample.name for family in families for sample in family.samples}
    named = {name for rule in rules().values() for name in re.findall(r"\bsla_ledger_\w+", rule["expr"])}
    assert named - served == set()
    explained = set(re.findall(r"`(sla_ledger_\w+)", (ROOT / "docs/operations.md").read_text()))
    names = {family.name for family in families if not family.name.endswith("_created")}
    assert names - {name.removesuffix("_total") for name in explained} == set()
