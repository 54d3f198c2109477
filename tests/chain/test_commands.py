"""The commands with a node in the settings: deploy the registry, run the main job, verify its bundle."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from ledger.cli.main import main
from tests.chain.conftest import recordings
from tests.support.anvil import Anvil, running_anvil

pytestmark = pytest.mark.slow

STRANGER = Account.from_key(b"\x77" * 32)

Run = Callable[..., Any]


@pytest.fixture
def run(key_cache: Path, monkeypatch: pytest.MonkeyPatch, logs_put_back: None) -> Run:
    """What a command prints with --json: its result, or its error where it is to end with another code."""

    def running(*arguments: str, code: int = 0, **environ: str) -> Any:
        out, error = io.StringIO(), io.StringIO()
        with monkeypatch.context() as patch, redirect_stdout(out), redirect_stderr(error):
            for name, value in {"SLA_LEDGER_KEY_CACHE": str(key_cache), **environ}.items():
                patch.setenv(name, value)
            ended = main([*arguments, "--json"])
        printed, said = out.getvalue(), error.getvalue()
        assert ended == code, printed + said
        return json.loads(printed or said[said.index("{") :])

    return running


def test_the_main_job_on_a_node(node: Anvil, tmp_path: Path, run: Run) -> None:
    out, rpc = tmp_path / "data", {"SLA_LEDGER_CHAIN_RPC": node.url}
    error = run("demo", "--out", str(out), code=1, **rpc)
    for command in ("verifiers", "watch"):
        missing = run("chain", command, "--data", str(out), code=2, **rpc)
        assert missing["code"] == "setting_invalid", "where no registry stands, no empty list is shown"
    assert error["code"] == "chain_unavailable", "the keys that were just made have no money"
    assert error["data"]["deployer"] in error["message"]

    deployed = run("chain", "deploy", "--data", str(out), "--fund", **rpc)
    assert deployed["deployed"] is True
    assert (deployed["chain_id"], deployed["confirmations"]) == ("31337", 1)
    again = run("chain", "deploy", "--data", str(out), **rpc)
    assert again == {**deployed, "deployed": False}

    run("demo", "--out", str(out), **rpc)
    assert len(recordings(node, deployed["registry"])) == 1
    bundle, trust = (json.loads((out / name).read_bytes()) for name in ("bundle.json", "trust.json"))
    assert (trust["chain_id"], trust["registry"]) == ("31337", deployed["registry"])
    receipt = node.call("eth_getTransactionReceipt", bundle["anchor"]["tx_hash"])
    assert receipt["blockHash"] == bundle["anchor"]["block_hash"]
    watched = run("chain", "watch", "--data", str(out), **rpc)
    recorded = [event for event in watched["events"] if event["name"] == "StatementRecorded"]
    assert [event["tx_hash"] for event in recorded] == [bundle["anchor"]["tx_hash"]]
    assert all(event["own"] and event["concerns"] is None for event in watched["events"])
    assert all(each["state"] != "submitted" for each in watched["transactions"])
    verify = ["verify", str(out / "bundle.json"), "--trust", str(out / "trust.json"), "--accept-dev"]
    assert run(*verify)["verdict"] == "consistent offline, against your pins"
    _the_verdict_says_what_the_node_showed(run, [*verify, "--rpc", node.url], bundle, settled=False)
    node.mine(70)
    _the_verdict_says_what_the_node_showed(run, [*verify, "--rpc", node.url], bundle, settled=True)

    _roles_are_worked(run, ["--data", str(out)], deployed, rpc)


def _the_verdict_says_what_the_node_showed(run: Run, verify: list[str], bundle: Any, *, settled: bool) -> None:
    report = run(*verify, code=0 if settled else 3)
    open_ = [] if settled else ["chain: final", "chain 31337: root's finality"]
    asked = [line for line in report["lines"] if line["check"].startswith("chain")]
    assert [line["check"] for line in asked if line["outcome"] != "PASS"] == report["resting_on"] == open_
    (root,) = bundle["roots"]
    blocks = bundle["anchor"]["block_number"], root["block_number"]
    shown = [{"stands": "recorded"}, {"stands": "batch root"}]
    placed = [{**each, "chain_id": "31337", "block_number": n} for each, n in zip(shown, blocks, strict=True)]
    assert report["on_chain"] == placed
    places = "recorded in block {} of chain 31337, batch root in block {} of chain 31337".format(*blocks)
    rest = "against your pins" if settled else "but resting on " + ", ".join(open_)
    assert report["verdict"] == f"consistent offline and on chain, as shown by the node asked ({places}), {rest}"


def _roles_are_worked(run: Run, data: list[str], deployed: dict[str, Any], given: Any) -> None:
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


def test_money_is_given_away_on_test_chains_alone(tmp_path: Path, run: Run) -> None:
    out = tmp_path / "data"
    with running_anvil("--chain-id", "10") as node:
        rpc = {"SLA_LEDGER_CHAIN_RPC": node.url}
        refused = run("demo", "--out", str(out), code=2, **rpc)
        assert refused["code"] == "setting_invalid"
        assert "chain deploy" in refused["message"]
        refused = run("chain", "deploy", "--data", str(out), "--fund", code=1, **rpc)
        assert refused["code"] == "anchor_refused"


def test_the_embedded_chain_needs_no_command(tmp_path: Path, run: Run) -> None:
    out = tmp_path / "data"
    with running_anvil() as node:
        run("demo", "--out", str(out), code=1, SLA_LEDGER_CHAIN_RPC=node.url)
    refused = run("chain", "deploy", "--data", str(out), code=2)
    assert refused["data"]["setting"] == "SLA_LEDGER_CHAIN_RPC"
