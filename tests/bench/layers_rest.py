"""``rest_ratio``: a list of 100 statements from the running server against a bare route that has the bytes at hand."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.http_load import get, requests_per_second
from tests.bench.main import ROOT

HOST = "127.0.0.1"
STATEMENTS = 100
PATH = f"/v1/statements?limit={STATEMENTS}"
ROUNDS = 5
CLIENTS = 4
ROUND_S = 2.0

_BARE = """
import asyncio, socket, sys
import uvicorn
from litestar import Litestar, Response, get

body = open(sys.argv[1], "rb").read()

@get("/v1/statements")
async def statements(limit: int) -> Response[bytes]:
    return Response(body, media_type="application/json")

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
config = uvicorn.Config(Litestar([statements]), log_level="warning", access_log=False, server_header=False)
asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))
"""


def rest_ratio() -> dict[str, float]:
    """Requests a second of ours over those of the bare route, rounds taking turns; the ratio of the medians."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        fill(data)
        with our_server(data) as port:
            body = get(HOST, port, PATH)
            if len(json.loads(body)["items"]) != STATEMENTS:
                raise SystemExit("the page does not hold every statement; the figure would mean nothing")
            (Path(folder) / "body").write_bytes(body)
            with bare_server(Path(folder) / "body") as bare_port:
                ours, bare = [], []
                for _ in range(ROUNDS):
                    ours.append(requests_per_second(HOST, port, PATH, seconds=ROUND_S, clients=CLIENTS))
                    bare.append(requests_per_second(HOST, bare_port, PATH, seconds=ROUND_S, clients=CLIENTS))
    for who, rates in (("ours", ours), ("bare route", bare)):
        spread = f"{min(rates):,.0f} to {max(rates):,.0f}"
        print(f"  statements {who}: {statistics.median(rates):,.0f}/s ({spread})", file=sys.stderr)
    return {"rest_ratio": statistics.median(ours) / statistics.median(bare)}


def fill(folder: Path) -> None:
    """A data directory with one agreement and ``STATEMENTS`` proved and anchored statements."""
    from ledger.wiring import create_data
    from tests.api.filled import Ledger

    services = create_data(folder, key_cache=folder.parent / "keys", notify=lambda _: None)
    ledger = Ledger(services.database)
    sla_id = ledger.agreement(1)
    for day in range(STATEMENTS):
        statement_id = ledger.statement(sla_id, day)
        ledger.attest(statement_id, sla_id)
        ledger.anchor(statement_id, sla_id)
    services.close()


@contextmanager
def our_server(data: Path) -> Iterator[int]:
    command = [sys.executable, "-m", "ledger.cli.main", "up", "--data", str(data), "--port", "0", "--json"]
    with _running(command) as process:
        assert process.stdout is not None
        yield int(json.loads(process.stdout.readline())["url"].rsplit(":", 1)[1])


@contextmanager
def bare_server(body: Path) -> Iterator[int]:
    with _running([sys.executable, "-c", _BARE, str(body)]) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())


@contextmanager
def _running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, env=os.environ.copy())
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
