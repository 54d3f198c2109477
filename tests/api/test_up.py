"""``sla-ledger up`` as a process of its own: started, asked, stopped, started again."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from ledger.cli.main import main
from ledger.wiring import create_data

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "ledger.cli.main"]
PATIENCE_S = 60
"""For what a server answers at once, on a machine that has other things to do."""
get = partial(httpx.get, timeout=PATIENCE_S)


def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLA_LEDGER_")}
    path = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))
    return kept | {"PYTHONPATH": path, "SLA_LEDGER_KEY_CACHE": str(tmp_path / "cache")}


@contextmanager
def serving(
    tmp_path: Path, data: Path, *options: str, **environ: str
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A running server on a free port, and the line it printed."""
    process = subprocess.Popen(
        [*COMMAND, "up", "--data", str(data), "--port", "0", "--json", *options],
        env=environment(tmp_path) | environ,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield process, json.loads(line)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory without agreements; its chain holds the deployment of the registry."""
    folder = tmp_path / "data"
    services = create_data(folder, key_cache=tmp_path / "cache", notify=lambda _: None)
    assert services.chain.report.outcomes == ()
    services.close()
    return folder


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serves_until_it_is_told_to_stop(tmp_path: Path, data: Path, number: signal.Signals) -> None:
    with serving(tmp_path, data) as (process, line):
        assert line["data"] == str(data)
        assert line["url"].startswith("http://127.0.0.1:")
        ready = get(f"{line['url']}/health/ready")
        assert (ready.status_code, ready.json()["status"]) == (200, "ready")
        assert "server" not in ready.headers
        whole, head = (ask(f"{line['url']}/v1/agreements") for ask in (get, partial(httpx.head, timeout=PATIENCE_S)))
        assert whole.json()["items"] == []
        assert (head.content, head.headers["content-length"]) == (b"", str(len(whole.content)))
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, errors
        assert "Traceback" not in errors


def documented(data: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """What the commands of docs/access.md print, run one by one as they stand there."""
    (block,) = re.findall(
        r"```console\n(\$ sla-ledger keys.*?)```", (ROOT / "docs" / "access.md").read_text(), re.DOTALL
    )
    key_id = ""
    for line in block.splitlines():
        if line.startswith("$ "):
            arguments = shlex.split(line.removeprefix("$ sla-ledger "))
            places = {"DIR": str(data), "5f0c1d2e3a4b5c6d": key_id}
            assert main([places.get(each, each) for each in arguments]) == 0
            printed = capsys.readouterr().out
            key_id = key_id or printed[4:20]
            yield printed


def test_required_credentials_on_any_address(tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = documented(data, capsys)
    key = next(commands).strip()
    options = ("--auth", "required", "--host", "0.0.0.0")
    with serving(tmp_path, data, *options, SLA_LEDGER_HOSTS="sla.example", SLA_LEDGER_RATE_LIMIT="60") as (_, line):
        assert line["auth"] == "required"
        url = line["url"].replace("0.0.0.0", "127.0.0.1")

        def ask(**headers: str) -> httpx.Response:
            return get(f"{url}/v1/agreements", headers=headers)

        bearer = f"Bearer {key}"
        assert ask().status_code == 401
        assert ask(authorization=bearer).json() == {"items": [], "next_cursor": None}
        assert ask(authorization=bearer, host="sla.example").status_code == 200
        assert ask(authorization=bearer, host="other.example").status_code == 421
        assert get(f"{url}/health/ready").status_code == 200
        assert key[4:20] in next(commands)
        next(commands)
        # At once, and not when a cache runs out.
        assert ask(authorization=bearer).status_code == 401
        # Every second gives one request back: however slowly they go, there are more of them than that.
        with httpx.Client(timeout=PATIENCE_S) as client:
            assert any(client.get(f"{url}/health/live").status_code == 429 for _ in range(200))


@pytest.mark.slow
def test_the_chain_is_replayed_at_every_start(tmp_path: Path, data: Path) -> None:
    lines = []
    for _ in range(2):
        with serving(tmp_path, data) as (process, line):
            lines.append(line)
            chain = get(f"{line['url']}/v1/chain").json()
            assert chain["not_replayed"] == 0
            assert chain["replayed"] == len(chain["transactions"]) >= 1
            process.terminate()
            process.communicate(timeout=PATIENCE_S)
    assert lines[0]["chain"] == lines[1]["chain"]


@pytest.mark.slow
def test_a_transaction_that_cannot_be_replayed_is_named(tmp_path: Path, data: Path) -> None:
    # The genesis of another time gives other block hashes.
    marker = data / "data.json"
    document = json.loads(marker.read_text())
    document["genesis_timestamp_s"] -= 1
    marker.write_text(json.dumps(document))
    with serving(tmp_path, data) as (_, line):
        (lost,) = line["chain"]["not_replayed"]
        assert "another block" in lost["reason"]
        chain = get(f"{line['url']}/v1/chain").json()
        assert chain["transactions"][0]["reason"] == lost["reason"]
        assert get(f"{line['url']}/health/ready").json()["chain_not_replayed"] == 1


@pytest.mark.slow
def test_what_the_demo_wrote_survives_a_restart(tmp_path: Path, key_cache: Path) -> None:
    data, environ = tmp_path / "demo", environment(tmp_path) | {"SLA_LEDGER_KEY_CACHE": str(key_cache)}
    written = subprocess.run(
        [*COMMAND, "demo", "--out", str(data)],
        env=environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert written.returncode == 0, written.stderr
    answers = []
    for _ in range(2):
        with serving(tmp_path, data) as (process, line):
            assert line["chain"]["not_replayed"] == []
            (statement,) = get(f"{line['url']}/v1/statements").json()["items"]
            bundle = get(f"{line['url']}/v1/bundles/{statement['id']}").content
            answers.append((statement, bundle, get(f"{line['url']}/v1/checkpoints/latest").text))
            process.terminate()
            process.communicate(timeout=PATIENCE_S)
    assert answers[0] == answers[1]
    statement, bundle, _ = answers[1]
    assert statement["anchor"]["not_replayed"] is None
    assert bundle == (data / "bundles" / f"{statement['id']}.json").read_bytes()
    (tmp_path / "served.json").write_bytes(bundle)
    verify = ["verify", str(tmp_path / "served.json"), "--trust", str(data / "trust.json"), "--accept-dev"]
    assert main(verify) == 0


@pytest.mark.usefixtures("logs_put_back")
def test_port_that_is_taken(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["up", "--data", str(data), "--port", str(port)]) == 2
    errors = capsys.readouterr().err
    assert f"127.0.0.1:{port}" in errors
    assert "--port" in errors


@pytest.mark.usefixtures("logs_put_back")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], "setting_invalid"),
        (["--data", "absent"], "data_directory_invalid"),
        (["--data", "file"], "data_directory_invalid"),
        (["--data", "other"], "data_directory_invalid"),
        (["--data", "other", "--host", "0.0.0.0"], "setting_invalid"),
        (["--data", "other", "--host", "localhost"], "setting_invalid"),
        (["--data", "other", "--port", "65536"], "setting_invalid"),
    ],
)
def test_arguments_that_cannot_be_used(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLA_LEDGER_DATA", raising=False)
    (tmp_path / "file").write_text("x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    assert main(["up", "--port", "0", *arguments, "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["code"] == code
    assert sorted(tmp_path.rglob("*")) == before
