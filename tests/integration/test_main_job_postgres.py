"""The main job with its log on PostgreSQL: the same bundle comes out, and the same server serves it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.postgres import Server

ROOT = Path(__file__).resolve().parents[2]
LEDGER = [sys.executable, "-m", "ledger.cli.main"]


@pytest.fixture
def empty_url(postgres_server: Server) -> Iterator[str]:
    url = postgres_server.empty_database()
    yield url
    postgres_server.drop(url)


def run(*arguments: str, key_cache: Path) -> Any:
    environ = {**os.environ, "SLA_LEDGER_KEY_CACHE": str(key_cache)}
    done = subprocess.run(
        [*LEDGER, *arguments, "--json"], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_main_job_ends_with_a_bundle_that_holds(empty_url: str, tmp_path: Path, key_cache: Path) -> None:
    out = tmp_path / "data"
    run("demo", "--out", str(out), "--database", empty_url, key_cache=key_cache)
    assert not (out / "ledger.db").exists()
    verified = run(
        "verify", str(out / "bundle.json"), "--trust", str(out / "trust.json"), "--accept-dev", key_cache=key_cache
    )
    assert verified
    environ = {**os.environ, "SLA_LEDGER_KEY_CACHE": str(key_cache), "DATABASE_URL": empty_url}
    command = [*LEDGER, "up", "--data", str(out), "--port", "0", "--json"]
    server = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        announced = json.loads(server.stdout.readline())
        with urllib.request.urlopen(f"{announced['url']}/v1/events?limit=1", timeout=60) as answer:
            page = json.load(answer)
        assert page["log_size"] == announced["log_size"] > 20
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
