"""The commands with a node in the settings: deploy the registry, run the main job, verify its bundle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from tests.chain.conftest import recordings
from tests.support.anvil import Anvil, running_anvil

pytestmark = pytest.mark.slow

STRANGER = Account.from_key(b"\x77" * 32)

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str, key_cache: Path, code: int = 0, **environ: str) -> Any:
    """What a command prints with --json: its result, or its error where it is to end with another code."""
    command = [sys.executable, "-m", "ledger.cli.main", *arguments, "--json"]
    environ = {**os.environ, "SLA_LEDGER_KEY_CACHE": str(key_cache), **environ}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stderr[done.stderr.index("{") :] if code else done.stdout)


def test_the_main_job_on_a_node(node: Anvil, tmp_path: Path, key_cache: Path) -> None:
    out, rpc = tmp_path / "data", {"SLA_LEDGER_CHAIN_RPC": node.url}
    error = run("demo", "--out", str(out), key_cache=key_cache, code=1, **rpc)
    for command in ("verifiers", "watch"):
        missing = run("chain", command, "--data", str(out), key_cache=key_cache, code=2, **rpc)
        assert missing["code"] == "setting_invalid", "where no registry stands, no empty list is shown"
    assert error["code"] == "chain_unavailable", "the keys that were just made have no money"
    assert error["data"]["deployer"] in error["message"]

    deployed = run("chain", "deploy", "--data", str(out), "--fund", key_cache=key_cache, **rpc)
    assert deployed["deployed"] is True
    assert (deployed["chain_id"], deployed["confirmations"]) == ("31337", 1)
    again = run("chain", "deploy", "--data", str(out), key_cache=key_cache, **rpc)
    assert again == {**deployed, "deployed": False}

    run("demo", "--out", str(out), key_cache=key_cache, **rpc)
    assert len(recordings(node, deployed["registry"])) == 1
    bundle, trust = (json.loads((out / name).read_bytes()) for name in ("bundle.json", "trust.json"))
    assert (trust["chain_id"], trust["registry"]) == ("31337", deployed["registry"])
    receipt = node.call("eth_getTransactionReceipt", bundle["anchor"]["tx_hash"])
    assert receipt["blockHash"] == bundle["anchor"]["block_hash"]
    watched = run("chain", "watch", "--data", str(out), key_cache=key_cache, **rpc)
    recorded = [event for event in watched["events"] if event["name"] == "StatementRecorded"]
    assert [event["tx_hash"] for event in recorded] == [bundle["anchor"]["tx_hash"]]
    assert all(event["own"] and event["concerns"] is None for event in watched["events"])
    assert all(each["state"] != "submitted" for each in watched["transactions"])
    verify = ["verify", str(out / "bundle.json"), "--trust", str(out / "trust.json"), "--accept-dev"]
    run(*verify, key_cache=key_cache)
    node.mine(70)
    lines = run(*verify, "--rpc", node.url, key_cache=key_cache)["lines"]
    assert {line["outcome"] for line in lines if line["check"].startswith("chain: ")} == {"PASS"}

    _roles_are_worked(node, ["--data", str(out)], deployed, {"key_cache": key_cache, **rpc})


def _roles_are_worked(node: Anvil, data: list[str], deployed: dict[str, Any], given: Any) -> None:
    """A verifier is in use, retired by whom may and only when confirmed, and stays so."""
    (verifier,) = run("chain", "verifiers", *data, **given)["verifiers"]
    assert (verifier["state"], verifier["retired_at"]) == ("in use", None)
    retire = ["chain", "retire", verifier["circuit_id"], *data]
    assert "add --yes" in run(*retire, code=2, **given)["message"]
    of_stranger = {"SLA_LEDGER_DEPLOYER_KEY": STRANGER.key.hex(), "SLA_LEDGER_REGISTRY": deployed["registry"]}
    refused = run(*retire, "--yes", code=1, **given, **of_stranger)
    assert refused["code"] == "anchor_refused"
    assert (refused["data"]["role"], refused["data"]["holders"]) == ("registrar", [deployed["deployer"]])
    assert run(*retire, "--yes", **given)["changed"] is True
    assert run(*retire, "--yes", **given)["changed"] is False
    (verifier,) = run("chain", "verifiers", *data, **given)["verifiers"]
    assert verifier["state"] == "retired"
    assert run("chain", "pause", *data, **given)["changed"] is True
    assert run("chain", "grant", "pauser", STRANGER.address, *data, **given)["changed"] is True
    found = run("chain", "roles", *data, **given)
    assert (found["paused"], found["holders"]["pauser"]) == (True, [deployed["deployer"], STRANGER.address])


def test_money_is_given_away_on_test_chains_alone(tmp_path: Path, key_cache: Path) -> None:
    out = tmp_path / "data"
    with running_anvil("--chain-id", "10") as node:
        rpc = {"SLA_LEDGER_CHAIN_RPC": node.url}
        refused = run("demo", "--out", str(out), key_cache=key_cache, code=2, **rpc)
        assert refused["code"] == "setting_invalid"
        assert "chain deploy" in refused["message"]
        refused = run("chain", "deploy", "--data", str(out), "--fund", key_cache=key_cache, code=1, **rpc)
        assert refused["code"] == "anchor_refused"


def test_the_embedded_chain_needs_no_command(tmp_path: Path, key_cache: Path) -> None:
    out = tmp_path / "data"
    with running_anvil() as node:
        run("demo", "--out", str(out), key_cache=key_cache, code=1, SLA_LEDGER_CHAIN_RPC=node.url)
    refused = run("chain", "deploy", "--data", str(out), key_cache=key_cache, code=2)
    assert refused["data"]["setting"] == "SLA_LEDGER_CHAIN_RPC"
