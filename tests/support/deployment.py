"""A whole deployment as local processes: PostgreSQL, Redis, API, relay, beat and workers, each to be killed at will."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import psycopg

from ledger.app.work.outbox import Stage
from ledger.cli.main import main
from ledger.domain.terms.agreement_schema import AGREEMENT
from ledger.ingest.agreement_yaml import parse_document
from ledger.resources import resource_dir
from tests.support.ports import own_port
from tests.support.redis import RedisServer

ROOT = Path(__file__).resolve().parents[2]
LEDGER = [sys.executable, "-m", "ledger.cli.main"]
FAST = {"SLA_LEDGER_LEASE_S": "5", "SLA_LEDGER_RING_AGAIN_S": "3", "SLA_LEDGER_SCHEDULE_S": "1"}
ROLES: Mapping[str, tuple[str, ...]] = {
    "relay": ("worker", "relay"),
    "beat": ("worker", "beat"),
    "worker": ("worker", "run", "evaluate", "compensate", "deliver", "--processes", "2"),
    "anchor worker": ("worker", "run", "register", "anchor", "confirm", "publish", "publish_further"),
    "prove worker": ("worker", "run", "prove"),
    "api": ("up", "--json"),
}
BAD_HOURS = range(1, 20, 2)
"""Hours of a day in which two objectives are missed: ten runs of one window for each of them."""


class Process:
    """One process of a deployment; its children die with it when it is killed.

    ``log`` gets what it writes to stderr and, unless ``output`` is another file, to stdout.
    """

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], log: Path, output: Path | None = None
    ) -> None:
        self._command = command
        self._environ = environ
        self._log = log
        self._output = output or log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("a") as log, self._output.open("a") as output:
            self.process = subprocess.Popen(
                self._command,
                cwd=ROOT,
                env=dict(self._environ),
                stdout=output,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """SIGKILL to the process alone: whether its children go with it is part of what is tried."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        """SIGTERM, and SIGKILL to the whole group for what does not end."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class Deployment:
    """Where everything is. ``database_url`` names an empty or migrated database."""

    folder: Path
    database_url: str
    redis: RedisServer
    key_cache: Path
    api_port: int
    settings: Mapping[str, str] = field(default_factory=lambda: FAST)
    processes: dict[str, Process] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SLA_LEDGER_")}
        return kept | {
            "PYTHONPATH": str(ROOT),
            "SLA_LEDGER_DATA": str(self.data),
            "SLA_LEDGER_KEY_CACHE": str(self.key_cache),
            "SLA_LEDGER_BROKER": self.redis.url,
            "SLA_LEDGER_PORT": str(self.api_port),
            "DATABASE_URL": self.database_url,
            **self.settings,
        }

    def command(self, *arguments: str) -> Any:
        """Run one command to its end, in this process and with the deployment's settings; what it printed as JSON."""
        printed, said = io.StringIO(), io.StringIO()
        settings = mock.patch.dict(os.environ, self.environ, clear=True)
        with settings, redirect_stdout(printed), redirect_stderr(said):
            code = main([*arguments, "--json"])
        if code:
            raise RuntimeError(f"sla-ledger {' '.join(arguments)}: {printed.getvalue()}{said.getvalue()}")
        return json.loads(printed.getvalue())

    def start(self, *roles: str) -> None:
        for role in roles:
            if role not in self.processes:
                log = self.folder / f"{role.replace(' ', '-')}.log"
                self.processes[role] = Process([*LEDGER, *ROLES[role]], self.environ, log)
            self.processes[role].start()

    def kill(self, role: str) -> None:
        self.processes[role].kill()

    def queued(self) -> dict[str, list[bytes]]:
        """The messages that wait in Redis, by stage."""
        client = self.redis.client()
        return {str(stage): client.lrange(str(stage), 0, -1) for stage in Stage}

    def stop_all(self) -> None:
        for process in self.processes.values():
            process.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.api_port}"

    def wait_for_api(self, timeout_s: float = 60) -> None:
        self.wait_until(lambda: alive(self.url), timeout_s=timeout_s, what="an answer of the API")

    def logs(self) -> str:
        return "\n".join(f"== {path.name}\n{path.read_text()[-1500:]}" for path in sorted(self.folder.glob("*.log")))

    def scalar(self, question: str) -> int:
        """A number from the database."""
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute(question).fetchone()
        return int(row[0]) if row else 0

    def wait_until(self, done: Callable[[], bool], *, timeout_s: float, what: str) -> None:
        deadline = time.monotonic() + timeout_s
        while not done():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} did not come about in {timeout_s:g} s\n{self.logs()}")
            time.sleep(0.1)


@contextmanager
def deployment(
    folder: Path, database_url: str, redis: RedisServer, key_cache: Path, **settings: str
) -> Iterator[Deployment]:
    """A deployment without running processes yet; all are stopped at the end."""
    with own_port() as port:
        made = Deployment(folder, database_url, redis, key_cache, port, {**FAST, **settings})
        made.command("init")
        try:
            yield made
        finally:
            made.stop_all()


def example_terms() -> dict[str, Any]:
    """The example agreement, unsigned."""
    path = resource_dir("examples") / "agreement.yaml"
    return dict(parse_document(path.read_bytes(), path.name, AGREEMENT)[0])


def request_log(service: str, day: date, *, from_minute: int = 0, bad_hours: Collection[int] = BAD_HOURS) -> bytes:
    """A day with twenty requests an hour, from a minute of its date on; in ``bad_hours`` of it some fail and most first
    tokens come late."""
    start = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(minutes=from_minute)
    rows = []
    for at in range(0, 24 * 60, 3):
        bad = at // 60 in bad_hours
        rows.append(request(service, start + timedelta(minutes=at), failed=bad and at % 15 == 0, slow=bad))
    return b"".join(rows)


def request(service: str, at: datetime, *, failed: bool, slow: bool = False) -> bytes:
    """One row of a request log."""
    row = {
        "request_id": f"{at:%Y-%m-%d-%H-%M}",
        "started_at": f"{at:%Y-%m-%dT%H:%M:%SZ}",
        "service": service,
        "ttft_s": None if failed else (1.5 if slow else 0.2),
        "e2e_s": None if failed else 2.0,
        "input_tokens": 10,
        "output_tokens": None if failed else 20,
        "error_code": 503 if failed else None,
        "error_msg": "overloaded" if failed else "",
    }
    return json.dumps(row).encode() + b"\n"


def alive(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/live", timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


def post(url: str, path: str, document: Mapping[str, Any] | None = None) -> Any:
    """POST to an API that may be going down or coming up; raises ``httpx.HTTPError``."""
    answer = httpx.post(url + path, json=document, timeout=10)
    answer.raise_for_status()
    return answer.json()
