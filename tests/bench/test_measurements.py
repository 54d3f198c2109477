"""The measurements still measure: each refuses to give a figure where what it times did not come out right."""

from __future__ import annotations

import json
import sys

import pytest

from ledger.attest.crypto.verification_key import parse_verification_key
from ledger.attest.proving.zk_keys import CircuitKey
from ledger.errors import ProofInvalid
from tests.bench import attest, attest_peer, feed_run, layers_graphql, settle, settle_run
from tests.bench.layers import GOALS, MEASUREMENTS
from tests.bench.main import run_child


@pytest.mark.slow
def test_the_ingest_run_gives_its_figures() -> None:
    run = json.loads(run_child([sys.executable, "-m", "tests.bench.ingest_run", "2000", "500"]).output)
    assert run["records_per_s"] > 0
    assert run["record_s"] > 0 < run["judge_s"]


@pytest.mark.slow
def test_the_graphql_page_gives_its_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers_graphql, "ROUNDS", 3)
    assert layers_graphql.graphql_access_ratio()["graphql_access_ratio"] > 0


def test_every_figure_has_a_goal() -> None:
    assert len(GOALS) == 5
    assert {"latency", "rest_ratio", "graphql_access_ratio", "ingest_records_per_s"} == set(MEASUREMENTS)
    assert set(settle.GOALS) == {
        "month_5min_ms",
        "interval_mean_ms",
        "agreements_1000_s",
        "agreements_1000_mb",
        "growth_16x",
        "feed_growth_16x",
    }
    assert set(settle_run.PARTS) == set(settle.MEASUREMENTS)
    assert set(attest.GOALS) == {
        "month_prove_s",
        "month_key_load_s",
        "snarkjs_ratio_25x4",
        "two_workers_speedup",
        "verify_pure_s",
        "verify_fast_s",
        "gas_per_statement_1000",
        "gas_verify_and_record",
    }
    assert set(attest.MEASUREMENTS) == {"month", "peer", "workers", "verifiers", "gas"}


def test_gas_gives_its_figures() -> None:
    figures = attest.gas()
    assert 0 < figures["gas_per_statement_1000"] <= attest.GOALS["gas_per_statement_1000"].goal
    assert 0 < figures["gas_verify_and_record"] <= attest.GOALS["gas_verify_and_record"].goal


@pytest.mark.slow
def test_two_workers_prove_beside_each_other() -> None:
    """Two processes that share a key's files; a proof that does not hold ends a worker and this with it."""
    assert attest.rate(2, proofs=1) > 0


def test_a_proof_that_does_not_hold_gives_no_figure() -> None:
    key = json.loads((attest.ROOT / "tests/vectors/groth16.json").read_text())
    verification_key = parse_verification_key(key["verification_key"])
    wrong = [int(value) for value in key["signals"]]
    wrong[0] ^= 1
    made = CircuitKey("any", verification_key, attest.ROOT, {})
    with pytest.raises(ProofInvalid):
        attest_peer.timed(lambda: bytes.fromhex(key["proof"]), made, tuple(wrong))


@pytest.mark.parametrize("part", settle_run.PARTS)
def test_settling_gives_its_figures(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settle_run, "ROUNDS", 3)
    monkeypatch.setattr(settle_run, "AGREEMENTS", 3)
    monkeypatch.setattr(feed_run, "MANY", feed_run.FEW)
    assert all(value > 0 for value in settle_run.PARTS[part]().values())


def test_a_wrong_settlement_gives_no_figure() -> None:
    of = settle_run.terms("PT1H")
    period, windows = settle_run.month(of, 1)
    _, other = settle_run.month(of, 2)
    with pytest.raises(SystemExit, match="came to"):
        settle_run.checked(other, settle_run.settle(of, period, windows))
